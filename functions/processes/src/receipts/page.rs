//! A receipt as a printable page. The template escapes all text.

use super::texts::Texts;
use askama::Template;
use serde_json::Value;
use shared::domain::history::event::Actor;
use shared::domain::processes::instance::{InstanceStatus, is_typed, read_statement};
use shared::domain::processes::process::{Step, StepKind};
use shared::domain::receipts::key::{Signature, SignedMovementReceipt, SignedReceipt};
use shared::domain::receipts::receipt::{
    MovementReceipt, MovementReceiptStep, Receipt, ReceiptAsset, ReceiptEvent, ReceiptInstance, ReceiptProcess,
};
use shared::domain::tenants::tenant::{Language, Locale, Tenant};
use shared::domain::tenants::time_zone::LocalClock;
use shared::domain::values::hex;
use shared::domain::values::id::{Id, TenantId};
use shared::domain::values::signature_image::data_url;
use shared::domain::values::time::Timestamp;
use shared::http::responses::html::STYLE;
use std::collections::HashMap;

/// Images by step key, and the paths of images that don't fit on the page.
pub(crate) struct Images {
    pub(crate) images: HashMap<String, Vec<u8>>,
    pub(crate) paths: HashMap<String, String>,
}

#[derive(Template)]
#[template(path = "receipt.html")]
struct ReceiptPage<'a> {
    language: &'static str,
    t: &'static Texts,
    title: &'a str,
    style: &'a str,
    organization: &'a str,
    facts: Vec<(&'static str, Vec<Run>)>,
    has_erased_people: bool,
    tenant_id: TenantId,
    assets: Vec<AssetRow<'a>>,
    steps: Vec<StepRow<'a>>,
    /// The label of each signature's step, and the signed SHA-256 of its image.
    image_hashes: Vec<(&'a str, &'a str)>,
    histories: Vec<History<'a>>,
    time_zone: String,
    signature: &'a Signature,
}

struct AssetRow<'a> {
    asset: &'a ReceiptAsset,
    details: Vec<Run>,
    outcome: Vec<Run>,
}

struct StepRow<'a> {
    label: &'a str,
    value: StepText,
    by: Vec<Run>,
}

struct History<'a> {
    of: Vec<Run>,
    events: &'a [ReceiptEvent],
}

enum Run {
    Text(String),
    /// Text written by people. Isolated, so that its direction doesn't affect the rest.
    Name(String),
    Code(String),
    /// The signed time, and the text that shows it.
    Time(Timestamp, String),
}

enum StepText {
    Plain(Vec<Run>),
    Signature { statement: String, picture: Picture, is_typed: bool },
}

enum Picture {
    Image(String),
    /// Path of an image that doesn't fit on the page.
    Path(String),
    /// The pseudonym that replaced an erased signature.
    Erased(String),
    /// No image has the signed hash.
    Missing,
}

fn text(text: impl Into<String>) -> Run {
    Run::Text(text.into())
}

fn name(text: impl Into<String>) -> Run {
    Run::Name(text.into())
}

fn code(id: impl Id) -> Run {
    Run::Code(id.to_string())
}

/// The page's language, and the organization's time zone and date format.
struct Words<'a> {
    t: &'static Texts,
    language: Language,
    clock: LocalClock,
    locale: &'a Locale,
}

impl<'a> Words<'a> {
    fn new(tenant: &'a Tenant, language: Language) -> Self {
        Self { t: Texts::of(language), language, clock: LocalClock::from(&tenant.time_zone), locale: &tenant.locale }
    }

    fn time(&self, at: Timestamp) -> Run {
        Run::Time(at, self.locale.format(&self.clock.local(at), self.language))
    }

    fn person(&self, actor: &Actor) -> Vec<Run> {
        let key = name(&actor.key_name);
        match (&actor.user_name, actor.link_id) {
            (signer, Some(link)) => {
                let signer = name(signer.as_deref().unwrap_or_default());
                vec![signer, text(format!(" ({})\n", self.t.signing_link)), code(link)]
            }
            (Some(user), None) => vec![name(user), text(format!(" ({} ", self.t.key)), key, text(")")],
            (None, None) => vec![text(format!("{} ", self.t.key)), key],
        }
    }

