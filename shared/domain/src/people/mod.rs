//! Personal data: where it is stored, and its erasure (docs/adr/0021-people.md).

mod erasure;
mod traces;

pub use crate::history::event::{pseudonym, replacement};
pub use erasure::{Erase, Erasure, Obstacle, PartEnd, Removed, erased_people};
pub use traces::{Traces, actor_pointers, is_person, lead, personal_fields, picks};
