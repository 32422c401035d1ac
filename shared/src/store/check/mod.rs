//! Checks the consistency of a tenant's items, for the operator.
//!
//! Every change is one transaction, but a point-in-time restore can tear transactions apart: the restored table may contain only
//! some of the last writes. An item can also be damaged. The check reports all contradictions:
//!
//! - `scan.rs`: items that can't be read, or that the list index can't use.
//! - `histories.rs`: records, tombstones and stored responses that contradict the events; assets, process instances, movements
//!   and signature images that contradict each other.
//! - `repair.rs`: items derived from records: unique markers, reference items, the counter of movements, the tenant's
//!   registration.
//! - `removal.rs`: personal data left after an erasure.
//!
//! A repair rebuilds derived items, and removes items that belong to no record. It changes no field of a record and no event:
//! only the operator can decide which state is right, and restore it from a backup.
//!
//! Claims of serial numbers need no check: an upsert replaces a claim whose asset doesn't exist, and a lost claim was needed only
//! until lists showed its asset. Counters of asset tags need no check, either: a creation skips tags that are taken.

mod histories;
mod removal;
mod repair;
mod scan;

use crate::domain::people::Person;
use crate::domain::record::Kind;
use crate::domain::values::time::Timestamp;
use crate::store::keys::Key;
use crate::store::people::PartAbout;
use crate::store::table::blobs::BlobName;
use crate::store::{Reader, StoreError, Writer};
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
    /// The effect of the repair or, if there is no repair, advice for the operator.
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

impl Writer {
    /// Checks every invariant across the tenant's items; with [`CheckMode::Repair`], also repairs derived items. Calls `progress`
    /// with the number of events read so far.
    ///
    /// Nothing else may write to the tenant during the check, because a write in flight looks like the result of a restore. A
    /// repair waits until there are no recent events, and writes nothing once there is a new event. While a record is missing,
    /// unreadable or older than its history, the correct derived items are unknown, so differences are only reported.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read or written. Repairs made so far are kept.
    pub async fn check_items(&self, mode: CheckMode, mut progress: impl FnMut(u64)) -> Result<CheckReport, StoreError> {
        let is_quiet = mode == CheckMode::ReadOnly || self.wait_for_quiet().await?;
        let mut check = TenantCheck::new(self, mode);
        if !is_quiet {
            check.report("the tenant", "others are writing to it", "stop the writers and check again");
            return Ok(CheckReport { records: 0, events: 0, findings: check.findings });
        }
        check.scan_responses().await?;
        check.scan_blobs().await?;
        check.scan_records().await?;
        check.know_erased_people().await?;
        check.scan_events(&mut progress).await?;
        let records = check.records.len();
        if records == 0 && check.events == 0 {
            // The tenant doesn't exist.
            return Ok(CheckReport { records, events: 0, findings: Vec::new() });
        }
        check.check_histories().await?;
        check.check_responses().await?;
        check.check_processes().await?;
        check.check_derived_items().await?;
        check.check_people().await?;
        if !check.findings.is_empty() && check.is_written_by_others().await? {
            let problem = "others wrote to it during the check, so a finding may be a change in flight";
            check.report("the tenant", problem, "stop the writers and check again");
        }
        Ok(CheckReport { records, events: check.events, findings: check.findings })
    }
}

struct TenantCheck<'a> {
    store: &'a Reader,
    mode: CheckMode,
    began: Timestamp,
    findings: Vec<Finding>,
    events: u64,
    records: BTreeMap<RecordKey, RecordFacts>,
    chains: BTreeMap<Uuid, ScannedChain>,
    /// Numbers of entries by record, also for broken histories.
    history_lengths: HashMap<Uuid, u64>,
    /// Records that are missing, unreadable, or in a state that contradicts their history.
    unsettled: HashSet<Uuid>,
    responses: Vec<ResponseFacts>,
    /// What events contain about each erased person.
    erased: BTreeMap<Person, PartAbout>,
    blobs: HashMap<BlobName, String>,
}

type RecordKey = (Kind, Uuid);

impl<'a> TenantCheck<'a> {
    fn new(store: &'a Reader, mode: CheckMode) -> Self {
        Self {
            store,
            mode,
            began: store.now(),
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

    /// Reports a finding that can't be repaired. `advice` is for the operator.
    fn report(&mut self, subject: impl Into<String>, problem: impl Into<String>, advice: impl Into<String>) {
        let (subject, problem) = (subject.into(), problem.into());
        self.findings.push(Finding { subject, problem, repair: Err(advice.into()), is_repaired: false });
    }
}

fn named((kind, id): RecordKey) -> String {
    format!("{} {id}", kind.as_str())
}

fn from_backup(what: &str) -> String {
    format!("take {what} from a backup: see the runbook's section \"Damaged records\"")
}

fn item_from_backup(key: &Key) -> String {
    from_backup(&format!("the item {key}"))
}
