//! `assetctl stocktake`: records scanned assets as seen at a location, and reports assets that belong there but were not
//! scanned.
//!
//! Scans and results are stored in a file in the user's state folder, so that an interrupted stock-taking can continue. An asset
//! scanned twice counts once.

mod codes;
mod journal;
mod report;

use crate::config::Connection;
use crate::error::{CliError, EXIT_REFUSED, EXIT_SUCCESS, Fault, Result};
use crate::http::{Client, new_run_id, unreadable};
use crate::interrupt::Interrupt;
use crate::list;
use crate::lookup::{everybody, id_of, items, person_with, text};
use crate::output::{confirm, count, hex, print_json, temporary_beside};
use crate::selection::{escaped, no_asset_at, normal};
use clap::Args;
use codes::{Codes, batches};
use fields::compared::lower;
use jiff::{Timestamp, ToSpan};
use journal::{Journal, Scan};
use report::Report;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use terminal::style::{self, GOOD, Style, WARNING, paint};
use terminal::{clean, print, print_note, print_styled_note, ring_bell};
use tokio::task::JoinSet;

/// Scans older than this, in seconds, are sent with their time.
const LATE: i64 = 2;
/// Maximum length of a code, in characters.
const MAX_CODE: usize = 2_000;
/// The start of the assignment is read for at most this many assets that people hold.
const MAX_DATED: usize = 500;

#[derive(Debug, Args)]
pub struct Stocktake {
    /// The place, with everything below it, such as `Berlin / 3rd floor`
    #[arg(value_name = "PLACE", required = true)]
    place: Vec<String>,
    /// Read codes from a file instead of the keyboard: tags, serial numbers or the URLs of labels, on lines or separated by tabs
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Move scanned assets that belong elsewhere to this place
    #[arg(long = "move")]
    moves: bool,
    /// Take stock of a place where no asset is recorded yet
    #[arg(long, requires = "moves")]
    new_place: bool,
    /// Start over, instead of continuing the stock-taking of the last seven days
    #[arg(long)]
    again: bool,
    /// Also write the result to a file: a page if its name ends in .html, else CSV
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Takes stock. The exit code is 0 if nothing is missing, and 3 otherwise.
pub async fn stocktake(options: &Stocktake, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?.with_exact_numbers();
    let place = normal(&options.place.join(" "));
    if place.is_empty() {
        return Err(CliError::Usage("name a place, such as \"Berlin / 3rd floor\"".into()));
    }
    // A report that can't be written is refused before the first scan.
    options.report.as_deref().map(temporary_beside).transpose()?;
    let me = client.data("me", &[]).await?;
    let known = client.data("assets", &[("location", escaped(&place).as_str()), ("limit", "1")]).await?;
    if items(&known).is_empty() && !options.new_place {
        check_new(options, &no_asset_at(&client, &place).await?)?;
    }
    let name = file_name(connection.base_url.as_str(), text(&me["tenant"]["id"]), &place);
    // The `Date` of the last response, which no scan of this stock-taking precedes.
    let now = Timestamp::from_second(client.now()?.as_second()).map_err(|error| CliError::Failed(error.to_string()))?;
    let mut journal = Journal::open(&state_folder()?.join("stocktake"), &name, options.again, now)?;
    if !journal.answers().is_empty() {
        let known = count(journal.answers().len() as u64, "code");
        print_note(&format!("Continuing the stock-taking of {}: {known} so far. --again starts over.", shown(journal.since())));
    }
    if let Some(other) = journal.other() {
        let other = shown(other);
        print_note(&format!("Another stock-taking of this place is running since {other}: what it finds is not missing here."));
    }
    let mut session = Session { client: &client, place: &place, moves: options.moves, run: new_run_id()?, requests: 0 };
    let (mut people, mut interrupt) = (BTreeMap::new(), Interrupt::listen());
    let interrupted = || CliError::Interrupted(format!("Interrupted. {CONTINUES}"));
    let unsent = journal.unsent().to_vec();
    if !unsent.is_empty() {
        print_note(&format!("Sending {} that the service has not received.", count(unsent.len() as u64, "earlier scan")));
    }
    let mut earlier = batches(&unsent);
    let mut codes = Codes::open(options.file.as_deref(), &journal, &client)?;
    if options.file.is_none() && std::io::stdin().is_terminal() {
        print_note("Scan or type codes, one per line. Press Ctrl-D to finish.");
    }
    loop {
        let earlier = earlier.next();
        let is_earlier = earlier.is_some();
        let scans = match earlier {
            Some(scans) => scans.to_vec(),
            None => {
                let found = journal.found();
                let next = codes.next(&mut journal, &client, |code| !found.contains(code));
                let next = tokio::select! {
                    next = next => next?,
                    _ = interrupt.next() => return Err(interrupted()),
                };
                let Some(scans) = next else { break };
                scans
            }
        };
        let answers = tokio::select! {
            answers = session.send(&scans, is_earlier) => answers.map_err(continues)?,
            _ = interrupt.next() => return Err(interrupted()),
        };
        answers.iter().try_for_each(|answer| journal.answer(answer.clone()))?;
        for answer in &answers {
            say(answer, &holder(&client, &mut people, answer).await);
        }
    }
    let (held, missing) = missing(&client, &place, &journal).await.map_err(continues)?;
    for answer in journal.answers().values() {
        holder(&client, &mut people, answer).await;
    }
    if options.report.is_some() {
        people.extend(everybody(&client).await?);
    }
    let report = Report { place: &place, journal: &journal, people: &people, held: &held, missing: &missing };
    if let Some(path) = &options.report {
        report.write(path)?;
    }
    if is_json {
        print_json(&report.json())?
    } else {
        print(&report.in_words())?
    }
    if missing.is_empty() {
        journal.end()?;
        return Ok(EXIT_SUCCESS);
    }
    Ok(EXIT_REFUSED)
}

const CONTINUES: &str = "Run the same command again to continue.";

fn continues(error: CliError) -> CliError {
    match error {
        CliError::Unanswered(detail) => CliError::Unanswered(format!("{detail}\n{CONTINUES}")),
        error => error,
    }
}

/// Refuses a location that is probably misspelt, unless the user confirms at the terminal that it is new.
fn check_new(options: &Stocktake, problem: &str) -> Result<()> {
    let asks = options.moves && std::io::stdin().is_terminal();
    if asks && confirm(&format!("{problem}. Move assets there?"))? == Some(true) {
        return Ok(());
    }
    Err(CliError::Usage(format!("{problem}. To move assets to a new place, add --move --new-place.")))
}

/// Returns the name of the user of an asset found elsewhere; the ID if the key can't read names; empty for other outcomes.
async fn holder(client: &Client, people: &mut BTreeMap<String, String>, answer: &Answer) -> String {
    let Some(id) = answer.assigned_to.as_deref().filter(|_| answer.outcome == ELSEWHERE) else { return String::new() };
    if !people.contains_key(id) {
        let person = person_with(client, id).await.unwrap_or_else(|_| id.to_owned());
        people.insert(id.to_owned(), person);
    }
    people[id].clone()
}

fn shown(time: Timestamp) -> String {
    terminal::time(&format!("{time:.3}")) + " UTC"
}

struct Session<'a> {
    client: &'a Client,
    place: &'a str,
    moves: bool,
    /// Prefix of the idempotency keys.
    run: String,
    requests: u32,
}

