//! `assetctl stocktake`: records scanned assets as seen at a location, and reports assets that belong there but were not
//! scanned.
//!
//! Results are stored in a file in the user's state folder, so that an interrupted stock-taking can continue. An asset scanned
//! twice counts once.

use crate::config::Connection;
use crate::error::{CliError, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::http::{Client, new_run_id, unreadable};
use crate::interrupt::Interrupt;
use crate::list;
use crate::lookup::{is_id, items, person_with, text};
use crate::output::{confirm, count, folded, hex, print_json};
use crate::selection::{no_asset_at, normal};
use crate::show::now;
use clap::Args;
use jiff::{Timestamp, ToSpan};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use terminal::style::{self, GOOD, Style, WARNING, paint};
use terminal::{clean, clean_hidden, print, print_note, print_styled_note, ring_bell};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};

/// Maximum number of codes per request.
const AT_ONCE: usize = 100;
/// Codes within this time after the first one are sent together.
const TOGETHER: Duration = Duration::from_millis(300);
/// Age in hours up to which a stock-taking can be continued.
const CONTINUES_FOR: i64 = 7 * 24;
/// Maximum length of a tag and of a serial number, in characters.
const MAX_TAG: usize = 64;
const MAX_SERIAL: usize = 255;
/// Columns in the table of missing assets.
const MISSING: [&str; 5] = ["asset_tag", "name", "location", "assigned_to", "last_seen_at"];

#[derive(Debug, Args)]
pub struct Stocktake {
    /// The place, with everything below it, such as `Berlin / 3rd floor`
    #[arg(value_name = "PLACE", required = true)]
    place: Vec<String>,
    /// Read codes from a file instead of the keyboard: on each line a tag, a serial number or the URL of a label
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
}

