//! A report as a printable page for the person: sentences first, then tables as an annex. The template escapes all text.

use super::texts::Texts;
use super::views::{
    Effect, PersonReport, ReportedAsset, ReportedEntry, ReportedInstance, ReportedPart, ReportedSignature, ReportedValue,
};
use askama::Template;
use serde_json::Value;
use shared::domain::history::event::side_and_field;
use shared::domain::history::event::{EventType, Verb};
use shared::domain::record::Kind;
use shared::domain::tenants::tenant::{Language, Locale, Tenant};
use shared::domain::tenants::time_zone::LocalClock;
use shared::domain::values::id::{Id, MovementId};
use shared::domain::values::time::Timestamp;
use shared::http::responses::html::STYLE;
use std::collections::HashMap;
use uuid::Uuid;

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    t: &'static Texts,
    words: Words<'a>,
    style: &'static str,
    organization: &'a str,
    time_zone: String,
    today: String,
    /// `None` for a deleted user.
    display_name: Option<&'a str>,
    report: &'a PersonReport,
    /// Whether the report has other parts. If so, the page doesn't say that no device is assigned.
    is_part: bool,
    /// Kinds of other stored data, with the number of records.
    held: Vec<(&'static str, usize)>,
    present: Vec<Present<'a>>,
    movements: Vec<Sentence<'a>>,
    processes: Vec<Process<'a>>,
    entries: Vec<Entry<'a>>,
}

/// The page's language, and the organization's time zone and date format.
struct Words<'a> {
    t: &'static Texts,
    language: Language,
    clock: LocalClock,
    locale: &'a Locale,
}

struct Present<'a> {
    asset: &'a ReportedAsset,
    since: String,
}

/// Something that happened to the person's assets: a movement of several, a process on one, or a change of assignment.
struct Sentence<'a> {
    at: Timestamp,
    date: String,
    before_assets: &'static str,
    /// Tags and names of the assets.
    assets: Vec<(&'a str, &'a str)>,
    after_assets: &'static str,
    movement: Option<MovementId>,
    process: Option<&'a str>,
    /// Text before the name of another person, who made the change.
    by: &'static str,
    other: Option<&'a str>,
    /// Data URLs.
    images: Vec<&'a str>,
    pictures: Vec<Picture<'a>>,
}

struct Process<'a> {
    instance: &'a ReportedInstance,
    /// Labels and values.
    values: Vec<(&'a str, String)>,
    signatures: Vec<Signature<'a>>,
}

struct Signature<'a> {
    label: &'a str,
    signature: &'a ReportedSignature,
    picture: Option<Picture<'a>>,
}

