//! Checks that a tenant's items agree with one another, for the operator.
//!
//! Every change of the service is one transaction. A point-in-time restore can take one apart: the restored table may hold a
//! part of the last writes. An item can also be damaged. The check reports everything that contradicts:
//!
//! 1. `scan.rs`: items that can't be read, or that the list index can't use.
//! 2. `histories.rs`: records, tombstones and stored responses that disagree with the events.
//! 3. `processes.rs`: assets, process instances, movements and images of signatures that disagree.
//! 4. `derived.rs`: items that follow from the records: unique markers, reference items, the counter of movements, the tenant's
//!    registration.
//! 5. `people.rs`: something is left of people who were erased.
//!
//! A repair makes again what follows from the records, and removes what belongs to none of them. It changes no field of a
//! record and no event: only the operator can tell which state is the right one, and take it from a backup.
//!
//! Claims of serial numbers need no check: an upsert replaces one whose asset doesn't exist, and one that is lost was needed
//! only until lists show its asset. Nor do counters of asset tags: a creation passes tags that are taken.

mod histories;
mod removal;
mod repair;
mod scan;

use crate::domain::record::Kind;
use crate::domain::values::id::UserId;
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::keys::Key;
use crate::store::people::PartAbout;
use crate::store::table::blobs::BlobName;
use crate::store::table::error::StoreError;
use histories::ResponseFacts;
pub use removal::Removal;
use scan::{RecordFacts, ScannedChain};
use std::collections::{BTreeMap, HashMap, HashSet};
use uuid::Uuid;

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub subject: String,
    pub problem: String,
    /// What a repair does; or, where there is none, what the operator can do.
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
    /// Tests every invariant across the tenant's items; with [`CheckMode::Repair`], repairs what follows from the records.
    /// `progress` is called with the number of events that were read.
    ///
    /// Nothing else may write to the tenant meanwhile: a check would take a write in progress for the result of a restore. A
    /// repair waits until no event is recent, and writes nothing once there is a new one. As long as a record is missing, can't
    /// be read or is older than its history, nothing follows from the records: then items that are derived from them are only
    /// reported.
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
        check.check_histories().await?;
        check.check_responses().await?;
        check.check_processes().await?;
        check.check_derived_items().await?;
        check.check_people().await?;
        if !check.findings.is_empty() && check.is_written_by_others().await? {
            let problem = "others wrote to it meanwhile, and a finding may be a change that was just being written";
            check.report("the tenant", problem, "stop them and check again");
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
    records: BTreeMap<RecordKey, RecordFacts>,
    /// The history of each record.
    chains: BTreeMap<Uuid, ScannedChain>,
    /// The number of entries of each record's history.
    history_lengths: HashMap<Uuid, u64>,
    /// Records that are missing, can't be read, or are in another state than their history says.
    unsettled: HashSet<Uuid>,
    responses: Vec<ResponseFacts>,
    /// What the events say about each person who was erased.
    erased: BTreeMap<UserId, PartAbout>,
    blobs: HashMap<BlobName, String>,
}

type RecordKey = (Kind, Uuid);

impl<'a> TenantCheck<'a> {
    fn new(store: &'a TenantStore, mode: CheckMode) -> Self {
        Self {
            store,
            mode,
            began: store.store().now(),
            findings: Vec::new(),
            events: 0,
            records: BTreeMap::new(),
            chains: BTreeMap::new(),
            history_lengths: HashMap::new(),
            unsettled: HashSet::new(),
            responses: Vec::new(),
            erased: BTreeMap::new(),
            blobs: HashMap::new(),
        }
    }

    /// `advice` is for the operator.
    fn report(&mut self, subject: impl Into<String>, problem: impl Into<String>, advice: impl Into<String>) {
        let (subject, problem) = (subject.into(), problem.into());
        self.findings.push(Finding { subject, problem, repair: Err(advice.into()), is_repaired: false });
    }
}

fn named((kind, id): RecordKey) -> String {
    format!("{} {id}", kind.noun())
}

/// Advice for something whose right state only a backup tells.
fn from_backup(what: &str) -> String {
    format!("take {what} from a backup: see the runbook's section \"Damaged records\"")
}

fn item_from_backup(key: &Key) -> String {
    from_backup(&format!("the item {key}"))
}
