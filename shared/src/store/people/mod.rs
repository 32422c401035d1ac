//! What the table holds about a person: found for a report, and erased (docs/adr/0021-people.md).

mod erase;
mod held;

pub use erase::PartAbout;
pub use held::Held;
