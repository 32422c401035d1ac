//! Checks the invariants across the items of a tenant, and repairs them, for the operator.
//!
//! Every change of the service is one transaction. Only a point-in-time restore can take one apart: the restored table may hold a
//! part of the last writes. The check looks for such parts and completes them:
//!
//! 1. `histories.rs`, `record_history.rs`: each record agrees with its events. A record that is behind or
//!    lost becomes what its events say. A lost event is replaced by an entry of the operator's. No event is ever changed,
//!    and none removed but the rest of a transaction that has lost an earlier event of the same record
//!    (`torn_histories.rs`).
//! 2. `responses.rs`: each stored response tells of something that happened.
//! 3. `processes.rs`: movements, their instances and the assets agree.
//! 4. `derived.rs`, `counters.rs`: items that can be computed from the records.
//! 5. `people.rs`: nothing is left of people who were erased. Only another erasure mends that.
//!
//! Claims of serial numbers need no check: an upsert replaces one whose asset doesn't exist, and one that is lost was needed
//! only until lists show its asset. Nor do counters of asset tags: a creation passes tags that are taken.
//!
//! Each repair is a transaction of its own, on condition that its items are still as they were read. The decisions are
//! pure functions: `domain::history::chain::state` and `process_links.rs`.

/// Evaluates an expression with `$T` as the type of the records of a kind.
macro_rules! with_type {
    ($kind:expr, $T:ident => $value:expr) => {
        with_type!(
            $kind, $T => $value;
            tenants::tenant as Tenant, keys::api_key as ApiKey, user as User, catalog as AssetType, catalog as Manufacturer,
            catalog as Model, processes::process as Process, assets::asset as Asset, processes::instance as Instance,
            processes::movement as Movement, receipts::key as ReceiptKeys, signing::link as Link, webhooks as Webhook
        )
    };
    ($kind:expr, $T:ident => $value:expr; $($($module:ident)::+ as $name:ident),*) => {
        match $kind {$(
            crate::domain::record::Kind::$name => {
                type $T = crate::domain::$($module)::+::$name;
                $value
            }
        )*}
    };
}

mod blobs;
mod change;
mod counters;
mod derived;
mod facts;
mod histories;
mod past;
mod people;
mod process_links;
mod processes;
mod record_history;
mod record_repair;
mod removal;
mod responses;
mod scan;
mod torn_histories;
mod unreadable;

use crate::domain::history::chain::HistoryEntry;
use crate::domain::record::Kind;
use crate::domain::values::id::{EventId, UserId};
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::history::history_head::HistoryHead;
use crate::store::keys::{Item, Key};
use crate::store::people::PartAbout;
use crate::store::table::deduplicated_blobs::BlobName;
use crate::store::table::error::StoreError;
use facts::RecordFacts;
pub use removal::Removal;
use responses::ResponseFacts;
use scan::ScannedChain;
use std::collections::{BTreeMap, HashMap, HashSet};
use uuid::Uuid;

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub subject: String,
    pub problem: String,
    pub repair: Result<String, String>,
    pub is_repaired: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    pub records: usize,
    pub events: u64,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckMode {
    ReadOnly,
    Repair,
}

