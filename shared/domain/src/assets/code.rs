//! Scanned codes: whatever a scanner types, and the assets that it can mean.

use crate::assets::asset::{Asset, RowTag};
use crate::assets::label::{LabelUrlTemplate, after_scheme, decoded};
use crate::values::id::AssetId;
use crate::values::text::{SerialNumber, is_never_seen};
use fields::serial_number;

/// Codes with more characters belong to no asset. The longest URL of a label has 255 characters and a percent-encoded tag.
const MAX_CHARS: usize = 8_192;
/// ASCII 29, which ends an element of variable length in a GS1 code.
const GROUP_SEPARATOR: char = '\u{1d}';
/// AIM symbology identifiers (ISO/IEC 15424) of GS1 codes.
const GS1_SYMBOLOGIES: [&str; 5] = ["]C1", "]e0", "]d2", "]Q3", "]J1"];
/// GS1 application identifier of a serial number.
const SERIAL: &str = "21";
/// Minimum length of a serial number after a prefix that may also be part of it.
const MIN_UNMARKED: usize = 4;

/// What identifies an asset, normalized for comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AssetKey {
    /// As in [`Asset::unique_tag`].
    Tag(String),
    /// As in [`serial_number::key`].
    Serial(String),
    Id(AssetId),
}

impl AssetKey {
    pub fn tag(RowTag(tag): &RowTag) -> Self {
        Self::Tag(Asset::unique_tag(tag).value)
    }

    pub fn serial(serial: &SerialNumber) -> Self {
        Self::Serial(serial_number::key(serial))
    }
}

/// An asset that a code can mean.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Candidate {
    pub key: AssetKey,
    /// Whether the code is an address at an unknown host. Such a label can be another organization's, so it doesn't move assets.
    pub is_foreign: bool,
}

impl From<AssetKey> for Candidate {
    fn from(key: AssetKey) -> Self {
        Self { key, is_foreign: false }
    }
}

/// Returns the assets that a code can mean, best first; the first one that exists is meant.
///
/// First the code as it is: tag, serial number, ID. Then as an address by the tenant's template. Then both again after each step:
/// without control characters around it, without AIM identifier (`]C1`), without the stars of Code 39, without other characters
/// that can't be seen, and as the serial number in a GS1 code. At last, as an address that ends with `/by-tag/<tag>`.
///
/// `base_url` is the service's own scheme and host.
pub fn candidates(code: &str, template: Option<&LabelUrlTemplate>, base_url: &str) -> Vec<Candidate> {
    let mut found = Vec::new();
    if code.chars().nth(MAX_CHARS).is_some() {
        return found;
    }
    let mut add = |candidate: Candidate| {
        if !found.contains(&candidate) {
            found.push(candidate);
        }
    };
    let texts = readings(code);
    for text in &texts {
        keys(text).map(Candidate::from).for_each(&mut add);
        if let Some(label) = template.and_then(|template| template.read(text)) {
            let tag = label.asset_tag.and_then(|tag| tag.parse().ok());
            let keys = label.id.map(AssetKey::Id).into_iter().chain(tag.as_ref().map(AssetKey::tag));
            keys.map(Candidate::from).for_each(&mut add);
        }
    }
    for (host, tag) in texts.iter().filter_map(|text| by_tag(text)) {
        let own = [Some(base_url), template.map(LabelUrlTemplate::as_str)].into_iter().flatten();
        let is_own = own.filter_map(after_scheme).any(|url| host_and_path(url).0.eq_ignore_ascii_case(host));
        add(Candidate { key: AssetKey::tag(&tag), is_foreign: !is_own });
    }
    found
}

/// Returns the tag, the serial number and the ID that a text can be.
fn keys(text: &str) -> impl Iterator<Item = AssetKey> {
    let tag = text.parse().ok().as_ref().map(AssetKey::tag);
    let serial = text.parse().ok().as_ref().map(AssetKey::serial);
    let serial = serial.filter(|serial| !matches!(serial, AssetKey::Serial(key) if key.is_empty()));
    let id = text.to_ascii_lowercase().parse().ok().map(AssetKey::Id);
    [tag, serial, id].into_iter().flatten()
}

