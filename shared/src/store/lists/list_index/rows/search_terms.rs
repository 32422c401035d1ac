//! The words of a search.

use super::trigrams::{Trigram, TrigramSet};
use crate::domain::values::text::fold;
use memchr::memmem::Finder;

/// Words that must all occur in some text of a row, without regard to case.
#[derive(Debug, Clone, Default)]
pub struct SearchTerms {
    /// The longest word, which is likely to be the rarest.
    longest: Option<Finder<'static>>,
    others: Vec<Finder<'static>>,
    trigrams: Vec<Trigram>,
}

impl SearchTerms {
    pub fn of(search: Option<&str>) -> Self {
        let text = fold(search.unwrap_or_default());
        let mut words: Vec<&str> = text.split_whitespace().collect();
        words.sort_by_key(|word| word.len());
        let trigrams = words.iter().copied().flat_map(Trigram::all_of).collect();
        let longest = words.pop().map(|word| Finder::new(word).into_owned());
        Self { longest, others: words.into_iter().map(|word| Finder::new(word).into_owned()).collect(), trigrams }
    }

    /// Without words, every text matches.
    pub fn is_empty(&self) -> bool {
        self.longest.is_none()
    }

    /// For the word to search for first.
    pub fn finder(&self) -> Option<&Finder<'static>> {
        self.longest.as_ref()
    }

    /// False only if a word occurs in none of the texts that the set was made of.
    pub fn may_occur_in(&self, texts: &TrigramSet) -> bool {
        self.trigrams.iter().all(|trigram| texts.contains(*trigram))
    }

    /// Whether all words but that of [`SearchTerms::finder`] do. `texts` must be case-folded.
    pub fn others_occur_in(&self, texts: &str) -> bool {
        self.others.iter().all(|word| word.find(texts.as_bytes()).is_some())
    }

    /// `texts` must be case-folded.
    pub fn occur_in(&self, texts: &str) -> bool {
        self.longest.iter().all(|word| word.find(texts.as_bytes()).is_some()) && self.others_occur_in(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_occur_in_some_text() {
        let texts = fold("Dell XPS 13\nSN-äß");
        let set = TrigramSet::of(&texts);
        for words in ["xps DELL", "ÄSS 13", "  "] {
            let terms = SearchTerms::of(Some(words));
            assert!(terms.occur_in(&texts) && terms.may_occur_in(&set), "{words}");
        }
        assert!(SearchTerms::of(Some(" ")).is_empty());
        let terms = SearchTerms::of(Some("dell mac"));
        assert!(!terms.occur_in(&texts) && !terms.may_occur_in(&set));
    }
}
