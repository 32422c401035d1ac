//! Hashes as text.

use sha2::{Digest, Sha256};

/// SHA-256 in lower-case hexadecimal.
#[must_use]
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    of(&Sha256::digest(bytes))
}

/// Bytes in lower-case hexadecimal.
#[must_use]
pub fn of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_standards_own_example() {
        assert_eq!(super::sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
