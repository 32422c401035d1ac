//! Hexadecimal text.

use sha2::{Digest, Sha256};

/// Returns the hash in lower-case hexadecimal.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    encode(&Sha256::digest(bytes))
}

/// Returns lower-case digits.
pub fn encode(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_hash_is_that_of_the_standards_example() {
        assert_eq!(super::sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