/// Which members of a scan are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    /// The code and, for a late scan, its time.
    All,
    /// The code without the time, which the service refuses.
    Code,
    /// None, because the service refuses the code: it is unknown.
    None,
}

impl Session<'_> {
    /// Returns a result for each scan. Scans of an earlier run are sent with their times.
    async fn send(&mut self, scans: &[Scan], is_earlier: bool) -> Result<Vec<Answer>> {
        let mut members: Vec<Members> =
            scans.iter().map(|scan| if is_possible(&scan.code) { Members::All } else { Members::None }).collect();
        let entries = loop {
            let sent: Vec<usize> = (0..scans.len()).filter(|index| members[*index] != Members::None).collect();
            let posted = if sent.is_empty() { Ok(Vec::new()) } else { self.post(&sent, scans, &members, is_earlier).await };
            match posted {
                Err(CliError::Answered { status: 422, errors, .. })
                    if refused(&errors).first_key_value().is_some_and(|(first, _)| *first < sent.len()) =>
                {
                    // The scans are sent again without what was refused.
                    for (index, is_time) in refused(&errors) {
                        let Some(members) = sent.get(index).and_then(|index| members.get_mut(*index)) else { continue };
                        *members = if is_time && *members == Members::All { Members::Code } else { Members::None };
                    }
                }
                entries => break entries?,
            }
        };
        let mut entries = entries.iter();
        let answers = scans.iter().zip(&members).map(|(scan, members)| {
            let entry = if *members == Members::None { None } else { entries.next() };
            Answer::of(&scan.code, entry.unwrap_or(&Value::Null), self.place)
        });
        Ok(answers.collect())
    }

    /// Returns an entry for each of the scans with these indexes.
    async fn post(&mut self, sent: &[usize], scans: &[Scan], members: &[Members], is_earlier: bool) -> Result<Vec<Value>> {
        // A recent scan is sent without a time, so that the service's clock counts.
        let recent = self.client.now()?.checked_sub(LATE.seconds()).unwrap_or(Timestamp::MIN);
        let body = |is_late: bool| {
            let item = |index: &usize| {
                let Scan { code, at } = &scans[*index];
                match members[*index] == Members::All && (is_late || *at < recent) {
                    true => json!({"code": code, "at": format!("{at:.3}")}),
                    false => json!({"code": code}),
                }
            };
            json!({"location": self.place, "move": self.moves, "items": sent.iter().map(item).collect::<Value>()})
        };
        self.requests += 1;
        let key = format!("{}-{}", self.run, self.requests);
        let (now, later) = (body(is_earlier), || body(true));
        match self.client.post_patiently("assets/seen", &now, later, &key, "Codes are kept and sent later.").await? {
            Value::Array(entries) if entries.len() == sent.len() => Ok(entries),
            _ => Err(unreadable()),
        }
    }
}

