//! Labels: their options in a request (format, size, sheet, assets in order), and the URL template for a label's code.

use crate::values::field_error::{ErrorCode, FieldError, ValueError, text_form};
use crate::values::id::AssetId;
use crate::values::string_enum::string_enum;
use crate::values::text::check_visible;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

string_enum! {
    /// The format of a label.
    LabelFormat {
        Svg = "svg",
        /// An image with 300 dots per inch.
        Png = "png",
        Zpl = "zpl",
    }
}

string_enum! {
    /// The resolution of a label printer, in dots per inch.
    Resolution {
        /// 8 dots per millimetre.
        Dpi203 = "203",
        /// 12 dots per millimetre.
        Dpi300 = "300",
    }
}

string_enum! {
    /// Paper and label sizes of a sheet.
    SheetLayout {
        /// A4, 21 labels of 63.5 x 38.1 mm.
        A4x21 = "a4-21",
        /// A4, 24 labels of 70 x 37 mm.
        A4x24 = "a4-24",
        /// A4, 65 labels of 38.1 x 21.2 mm.
        A4x65 = "a4-65",
        /// Letter, 30 labels of 66.7 x 25.4 mm.
        Letter30 = "letter-30",
        /// Letter, 80 labels of 44.5 x 12.7 mm.
        Letter80 = "letter-80",
    }
}

pub const MAX_LABELS: usize = 100;
/// Permitted length of each side of a label, in millimetres.
const SIDES: std::ops::RangeInclusive<f64> = 12.0..=160.0;

/// Size of a label in millimetres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelSize {
    pub width: f64,
    pub height: f64,
}

impl Default for LabelSize {
    fn default() -> Self {
        Self { width: 50.0, height: 20.0 }
    }
}

impl PartialSchema for LabelSize {
    fn schema() -> RefOr<Schema> {
        let side = r"((1[2-9]|[2-9][0-9]|1[0-5][0-9])(\.[0-9])?|160(\.0)?)";
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(format!("^{side}x{side}$")));
        text.examples(["50x20"]).into()
    }
}

impl utoipa::ToSchema for LabelSize {}

impl FromStr for LabelSize {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let sides = text.split_once('x').and_then(|(width, height)| Some(Self { width: side(width)?, height: side(height)? }));
        sides.ok_or_else(|| {
            ValueError::form(
                "must be width x height in millimetres with at most one decimal, such as 50x20 or 63.5x38.1, each from 12 to 160",
            )
        })
    }
}

/// Parses digits, optionally with one decimal place.
fn side(text: &str) -> Option<f64> {
    let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = [whole, tenths].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    (is_number && tenths.len() == 1).then(|| text.parse().ok())?.filter(|side| SIDES.contains(side))
}

/// Number of labels already used on the first sheet.
#[derive(Debug, Clone, Copy, Default, utoipa::ToSchema)]
#[schema(value_type = u32, minimum = 0, maximum = 79)]
pub struct SkippedLabels(usize);

impl SkippedLabels {
    pub fn get(self) -> usize {
        self.0
    }
}

impl FromStr for SkippedLabels {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| text.parse().ok()).flatten();
        number.map(Self).ok_or_else(|| ValueError::form("must be a whole number from 0 to 79, less than the labels per sheet"))
    }
}

/// Assets on a page of labels, in order and without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = Vec<AssetId>, min_items = 1, max_items = 100)]
pub struct LabelIds(Vec<AssetId>);

impl LabelIds {
    pub fn ids(&self) -> &[AssetId] {
        &self.0
    }

    /// Returns an error for each unknown asset, with its 1-based position.
    pub fn unknown(&self, is_known: impl Fn(AssetId) -> bool) -> Vec<FieldError> {
        let unknown = self.0.iter().zip(1..).filter(|(id, _)| !is_known(**id));
        let error = |(id, position)| FieldError::parameter("ids", format!("number {position}: there is no asset {id}"));
        unknown.map(error).collect()
    }
}

impl FromStr for LabelIds {
    type Err = ValueError;

    /// Parses comma-separated IDs. An error has the 1-based position of the first invalid ID.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let texts: Vec<&str> = text.split(',').collect();
        if text.is_empty() || texts.len() > MAX_LABELS {
            return Err(ValueError::form(format!("must be 1 to {MAX_LABELS} asset IDs, separated by commas")));
        }
        let mut ids: Vec<AssetId> = Vec::new();
        for (text, position) in texts.into_iter().zip(1..) {
            let id = text
                .parse()
                .map_err(|_| ValueError::form(format!("must be 1 to {MAX_LABELS} asset IDs; number {position} is not an ID")))?;
            if ids.contains(&id) {
                return Err(ValueError::new(format!("must not repeat an asset; number {position} repeats {id}")));
            }
            ids.push(id);
        }
        Ok(Self(ids))
    }
}

