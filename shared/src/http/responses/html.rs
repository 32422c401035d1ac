//! HTML pages and images. They can't be framed, and don't load or run anything, unless a page has a different policy. The
//! client's `Accept` headers select pages, compression and language (RFC 9110 §12.5).

use super::ApiResponse;
use crate::domain::tenants::tenant::{Language, Locale};
use crate::domain::values::field_error::ValueError;
use crate::http::openapi::{Describe, Schemas, add_content, add_headers, add_response};
use crate::http::received::list_header;
use crate::http::requests::params::FromParam;
use crate::http::responses::ApiError;
use crate::services::App;
use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64_simd::STANDARD;
use sha2::{Digest, Sha256};
use std::marker::PhantomData;
use utoipa::openapi::path::Operation;
use utoipa::{PartialSchema, ToSchema};

/// The style sheet of printable pages. Their Content-Security-Policy permits no other.
pub const STYLE: &str = "body{font:11pt/1.4 sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#111;background:#fff}\
h1{font-size:1.5em;margin:.2em 0}h2{font-size:1.15em;margin:1.5em 0 .4em;break-after:avoid}\
h3{font-size:1em;margin:1em 0 .3em;break-after:avoid}p{margin:.4em 0}\
table{border-collapse:collapse;width:100%;margin:.4em 0 1em}th,td{border:1px solid #999;padding:.35em .5em;text-align:left;\
vertical-align:top;overflow-wrap:anywhere}th{font-weight:600}img{display:block;max-width:min(20em,100%);max-height:10em;background:#fff}\
code{font-size:9pt;overflow-wrap:anywhere}td{white-space:pre-line}tr{break-inside:avoid}.note{font-size:9pt;color:#444}\
ul{margin:.4em 0;padding-left:1.2em}li{margin:.2em 0;break-inside:avoid}\
li img{display:inline;vertical-align:middle;max-height:3em}.annex{break-before:page;font-size:9pt}\
.annex th,.annex td{padding:.15em .4em}.annex code,.time{white-space:nowrap}.annex code{font-size:7.5pt}.annex img{max-height:4em}\
@media screen and (max-width:34em){body{margin:1em auto}tr{display:block;border:1px solid #999;margin-bottom:.6em}\
th,td{display:block;border:0;padding:.25em .5em}}\
@media print{@page{margin:16mm}body{margin:0;padding:0 1px;max-width:none}}";

/// Format of a printable document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = DocumentFormat)]
pub enum Format {
    /// The data as JSON.
    Json,
    /// A printable page.
    Html,
}

impl FromParam for Format {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        match text {
            "json" => Ok(Self::Json),
            "html" => Ok(Self::Html),
            _ => Err(ValueError::not_one_of(["json", "html"])),
        }
    }
}

/// The client's preferred language according to `Accept-Language`, among the languages of the pages.
#[derive(Debug, Clone, Copy)]
pub struct AcceptedLanguage(Option<Language>);

impl AcceptedLanguage {
    #[must_use]
    pub fn or_language_of(self, locale: &Locale) -> Language {
        self.0.unwrap_or_else(|| locale.language())
    }
}

impl FromRequestParts<App> for AcceptedLanguage {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let header = list_header(&parts.headers, &header::ACCEPT_LANGUAGE);
        Ok(Self(header.and_then(|header| preferred_language(&header))))
    }
}

impl Describe for AcceptedLanguage {
    /// Does nothing: the descriptions of the operations mention the header.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

pub struct HtmlPage(pub ApiResponse);

impl IntoResponse for HtmlPage {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl Describe for HtmlPage {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        add_response(operation, "200", "The page", [("text/html", String::schema())]);
        add_headers(operation, "200", &["Content-Security-Policy", "Referrer-Policy", "X-Content-Type-Options"]);
    }
}

/// A response `J` as JSON, or as a printable page.
pub struct Printable<J>(ApiResponse, PhantomData<J>);

impl<J> From<ApiResponse> for Printable<J> {
    fn from(response: ApiResponse) -> Self {
        Self(response, PhantomData)
    }
}

impl<J> IntoResponse for Printable<J> {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl<J: Describe> Describe for Printable<J> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        J::describe(operation, schemas);
        add_content(operation, "200", "text/html", String::schema());
    }
}

/// The Content-Security-Policy of an image. `default-src` covers scripts.
const NOTHING: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Builds a page with only the style sheet `style`, allowed by its hash (CSP 3 §2.3.1). Its images are data URLs.
///
/// # Errors
///
/// Returns [`ApiError::Internal`] if the policy isn't a valid header, which never happens.
pub fn page(html: String, style: &str) -> Result<ApiResponse, ApiError> {
    let hash = STANDARD.encode_to_string(Sha256::digest(style));
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(page_with_policy(html, policy))
}

#[must_use]
pub fn page_with_policy(html: impl Into<Bytes>, policy: HeaderValue) -> ApiResponse {
    let referrer = (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer"));
    ApiResponse::new("text/html; charset=utf-8", html)
        .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .with_header(referrer.0, referrer.1)
        .with_header(header::CONTENT_SECURITY_POLICY, policy)
}

/// Whether the client prefers a page to JSON, as browsers do.
#[must_use]
pub fn is_wanted(headers: &HeaderMap) -> bool {
    list_header(headers, &header::ACCEPT).is_some_and(|accept| prefers_html(&accept))
}

/// Whether the client accepts gzip (RFC 9110 §12.5.3). A client that sends no `Accept-Encoding` may not support gzip.
#[must_use]
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    list_header(headers, &header::ACCEPT_ENCODING).is_some_and(|accepted| admits_gzip(&accepted))
}

