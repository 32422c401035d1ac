//! Normalized forms of texts, for comparison.

use icu_normalizer::ComposingNormalizerBorrowed;
use std::borrow::Cow;

/// Trims a text, and replaces every run of white space, such as no-break spaces, with one space.
pub fn single_spaced(text: &str) -> Cow<'_, str> {
    let is_spaced = |text: &str| {
        let mut was_space = false;
        text.chars().all(|c| {
            let is_space = c.is_whitespace();
            let is_good = !is_space || c == ' ' && !was_space;
            was_space = is_space;
            is_good
        })
    };
    let text = text.trim();
    if is_spaced(text) { Cow::Borrowed(text) } else { text.split_whitespace().collect::<Vec<_>>().join(" ").into() }
}

/// Case-folds a string: the result is the same for `Straße`, `STRASSE` and `strasse`.
///
/// Uppercasing unifies characters with the same upper case (ß and SS, σ and ς). Lowercasing comes first because the capital ẞ is
/// its own upper case.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            // Same upper case as i, but a different letter (Unicode, CaseFolding.txt).
            'ı' => folded.push(c),
            c => folded.extend(c.to_uppercase().flat_map(char::to_lowercase)),
        }
    }
    folded
}

/// Converts a string to lower case in composed form (Unicode's NFC): for words that people type, not for values that are compared.
pub fn lower(text: &str) -> String {
    const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();
    if text.is_ascii() { text.to_ascii_lowercase() } else { NFC.normalize(&text.to_lowercase()).into_owned() }
}

/// Case-folds a string and ignores the width of characters (Unicode's NFKC), as for e-mail addresses.
pub fn compatible(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfkc();
    // Normalized again because folding can decompose a letter.
    NFKC.normalize(&fold(&NFKC.normalize(text))).into_owned()
}

/// Returns the same key for names that differ only in case, width, or the kind and number of spaces.
pub fn name_key(name: &str) -> String {
    single_spaced(&compatible(name)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_covers_more_than_ascii() {
        assert_eq!(fold("STRASSE"), fold("straße"));
        assert_eq!(fold("GROẞ"), fold("groß"));
        assert_eq!(fold("ΟΔΟΣ"), fold("οδος"));
        assert_eq!(fold("Ünal"), fold("ÜNAL"));
        assert_ne!(fold("kadı"), fold("kadi"));
    }

    #[test]
    fn runs_of_white_space_become_one_space() {
        for text in ["3rd floor", " 3rd\u{a0}floor", "3rd \u{2009}\u{3000}floor\t", "3rd\u{202f}floor", "3rd  floor"] {
            assert_eq!(single_spaced(text), "3rd floor", "{text:?}");
        }
        assert_eq!([single_spaced(" "), single_spaced(""), single_spaced("a")], ["", "", "a"]);
    }

    #[test]
    fn names_are_the_same_in_another_case_and_width_and_with_other_spaces() {
        for name in ["ThinkPad\u{a0}T14", "thinkpad  t14", "ＴｈｉｎｋＰａｄ\u{3000}Ｔ１４", " ThinkPad\tT14 "] {
            assert_eq!(name_key(name), "thinkpad t14", "{name}");
        }
        assert_eq!(name_key("E\u{301}cran"), name_key("écran"));
        assert_ne!(name_key("Think Pad"), name_key("ThinkPad"));
    }
}
