//! Texts in the form in which they are compared.

use icu_normalizer::ComposingNormalizerBorrowed;

/// Equal for texts that differ only in case: `Straße`, `STRASSE` and `strasse`.
///
/// Upper case unifies characters that share it (ß and SS, σ and ς). Lower case comes before that because the capital ẞ is its own
/// upper case.
#[must_use]
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            // It shares its upper case with i, and is another letter (Unicode, CaseFolding.txt).
            'ı' => folded.push(c),
            c => folded.extend(c.to_uppercase().flat_map(char::to_lowercase)),
        }
    }
    folded
}

/// Case-folded, with one form for characters of different width (Unicode's NFKC).
pub(crate) fn compatible(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfkc();
    // Folding can take a composed letter apart.
    NFKC.normalize(&fold(&NFKC.normalize(text))).into_owned()
}

/// Equal for names that differ only in case, in width, and in the kind and number of spaces.
#[must_use]
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
