//! Text in UTF-8, as far as API Gateway lets a function see that.

/// What is wrong with a text that [`utf8`] refuses.
pub const NOT_UTF8: &str = "is not UTF-8, or contains U+FFFD, the replacement character";

/// The text of a part of a body. `None` for one that is not UTF-8, and for one with U+FFFD: API Gateway hands bodies over as
/// strings, in which U+FFFD stands for each byte that it could not decode.
pub fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains(char::REPLACEMENT_CHARACTER))
}

/// As [`utf8`], for JSON: U+FFFD may also be escaped, by a client that decoded a text before.
pub fn utf8_json(bytes: &[u8]) -> Option<&str> {
    utf8(bytes).filter(|text| !has_escaped_replacement(text))
}

fn has_escaped_replacement(json: &str) -> bool {
    let mut rest = json.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        // The escape, without its backslash.
        let (_, escape) = rest.split_at(at + 1);
        if escape.get(..5).is_some_and(|escape| escape.eq_ignore_ascii_case(b"ufffd")) {
            return true;
        }
        rest = escape.get(1..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_were_replaced_are_not_utf8() {
        assert_eq!(utf8("Größe".as_bytes()), Some("Größe"));
        assert_eq!([&b"Gr\xf6\xdfe"[..], "Gr\u{fffd}\u{fffd}e".as_bytes()].map(utf8), [None, None]);
        for json in [r#""\ufffd""#, r#""a\\\uFFFD""#, r#""\u00e9\uFffD"#] {
            assert_eq!(utf8_json(json.as_bytes()), None, "{json}");
        }
        for json in [r#""\\ufffd""#, r#""\ufffe \u00e9""#, r"\", r"\ufff", "ufffd"] {
            assert_eq!(utf8_json(json.as_bytes()), Some(json));
        }
    }
}
