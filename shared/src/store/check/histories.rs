//! Records that disagree with their events.

use super::record_repair::Present;
use super::scan::{ORDER, ScannedChain};
use super::{TenantCheck, named};
use crate::domain::history::chain::Chain;
use crate::domain::history::chain::state::{ChainState, classify};
use crate::domain::record::Kind;
use crate::domain::restore::Restore;
use crate::domain::values::id::Id;
use crate::store::history::history_head::HistoryHead;
use crate::store::table::delays::max_event_delay;
use crate::store::table::error::StoreError;
use uuid::Uuid;

/// `head` is from the record's item, and `last` from the event with the highest version.
pub(super) fn state_of(chain: Chain, head: Option<&HistoryHead>, last: Option<&HistoryHead>) -> ChainState {
    let is_named = head.zip(last).is_none_or(|(head, last)| head.last_event == last.last_event);
    classify(chain, head.map(|head| &head.chain), last.map_or(0, |last| last.chain.version), is_named)
}

impl TenantCheck<'_> {
    /// Repairs records that differ from their events.
    pub(super) async fn check_histories(&mut self) -> Result<(), StoreError> {
        let mut differing: Vec<(usize, Uuid, Kind, ChainState)> = Vec::new();
        for (id, ScannedChain { kind, chain, last }) in std::mem::take(&mut self.chains) {
            let newest = last.as_ref().map_or(0, |last| last.chain.version);
            if self.unreadable.contains_key(&id) {
                self.history_lengths.insert(id, newest);
                continue;
            }
            let Some(kind) = kind else {
                self.unknown.insert(id);
                self.report(format!("record {id}"), "its type is unknown", "use the release that wrote it");
                continue;
            };
            self.deletions.extend(last.clone().filter(|_| chain.ends_with_deletion()).map(|head| ((kind, id), head)));
            let head = self.records.get(&(kind, id)).map(|facts| &facts.head);
            // A chain that is broken in the middle still tells how long it is.
            let length = newest.max(head.map_or(0, |head| head.chain.version));
            self.history_lengths.insert(id, length);
            let state = state_of(chain, head, last.as_ref());
            let rank = ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len());
            if state != ChainState::Consistent {
                differing.push((rank, id, kind, state));
            }
        }
        differing.sort_by_key(|(rank, id, ..)| (*rank, *id));
        self.check_unreadable().await?;
        for (_, id, kind, state) in differing {
            with_type!(kind, T => self.repair_history::<T>(id, state).await?);
        }
        Ok(())
    }

    async fn repair_history<T: Restore>(&mut self, id: Uuid, state: ChainState) -> Result<(), StoreError> {
        let state = match state {
            ChainState::Broken(link) => match self.remove_torn_entries::<T>(id, &link).await? {
                Some(ChainState::Consistent) => return Ok(()),
                state => state.unwrap_or(ChainState::Broken(link)),
            },
            state => state,
        };
        let subject = named((T::KIND, id));
        let is_known = self.records.contains_key(&(T::KIND, id));
        if let ChainState::Broken(link) = state {
            self.leave(id, is_known);
            let problem = format!("its history is broken at version {}: {}", link.version, link.reason);
            self.report(
                subject,
                problem,
                "entries are never replaced in the middle of a history; compare with a copy of the events",
            );
            return Ok(());
        }
        let Some(past) = self.past(id).await? else {
            self.leave(id, is_known);
            self.report(subject, "its history can't be read as a whole", "check again in a minute");
            return Ok(());
        };
        let present = self.present::<T>(id).await?;
        let length = past.version();
        match (state, present) {
            (ChainState::RecordBehind, Some(present)) if present.stored.version < length => {
                self.roll_forward(present, &past).await
            }
            (ChainState::EventLost, Some(present)) if present.stored.version > length && !self.is_recent(&present) => {
                self.replace_entries(present, &past).await
            }
            (ChainState::OtherEvent, Some(present)) if present.stored.version == length => {
                self.name_last_event(present, &past).await
            }
            (ChainState::RecordLost, None) => self.restore_record::<T>(id, &past).await,
            (ChainState::RecordLeft, Some(present)) if present.stored.version < length => {
                self.finish_deletion(present, &past).await
            }
            _ => {
                self.is_disturbed = true;
                self.report(subject, "it changes while it is checked", "stop what writes to the tenant and check again");
                Ok(())
            }
        }
    }

    /// Remembers a record whose history can't be repaired, and, if it is lost, its unknown state.
    fn leave(&mut self, id: Uuid, is_known: bool) {
        self.unrepaired.insert(id);
        if !is_known {
            self.unknown.insert(id);
        }
    }

    /// The event of a record's last change may only be late.
    fn is_recent<T>(&self, present: &Present<T>) -> bool {
        present.stored.last_event.timestamp() > self.began.plus(-max_event_delay())
    }
}
