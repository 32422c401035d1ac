//! Pages of lists.

use uuid::Uuid;

/// The records that a page names because they can't be read.
pub(in crate::store) const MAX_UNREADABLE: usize = 100;

/// The page of a list that a request selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// The page's number, from 1.
    pub number: u32,
    /// Items on a page, 1 to 100.
    pub limit: u32,
}

impl PageRequest {
    pub(in crate::store) fn skip(self) -> usize {
        (self.number as usize).saturating_sub(1).saturating_mul(self.limit as usize)
    }
}

#[derive(Debug, Clone)]
pub struct Page<T> {
    /// In the list's order.
    pub items: Vec<T>,
    pub total: usize,
    pub request: PageRequest,
    /// Records that `items` lacks because they can't be read.
    pub unreadable: Vec<Uuid>,
}

impl<T> Page<T> {
    #[must_use]
    pub fn cut_from(list: Vec<T>, request: PageRequest) -> Self {
        let total = list.len();
        let items = list.into_iter().skip(request.skip()).take(request.limit as usize).collect();
        Self { items, total, request, unreadable: Vec::new() }
    }

    /// With those of the list's records besides that can't be read, of which a page names some.
    #[must_use]
    pub(in crate::store) fn with_unreadable(mut self, others: Vec<Uuid>) -> Self {
        self.unreadable.extend(others);
        self.unreadable.truncate(MAX_UNREADABLE);
        self
    }

    pub fn map<V>(self, view: impl FnMut(T) -> V) -> Page<V> {
        let Self { items, total, request, unreadable } = self;
        Page { items: items.into_iter().map(view).collect(), total, request, unreadable }
    }
}
