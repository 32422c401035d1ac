//! Normalized forms of texts, for comparison.

use icu_normalizer::ComposingNormalizerBorrowed;

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

/// Case-folds a string and ignores the width of characters (Unicode's NFKC).
pub(crate) fn compatible(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfkc();
    // Normalized again because folding can decompose a letter.
    NFKC.normalize(&fold(&NFKC.normalize(text))).into_owned()
}

/// Returns the same key for names that differ only in case, width, or the kind and number of spaces.
pub fn name_key(name: &str) -> String {
    compatible(name).split_whitespace().collect::<Vec<_>>().join(" ")
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
    fn names_are_the_same_in_another_case_and_width_and_with_other_spaces() {
        for name in ["ThinkPad\u{a0}T14", "thinkpad  t14", "ＴｈｉｎｋＰａｄ\u{3000}Ｔ１４", " ThinkPad\tT14 "] {
            assert_eq!(name_key(name), "thinkpad t14", "{name}");
        }
        assert_eq!(name_key("E\u{301}cran"), name_key("écran"));
        assert_ne!(name_key("Think Pad"), name_key("ThinkPad"));
    }
}
