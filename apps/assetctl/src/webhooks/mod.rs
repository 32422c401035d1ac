//! Events as they come, sent to a receiver on this computer.

pub mod args;
pub mod feed;
pub mod listen;
pub mod print;
pub mod receiver;
pub mod signature;