/// Builds a response with a file to display. A browser saves it as `name.extension`, with `_` in place of any character except
/// ASCII letters, digits, `-` and `.`.
///
/// # Errors
///
/// Returns [`ApiError::Internal`] if the name isn't a valid header, which never happens.
pub fn file(content_type: &'static str, content: impl Into<Bytes>, name: &str, extension: &str) -> Result<ApiResponse, ApiError> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let disposition = format!("inline; filename=\"{name}.{extension}\"");
    let disposition = HeaderValue::try_from(disposition).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(ApiResponse::new(content_type, content)
        .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .with_header(header::CONTENT_DISPOSITION, disposition)
        .with_header(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING)))
}

/// Whether `Accept` prefers HTML. A client without a preference, for example with `*/*`, gets JSON.
fn prefers_html(accept: &str) -> bool {
    quality(accept, "text", "html") > quality(accept, "application", "json")
}

/// Whether `Accept-Encoding` permits gzip. A coding's name takes precedence over `*`.
fn admits_gzip(accepted: &str) -> bool {
    let codings = weighted(accepted).filter_map(|(coding, weight)| {
        let is_named = ["gzip", "x-gzip"].iter().any(|name| coding.eq_ignore_ascii_case(name));
        (is_named || coding == "*").then_some((is_named, weight))
    });
    codings.max_by_key(|(is_named, _)| *is_named).is_some_and(|(_, weight)| weight > 0.0)
}

/// Returns the weight of a media type in `Accept`, from 0 to 1. The most specific of the matching ranges counts.
fn quality(accept: &str, kind: &str, subtype: &str) -> f32 {
    let ranges = weighted(accept).filter_map(|(range, weight)| {
        let (range_kind, range_subtype) = range.split_once('/')?;
        let specificity = match (range_kind, range_subtype) {
            ("*", "*") => 0,
            (other, "*") if other.eq_ignore_ascii_case(kind) => 1,
            (other, another) if other.eq_ignore_ascii_case(kind) && another.eq_ignore_ascii_case(subtype) => 2,
            _ => return None,
        };
        Some((specificity, weight))
    });
    ranges.max_by_key(|(specificity, _)| *specificity).map_or(0.0, |(_, weight)| weight)
}

/// Returns the entries of a header such as `Accept`, with their weights. Ignores parameters other than `q`, and entries with an
/// invalid weight.
fn weighted(header: &str) -> impl Iterator<Item = (&str, f32)> {
    header.split(',').filter_map(|entry| {
        let (value, parameters) = entry.split_once(';').unwrap_or((entry, ""));
        Some((value.trim(), weight(parameters)?))
    })
}

/// Returns the parameter `q`, by default 1; `None` if it isn't a number from 0 to 1.
fn weight(parameters: &str) -> Option<f32> {
    let weight = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    weight.map_or(Some(1.0), |text| text.parse::<f32>().ok().filter(|q| (0.0..=1.0).contains(q)))
}

/// Returns the preferred language of the pages; `None` if the header names none. Of languages with equal weights, the first one
/// counts.
fn preferred_language(accept_language: &str) -> Option<Language> {
    let accepted = weighted(accept_language).filter(|(_, weight)| *weight > 0.0);
    let languages = accepted.filter_map(|(tag, weight)| Some((Language::of(tag)?, weight)));
    languages.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(language, _)| language)
}

/// Defines `Texts`, the texts of a page, from a table: a row for each text, with its name and the text in English, German, French
/// and Spanish. The compiler finds what one language lacks, and a test unused texts.
///
/// ```ignore
/// texts! { yes: "yes", "ja", "oui", "sí"; }
/// ```
#[macro_export]
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $english:literal, $german:literal, $french:literal, $spanish:literal;)*) => {
        pub(super) struct Texts { $($(#[$doc])* pub(super) $name: &'static str,)* }

        impl Texts {
            pub(super) const fn of(language: $crate::domain::tenants::tenant::Language) -> &'static Self {
                use $crate::domain::tenants::tenant::Language;
                match language {
                    Language::English => &Self { $($name: $english,)* },
                    Language::German => &Self { $($name: $german,)* },
                    Language::French => &Self { $($name: $french,)* },
                    Language::Spanish => &Self { $($name: $spanish,)* },
                }
            }
        }
    };
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
    fn gzip_must_be_named_and_have_a_weight() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", true),
            ("br;q=1.0, GZIP ; q=0.1", true),
            ("x-gzip", true),
            ("*", true),
            ("*;q=0, gzip", true),
            ("gzip;q=0", false),
            ("gzip;q=0, *", false),
            ("*;q=0", false),
            ("identity", false),
            ("br", false),
            ("gzip;q=nan", false),
            ("", false),
        ] {
            assert_eq!(admits_gzip(accepted), expected, "{accepted}");
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
            assert_eq!(preferred_language(accepted).map(Language::as_str), expected, "{accepted}");
        }
    }
}
