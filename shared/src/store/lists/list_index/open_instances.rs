//! The list index of process instances in progress. The ended ones, of which there are more every day, need not be read.

use super::blocks::{Decoder, Encoder};
use super::change_event::{ChangeEvent, Inconsistent};
use super::columns::row_from_item;
use super::index::ListIndex;
use super::other_columns::InstanceColumns;
use super::rows::SortedRows;
use crate::domain::processes::instance::{Instance, InstanceStatus};
use crate::domain::record::Kind;
use crate::store::keys::{Item, Section};
use uuid::Uuid;

#[derive(Debug, Default)]
pub struct OpenInstances(pub SortedRows<InstanceColumns>);

impl ListIndex for OpenInstances {
    type Entity = Instance;
    const SECTIONS: &'static [Section] = &[Section::OpenInstances];
    /// There are few, and they change often.
    const HAS_SNAPSHOTS: bool = false;
    /// Ended instances are removed, and can still change: an erasure may replace their `step_data`.
    const DROPS_ENDED: bool = true;
    const JOINED_KINDS: &'static [Kind] = &[];

    fn load_item(&mut self, _: Kind, item: &Item) -> Result<(), Inconsistent> {
        let row = row_from_item::<InstanceColumns>(item)?;
        if row.facet.status == Some(InstanceStatus::InProgress) {
            self.0.upsert(row);
        } else {
            self.0.remove(row.id);
        }
        Ok(())
    }

    fn version(&self, kind: Kind, id: Uuid) -> Option<u64> {
        self.0.version(kind, id)
    }

    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent> {
        self.0.apply_change(event)
    }

    fn remove(&mut self, _: Kind, id: Uuid) {
        self.0.remove(id);
    }

    /// An ended instance is never resumed.
    fn is_removed_by(event: &ChangeEvent) -> bool {
        let is_ended = |status: &str| status != InstanceStatus::InProgress.as_str();
        event.is_deletion() || event.new_text("status").is_some_and(is_ended)
    }

    fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, encoder: &mut Encoder) {
        self.0.encode(encoder);
    }

    fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self> {
        SortedRows::decode(decoder, with_optional).map(Self)
    }
}
