//! SearchTerms that are searched for.

use crate::domain::text::fold;
use memchr::memmem::Finder;

/// SearchTerms that must all occur in some text of a thing, without regard to case (contract 6).
#[derive(Debug, Clone, Default)]
pub struct SearchTerms {
    /// The longest word, which is likely to be the rarest.
    first: Option<Finder<'static>>,
    others: Vec<Finder<'static>>,
}

impl SearchTerms {
    /// The words of a search text.
    pub fn of(search: Option<&str>) -> Self {
        let text = fold(search.unwrap_or_default());
        let mut words: Vec<&str> = text.split_whitespace().collect();
        words.sort_by_key(|word| word.len());
        let first = words.pop().map(|word| Finder::new(word).into_owned());
        Self { first, others: words.into_iter().map(|word| Finder::new(word).into_owned()).collect() }
    }

    /// Whether nothing is searched for.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Finds the word that is looked for first.
    pub fn finder(&self) -> Option<&Finder<'static>> {
        self.first.as_ref()
    }

    /// Whether all words occur in these texts.
    pub fn occur_in(&self, texts: &str) -> bool {
        self.first.iter().chain(&self.others).all(|word| word.find(texts.as_bytes()).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_occur_somewhere() {
        let texts = fold("Dell XPS 13\nSN-äß");
        assert!(SearchTerms::of(Some("xps DELL")).occur_in(&texts));
        assert!(SearchTerms::of(Some("ÄSS 13")).occur_in(&texts));
        assert!(SearchTerms::of(Some("  ")).occur_in("") && SearchTerms::of(Some(" ")).is_empty());
        assert!(!SearchTerms::of(Some("dell mac")).occur_in(&texts));
    }
}
