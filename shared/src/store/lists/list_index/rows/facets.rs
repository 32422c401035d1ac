//! Facets: combinations of values that many rows share. Each is stored once, with its row count, so that counting by facet reads
//! no rows.

use crate::domain::values::natural_order::natural_cmp;
use crate::store::lists::list_index::blocks::{Decoder, Encoder, to_u32};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

pub trait Facet: Debug + Clone + Default + Eq + Hash + Send + Sync + 'static {
    /// Size of the facet's texts.
    fn text_bytes(&self) -> usize {
        0
    }

    fn encode(&self, encoder: &mut Encoder);

    /// Reads a facet from a snapshot; `None` if [`Facet::encode`] can't have written it.
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self>;
}

/// The facets of an index. Each row has the number of its facet.
#[derive(Debug)]
pub struct Facets<F> {
    /// Facets with their row counts. An entry without rows is free.
    entries: Vec<(F, usize)>,
    numbers: HashMap<F, u32>,
    free: Vec<u32>,
    text_bytes: usize,
}

impl<F> Default for Facets<F> {
    fn default() -> Self {
        Self { entries: Vec::new(), numbers: HashMap::new(), free: Vec::new(), text_bytes: 0 }
    }
}

impl<F: Facet> Facets<F> {
    pub fn get(&self, number: u32) -> Option<&F> {
        self.entries.get(number as usize).map(|(facet, _)| facet)
    }

    /// Facets with their row counts.
    pub fn iter(&self) -> impl Iterator<Item = (&F, usize)> {
        self.entries.iter().filter(|(_, rows)| *rows > 0).map(|(facet, rows)| (facet, *rows))
    }

    /// Row counts by facet number.
    pub fn counts(&self) -> Vec<u64> {
        self.entries.iter().map(|(_, rows)| *rows as u64).collect()
    }

    /// The place of each facet's text among all texts, by number. Equal texts have the same place.
    pub fn ranks(&self, text: fn(&F) -> &'static str) -> Vec<usize> {
        let mut texts: Vec<_> = self.entries.iter().map(|(facet, _)| text(facet)).collect();
        texts.sort_by(|a, b| natural_cmp(a, b));
        let rank = |facet: &F| texts.partition_point(|other| natural_cmp(other, text(facet)) == Ordering::Less);
        self.entries.iter().map(|(facet, _)| rank(facet)).collect()
    }

    /// Whether each facet passes the filter, by number, and how many rows have a passing facet.
    pub fn select(&self, filter: impl Fn(&F) -> bool) -> (Vec<bool>, usize) {
        let selected: Vec<bool> = self.entries.iter().map(|(facet, rows)| *rows > 0 && filter(facet)).collect();
        let rows = self.entries.iter().zip(&selected).filter(|(_, is_selected)| **is_selected).map(|((_, rows), _)| rows);
        let count = rows.sum();
        (selected, count)
    }

    /// Counts a row. Returns the number of its facet.
    pub fn add(&mut self, facet: F) -> u32 {
        let number = self.numbers.get(&facet).copied().unwrap_or_else(|| self.insert(facet));
        self.entries.get_mut(number as usize).into_iter().for_each(|(_, rows)| *rows += 1);
        number
    }

    fn insert(&mut self, facet: F) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| to_u32(self.entries.len()));
        // Once in the list, once in the map.
        self.text_bytes += 2 * facet.text_bytes();
        self.numbers.insert(facet.clone(), number);
        match self.entries.get_mut(number as usize) {
            Some(entry) => *entry = (facet, 0),
            None => self.entries.push((facet, 0)),
        }
        number
    }

    /// Uncounts a row. Drops a facet without rows.
    pub fn remove(&mut self, number: u32) {
        let Some((facet, rows)) = self.entries.get_mut(number as usize) else { return };
        *rows = rows.saturating_sub(1);
        if *rows == 0 {
            let facet = std::mem::take(facet);
            self.text_bytes -= 2 * facet.text_bytes();
            self.numbers.remove(&facet);
            self.free.push(number);
        }
    }

    pub fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
        self.numbers.shrink_to_fit();
    }

    pub fn bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<(F, usize)>();
        entries + self.numbers.capacity() * size_of::<(F, u32)>() + self.free.capacity() * size_of::<u32>() + self.text_bytes
    }

    /// Omits the row counts, which can be derived from the rows.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.entries.len() as u64);
        for (facet, _) in &self.entries {
            facet.encode(encoder);
            encoder.may_end_block();
        }
    }

    /// Reads facets from a snapshot; `None` if [`Facets::encode`] can't have written it. Afterwards, count every row with
    /// [`Facets::count`], and then call [`Facets::finish`].
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (mut facets, count) = (Self::default(), decoder.number()?);
        // Facets without values take no bytes, so the snapshot's size doesn't limit their number. But they are all equal.
        (size_of::<F>() > 0 || count <= 1).then_some(())?;
        for _ in 0..count {
            facets.entries.push((F::decode(decoder)?, 0));
        }
        Some(facets)
    }

    /// Counts a row of a snapshot; `None` if there is no such facet.
    pub fn count(&mut self, number: u32) -> Option<()> {
        self.entries.get_mut(number as usize)?.1 += 1;
        Some(())
    }

    /// `None` if a facet occurs twice.
    pub fn finish(mut self) -> Option<Self> {
        for (number, (facet, rows)) in self.entries.iter().enumerate() {
            if *rows == 0 {
                self.free.push(to_u32(number));
                continue;
            }
            self.text_bytes += 2 * facet.text_bytes();
            self.numbers.insert(facet.clone(), to_u32(number)).is_none().then_some(())?;
        }
        Some(self)
    }
}
