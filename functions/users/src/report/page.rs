//! A report as a page to print. The template escapes every text.

use super::texts::Texts;
use super::views::{PersonReport, ReportedAsset, ReportedInstance, ReportedPart};
use askama::Template;
use serde_json::Value;
use shared::domain::tenants::tenant::{Language, Tenant};
use shared::domain::tenants::time_zone::LocalClock;
use shared::domain::values::time::Timestamp;
use shared::http::responses::html::STYLE;

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    language: Language,
    t: &'static Texts,
    style: &'static str,
    organization: &'a str,
    /// Name and e-mail address of a user who was not deleted.
    names: Option<[&'a str; 2]>,
    report: &'a PersonReport,
    tenant: &'a Tenant,
    clock: LocalClock,
}

/// The times are those of the tenant as it is now.
pub(super) fn render(report: &PersonReport, tenant: &Tenant, language: Language) -> askama::Result<String> {
    let names = report.user.as_ref().map(|user| [&*user.display_name, user.email.as_str()]);
    let clock = LocalClock::from(&tenant.time_zone);
    let t = Texts::of(language);
    ReportPage { language, t, style: STYLE, organization: &tenant.name, names, report, tenant, clock }.render()
}

impl ReportPage<'_> {
    fn time(&self, at: &Timestamp) -> String {
        self.tenant.locale.format(&self.clock.local(*at), self.language)
    }

    /// A dash for none.
    fn time_or_none(&self, at: &Option<Timestamp>) -> String {
        at.as_ref().map_or_else(|| "–".to_owned(), |at| self.time(at))
    }

    /// One line for each period.
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
            ReportedPart::Picked => self.t.was_picked,
            ReportedPart::Holder => self.t.had_the_asset,
            ReportedPart::Submitted => self.t.submitted_steps,
            ReportedPart::Signed => self.t.signed,
        };
        instance.parts.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// Text without quotation marks.
    fn text(value: &Value) -> String {
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    }
}
