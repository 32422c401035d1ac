//! Personal data: where it is stored, and its erasure (docs/adr/0021-people.md).

pub mod called;
mod erasure;
mod person;
mod traces;

pub use crate::history::event::{pseudonym, replacement};
pub use erasure::{Erase, Erasure, GuestObstacle, Obstacle, PartEnd, Removed, erased_people};
pub use person::Person;
pub use traces::{Traces, actor_pointers, addresses, is_person, lead, personal_fields, picks};