/// Returns the code as it is, then after each step without what scanners add to a label's text.
fn readings(code: &str) -> Vec<String> {
    let is_margin = |c: char| c.is_whitespace() || c.is_control() || is_never_seen(c);
    let whole = code.trim();
    let bare = whole.trim_matches(is_margin);
    let (symbology, data) = without_identifier(bare);
    let data = data.trim_matches(is_margin);
    let unstarred = data.strip_prefix('*').and_then(|rest| rest.strip_suffix('*')).unwrap_or(data).trim_matches(is_margin);
    let visible: String = unstarred.chars().filter(|c| !c.is_control() && !is_never_seen(*c)).collect();
    let mut readings: Vec<String> = [whole, bare, data, unstarred, &visible].map(str::to_owned).to_vec();
    let is_marked = symbology.is_some_and(|symbology| GS1_SYMBOLOGIES.contains(&symbology)) || whole.contains(GROUP_SEPARATOR);
    readings.extend(gs1_serial(unstarred, is_marked).map(str::to_owned));
    readings.dedup();
    readings
}

/// Splits off an AIM symbology identifier: `]`, a letter, and a letter or digit.
fn without_identifier(text: &str) -> (Option<&str>, &str) {
    match text.as_bytes() {
        [b']', symbology, modifier, ..] if symbology.is_ascii_alphabetic() && modifier.is_ascii_alphanumeric() => {
            let (identifier, data) = text.split_at(3);
            (Some(identifier), data)
        }
        _ => (None, text),
    }
}

/// Returns the serial number in a GS1 code, such as `(01)09506000134352(21)ABC`, `21ABC` and `010950600013435221ABC`.
///
/// Without a mark of GS1 (an identifier, a separator, parentheses, or a trade item number with the right check digit), `21` may
/// belong to the serial number, and the rest may be another asset's. So digits alone are left as they are.
fn gs1_serial(text: &str, is_marked: bool) -> Option<&str> {
    if text.starts_with('(') {
        let (_, rest) = text.split_once("(21)")?;
        let end =
            rest.match_indices('(').find(|(start, _)| rest.get(*start..).is_some_and(begins_element)).map(|(start, _)| start);
        return rest.get(..end.unwrap_or(rest.len())).filter(|serial| !serial.is_empty());
    }
    if !is_marked && !begins_with_trade_item(text) {
        let serial = text.strip_prefix(SERIAL)?;
        let is_clear = serial.len() >= MIN_UNMARKED && !serial.bytes().all(|byte| byte.is_ascii_digit());
        return is_clear.then_some(serial);
    }
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(GROUP_SEPARATOR);
        if let Some(serial) = rest.strip_prefix(SERIAL) {
            return serial.split(GROUP_SEPARATOR).next().filter(|serial| !serial.is_empty());
        }
        let fixed = match rest.get(..2)? {
            "00" => Some(20),
            "01" | "02" => Some(16),
            "11" | "12" | "13" | "15" | "16" | "17" => Some(8),
            "20" => Some(4),
            "31" | "32" | "33" | "34" | "35" | "36" => Some(10),
            "41" => Some(16),
            _ => None,
        };
        rest = match fixed {
            Some(length) => rest.get(length..)?,
            None => rest.split_once(GROUP_SEPARATOR)?.1,
        };
    }
}