/// Maximum length of a template in characters.
const MAX_CHARS: usize = 255;
const TAG: &str = "{asset_tag}";
const ID: &str = "{id}";
/// Length of an ID.
const ID_CHARS: usize = 36;
/// Characters to percent-encode: all except the unreserved characters of a URL (RFC 3986 §2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// HTTP or HTTPS URL with the placeholder `{asset_tag}` or `{id}`, such as `https://example.com/a/{asset_tag}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 255, examples("https://example.com/a/{asset_tag}"))]
pub struct LabelUrlTemplate(String);

impl LabelUrlTemplate {
    /// Fills in the placeholders. The tag is percent-encoded as UTF-8.
    pub fn url(&self, asset_tag: &str, id: AssetId) -> String {
        // Braces in a tag are encoded, so they can't look like a placeholder.
        let tag = utf8_percent_encode(asset_tag, ENCODED).to_string();
        self.0.replace(ID, &id.to_string()).replace(TAG, &tag)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the placeholders of a URL that this template made, even if a printer or scanner changed its case. `None` for every
    /// other text.
    ///
    /// If both placeholders are in the path, the rest of the URL need not match: old labels can have an older one.
    pub fn read(&self, url: &str) -> Option<LabelContent> {
        let template = after_scheme(&self.0)?;
        let (path, rest) = template.split_at(template.find(['?', '#']).unwrap_or(template.len()));
        let template = if rest.contains('{') { template } else { path };
        let may_end = |rest: &str| {
            let rest = rest.strip_prefix('/').unwrap_or(rest);
            rest.is_empty() || rest.starts_with('#') || rest.starts_with(if template.contains('?') { '&' } else { '?' })
        };
        content(template, after_scheme(url)?, &may_end)
    }
}

/// What a label's URL says about its asset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelContent {
    pub asset_tag: Option<String>,
    pub id: Option<AssetId>,
}

/// Matches a URL with the rest of a template, both without their schemes.
fn content(template: &str, url: &str, may_end: &impl Fn(&str) -> bool) -> Option<LabelContent> {
    let (literal, rest) = template.split_at(template.find('{').unwrap_or(template.len()));
    let found = url.get(..literal.len()).filter(|found| found.eq_ignore_ascii_case(literal))?;
    let url = url.get(found.len()..)?;
    if rest.is_empty() {
        return may_end(url).then(LabelContent::default);
    }
    if let Some(template) = rest.strip_prefix(ID) {
        let (id, url) = url.split_at_checked(ID_CHARS)?;
        let id = id.to_ascii_lowercase().parse().ok()?;
        return content(template, url, may_end).map(|found| LabelContent { id: Some(id), ..found });
    }
    let template = rest.strip_prefix(TAG)?;
    let longest = url.find(['/', '?', '#', '&']).unwrap_or(url.len());
    let ends = (1..=longest).rev().filter_map(|end| url.split_at_checked(end));
    let mut matches = ends.filter_map(|(tag, url)| content(template, url, may_end).map(|found| (tag, found)));
    let (tag, found) = matches.next()?;
    Some(LabelContent { asset_tag: Some(decoded(tag)?), ..found })
}

/// Returns a URL without `https://` or `http://`, in upper or lower case; `None` for other texts.
pub(crate) fn after_scheme(url: &str) -> Option<&str> {
    let scheme = |scheme: &str| url.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme)).map(str::len);
    url.get(["https://", "http://"].into_iter().find_map(scheme)?..)
}

/// Decodes a percent-encoded part of a URL. `None` if it is not UTF-8.
pub(crate) fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

impl FromStr for LabelUrlTemplate {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let length = text.chars().count();
        if length > MAX_CHARS {
            let text = format!("must have at most {MAX_CHARS} characters; this has {length}");
            return Err(ValueError::limited(ErrorCode::TooLong, MAX_CHARS, text));
        }
        check_visible(text)?;
        let after_scheme = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        let host = after_scheme.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
        if host.is_none_or(|host| host.is_empty() || host.contains(['{', '}'])) {
            return Err(ValueError::form("must start with https:// or http:// and a host"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ValueError::new("must contain only the characters of a URL; percent-encode others"));
        }
        if !text.contains(TAG) && !text.contains(ID) {
            return Err(ValueError::form("must contain {asset_tag} or {id}"));
        }
        if [TAG, ID].iter().any(|placeholder| text.matches(placeholder).count() > 1) {
            return Err(ValueError::new("must contain each placeholder only once"));
        }
        if text.replace(ID, "").replace(TAG, "").contains(['{', '}']) {
            return Err(ValueError::form("must only use the placeholders {asset_tag} and {id}"));
        }
        Ok(Self(text.to_owned()))
    }
}

