//! 128-bit numbers as 22 characters of `0-9A-Za-z`, which sort in the same order as the numbers. A hyphenated UUID takes
//! 36 characters.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Number of digits computed at a time, as many as fit in 64 bits: 128-bit divisions are slow.
const DIGITS_OF_PART: usize = 10;
const PART: u128 = 62u128.pow(DIGITS_OF_PART as u32);

/// Number of characters for 128 bits.
pub const WIDTH: usize = 22;

/// Encodes a number with fixed width, most significant digit first, so that strings sort like their numbers.
pub fn encode(mut number: u128, width: usize) -> String {
    let mut digits = vec![b'0'; width];
    for part in digits.rchunks_mut(DIGITS_OF_PART) {
        let mut part_number = (number % PART) as u64;
        number /= PART;
        for digit in part.iter_mut().rev() {
            *digit = DIGITS[(part_number % 62) as usize];
            part_number /= 62;
        }
    }
    digits.into_iter().map(char::from).collect()
}

/// Parses text written by [`encode`]; `None` for other characters and for numbers beyond 128 bits.
pub fn decode(text: &str) -> Option<u128> {
    text.bytes().try_fold(0u128, |number, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'A'..=b'Z' => byte - b'A' + 10,
            b'a'..=b'z' => byte - b'a' + 36,
            _ => return None,
        };
        number.checked_mul(62)?.checked_add(digit.into())
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
