//! The representation that a client prefers, by its header `Accept` (RFC 9110 §12.5.1).

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
        let weight = parameters.split(';').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
        });
        let weight = weight.map_or(Some(1.0), |text| text.parse::<f32>().ok().filter(|q| (0.0..=1.0).contains(q)))?;
        Some((specificity, weight))
    });
    ranges.max_by_key(|(specificity, _)| *specificity).map_or(0.0, |(_, weight)| weight)
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
}