text_form!(LabelUrlTemplate, |template| template.0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_two_sides_from_12_to_160_millimetres() {
        assert_eq!("62x29".parse(), Ok(LabelSize { width: 62.0, height: 29.0 }));
        assert_eq!("63.5x38.1".parse(), Ok(LabelSize { width: 63.5, height: 38.1 }));
        for wrong in [
            "", "50", "50x", "x20", "50X20", "50x20x1", "11.9x20", "50x160.1", "50.55x20", "+50x20", "5e1x20", "50 x 20",
            "NaNx20", ".5x20",
        ] {
            assert!(wrong.parse::<LabelSize>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ids_are_listed_once_each_and_errors_name_their_position() {
        let ids: Vec<String> = (0..101).map(|n| format!("0190d5b0-0000-7000-8000-{n:012}")).collect();
        let parsed: LabelIds = format!("{},{}", ids[0], ids[1]).parse().expect("two IDs");
        assert_eq!(parsed.ids().len(), 2);
        assert!(ids[..100].join(",").parse::<LabelIds>().is_ok());
        let error = |text: &str| text.parse::<LabelIds>().expect_err("an error").to_string();
        assert_eq!(error(&ids.join(",")), "must be 1 to 100 asset IDs, separated by commas");
        assert_eq!(error(""), error(&ids.join(",")));
        for wrong in ["x", "", " "] {
            assert_eq!(error(&format!("{},{wrong}", ids[0])), "must be 1 to 100 asset IDs; number 2 is not an ID");
        }
        assert!(error(&format!("{0},{1},{0}", ids[0], ids[1])).contains("number 3"));
        let unknown = parsed.unknown(|id| id.to_string() == ids[0]);
        assert!(unknown.len() == 1 && unknown[0].reason.text.contains("number 2") && unknown[0].reason.text.contains(&ids[1]));
    }

    fn url(template: &str, tag: &str) -> String {
        let id = "0190d5b0-0000-7000-8000-000000000000".parse().expect("an ID");
        template.parse::<LabelUrlTemplate>().expect(template).url(tag, id)
    }

    #[test]
    fn placeholders_are_filled_in_and_encoded() {
        assert_eq!(url("https://example.com/a/{asset_tag}", "AST-000001"), "https://example.com/a/AST-000001");
        assert_eq!(
            url("http://h:8080?t={asset_tag}&i={id}", "a/b c&#{id}%ä"),
            "http://h:8080?t=a%2Fb%20c%26%23%7Bid%7D%25%C3%A4&i=0190d5b0-0000-7000-8000-000000000000"
        );
    }

    #[test]
    fn a_url_is_read_as_it_was_made() {
        let id = "0190d5b0-0000-7000-8000-000000000000".parse().ok();
        for template in [
            "https://h/{asset_tag}",
            "https://h/a/{asset_tag}.html#{id}",
            "https://h/{asset_tag}{id}",
            "https://h/{id}{asset_tag}?a=b",
            "http://h?i={id}&t={asset_tag}&v=2",
            "https://h/%7e/{asset_tag}",
        ] {
            for tag in ["AST-1", ".", "a/b c&#{id}%ä", "100%25", "-{asset_tag}-"] {
                let made = url(template, tag);
                for made in [made.clone(), made.replacen("http", "HTTP", 1)] {
                    let read = template.parse::<LabelUrlTemplate>().expect(template).read(&made).expect(&made);
                    let expected = LabelContent { asset_tag: Some(tag.to_owned()), id: id.filter(|_| template.contains(ID)) };
                    assert_eq!(read, expected, "{template} {made}");
                }
            }
        }
    }

    #[test]
    fn other_templates_are_refused() {
        let long = format!("https://e.com/{{id}}{}", "x".repeat(238));
        for wrong in [
            "",
            "{id}",
            "https://",
            "https:///{id}",
            "ftp://e.com/{id}",
            "javascript:alert('{id}')",
            "HTTPS://e.com/{id}",
            "https://e.com/",
            "https://{id}/",
            "https://e.com/{id}/{id}",
            "https://e.com/{id}{name}",
            "https://e.com/{id}}",
            "https://e.com/{id} x",
            " https://e.com/{id}",
            "https://e.com/ä{id}",
            "https://e.com/{id}\n",
            &long,
        ] {
            assert!(wrong.parse::<LabelUrlTemplate>().is_err(), "{wrong}");
        }
        assert!(long[..255].parse::<LabelUrlTemplate>().is_ok());
    }
}