/// Whether the service accepts the code. It refuses a whole request with U+FFFD.
fn is_possible(code: &str) -> bool {
    code.chars().count() <= MAX_CODE && !code.contains('\u{fffd}')
}

/// Returns the indexes of the refused items, each with whether its time is refused, as in `/items/1/at`.
fn refused(errors: &[Fault]) -> BTreeMap<usize, bool> {
    let refused = |fault: &Fault| {
        let item = fault.place.strip_prefix("/items/")?;
        let (index, member) = item.split_once('/').unwrap_or((item, ""));
        Some((index.parse().ok()?, member == "at"))
    };
    errors.iter().filter_map(refused).collect()
}

const SEEN: &str = "seen";
const UNKNOWN: &str = "unknown";
const ELSEWHERE: &str = "elsewhere";
/// Several assets have this serial number.
const AMBIGUOUS: &str = "ambiguous";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    code: String,
    /// `seen`, `moved`, `elsewhere`, `unknown` or `ambiguous`.
    outcome: String,
    id: Option<String>,
    asset_tag: Option<String>,
    name: Option<String>,
    location: Option<String>,
    assigned_to: Option<String>,
    /// Tags of the assets with an ambiguous serial number.
    candidates: Vec<String>,
}

impl Answer {
    fn of(code: &str, entry: &Value, place: &str) -> Self {
        let member = |name: &str| entry[name].as_str().map(str::to_owned);
        let outcome = member("outcome").unwrap_or_else(|| UNKNOWN.to_owned());
        // For a scan that is older than another one, the service doesn't compare the places.
        let is_elsewhere = outcome == SEEN && !is_within(place, text(&entry["location"]));
        Self {
            code: code.to_owned(),
            outcome: if is_elsewhere { ELSEWHERE.to_owned() } else { outcome },
            id: member("id"),
            asset_tag: member("asset_tag"),
            name: member("name"),
            location: member("location"),
            assigned_to: member("assigned_to"),
            candidates: items(&entry["candidates"]).iter().map(|one| text(&one["asset_tag"]).to_owned()).collect(),
        }
    }

    fn is_found(&self) -> bool {
        matches!(self.outcome.as_str(), SEEN | "moved")
    }

    /// Returns `AST-000007 My laptop`, or the code if no asset was found.
    fn named(&self) -> String {
        match &self.asset_tag {
            Some(tag) => format!("{tag} {}", self.name.as_deref().unwrap_or_default()),
            None => self.code.clone(),
        }
    }
}

/// Whether a location is at or below a place, ignoring case.
fn is_within(place: &str, location: &str) -> bool {
    let location = lower(location);
    location.strip_prefix(&lower(place)).is_some_and(|rest| rest.is_empty() || rest.starts_with(" / "))
}

/// Prints a line for a code, and rings the bell unless the asset belongs here.
fn say(answer: &Answer, owner: &str) {
    let (label, style, more): (&str, Style, String) = match answer.outcome.as_str() {
        SEEN => ("here     ", GOOD, String::new()),
        "moved" => ("moved    ", GOOD, String::new()),
        ELSEWHERE => {
            let place = answer.location.as_deref().unwrap_or("no place");
            let owner = if owner.is_empty() { String::new() } else { format!(", {owner}") };
            ("elsewhere", WARNING, format!(": {place}{owner}"))
        }
        AMBIGUOUS => ("ambiguous", WARNING, format!(": {} have this serial number", answer.candidates.join(", "))),
        _ => ("unknown  ", style::ERROR, String::new()),
    };
    let label = paint(label, style, style::is_error_coloured());
    print_styled_note(&format!("{label}  {}", clean(&format!("{}{more}", answer.named()))));
    if !answer.is_found() {
        ring_bell();
    }
}