/// Takes stock. The exit code is 0 if nothing is missing, and 3 otherwise.
pub async fn stocktake(options: &Stocktake, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?.with_exact_numbers();
    let place = normal(&options.place.join(" "));
    if place.is_empty() {
        return Err(CliError::Usage("name a place, such as \"Berlin / 3rd floor\"".into()));
    }
    let me = client.data("me", &[]).await?;
    let known = client.data("assets", &[("location", escaped(&place).as_str()), ("limit", "100")]).await?;
    let known = items(&known);
    if known.is_empty() && !options.new_place {
        check_new(options, &no_asset_at(&client, &place).await?)?;
    }
    let mut codes = Codes::open(options.file.as_deref())?;
    let file = file_name(connection.base_url.as_str(), text(&me["tenant"]["id"]), &place);
    let path = state_folder()?.join("stocktake").join(file);
    let mut state = State::open(&path, options.again, now()?)?;
    if !state.answers.is_empty() {
        let known = count(state.answers.len() as u64, "code");
        print_note(&format!("Continuing the stock-taking of {}: {known} so far. --again starts over.", shown(state.since)));
    }
    if options.file.is_none() && std::io::stdin().is_terminal() {
        print_note("Scan or type codes, one per line. Press Ctrl-D to finish.");
    }
    let mut session = Session { client: &client, place: &place, moves: options.moves, run: new_run_id()?, requests: 0 };
    let (mut people, mut interrupt) = (BTreeMap::new(), Interrupt::listen());
    // Files usually contain either tags or serial numbers, so the kind that was found last is tried first.
    let mut kind = Kind::Tag;
    let interrupted = || CliError::Interrupted(format!("Interrupted. {CONTINUES}"));
    loop {
        let batch = tokio::select! {
            batch = codes.next() => batch,
            _ = interrupt.next() => return Err(interrupted()),
        };
        let Some(mut batch) = batch else { break };
        batch.retain(|code| options.file.is_none() || !state.has_found(code));
        if batch.is_empty() {
            continue;
        }
        if session.requests == 0 && are_serials(&batch, known) {
            kind = Kind::Serial;
        }
        let answers = tokio::select! {
            answers = session.send(&batch, &mut kind) => answers.map_err(continues)?,
            _ = interrupt.next() => return Err(interrupted()),
        };
        answers.iter().try_for_each(|answer| state.add(answer.clone()))?;
        for answer in &answers {
            say(answer, &holder(&client, &mut people, answer).await);
        }
    }
    let missing = missing(&client, &place, &state).await.map_err(continues)?;
    for answer in state.answers.values() {
        holder(&client, &mut people, answer).await;
    }
    if is_json {
        print_json(&state.report(&place, &missing))?
    } else {
        print(&state.in_words(&place, &missing, &people))?
    }
    if missing.is_empty() {
        state.end()?;
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

/// Whether some of the codes are serial numbers of these assets, and none is a tag.
fn are_serials(codes: &[String], assets: &[Value]) -> bool {
    let codes: BTreeSet<String> = codes.iter().map(|code| folded(code)).collect();
    let has = |field: &str| assets.iter().any(|asset| codes.contains(&folded(text(&asset[field]))));
    has("serial_number") && !has("asset_tag")
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

/// Reads lines from the keyboard or from a file.
enum Codes {
    Keyboard(UnboundedReceiver<String>),
    File(std::vec::IntoIter<String>),
}

impl Codes {
    fn open(file: Option<&Path>) -> Result<Self> {
        let Some(path) = file else {
            let (sender, lines) = unbounded_channel();
            // A thread that waits for a line can't be stopped, so the program doesn't wait for it at the end.
            std::thread::spawn(move || {
                let (mut input, mut line) = (std::io::stdin().lock(), Vec::new());
                while input.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                    if line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff") {
                        // UTF-16 line breaks have two bytes, so the rest is read as a whole. A read error ends the input.
                        let _ = input.read_to_end(&mut line);
                    }
                    if decoded(&line).lines().any(|line| sender.send(line.to_owned()).is_err()) {
                        break;
                    }
                    line.clear();
                }
            });
            return Ok(Self::Keyboard(lines));
        };
        let text = fs::read(path).map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))?;
        let lines: Vec<String> = decoded(&text).lines().filter_map(code).collect();
        Ok(Self::File(lines.into_iter()))
    }

    /// Returns up to as many lines as fit in a request; `None` at the end.
    async fn next(&mut self) -> Option<Vec<String>> {
        let lines = match self {
            Self::File(lines) => return Some(lines.take(AT_ONCE).collect()).filter(|codes: &Vec<_>| !codes.is_empty()),
            Self::Keyboard(lines) => lines,
        };
        let mut codes: Vec<String> = code(&lines.recv().await?).into_iter().collect();
        let end = Instant::now() + TOGETHER;
        while codes.len() < AT_ONCE {
            match timeout_at(end, lines.recv()).await {
                Ok(Some(line)) => codes.extend(code(&line)),
                _ => break,
            }
        }
        Some(codes)
    }
}

/// Decodes UTF-8, or UTF-16 with a byte order mark. Other bytes become U+FFFD, which codes can't contain.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    encoding_rs::UTF_8.decode(bytes).0
}

/// Returns the code on a line, without surrounding quotes.
fn code(line: &str) -> Option<String> {
    let line = line.trim();
    let code = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(line).trim();
    Some(code).filter(|code| !code.is_empty()).map(str::to_owned)
}

/// URL parameters that contain the tag or ID in a label's address.
const PARAMETERS: [&str; 7] = ["tag", "asset_tag", "asset", "id", "code", "serial", "serial_number"];

/// Returns the tag or ID in a label's address: the value of one of the [`PARAMETERS`], or else the last path segment with a
/// digit.
fn in_label(code: &str) -> String {
    let url = Url::parse(code).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(url) = url else { return code.to_owned() };
    let (query, fragment) = (url.query().unwrap_or_default(), url.fragment().unwrap_or_default());
    let named = |text: &str| {
        let mut pairs = text.split(['&', '?', '/']).filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| PARAMETERS.contains(&name.to_lowercase().as_str())).map(|(_, value)| value.to_owned())
    };
    let last = |text: &str| text.trim_end_matches('/').rsplit(['/', '&', '=']).next().unwrap_or_default().to_owned();
    let parts = [fragment, url.path(), query].map(last);
    let found = named(query)
        .or_else(|| named(fragment))
        .or_else(|| parts.iter().find(|part| part.contains(|character: char| character.is_ascii_digit())).cloned());
    percent_decode_str(&found.unwrap_or_else(|| last(url.path()))).decode_utf8_lossy().into_owned()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tag,
    Serial,
}