/// The page shows each image once, with a number.
enum Picture<'a> {
    Image(usize, &'a str),
    Above(usize),
    /// Path of an image that doesn't fit into the response.
    Path(&'a str),
}

struct Entry<'a> {
    /// The first of the entries that share the row.
    entry: &'a ReportedEntry,
    /// The kind of record, or the event type if the page has no word for the kind.
    what: &'a str,
    /// The record's name and a second name, possibly empty, such as an asset's tag and name. `None` if this part of the report
    /// doesn't have the record, so that the page shows the ID.
    names: Option<[&'a str; 2]>,
    verb: &'static str,
    /// Labels and values.
    values: Option<Vec<(String, String)>>,
}

/// Shows times in the tenant's current time zone. `is_later` is true if the report has an earlier part.
pub(super) fn render(
    report: &PersonReport,
    is_later: bool,
    tenant: &Tenant,
    language: Language,
    now: Timestamp,
) -> askama::Result<String> {
    let t = Texts::of(language);
    let words = Words { t, language, clock: LocalClock::from(&tenant.time_zone), locale: &tenant.locale };
    let mut pictures = Pictures::default();
    let movements = movements(report, &words, &mut pictures);
    let page = ReportPage {
        t,
        style: STYLE,
        organization: &tenant.name,
        time_zone: tenant.time_zone.to_string(),
        today: words.date(&now),
        display_name: report.user.as_ref().map(|user| &*user.display_name),
        report,
        is_part: is_later || report.next.is_some(),
        held: held(report, t),
        present: present(report, &words),
        movements,
        processes: report.instances.iter().map(|instance| process(instance, &mut pictures)).collect(),
        entries: entries(report, t),
        words,
    };
    page.render()
}

impl Words<'_> {
    fn time(&self, at: &Timestamp) -> String {
        self.locale.format(&self.clock.local(*at), self.language)
    }

    fn date(&self, at: &Timestamp) -> String {
        self.locale.date(&self.clock.local(*at), self.language)
    }

    /// Returns a dash for `None`.
    fn time_or_none(&self, at: &Option<Timestamp>) -> String {
        at.as_ref().map_or_else(|| "–".to_owned(), |at| self.time(at))
    }

    /// Returns a line per period.
    fn periods(&self, asset: &ReportedAsset) -> String {
        let now = || self.t.now.to_owned();
        let until = |until: &Option<Timestamp>| until.as_ref().map_or_else(now, |until| self.time(until));
        let line = |from: &Timestamp, end: &Option<Timestamp>| format!("{} {} {}", self.time(from), self.t.to, until(end));
        let lines: Vec<String> = asset.periods.iter().map(|period| line(&period.from, &period.until)).collect();
        lines.join("\n")
    }

    fn parts(&self, instance: &ReportedInstance) -> String {
        let word = |part: &ReportedPart| match part {
            ReportedPart::Started => self.t.started_it,
            ReportedPart::Picked => self.t.were_picked,
            ReportedPart::Holder => self.t.had_the_asset,
            ReportedPart::Submitted => self.t.submitted_steps,
            ReportedPart::Signed => self.t.signed,
        };
        instance.parts.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

/// Data URLs of the images on the page so far.
#[derive(Default)]
struct Pictures<'a>(Vec<&'a str>);

impl<'a> Pictures<'a> {
    fn show(&mut self, image: &'a str) -> Picture<'a> {
        if !image.starts_with("data:") {
            return Picture::Path(image);
        }
        if let Some(index) = self.0.iter().position(|shown| *shown == image) {
            return Picture::Above(index + 1);
        }
        self.0.push(image);
        Picture::Image(self.0.len(), image)
    }
}

fn held(report: &PersonReport, t: &'static Texts) -> Vec<(&'static str, usize)> {
    let counts = [
        (t.held_assets, report.assets.len()),
        (t.held_processes, report.instances.len()),
        (t.held_movements, report.movements.len()),
        (t.held_links, report.links.len()),
        (t.held_keys, report.keys.len()),
        (t.held_entries, report.entries.len()),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn present<'a>(report: &'a PersonReport, words: &Words<'_>) -> Vec<Present<'a>> {
    let present = report.assets.iter().filter_map(|asset| {
        let period = asset.periods.last().filter(|period| period.until.is_none())?;
        Some(Present { asset, since: words.date(&period.from) })
    });
    present.collect()
}

/// Returns the sentences, oldest first. The instances of a movement share a sentence.
fn movements<'a>(report: &'a PersonReport, words: &Words<'_>, pictures: &mut Pictures<'a>) -> Vec<Sentence<'a>> {
    let mut sentences: Vec<Sentence<'a>> = Vec::new();
    for instance in &report.instances {
        add_process(&mut sentences, instance, words);
    }
    for asset in &report.assets {
        add_assignments(&mut sentences, asset, report, words);
    }
    sentences.sort_by_key(|sentence| sentence.at);
    for sentence in &mut sentences {
        sentence.pictures = sentence.images.iter().copied().map(|image| pictures.show(image)).collect();
    }
    sentences
}

/// Splits a sentence at the place of the assets.
fn around_assets(sentence: &'static str) -> (&'static str, &'static str) {
    sentence.split_once("{}").unwrap_or((sentence, ""))
}

fn add_process<'a>(sentences: &mut Vec<Sentence<'a>>, instance: &'a ReportedInstance, words: &Words<'_>) {
    let t = words.t;
    let (at, sentence, by) = match instance.effect {
        Effect::Received(at) => (at, t.received, t.handed_over_by),
        Effect::GivenBack(at) => (at, t.given_back, t.taken_back_by),
        Effect::Open => (instance.started_at, t.not_completed, t.by),
        Effect::Nothing => return,
    };
    let (before_assets, after_assets) = around_assets(sentence);
    let movement = instance.movement_id;
    let is_same = |other: &Sentence<'a>| (other.at, other.before_assets, other.movement) == (at, before_assets, movement);
    let index = sentences.iter().position(|other| movement.is_some() && is_same(other)).unwrap_or_else(|| {
        sentences.push(Sentence {
            at,
            date: words.date(&at),
            before_assets,
            assets: Vec::new(),
            after_assets,
            movement,
            process: Some(&*instance.process_name),
            by,
            other: instance.other.as_deref(),
            images: Vec::new(),
            pictures: Vec::new(),
        });
        sentences.len() - 1
    });
    let Some(sentence) = sentences.get_mut(index) else { return };
    sentence.assets.push((&*instance.asset_tag, &*instance.asset_name));
    let images = instance.signatures.iter().filter_map(|signature| signature.image.as_deref());
    for image in images.filter(|image| image.starts_with("data:")) {
        if !sentence.images.contains(&image) {
            sentence.images.push(image);
        }
    }
}

/// Adds the assignments that no process of this part made. A process in a different part can have made them.
fn add_assignments<'a>(sentences: &mut Vec<Sentence<'a>>, asset: &'a ReportedAsset, report: &PersonReport, words: &Words<'_>) {
    let t = words.t;
    let processes = report.instances.iter().filter(|instance| instance.asset_id == asset.id);
    let completed: Vec<Timestamp> = processes.filter_map(|instance| instance.effect.at()).collect();
    for period in &asset.periods {
        let [first, last] = &period.others;
        let ends = [(Some(period.from), t.assigned, first), (period.until, t.unassigned, last)];
        for (at, sentence, other) in ends {
            let Some(at) = at.filter(|at| !completed.contains(at)) else { continue };
            let (before_assets, after_assets) = around_assets(sentence);
            sentences.push(Sentence {
                at,
                date: words.date(&at),
                before_assets,
                assets: vec![(&*asset.asset_tag, &*asset.name)],
                after_assets,
                movement: None,
                process: None,
                by: t.by,
                other: other.as_deref(),
                images: Vec::new(),
                pictures: Vec::new(),
            });
        }
    }
}

