//! The states of a tenant's records, as the clients know them.

use tokio::time::Instant;

/// A write of a record. It may have taken effect since it was noted.
#[derive(Debug, Clone)]
struct Write<S> {
    /// It must have taken effect by then.
    ended: Option<Instant>,
    /// `None` if the record is deleted.
    state: Option<S>,
}

/// The states of one record. Its writes come one after the other, because a client reserves the record for each.
#[derive(Debug, Clone)]
pub struct Register<S> {
    writes: Vec<Write<S>>,
    pub is_reserved: bool,
    pub changes: u64,
}

impl<S> Default for Register<S> {
    fn default() -> Self {
        Self { writes: Vec::new(), is_reserved: false, changes: 0 }
    }
}

impl<S: Clone> Register<S> {
    pub fn begin(&mut self, state: Option<S>) {
        self.writes.push(Write { ended: None, state });
    }

    pub fn end(&mut self) {
        self.changes += 1;
        if let Some(write) = self.writes.last_mut() {
            write.ended = Some(Instant::now());
        }
    }

    pub fn abandon(&mut self) {
        self.writes.pop();
    }

    pub fn state(&self) -> Option<&S> {
        self.writes.last()?.state.as_ref()
    }

    pub fn is_changing(&self) -> bool {
        self.writes.last().is_some_and(|write| write.ended.is_none())
    }

    /// The possible results of a read that began at `from` and ends now.
    pub fn possible(&self, from: Instant) -> Vec<Option<S>> {
        let certain = self.writes.iter().rposition(|write| write.ended.is_some_and(|ended| ended <= from));
        let mut states: Vec<Option<S>> = Vec::new();
        if certain.is_none() {
            states.push(None);
        }
        states.extend(self.writes[certain.unwrap_or(0)..].iter().map(|write| write.state.clone()));
        states
    }
}
