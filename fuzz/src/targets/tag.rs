//! Templates of asset tags: three lines, a template, a prefix and a type's code.

use super::{is_kept, lines, text};
use shared::domain::asset_tag::{TagPrefix, TagTemplate};
use shared::domain::catalog::TypeCode;
use shared::domain::time::Timestamp;

/// A template and a prefix print as they were sent, and tags of different numbers differ, whatever the template.
pub fn run(bytes: &[u8]) {
    let [template, prefix, code] = lines(text(bytes));
    let sent = template;
    let prefix = prefix.parse::<TagPrefix>().inspect(|read| {
        assert_eq!(String::from(read.clone()), prefix);
        is_kept(read);
    });
    let code = code.parse::<TypeCode>().inspect(is_kept);
    let Ok(template) = sent.parse::<TagTemplate>() else { return };
    assert_eq!(template.to_string(), sent);
    is_kept(&template);
    let at = Timestamp::from_millis(i64::from(bytes.len() as u32) * 86_400_000);
    let range = template.range(&prefix.unwrap_or_default(), code.as_ref().ok().map(TypeCode::as_str), at);
    let numbers = [0, 1, 9, 10, 999, 1_000, 999_999_999_999, 1_000_000_000_000, u64::MAX];
    let tags = numbers.map(|number| range.tag(number));
    for (place, tag) in tags.iter().enumerate() {
        assert!(!tags[..place].contains(tag), "{tag} twice");
        assert!(tag.chars().count() > range.width() - 1 && !tag.contains(['{', '}']), "{tag}");
    }
    assert_eq!(range.counter().matches("{N}").count(), 1, "{}", range.counter());
}