impl Kind {
    fn other(self) -> Self {
        if self == Self::Tag { Self::Serial } else { Self::Tag }
    }

    /// Returns the item for a code. `None` if the code is neither a valid tag nor a valid serial number, because the service
    /// would refuse the whole request.
    fn item(self, code: &str) -> Option<Value> {
        let code = in_label(code);
        let length = code.chars().count();
        match self {
            _ if length == 0 || length > MAX_SERIAL || code.contains('\u{fffd}') || clean_hidden(&code) != code => None,
            _ if is_id(&code) => Some(json!({"id": code})),
            Self::Tag if length <= MAX_TAG => Some(json!({"tag": code})),
            Self::Tag | Self::Serial => Some(json!({"serial_number": code})),
        }
    }
}

struct Session<'a> {
    client: &'a Client,
    place: &'a str,
    moves: bool,
    /// Prefix of the idempotency keys.
    run: String,
    requests: u32,
}

impl Session<'_> {
    /// Returns a result for each code. If a code is unknown as a tag, it is tried as a serial number, and vice versa.
    async fn send(&mut self, codes: &[String], kind: &mut Kind) -> Result<Vec<Answer>> {
        let mut answers = self.send_as(codes, *kind).await?;
        let unknown: Vec<usize> = (0..answers.len()).filter(|place| answers[*place].outcome == UNKNOWN).collect();
        if unknown.is_empty() {
            return Ok(answers);
        }
        let again: Vec<String> = unknown.iter().map(|place| codes[*place].clone()).collect();
        let others = self.send_as(&again, kind.other()).await?;
        if unknown.len() == answers.len() && others.iter().any(|answer| answer.outcome != UNKNOWN) {
            *kind = kind.other();
        }
        for (place, answer) in unknown.into_iter().zip(others) {
            answers[place] = answer;
        }
        Ok(answers)
    }

    async fn send_as(&mut self, codes: &[String], kind: Kind) -> Result<Vec<Answer>> {
        let mut items: Vec<Option<Value>> = codes.iter().map(|code| kind.item(code)).collect();
        let entries = loop {
            let sent: Vec<&Value> = items.iter().flatten().collect();
            let count = sent.len();
            let posted = if sent.is_empty() { Ok(Vec::new()) } else { self.post(&sent).await };
            match posted {
                Err(CliError::Answered { status: 422, detail, .. })
                    if refused(&detail).first().is_some_and(|first| *first < count) =>
                {
                    // A refused code counts as unknown. The other codes are sent again without it.
                    let refused = refused(&detail);
                    let numbered = items.iter_mut().filter(|item| item.is_some()).enumerate();
                    numbered.filter(|(index, _)| refused.contains(index)).for_each(|(_, item)| *item = None);
                }
                entries => break entries?,
            }
        };
        let mut entries = entries.iter();
        let answers = codes.iter().zip(&items).map(|(code, item)| {
            let entry = item.as_ref().and_then(|_| entries.next());
            Answer::of(code, entry.unwrap_or(&Value::Null))
        });
        Ok(answers.collect())
    }

    /// Returns an entry for each item.
    async fn post(&mut self, items: &[&Value]) -> Result<Vec<Value>> {
        let body = json!({"location": self.place, "move": self.moves, "items": items});
        self.requests += 1;
        let key = format!("{}-{}", self.run, self.requests);
        match self.client.post_patiently("assets/seen", &body, &key, "Codes are kept and sent later.").await? {
            Value::Array(entries) if entries.len() == items.len() => Ok(entries),
            _ => Err(unreadable()),
        }
    }
}

