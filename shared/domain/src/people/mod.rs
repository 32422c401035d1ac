//! What is held about a person who is a user, and what stands in its place once the person is erased (docs/adr/0021-people.md).

mod erase;
mod erased;
mod erasure;
mod obstacle;
mod removed;
mod traces;

pub use crate::pseudonym::{pseudonym, replacement};
pub use erase::Erase;
pub use erased::erased_people;
pub use erasure::{Erasure, PartEnd};
pub use obstacle::Obstacle;
pub use removed::Removed;
pub use traces::{Traces, actor_pointers, is_person, lead, personal_fields, picks};