/// Whether the text begins with an application identifier of two to four digits in parentheses.
fn begins_element(text: &str) -> bool {
    let identifier = text.strip_prefix('(').and_then(|rest| Some(rest.split_once(')')?.0));
    identifier.is_some_and(|digits| (2..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the text begins with `01` and a trade item number of 14 digits with its check digit (GS1 General Specifications §7.9).
fn begins_with_trade_item(text: &str) -> bool {
    let number = text.strip_prefix("01").and_then(|rest| rest.as_bytes().get(..14));
    number.is_some_and(|digits| {
        let weighted = digits.iter().zip([3, 1].into_iter().cycle()).map(|(digit, weight)| u32::from(digit - b'0') * weight);
        digits.iter().all(u8::is_ascii_digit) && weighted.sum::<u32>().is_multiple_of(10)
    })
}

/// Returns host and tag of an address that ends with `/by-tag/<tag>`.
fn by_tag(text: &str) -> Option<(&str, RowTag)> {
    let (host, path) = host_and_path(after_scheme(text)?);
    let path = path.split(['?', '#']).next()?.trim_end_matches('/');
    let (before, tag) = path.rsplit_once('/')?;
    let (_, name) = before.rsplit_once('/')?;
    let tag = decoded(tag)?.parse().ok()?;
    name.eq_ignore_ascii_case("by-tag").then_some((host, tag))
}

/// Splits a URL without its scheme. The path begins with a slash, or is empty.
fn host_and_path(url: &str) -> (&str, &str) {
    url.split_at(url.find(['/', '?', '#']).unwrap_or(url.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://api.example.com";
    const ID: &str = "0190163d-8694-739b-aea5-966c26f8ad90";

    fn of(code: &str, template: Option<&str>) -> Vec<Candidate> {
        let template = template.map(|template| template.parse().expect(template));
        candidates(code, template.as_ref(), BASE)
    }

    fn keys_of(code: &str, template: Option<&str>) -> Vec<AssetKey> {
        of(code, template).into_iter().map(|candidate| candidate.key).collect()
    }

    fn tag(text: &str) -> AssetKey {
        AssetKey::Tag(text.to_owned())
    }

    fn serial(text: &str) -> AssetKey {
        AssetKey::Serial(text.to_owned())
    }

    fn id() -> AssetKey {
        AssetKey::Id(ID.parse().expect("an ID"))
    }

    #[test]
    fn code_is_looked_up_as_tag_then_serial_number_then_id() {
        assert_eq!(keys_of(" ast-1 ", None), [tag("AST-1"), serial("ast-1")]);
        assert_eq!(keys_of("PF3 XK 011", None), [tag("PF3 XK 011"), serial("pf3xk011")]);
        assert_eq!(keys_of(&ID.to_uppercase(), None), [tag(&ID.to_uppercase()), serial(ID), id()]);
        for code in ["]C1A-1", "*A-1*", "21A-1-X"] {
            assert_eq!(keys_of(code, None)[..2], [tag(code.to_uppercase().as_str()), serial(&code.to_lowercase())], "{code}");
        }
        for nothing in ["", " ", "\u{1d}", "\u{feff}", &"x".repeat(MAX_CHARS + 1)] {
            let known = keys_of(nothing, None);
            assert!(known.iter().all(|key| matches!(key, AssetKey::Tag(tag) if !tag.is_empty())), "{nothing:?}: {known:?}");
        }
    }

    /// Whether the code leads to this tag, and to no other tag than the code itself.
    fn leads_to(code: &str, template: Option<&str>, expected: &str) {
        let tags: Vec<AssetKey> =
            keys_of(code, template).into_iter().filter(|key| matches!(key, AssetKey::Tag(_))).skip(1).collect();
        assert_eq!(tags, [tag(expected)], "{code} {template:?}");
    }

    #[test]
    fn a_label_is_read_by_its_template() {
        for (template, code) in [
            ("https://h/a/{asset_tag}?src=qr&v=2", "https://h/a/AST-1?src=qr&v=2"),
            ("https://h/a/{asset_tag}?src=qr&v=2", "https://h/a/AST-1?src=qr&v=1"),
            ("https://h/a/{asset_tag}?src=qr&v=2", "https://h/a/AST-1"),
            ("https://h/{asset_tag}/2026", "https://h/AST-1/2026"),
            ("https://h/{asset_tag}/2026", "HTTPS://H/AST-1/2026"),
            ("https://h/{asset_tag}.html", "https://h/AST-1.html"),
            ("https://h/a/{asset_tag}", "http://H/A/ast-1/"),
            ("https://h/a/{asset_tag}", "https://h/a/AST-1#top"),
            ("https://h/a/{asset_tag}", "https://h/a/AST%2D1?utm_source=qr"),
            ("https://h?v=2&tag={asset_tag}", "https://h?v=2&tag=AST-1"),
            ("https://h?tag={asset_tag}&v=2", "https://h?tag=AST-1&v=2"),
            ("https://h/app#/tag/{asset_tag}", "https://h/app#/tag/AST-1"),
        ] {
            leads_to(code, Some(template), "AST-1");
        }
        let with_id = "https://h/{asset_tag}/{id}";
        assert_eq!(keys_of(&format!("https://h/A-1/{ID}"), Some(with_id))[2..], [id(), tag("A-1")]);
        assert_eq!(keys_of(&format!("HTTPS://H/{}", ID.to_uppercase()), Some("https://h/{id}"))[2..], [id()]);
        assert_eq!(keys_of("https://h/a%2Fb%20%C3%A4", Some("https://h/{asset_tag}"))[2..], [tag("A/B ä")]);
        assert_eq!(keys_of("https://h/Ä 7", Some("https://h/{asset_tag}"))[2..], [tag("Ä 7")]);
    }

    #[test]
    fn an_address_that_the_template_does_not_make_leads_nowhere() {
        for (template, code) in [
            (Some("https://h/{asset_tag}/2026"), "https://h/AST-1/2025"),
            (Some("https://h/{asset_tag}/2026"), "https://h/AST-1"),
            (Some("https://h/a/{asset_tag}"), "https://h/a/AST-1/history"),
            (Some("https://h/a/{asset_tag}"), "https://h/b/AST-1"),
            (Some("https://h/a/{asset_tag}"), "https://other/a/AST-1"),
            (Some("https://h/a/{asset_tag}"), "https://h/a/"),
            (Some("https://h/a/{asset_tag}"), "https://h/a/%ff"),
            (Some("https://h?tag={asset_tag}&v=2"), "https://h?tag=AST-1&v=1"),
            (Some("https://h/{id}"), "https://h/AST-1"),
            (None, "https://h/a/AST-1"),
            (None, "https://h/by-tag/"),
            (None, "https://h/by-tag/a/b"),
            (None, "by-tag/AST-1"),
            (None, "ftp://h/by-tag/AST-1"),
        ] {
            let known = keys_of(code, template);
            assert!(known.len() <= 2 && known[0] == tag(&code.to_ascii_uppercase()), "{code}: {known:?}");
        }
    }

    #[test]
    fn what_a_scanner_adds_is_removed() {
        for code in [
            "]C1AST-1",
            "]A0AST-1",
            "*AST-1*",
            "]A0*AST-1*",
            "\u{2}AST-1\r\u{3}",
            "\u{1d}AST-1",
            "A\u{0}ST-1",
            "AST\u{200b}-1",
            "\u{feff}AST-1",
            "\u{2}]C1AST-1\u{4}",
        ] {
            assert_eq!(keys_of(code, None).last(), Some(&serial("ast-1")), "{code:?}");
        }
        for code in ["https://h/a/AST-1\u{3}", "]Q1HTTPS://H/A/AST-1\r"] {
            assert_eq!(keys_of(code, Some("https://h/a/{asset_tag}")).last(), Some(&tag("AST-1")), "{code:?}");
        }
        for kept in ["AST-1*", "*", "**", "]", "]C", "]C1", "a]C1AST-1"] {
            let known = keys_of(kept, None);
            assert!(!known.contains(&tag("AST-1")) && known.iter().all(|key| *key != tag("")), "{kept}: {known:?}");
        }
    }

    #[test]
    fn a_gs1_code_is_read_for_its_serial_number() {
        for code in [
            "21PF3XK011",
            "]C121PF3XK011",
            "]d2010950600013435221PF3XK011",
            "010950600013435221PF3XK011",
            "\u{1d}21PF3XK011",
            "]d201095060001343521726123121PF3XK011",
            "]d21012\u{1d}21PF3XK011\u{1d}17261231",
            "(01)09506000134352(21)PF3XK011",
            "(21)PF3XK011(10)12",
            "]C1 (21)PF3XK011",
        ] {
            assert!(keys_of(code, None).contains(&serial("pf3xk011")), "{code:?}");
        }
        assert!(keys_of("]C12100012345", None).contains(&serial("00012345")));
        assert!(keys_of("(21)A(1)", None).contains(&serial("a(1)")));
    }

    /// An unknown number must not become another asset's, only because it begins with 21.
    #[test]
    fn a_number_that_begins_with_21_stays_whole() {
        for code in ["211005", "2100012345", "21A", "010950600013435321PF3XK011", "]C1", "]C121", "(21)", "(01)09506000134352"] {
            let known = keys_of(code, None);
            let rest = ["1005", "00012345", "a", "pf3xk011", ""];
            assert!(rest.iter().all(|rest| !known.contains(&serial(rest))), "{code}: {known:?}");
        }
    }

    #[test]
    fn an_address_of_a_foreign_host_is_marked() {
        let template = Some("https://labels.example/{id}");
        for (code, is_foreign) in [
            ("https://API.example.com/v1/assets/by-tag/A%2F1", false),
            ("http://labels.example/by-tag/A%2f1/?x=1", false),
            ("HTTPS://EVIL.EXAMPLE/V1/ASSETS/BY-TAG/A%2F1", true),
            ("https://api.example.com@evil.example/by-tag/A%2F1", true),
            ("https://api.example.com.evil.example/by-tag/A%2F1#x", true),
        ] {
            let last = of(code, template).pop();
            assert_eq!(last, Some(Candidate { key: tag("A/1"), is_foreign }), "{code}");
        }
        assert!(of("]Q1https://evil.example/by-tag/A-1", None).iter().any(|candidate| candidate.is_foreign));
    }
}
