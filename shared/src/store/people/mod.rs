//! What the table holds about a person: found for a report, and erased (docs/adr/0021-people.md).

mod entries;
mod erase;
mod erasures;
mod held;
mod images;
mod obstacles;
mod pass;
mod remains;
mod responses;

pub use held::Held;
pub use pass::PartAbout;