impl TenantStore {
    /// Tests every invariant across the tenant's items; with [`CheckMode::Repair`], repairs what it finds. `progress` is called
    /// with the number of events that were read.
    ///
    /// Nothing else may write to the tenant meanwhile: a check would take a write in progress for the result of a restore. Before
    /// it repairs, it waits until no event is recent; as soon as it notices another writer, it stops repairing. It also stops
    /// before it compares records with one another if it does not know all of them.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read or written. Repairs until then stay.
    pub async fn check_items(&self, mode: CheckMode, mut progress: impl FnMut(u64)) -> Result<CheckReport, StoreError> {
        let is_quiet = mode == CheckMode::ReadOnly || self.wait_for_quiet().await?;
        let mut check = TenantCheck::new(self, mode);
        if !is_quiet {
            check.report("the tenant", "others are writing to it", "stop them and check again");
            return Ok(CheckReport { records: 0, events: 0, findings: check.findings });
        }
        check.scan_responses().await?;
        check.scan_blobs().await?;
        check.scan_records().await?;
        check.know_erased_people().await?;
        check.scan_events(&mut progress).await?;
        let records = check.records.len();
        if records == 0 && check.events == 0 {
            // There is no such tenant.
            return Ok(CheckReport { records, events: 0, findings: Vec::new() });
        }
        check.check_tenant();
        check.check_histories().await?;
        check.check_tombstones().await?;
        check.check_responses().await?;
        // Items of an unknown record would count as left over.
        if check.is_sure() {
            check.check_processes().await?;
        }
        if check.is_sure() {
            check.check_derived_items().await?;
            check.check_people().await?;
        } else {
            check.report("the rest of the tenant", "it was not compared", "settle the findings above and check again");
        }
        Ok(CheckReport { records, events: check.events, findings: check.findings })
    }
}

struct TenantCheck<'a> {
    store: &'a TenantStore,
    mode: CheckMode,
    began: Timestamp,
    findings: Vec<Finding>,
    events: u64,
    /// The facts about each record, as it will be after the repairs so far.
    records: BTreeMap<RecordKey, RecordFacts>,
    chains: BTreeMap<Uuid, ScannedChain>,
    /// The records whose history ends with a deletion, and that end.
    deletions: BTreeMap<RecordKey, HistoryHead>,
    unrepaired: HashSet<Uuid>,
    /// The number of entries of each record's history.
    history_lengths: HashMap<Uuid, u64>,
    /// Recent events by record. The index `history` may still lack them.
    recent: HashMap<Uuid, Vec<HistoryEntry>>,
    /// The events that the check wrote. Any other event since it began is somebody else's.
    own_events: HashSet<EventId>,
    /// The events that the check removed, or would remove.
    removed_events: HashSet<EventId>,
    /// The last look for events of others.
    looked_at: Timestamp,
    /// The time in the id of the latest event of the service.
    latest_event: Option<Timestamp>,
    /// Others write to the tenant.
    is_disturbed: bool,
    responses: Vec<ResponseFacts>,
    /// What the events say about each person who was erased.
    erased: BTreeMap<UserId, PartAbout>,
    blobs: HashMap<BlobName, String>,
    /// Records whose item can't be read, with the item and the reason.
    unreadable: BTreeMap<Uuid, (Kind, Item, String)>,
    /// Records with unknown contents: they can't be read, or are lost and can't be restored.
    unknown: HashSet<Uuid>,
    /// The items after the repairs so far, if these are not written.
    planned: HashMap<Key, Option<Item>>,
}

type RecordKey = (crate::domain::record::Kind, Uuid);

impl<'a> TenantCheck<'a> {
    fn new(store: &'a TenantStore, mode: CheckMode) -> Self {
        let began = store.store().now();
        Self {
            store,
            mode,
            began,
            findings: Vec::new(),
            events: 0,
            records: BTreeMap::new(),
            chains: BTreeMap::new(),
            deletions: BTreeMap::new(),
            unrepaired: HashSet::new(),
            history_lengths: HashMap::new(),
            recent: HashMap::new(),
            own_events: HashSet::new(),
            removed_events: HashSet::new(),
            looked_at: began,
            latest_event: None,
            is_disturbed: false,
            responses: Vec::new(),
            erased: BTreeMap::new(),
            blobs: HashMap::new(),
            unreadable: BTreeMap::new(),
            unknown: HashSet::new(),
            planned: HashMap::new(),
        }
    }

    /// Every record is known, and nobody else writes.
    fn is_sure(&self) -> bool {
        self.unknown.is_empty() && !self.is_disturbed
    }

    fn report(&mut self, subject: impl Into<String>, problem: impl Into<String>, obstacle: impl Into<String>) {
        let (subject, problem) = (subject.into(), problem.into());
        self.findings.push(Finding { subject, problem, repair: Err(obstacle.into()), is_repaired: false });
    }
}

fn named((kind, id): RecordKey) -> String {
    format!("{} {id}", kind.noun())
}
