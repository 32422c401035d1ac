//! 128-bit numbers as 22 characters of `0-9A-Za-z`, which sort in the same order as the numbers. A hyphenated UUID takes
//! 36 characters.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Characters of 128 bits.
pub const WIDTH: usize = 22;

/// Most significant first, so that texts sort in the order of their numbers.
#[must_use]
pub fn encode(mut number: u128, width: usize) -> String {
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(number % 62) as usize];
        number /= 62;
    }
    digits.into_iter().map(char::from).collect()
}

/// The inverse of [`encode`]; `None` for any other character or a number beyond 128 bits.
#[must_use]
pub fn decode(text: &str) -> Option<u128> {
    text.bytes().try_fold(0u128, |number, byte| {
        let digit = DIGITS.iter().position(|&known| known == byte)? as u128;
        number.checked_mul(62)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_number_fits() {
        assert_eq!(decode(&encode(u128::MAX, WIDTH)), Some(u128::MAX));
        assert_eq!(decode(&"z".repeat(WIDTH)), None, "62^22 is above 2^128");
        assert_eq!(decode("0-"), None);
    }

    proptest! {
        #[test]
        fn decoding_gives_the_number_back(number: u128) {
            prop_assert_eq!(decode(&encode(number, WIDTH)), Some(number));
        }

        #[test]
        fn texts_sort_in_the_order_of_their_numbers(a: u128, b: u128) {
            prop_assert_eq!(encode(a, WIDTH).cmp(&encode(b, WIDTH)), a.cmp(&b));
        }
    }
}