fn process<'a>(instance: &'a ReportedInstance, pictures: &mut Pictures<'a>) -> Process<'a> {
    // Objects are signatures, which are shown as images.
    let values = instance.step_data.iter().filter(|(_, value)| !value.is_object());
    let signatures = instance.signatures.iter().map(|signature| Signature {
        label: label(instance, &signature.step),
        signature,
        picture: signature.image.as_deref().map(|image| pictures.show(image)),
    });
    Process {
        instance,
        values: values.map(|(step, value)| (label(instance, step), text(value))).collect(),
        signatures: signatures.collect(),
    }
}

fn label<'a>(instance: &'a ReportedInstance, step: &'a str) -> &'a str {
    instance.labels.get(step).map_or(step, String::as_str)
}

/// Formats text without quotation marks, and lists without brackets.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Merges the entries that one request wrote for one record into a row.
fn entries<'a>(report: &'a PersonReport, t: &'static Texts) -> Vec<Entry<'a>> {
    let names = names(report);
    let mut rows: Vec<Entry<'a>> = Vec::new();
    for entry in &report.entries {
        let said = values(report, entry, t);
        if let Some(last) = rows.last_mut().filter(|last| are_of_one_request(last.entry, entry)) {
            last.values = last.values.take().zip(said).map(|(before, more)| [before, more].concat());
            continue;
        }
        let EventType { kind, verb } = EventType::parse(&entry.event_type).unwrap_or(EventType { kind: None, verb: None });
        let (what, verb) = match (kind.and_then(|kind| noun(t, kind)), verb) {
            (Some(noun), Some(verb)) => (noun, word(t, verb)),
            _ => (&*entry.event_type, ""),
        };
        rows.push(Entry { entry, what, names: names.get(&entry.entity_id).copied(), verb, values: said });
    }
    rows
}

