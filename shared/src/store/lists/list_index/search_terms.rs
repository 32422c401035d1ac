//! The words of a search.

use crate::domain::values::text::fold;
use memchr::memmem::Finder;

/// Words that must all occur in some text of a row, without regard to case.
#[derive(Debug, Clone, Default)]
pub struct SearchTerms {
    /// The longest word, which is likely to be the rarest.
    longest: Option<Finder<'static>>,
    others: Vec<Finder<'static>>,
}

impl SearchTerms {
    pub fn of(search: Option<&str>) -> Self {
        let text = fold(search.unwrap_or_default());
        let mut words: Vec<&str> = text.split_whitespace().collect();
        words.sort_by_key(|word| word.len());
        let longest = words.pop().map(|word| Finder::new(word).into_owned());
        Self { longest, others: words.into_iter().map(|word| Finder::new(word).into_owned()).collect() }
    }

    /// Without words, every text matches.
    pub fn is_empty(&self) -> bool {
        self.longest.is_none()
    }

    /// For the word to search for first.
    pub fn finder(&self) -> Option<&Finder<'static>> {
        self.longest.as_ref()
    }

    /// `texts` must be case-folded.
    pub fn occur_in(&self, texts: &str) -> bool {
        self.longest.iter().chain(&self.others).all(|word| word.find(texts.as_bytes()).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_occur_in_some_text() {
        let texts = fold("Dell XPS 13\nSN-äß");
        assert!(SearchTerms::of(Some("xps DELL")).occur_in(&texts));
        assert!(SearchTerms::of(Some("ÄSS 13")).occur_in(&texts));
        assert!(SearchTerms::of(Some("  ")).occur_in("") && SearchTerms::of(Some(" ")).is_empty());
        assert!(!SearchTerms::of(Some("dell mac")).occur_in(&texts));
    }
}