/// Returns the indexes of the refused items in an error such as `… /items/1/tag: must not …`.
fn refused(detail: &str) -> BTreeSet<usize> {
    detail.split("\n  /items/").skip(1).filter_map(|rest| rest.split(['/', ':']).next()?.parse().ok()).collect()
}

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
    fn of(code: &str, entry: &Value) -> Self {
        let member = |name: &str| entry[name].as_str().map(str::to_owned);
        Self {
            code: code.to_owned(),
            outcome: member("outcome").unwrap_or_else(|| UNKNOWN.to_owned()),
            id: member("id"),
            asset_tag: member("asset_tag"),
            name: member("name"),
            location: member("location"),
            assigned_to: member("assigned_to"),
            candidates: items(&entry["candidates"]).iter().map(|one| text(&one["asset_tag"]).to_owned()).collect(),
        }
    }

    fn is_found(&self) -> bool {
        matches!(self.outcome.as_str(), "seen" | "moved")
    }

    /// Returns `AST-000007 My laptop`, or the code if no asset was found.
    fn named(&self) -> String {
        match &self.asset_tag {
            Some(tag) => format!("{tag} {}", self.name.as_deref().unwrap_or_default()),
            None => self.code.clone(),
        }
    }
}

/// Prints a line for a code, and rings the bell unless the asset belongs here.
fn say(answer: &Answer, owner: &str) {
    let (label, style, more): (&str, Style, String) = match answer.outcome.as_str() {
        "seen" => ("here     ", GOOD, String::new()),
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

/// Results of a stock-taking so far.
#[derive(Debug)]
struct State {
    path: PathBuf,
    /// Start of the stock-taking. Assets last seen before it are missing.
    since: Timestamp,
    /// Latest result by asset ID, or by code if no asset was found.
    answers: BTreeMap<String, Answer>,
}

impl State {
    /// Continues the stored stock-taking, or starts a new one.
    fn open(path: &Path, again: bool, now: Timestamp) -> Result<Self> {
        let known = if again { None } else { Self::read(path, now)? };
        if let Some(state) = known {
            return Ok(state);
        }
        let failed = |error| CliError::file(path, &error);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        // The first line contains the start time, and each further line a result.
        fs::write(path, format!("{}\n", json!({"since": format!("{now:.3}")}))).map_err(failed)?;
        Ok(Self { path: path.to_owned(), since: now, answers: BTreeMap::new() })
    }

    /// Reads the stored stock-taking. `None` if there is no file, or if it is too old.
    fn read(path: &Path, now: Timestamp) -> Result<Option<Self>> {
        let Ok(file) = File::open(path) else { return Ok(None) };
        let mut lines = BufReader::new(file).lines();
        let heading: Value = serde_json::from_str(&lines.next().transpose()?.unwrap_or_default()).unwrap_or_default();
        let since: Option<Timestamp> = text(&heading["since"]).parse().ok();
        let continues = |since: &Timestamp| since.checked_add(CONTINUES_FOR.hours()).is_ok_and(|end| end > now);
        let Some(since) = since.filter(continues) else { return Ok(None) };
        let mut state = Self { path: path.to_owned(), since, answers: BTreeMap::new() };
        // If the program was killed, the last line can be incomplete, and is skipped.
        let answers = lines.map_while(std::result::Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
        answers.for_each(|answer| state.insert(answer));
        Ok(Some(state))
    }

    fn insert(&mut self, answer: Answer) {
        // A code that was unknown at an earlier scan can belong to an asset now.
        self.answers.remove(&answer.code);
        self.answers.insert(answer.id.clone().unwrap_or_else(|| answer.code.clone()), answer);
    }

    fn add(&mut self, answer: Answer) -> Result<()> {
        let failed = |error| CliError::file(&self.path, &error);
        let mut file = File::options().append(true).open(&self.path).map_err(failed)?;
        writeln!(file, "{}", json!(answer)).map_err(failed)?;
        self.insert(answer);
        Ok(())
    }

    /// Whether the code was found before, so that it needs no further request.
    fn has_found(&self, code: &str) -> bool {
        self.answers.values().any(|answer| answer.code == code && answer.is_found())
    }

    fn end(self) -> Result<()> {
        fs::remove_file(&self.path).map_err(|error| CliError::file(&self.path, &error))
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
    let digest = Sha256::digest(format!("{base_url}\n{tenant}\n{}", folded(place)));
    format!("{}.jsonl", hex(&digest[..16]))
}

/// Returns the assets that belong here but were not found. Excludes found assets explicitly, because clocks differ.
async fn missing(client: &Client, place: &str, state: &State) -> Result<Vec<Value>> {
    let query = [
        ("location", escaped(place)),
        ("kind", "physical".to_owned()),
        ("last_seen_before", format!("{:.3}", state.since)),
        ("sort", "asset_tag".to_owned()),
    ];
    let query = query.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let mut missing = list::read(client, query, None).await?.rows;
    missing.retain(|asset| !state.answers.get(text(&asset["id"])).is_some_and(Answer::is_found));
    Ok(missing)
}

/// Escapes the value of a filter that takes several values.
fn escaped(value: &str) -> String {
    if folded(value) == "none" { format!("\\{value}") } else { value.replace(',', "\\,") }
}

impl State {
    fn with(&self, is_meant: impl Fn(&Answer) -> bool) -> Vec<&Answer> {
        self.answers.values().filter(|answer| is_meant(answer)).collect()
    }

    fn having(&self, outcome: &str) -> Vec<&Answer> {
        self.with(|answer| answer.outcome == outcome)
    }

    fn unknown(&self) -> Vec<&str> {
        let unknown = self.with(|answer| answer.id.is_none() && answer.outcome != AMBIGUOUS);
        unknown.into_iter().map(|answer| answer.code.as_str()).collect()
    }

    fn report(&self, place: &str, missing: &[Value]) -> Value {
        json!({
            "location": place, "since": format!("{:.3}", self.since), "found": self.with(Answer::is_found),
            "elsewhere": self.having(ELSEWHERE), "unknown": self.unknown(), "ambiguous": self.having(AMBIGUOUS), "missing": missing,
        })
    }

    /// Describes the results. `people` are names by ID.
    fn in_words(&self, place: &str, missing: &[Value], people: &BTreeMap<String, String>) -> String {
        let width = terminal::width();
        let (found, moved) = (self.with(Answer::is_found).len(), self.having("moved").len());
        let moved = if moved > 0 { format!(", of which {moved} moved here") } else { String::new() };
        let (elsewhere, unknown, ambiguous) = (self.having(ELSEWHERE), self.unknown(), self.having(AMBIGUOUS));
        let mut members = vec![
            ("Place", place.to_owned()),
            ("Since", shown(self.since)),
            ("Found", format!("{found}{moved}")),
            ("Elsewhere", elsewhere.len().to_string()),
            ("Unknown", unknown.len().to_string()),
        ];
        members.extend(unknown.into_iter().map(|code| ("", code.to_owned())));
        if !ambiguous.is_empty() {
            members.push(("Ambiguous", ambiguous.len().to_string()));
            members.extend(ambiguous.iter().map(|answer| ("", format!("{}: {}", answer.code, answer.candidates.join(", ")))));
        }
        members.push(("Missing", missing.len().to_string()));
        let mut parts = vec![terminal::record(members, width)];
        if !elsewhere.is_empty() {
            let mut table = terminal::Table::new(&["ELSEWHERE", "NAME", "LOCATION", "ASSIGNED TO"].map(terminal::Column::text));
            for answer in elsewhere {
                let holder = answer.assigned_to.as_ref().map(|id| people.get(id).unwrap_or(id));
                let cells = [answer.asset_tag.as_ref(), answer.name.as_ref(), answer.location.as_ref(), holder];
                table.add(cells.map(|cell| cell.cloned().unwrap_or_default()));
            }
            parts.push(table.render(width));
        }
        if !missing.is_empty() {
            parts.push(format!("Missing:\n{}", list::table(missing, &MISSING).render(width)));
        }
        parts.join("\n\n")
    }
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
    fn the_address_of_a_label_leads_to_its_tag() {
        for (code, tag) in [
            ("AST-000007", "AST-000007"),
            ("https://assets.example.com/a/AST-000007", "AST-000007"),
            ("https://assets.example.com/v1/assets/by-tag/A%2F1/", "A/1"),
            ("https://example.com/scan?tag=AST-1", "AST-1"),
            ("https://example.com/scan?from=label&id=AST%201", "AST 1"),
            ("https://example.com/scan?AST-1", "AST-1"),
            ("https://example.com/app#/tag/AST-1", "AST-1"),
            ("https://example.com/app#/assets?tag=AST-1", "AST-1"),
            ("https://example.com/app#AST-1", "AST-1"),
            ("https://assets.example.com/a/AST-000007?src=qr&v=2", "AST-000007"),
            ("https://assets.example.com/a/AST-000007#top", "AST-000007"),
            ("HTTPS://ASSETS.EXAMPLE.COM/A/AST-000007", "AST-000007"),
            ("https://assets.example.com/a/Ä 7", "Ä 7"),
            ("tag:AST-1", "tag:AST-1"),
            ("https://example.com/app#tag=AST-1", "AST-1"),
        ] {
            assert_eq!(in_label(code), tag, "{code}");
        }
        let id = "0190163d-8694-739b-aea5-966c26f8ad90";
        assert_eq!(Kind::Serial.item(&format!("https://example.com/{id}")), Some(json!({"id": id})));
        assert_eq!(Kind::Serial.item("PF3"), Some(json!({"serial_number": "PF3"})));
        assert_eq!(Kind::Tag.item("PF3"), Some(json!({"tag": "PF3"})));
        let long = "x".repeat(65);
        assert_eq!(Kind::Tag.item(&long), Some(json!({"serial_number": long})));
        for wrong in ["\u{1b}[2J", "A\u{fffd}", "https://example.com/%ff", &"x".repeat(256)] {
            assert_eq!((Kind::Tag.item(wrong), Kind::Serial.item(wrong)), (None, None), "{wrong:?}");
        }
    }

    #[test]
    fn refused_items_are_named_by_their_number() {
        let detail = "the service answered 422\n  /items/3/tag: must not\n  /items/12: must be\n  /location: must not";
        assert_eq!(refused(detail), BTreeSet::from([3, 12]));
    }

    #[test]
    fn a_place_is_one_value_of_a_filter() {
        assert_eq!(escaped("Berlin, Mitte / 3"), "Berlin\\, Mitte / 3");
        assert_eq!((escaped("None").as_str(), escaped("Nonesuch").as_str()), ("\\None", "Nonesuch"));
    }

    #[test]
    fn codes_are_serial_numbers_if_assets_of_the_place_have_them() {
        let assets = [json!({"asset_tag": "A-1", "serial_number": "PF1"}), json!({"asset_tag": "A-2", "serial_number": null})];
        let are_serials = |codes: &[&str]| are_serials(&codes.iter().map(|code| (*code).to_owned()).collect::<Vec<_>>(), &assets);
        assert!(are_serials(&["pf1", "X"]));
        assert!(!are_serials(&["PF1", "a-2"]) && !are_serials(&["X"]) && !are_serials(&["A-1"]));
    }

    fn answer(code: &str, outcome: &str, id: Option<&str>) -> Answer {
        Answer::of(code, &json!({"outcome": outcome, "id": id, "asset_tag": id.map(|_| code), "name": "Laptop"}))
    }

    #[test]
    fn an_interrupted_stock_taking_continues_for_a_week() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("b.jsonl");
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let begin = at("2026-03-05T10:00:00Z");
        let mut state = State::open(&path, false, begin).unwrap();
        for (code, outcome, id) in
            [("X", "unknown", None), ("A", "elsewhere", Some("1")), ("A", "moved", Some("1")), ("X", "seen", Some("2"))]
        {
            state.add(answer(code, outcome, id)).unwrap();
        }
        File::options().append(true).open(&path).unwrap().write_all(b"{\"code\": \"cut").unwrap();
        let continued = State::open(&path, false, at("2026-03-12T09:00:00Z")).unwrap();
        assert_eq!((continued.since, &continued.answers), (begin, &state.answers));
        assert_eq!(continued.answers.len(), 2);
        assert!(continued.has_found("A") && continued.has_found("X") && !continued.has_found("B"));
        for (again, now) in [(true, "2026-03-05T11:00:00Z"), (false, "2026-03-12T10:00:00Z")] {
            state.add(answer("B", "seen", Some("3"))).unwrap();
            let begun = State::open(&path, again, at(now)).unwrap();
            assert_eq!((begun.since, begun.answers.len()), (at(now), 0), "{now}");
            fs::write(&path, "{\"since\":\"2026-03-05T10:00:00.000Z\"}\n").unwrap();
        }
        continued.end().unwrap();
        assert!(!path.exists());
    }
}