/// Returns the user's folder for application state.
pub fn state_folder() -> Result<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = folder("XDG_STATE_HOME")
        .or_else(|| folder("LOCALAPPDATA"))
        .or_else(|| Some(folder("HOME")?.join(".local").join("state")))
        .ok_or_else(|| CliError::Usage("no folder to store the stock-taking in: set HOME or XDG_STATE_HOME".into()))?;
    Ok(state.join("assetctl"))
}

fn file_name(base_url: &str, tenant: &str, place: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(format!("{base_url}\n{tenant}\n{}", lower(place)));
    hex(&digest[..16])
}

/// An asset that belongs here, was not scanned, and has a user.
struct Held {
    asset: Value,
    /// First day of the assignment.
    since: Option<String>,
}

/// Returns the assets that belong here but were not found: those that people hold, and the missing ones. Excludes found assets
/// explicitly, because clocks differ.
async fn missing(client: &Client, place: &str, journal: &Journal) -> Result<(Vec<Held>, Vec<Value>)> {
    let query = [
        ("location", escaped(place)),
        ("kind", "physical".to_owned()),
        ("status", "in_stock,preparing,in_use,in_service,returned".to_owned()),
        ("last_seen_before", format!("{:.3}", journal.since())),
        ("sort", "asset_tag".to_owned()),
    ];
    let query = query.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let mut left = list::read(client, query, None).await?.rows;
    left.retain(|asset| !journal.answers().get(text(&asset["id"])).is_some_and(Answer::is_found));
    let (held, missing): (Vec<Value>, Vec<Value>) = left.into_iter().partition(|asset| asset["assigned_to"].is_string());
    let mut dates = JoinSet::new();
    for id in held.iter().filter(|asset| asset["assigned_since"].is_null()).take(MAX_DATED).map(id_of) {
        let client = client.clone();
        dates.spawn(async move { assigned_at(&client, &id).await.map(|at| (id, at)) });
    }
    let mut since = BTreeMap::new();
    while let Some(date) = dates.join_next().await {
        let (id, at) = date.map_err(|error| CliError::Failed(error.to_string()))??;
        since.insert(id, at);
    }
    let held = held.into_iter().map(|asset| {
        let day = |at: &str| at.get(..10).map(str::to_owned);
        let since = asset["assigned_since"].as_str().and_then(day).or_else(|| day(since.get(&id_of(&asset))?.as_deref()?));
        Held { asset, since }
    });
    Ok((held.collect(), missing))
}

/// Returns when the asset was assigned to its user, if its latest changes show that.
async fn assigned_at(client: &Client, id: &str) -> Result<Option<String>> {
    let changes = match client.page(&format!("assets/{id}/history"), &[("limit", "100")]).await {
        Err(error) if error.is_missing() => return Ok(None),
        page => page?.rows,
    };
    let assignment = changes.iter().find(|entry| entry["changes"]["assigned_to"]["new"].is_string());
    Ok(assignment.and_then(|entry| entry["at"].as_str()).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_spelling() {
        for place in ["Berlin/3rd floor", " Berlin / 3rd  floor ", "Berlin /3rd floor/"] {
            assert_eq!(normal(place), "Berlin / 3rd floor", "{place}");
        }
        assert_eq!(normal(" / "), "");
        let name = |tenant, place| file_name("https://a.example/v1", tenant, place);
        assert_eq!(name("t", "Berlin"), name("t", "BERLIN"));
        assert!(name("t", "Berlin") != name("t", "Bern") && name("t", "Berlin") != name("u", "Berlin"));
    }

    #[test]
    fn refused_items_are_named_by_their_number() {
        let fault = |place: &str| Fault { place: place.into(), detail: "must not".into() };
        let errors = ["/items/3/code", "/items/12/at", "/items/4", "/location"].map(fault);
        assert_eq!(refused(&errors), BTreeMap::from([(3, false), (4, false), (12, true)]));
        assert!(is_possible("\u{1d}A") && !is_possible("A\u{fffd}") && !is_possible(&"x".repeat(MAX_CODE + 1)));
    }

    #[test]
    fn an_older_scan_of_an_asset_elsewhere_is_elsewhere() {
        for (location, outcome) in [
            ("BERLIN / 3", SEEN),
            ("Berlin / 3 / 14", SEEN),
            ("Berlin / 31", ELSEWHERE),
            ("Berlin", ELSEWHERE),
            ("Bonn", ELSEWHERE),
        ] {
            let entry = json!({"outcome": "seen", "id": "1", "location": location});
            assert_eq!(Answer::of("A", &entry, "Berlin / 3").outcome, outcome, "{location}");
        }
    }
}
