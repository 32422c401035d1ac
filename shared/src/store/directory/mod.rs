//! What lists are made from: a copy of a tenant's directory in memory, brought up to date by the events that were
//! written since (docs/adr/0008). A cache: the table stays the only truth.

mod assets;
mod block;
mod book;
mod cache;
mod follow;
mod news;
mod people_and_runs;
mod search;
mod shelf;

pub(super) use assets::{AssetBook, AssetFacts};
pub(super) use block::{Place, View};
pub(super) use book::{Book, Facts, card};
pub(super) use cache::Cache;
pub(super) use follow::{LAG, Witness, late};
pub(super) use people_and_runs::{MovementFacts, RunFacts, UserFacts};
pub(super) use search::Words;
pub(super) use shelf::{Shelf, Spot};