fn are_of_one_request(one: &ReportedEntry, other: &ReportedEntry) -> bool {
    let about = |entry: &ReportedEntry| (entry.at, entry.entity_id, entry.is_actor);
    about(one) == about(other) && one.event_type == other.event_type
}

fn names(report: &PersonReport) -> HashMap<Uuid, [&str; 2]> {
    let user = report.user.iter().map(|user| (user.id.uuid(), [&*user.display_name, ""]));
    let keys = report.keys.iter().map(|key| (key.id.uuid(), [&*key.name, ""]));
    let assets = report.assets.iter().map(|asset| (asset.id.uuid(), [&*asset.asset_tag, &*asset.name]));
    let instances = report.instances.iter().map(|it| (it.id.uuid(), [&*it.process_name, &*it.asset_tag]));
    let movements = report.movements.iter().map(|it| (it.id.uuid(), [&*it.number, &*it.process_name]));
    let links = report.links.iter().map(|link| (link.id.uuid(), [&*link.name, ""]));
    user.chain(keys).chain(assets).chain(instances).chain(movements).chain(links).collect()
}

fn noun(t: &'static Texts, kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::User => Some(t.user),
        Kind::ApiKey => Some(t.key),
        Kind::Asset => Some(t.asset),
        Kind::Instance => Some(t.process),
        Kind::Movement => Some(t.movement),
        Kind::Link => Some(t.link),
        _ => None,
    }
}

fn word(t: &'static Texts, verb: Verb) -> &'static str {
    match verb {
        Verb::Created => t.was_created,
        Verb::Updated => t.was_changed,
        Verb::Deleted => t.was_deleted,
        Verb::Seen => t.was_seen,
    }
}

/// Returns the values of an entry, without unchanged values, and without the person's current name and the names of the person's
/// keys, which are shown elsewhere on the page.
fn values(report: &PersonReport, entry: &ReportedEntry, t: &'static Texts) -> Option<Vec<(String, String)>> {
    let said = entry.values.as_ref()?;
    let user = report.user.iter().map(|user| &*user.display_name);
    let known: Vec<&str> = user.chain(report.keys.iter().map(|key| &*key.name)).collect();
    let instance = report.instances.iter().find(|instance| instance.id.uuid() == entry.entity_id);
    let fields: Vec<Option<(&str, String)>> = said.iter().map(|value| side_and_field(&value.pointer)).collect();
    let is_unchanged = |side: &str, field: &str, value: &Value| {
        let is_other_side = |at: &Option<(&str, String)>| matches!(at, Some((of, name)) if *of != side && name == field);
        fields.iter().zip(said).any(|(at, other)| is_other_side(at) && other.value == *value)
    };
    let line = |(at, said): (&Option<(&str, String)>, &ReportedValue)| {
        let text = if said.value.is_object() { t.image.to_owned() } else { text(&said.value) };
        let Some((side, field)) = at else {
            return (!known.contains(&&*text)).then(|| (t.by_you.to_owned(), text));
        };
        if is_unchanged(side, field, &said.value) {
            return None;
        }
        let step = field.strip_prefix("step_data/");
        let name = step.map_or(&**field, |step| instance.map_or(step, |instance| label(instance, step)));
        let before = if *side == "old" { t.before } else { "" };
        Some((format!("{name}{before}"), text))
    };
    Some(fields.iter().zip(said).filter_map(line).collect())
}
