//! What a client prefers: the representation, by its header `Accept` (RFC 9110 §12.5.1), and the language of pages, by
//! `Accept-Language` (§12.5.4).

use crate::domain::tenants::locale::Language;

/// `accept` is the header. Browsers do. A client that takes both alike doesn't, such as one that sends `*/*`.
#[must_use]
pub fn prefers_html(accept: &str) -> bool {
    quality(accept, "text", "html") > quality(accept, "application", "json")
}

/// From 0 to 1. Of the ranges that match it, the most specific counts. Parameters of ranges other than `q` are ignored, and so
/// are ranges that can't be read.
fn quality(accept: &str, kind: &str, subtype: &str) -> f32 {
    let ranges = accept.split(',').filter_map(|range| {
        let (range, parameters) = range.split_once(';').unwrap_or((range, ""));
        let (range_kind, range_subtype) = range.trim().split_once('/')?;
        let specificity = match (range_kind, range_subtype) {
            ("*", "*") => 0,
            (other, "*") if other.eq_ignore_ascii_case(kind) => 1,
            (other, another) if other.eq_ignore_ascii_case(kind) && another.eq_ignore_ascii_case(subtype) => 2,
            _ => return None,
        };
        Some((specificity, weight(parameters)?))
    });
    ranges.max_by_key(|(specificity, _)| *specificity).map_or(0.0, |(_, weight)| weight)
}

/// From 0 to 1. `None` if it can't be read.
fn weight(parameters: &str) -> Option<f32> {
    let weight = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    weight.map_or(Some(1.0), |text| text.parse::<f32>().ok().filter(|q| (0.0..=1.0).contains(q)))
}

/// `accept_language` is the header. `None` if it names no language of the pages. Of equals, the first counts.
#[must_use]
pub fn preferred_language(accept_language: &str) -> Option<Language> {
    let ranges = accept_language.split(',').filter_map(|range| {
        let (tag, parameters) = range.split_once(';').unwrap_or((range, ""));
        let language = Language::of(tag.trim())?;
        Some((language, weight(parameters).filter(|weight| *weight > 0.0)?))
    });
    ranges.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(language, _)| language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_prefer_html_and_whoever_does_not_care_gets_json() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", true),
            ("text/html", true),
            ("TEXT/HTML ; charset=utf-8 ; Q=0.2", true),
            ("text/*", true),
            ("application/json;q=0.5, text/html", true),
            ("application/*;q=0.5, text/*;q=0.6", true),
            ("*/*", false),
            ("", false),
            ("text/html, application/json", false),
            ("text/html;q=0.8, application/json;q=0.9", false),
            ("text/html;q=0.8, */*", false),
            ("text/html;q=0", false),
            ("text/html;q=0, */*;q=0.1", false),
            ("text/html;q=2, text/html;q=nan, html", false),
            ("image/png, application/xml", false),
        ] {
            assert_eq!(prefers_html(accept), expected, "{accept}");
        }
    }

    #[test]
    fn the_preferred_language_is_the_first_of_the_pages_with_the_highest_weight() {
        for (accepted, expected) in [
            ("de", Some("de")),
            ("de-AT, de;q=0.9, en;q=0.8", Some("de")),
            ("ja, FR-ch;q=0.5, es;q=0.5", Some("fr")),
            ("en;q=0.2,es;Q=0.7", Some("es")),
            ("de;q=0, es;q=0.1", Some("es")),
            ("de;q=nan, de;q=7", None),
            ("ja, *", None),
            ("", None),
        ] {
            assert_eq!(preferred_language(accepted).map(Language::code), expected, "{accepted}");
        }
    }
}
