//! One part of a report. The same pass over events finds the data for a report and for an erasure.

use super::records::{About, RecordReport};
use super::texts::Texts;
use super::views::{PersonReport, ReportedEntry};
use futures_util::{StreamExt, TryStreamExt, stream};
use shared::domain::people::actor_pointers;
use shared::domain::record::Stored;
use shared::domain::tenants::tenant::Language;
use shared::domain::user::User;
use shared::domain::values::id::{EventId, UserId};
use shared::domain::values::time::Timestamp;
use shared::http::responses::ApiError;
use shared::store::{PartAbout, Reader, StoreError, has_time_for_operation, max_event_delay};

const CONCURRENT: usize = 8;
/// Maximum number of parts that a request examines. If all are empty, the response is empty too, with `next`.
const MAX_PARTS: usize = 4;
/// Maximum size of a part's JSON, unless a single record is larger. The rest is in the next part. A function's response has at
/// most 6 MB, and a page is longer than JSON.
const MAX_BYTES: usize = 2_000_000;

/// Something that a report lists once.
enum Finding {
    Record(RecordReport),
    Action(ReportedEntry),
}

impl Finding {
    /// Returns the first event that leads to the finding.
    fn at(&self) -> EventId {
        match self {
            Self::Record(found) => found.first,
            Self::Action(entry) => entry.event_id,
        }
    }

    fn bytes(&self) -> usize {
        let json = match self {
            Self::Record(found) => serde_json::to_vec(&(&found.about, &found.entries)),
            Self::Action(entry) => serde_json::to_vec(entry),
        };
        json.map_or(0, |json| json.len())
    }
}

/// Reports the data after the event `from`, or all data from the start.
pub(super) async fn report(
    store: &Reader,
    person: UserId,
    user: Option<Stored<User>>,
    from: Option<EventId>,
) -> Result<PersonReport, ApiError> {
    // IDs of events written now can be ahead of this instance's clock.
    let until = store.now().plus(max_event_delay());
    let ((found, next), erasure) = tokio::try_join!(next_findings(store, person, from, until), store.erasure(person.into()))?;
    let erased_at = user.as_ref().and_then(|user| user.value.erased_at);
    let mut report = PersonReport {
        user_id: person,
        user: user.map(Into::into),
        erased_at: erased_at.or(erasure.map(|erasure| erasure.erased_at)),
        keys: Vec::new(),
        assets: Vec::new(),
        instances: Vec::new(),
        movements: Vec::new(),
        links: Vec::new(),
        entries: Vec::new(),
        kept: Texts::of(Language::English).kept().to_vec(),
        next,
    };
    report.add(found);
    report.entries.sort_by_key(|entry| entry.event_id);
    Ok(report)
}

/// Returns the next findings and, if there are more, the last event covered. Skips parts whose records were all in earlier parts,
/// so that clients needn't request such parts.
async fn next_findings(
    store: &Reader,
    person: UserId,
    from: Option<EventId>,
    until: Timestamp,
) -> Result<(Vec<Finding>, Option<EventId>), StoreError> {
    let mut after = from;
    for _ in 0..MAX_PARTS {
        let part = store.part_about(person.into(), after, until).await?;
        let found = findings(store, person, &part, after).await?;
        if !found.is_empty() || part.last.is_none() || !has_time_for_operation() {
            return Ok((found, part.last));
        }
        after = part.last;
    }
    Ok((Vec::new(), after))
}

/// Returns the findings that are new in this part, oldest first.
async fn findings(store: &Reader, person: UserId, part: &PartAbout, after: Option<EventId>) -> Result<Vec<Finding>, StoreError> {
    let records = part.records.iter().copied();
    let records = stream::iter(records).map(|(kind, id)| RecordReport::read(store, person, kind, id, after));
    let records: Vec<Option<RecordReport>> = records.buffer_unordered(CONCURRENT).try_collect().await?;
    let actions = part
        .actions_on_others()
        .filter_map(|(text, event)| ReportedEntry::new(person, text, event, &actor_pointers(person.into(), &event.actor)));
    let mut findings: Vec<Finding> =
        records.into_iter().flatten().map(Finding::Record).chain(actions.map(Finding::Action)).collect();
    findings.sort_by_key(Finding::at);
    Ok(findings)
}

impl PersonReport {
    /// Adds as many findings as fit into a part. `next` then points to the rest.
    fn add(&mut self, findings: Vec<Finding>) {
        let (mut bytes, mut last) = (0, None);
        for finding in findings {
            let at = finding.at();
            bytes += finding.bytes();
            if bytes > MAX_BYTES && last.is_some() {
                self.next = last;
                return;
            }
            last = Some(at);
            match finding {
                Finding::Action(entry) => self.entries.push(entry),
                Finding::Record(found) => {
                    self.entries.extend(found.entries);
                    match found.about {
                        About::Key(key) => self.keys.push(key),
                        About::Asset(asset) => self.assets.push(asset),
                        About::Instance(instance) => self.instances.push(*instance),
                        About::Movement(movement) => self.movements.push(movement),
                        About::Link(link) => self.links.push(*link),
                        About::Entries => {}
                    }
                }
            }
        }
    }
}