    fn time_and_person(&self, at: Timestamp, between: &str, actor: &Actor) -> Vec<Run> {
        let mut runs = vec![self.time(at), text(between)];
        runs.extend(self.person(actor));
        runs
    }

    /// Returns the time and author of the submission and, if at a different time, of the closing.
    fn submission(&self, step: &MovementReceiptStep) -> Vec<Run> {
        let mut runs = self.time_and_person(step.submitted_at, "\n", &step.submitted_by);
        if step.submitted_at != step.closed_at {
            runs.push(text(format!("\n{} ", self.t.step_closed)));
            runs.extend(self.time_and_person(step.closed_at, "\n", &step.closed_by));
        }
        runs
    }

    fn outcome(&self, instance: &ReceiptInstance) -> Vec<Run> {
        let mut runs = vec![text(self.t.instance_status(instance.status))];
        if instance.status == InstanceStatus::Cancelled {
            runs.push(text(format!(": {}\n", self.t.not_handled)));
            runs.extend(self.time_and_person(instance.ended_at, "\n", &instance.ended_by));
            let reason = instance.cancel_reason.iter();
            runs.extend(reason.flat_map(|reason| [text(format!("\n{}: ", self.t.reason)), name(&**reason)]));
        }
        runs
    }
}

/// Returns the details of an asset other than its tag and name.
fn details(t: &'static Texts, asset: &ReceiptAsset) -> Vec<(&'static str, Vec<Run>)> {
    let texts = [
        (t.manufacturer, &asset.manufacturer),
        (t.model, &asset.model),
        (t.serial_number, &asset.serial_number),
        (t.location, &asset.location),
    ];
    texts.into_iter().filter_map(|(field, value)| Some((field, vec![name(value.clone()?)]))).collect()
}

fn text_of(t: &Texts, step: &MovementReceiptStep, images: &Images) -> StepText {
    let runs = match (&step.value, &step.step.kind) {
        (Value::Null, _) => vec![text("–")],
        (Value::Bool(true), _) => vec![text(t.yes)],
        (signed, StepKind::Signature { statement }) => {
            let (picture, is_typed) = (picture(&step.step.key, signed, images), is_typed(signed));
            let statement = read_statement(signed).unwrap_or(statement).to_owned();
            return StepText::Signature { statement, picture, is_typed };
        }
        (Value::String(id), StepKind::UserPicker) => {
            vec![name(step.user_name.as_deref().unwrap_or_default()), text("\n"), Run::Code(id.clone())]
        }
        (Value::String(value), _) => vec![name(value)],
        (Value::Array(checked), StepKind::Checklist { items }) => {
            let is_checked = |item: &String| checked.iter().any(|it| it == item);
            let end = |item: &String| if is_checked(item) { "\n".to_owned() } else { format!(", {}\n", t.not_checked) };
            items.iter().flat_map(|item| [name(item), text(end(item))]).collect()
        }
        (other, _) => vec![text(other.to_string())],
    };
    StepText::Plain(runs)
}

fn image_hash(signed: &Value) -> &str {
    signed["sha256"].as_str().unwrap_or_default()
}

/// Returns [`Picture::Missing`] if the image's hash differs from the signed hash.
fn picture(key: &str, signed: &Value, images: &Images) -> Picture {
    if let Value::String(pseudonym) = signed {
        return Picture::Erased(pseudonym.clone());
    }
    let hash = image_hash(signed);
    let has_signed_hash = |image: &&Vec<u8>| hex::sha256(image) == hash;
    match (images.images.get(key).filter(has_signed_hash), images.paths.get(key)) {
        (Some(image), _) => Picture::Image(data_url(image)),
        (None, Some(path)) => Picture::Path(path.clone()),
        (None, None) => Picture::Missing,
    }
}

fn image_hashes(steps: &[MovementReceiptStep]) -> Vec<(&str, &str)> {
    let signatures = steps.iter().filter(|step| step.step.is_signature() && step.value.is_object());
    signatures.map(|step| (&*step.step.label, image_hash(&step.value))).collect()
}

fn step_rows<'a>(steps: &'a [MovementReceiptStep], images: &Images, words: &Words<'_>) -> Vec<StepRow<'a>> {
    let row = |step: &'a MovementReceiptStep| {
        let Step { label, .. } = &step.step;
        StepRow { label, value: text_of(words.t, step, images), by: words.submission(step) }
    };
    steps.iter().map(row).collect()
}

