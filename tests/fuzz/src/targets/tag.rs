//! Asset tag templates. The three lines are a template, a prefix and a type code.

use super::{assert_round_trip, lines, text};
use shared::domain::assets::tag::{TagPrefix, TagTemplate};
use shared::domain::catalog::TypeCode;
use shared::domain::values::time::Timestamp;

/// Templates and prefixes print as they were sent, and different numbers give different tags.
pub fn run(bytes: &[u8]) {
    let [template_text, prefix_text, code] = lines(text(bytes));
    let prefix = prefix_text.parse::<TagPrefix>().inspect(|prefix| {
        assert_eq!(String::from(prefix.clone()), prefix_text);
        assert_round_trip(prefix);
    });
    let code = code.parse::<TypeCode>().inspect(assert_round_trip);
    let Ok(template) = template_text.parse::<TagTemplate>() else { return };
    assert_eq!(template.to_string(), template_text);
    assert_round_trip(&template);
    let at = Timestamp::from_millis(i64::from(bytes.len() as u32) * 86_400_000);
    let range = template.range(&prefix.unwrap_or_default(), code.as_ref().ok().map(TypeCode::as_str), at);
    let numbers = [0, 1, 9, 10, 999, 1_000, 999_999_999_999, 1_000_000_000_000, u64::MAX];
    let tags = numbers.map(|number| range.tag(number));
    for (index, tag) in tags.iter().enumerate() {
        assert!(!tags[..index].contains(tag), "{tag} occurs twice");
        assert!(tag.chars().count() > range.width() - 1 && !tag.contains(['{', '}']), "{tag}");
    }
    assert_eq!(range.counter().matches("{N}").count(), 1, "{}", range.counter());
}
