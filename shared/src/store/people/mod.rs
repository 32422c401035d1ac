//! Finds and erases personal data in the table (docs/adr/0021-people.md).

mod erase;
mod held;

pub use erase::PartAbout;
pub use held::Held;