fn asset_row<'a>(instance: &'a ReceiptInstance, words: &Words<'_>) -> AssetRow<'a> {
    let line = |(field, value): (&str, Vec<Run>)| [text(format!("{field}: "))].into_iter().chain(value).chain([text("\n")]);
    let details = details(words.t, &instance.asset).into_iter().flat_map(line).collect();
    AssetRow { asset: &instance.asset, details, outcome: words.outcome(instance) }
}

fn course(
    words: &Words<'_>,
    process: &ReceiptProcess,
    started: (Timestamp, &Actor),
    completed_at: Timestamp,
) -> Vec<(&'static str, Vec<Run>)> {
    vec![
        (words.t.status_afterwards, vec![text(words.t.asset_status(process.target_status))]),
        (words.t.started, words.time_and_person(started.0, &format!(" {} ", words.t.started_by), started.1)),
        (words.t.completed_at, vec![words.time(completed_at)]),
    ]
}

impl<'a> ReceiptPage<'a> {
    fn new(
        words: &Words<'_>,
        process: &'a ReceiptProcess,
        tenant: &'a Tenant,
        tenant_id: TenantId,
        signature: &'a Signature,
    ) -> Self {
        Self {
            language: words.language.as_str(),
            t: words.t,
            title: &process.name,
            style: STYLE,
            organization: &tenant.name,
            facts: Vec::new(),
            has_erased_people: false,
            tenant_id,
            assets: Vec::new(),
            steps: Vec::new(),
            image_hashes: Vec::new(),
            histories: Vec::new(),
            time_zone: tenant.time_zone.to_string(),
            signature,
        }
    }
}

pub(crate) fn render(signed: &SignedReceipt, images: &Images, tenant: &Tenant, language: Language) -> askama::Result<String> {
    let Receipt { tenant_id, asset, process, started_at, started_by, completed_at, .. } = &signed.receipt;
    let words = Words::new(tenant, language);
    let mut facts = vec![(words.t.asset, vec![name(&asset.asset_tag), text(" "), name(&asset.name)])];
    facts.extend(details(words.t, asset));
    facts.extend(course(&words, process, (*started_at, started_by), *completed_at));
    facts.push((words.t.process_instance, vec![code(signed.receipt.instance_id)]));
    let steps: Vec<MovementReceiptStep> = signed.receipt.steps.iter().map(|step| step.submitted.clone()).collect();
    let page = ReceiptPage {
        facts,
        has_erased_people: !signed.receipt.erased_people.is_empty(),
        steps: step_rows(&steps, images, &words),
        image_hashes: image_hashes(&steps),
        histories: vec![History { of: Vec::new(), events: &signed.receipt.events }],
        ..ReceiptPage::new(&words, process, tenant, *tenant_id, &signed.signature)
    };
    page.render()
}

pub(crate) fn render_movement(
    signed: &SignedMovementReceipt,
    images: &Images,
    tenant: &Tenant,
    language: Language,
) -> askama::Result<String> {
    let MovementReceipt { tenant_id, number, process, started_at, started_by, completed_at, .. } = &signed.receipt;
    let words = Words::new(tenant, language);
    let mut facts = vec![(words.t.movement, vec![text(number)])];
    facts.extend(course(&words, process, (*started_at, started_by), *completed_at));
    facts.push((words.t.movement_id, vec![code(signed.receipt.movement_id)]));
    let mut histories = vec![History { of: vec![text(words.t.movement)], events: &signed.receipt.events }];
    histories.extend(signed.receipt.instances.iter().map(|instance| {
        let between = text(format!(", {}: ", words.t.process_instance));
        let of = vec![name(&instance.asset.asset_tag), between, code(instance.instance_id)];
        History { of, events: &instance.events }
    }));
    let page = ReceiptPage {
        facts,
        has_erased_people: !signed.receipt.erased_people.is_empty(),
        assets: signed.receipt.instances.iter().map(|instance| asset_row(instance, &words)).collect(),
        steps: step_rows(&signed.receipt.steps, images, &words),
        image_hashes: image_hashes(&signed.receipt.steps),
        histories,
        ..ReceiptPage::new(&words, process, tenant, *tenant_id, &signed.signature)
    };
    page.render()
}
