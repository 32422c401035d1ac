//! The inventory page: a client of the API, with its files in `app`.

use crate::packed;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use shared::http::openapi::{Describe, InputErrors, Schemas, add_headers};
use shared::http::requests::params::Params;
use shared::http::responses::html::{self, HtmlPage};
use shared::http::responses::{ApiError, ApiResponse};
use shared::services::App;
use utoipa::openapi::path::Operation;

const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/app.html"));

/// File names and gzip-compressed contents.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/app_files.rs"));

/// Path of the page's files, which changes with their contents.
pub const FILES_PATH: &str = concat!("/v1/app/", env!("APP_VERSION"), "/{file}");

/// The page's policy: scripts, styles and requests only from and to its own origin, and images that it creates itself.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data: blob:; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// The page. Browsers revalidate it each time, because it names the current files.
pub struct AppPage(HtmlPage);

impl IntoResponse for AppPage {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl Describe for AppPage {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        HtmlPage::describe(operation, schemas);
        add_headers(operation, "200", &["ETag"]);
    }
}

/// Get the inventory page
///
/// A page to view the inventory, hand assets over, take them back and take stock. It calls this API with the API key that the
/// user enters. The page's state is in the fragment of its URL, which browsers don't send. Needs a browser.
#[utoipa::path(get, path = "/app", tag = "meta", security(()), responses(InputErrors))]
pub async fn get_app(State(_): State<App>, RawQuery(query): RawQuery) -> Result<AppPage, ApiError> {
    // Rejects a query, so that nobody links to the page with one: a proxy could log it, and it could reveal what someone looks
    // at.
    Params::parse(query.as_deref().unwrap_or_default())?.finish()?;
    let page = html::page_with_policy(PAGE, POLICY)
        .with_header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))
        .with_header(header::ETAG, HeaderValue::from_static(concat!("\"1-", env!("APP_PAGE_VERSION"), "\"")));
    Ok(AppPage(HtmlPage(page)))
}

/// # Errors
///
/// Returns [`ApiError::NotFound`] for an unknown file.
pub async fn get_file(Path(name): Path<String>, headers: HeaderMap) -> Result<ApiResponse, ApiError> {
    let (_, content) = FILES.iter().find(|(known, _)| *known == name).ok_or(ApiError::NotFound)?;
    packed::response(&headers, content_type(&name), content)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::{FILES, PAGE};
    use flate2::read::GzDecoder;
    use shared::domain::values::field_error::ErrorCode;
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::Read;

    /// English, German, French and Spanish.
    const LANGUAGES: usize = 4;
    /// Everything a browser loads, decompressed: the page, its style sheet, its scripts and the texts.
    const LOADED_BYTES: usize = 340 * 1024;
    const PACKED_BYTES: usize = 120 * 1024;
    const PAGE_BYTES: usize = 40 * 1024;

    /// Returns the decompressed files, by name.
    fn files() -> BTreeMap<&'static str, String> {
        let files = FILES.iter().map(|(name, content)| {
            let mut text = String::new();
            GzDecoder::new(*content).read_to_string(&mut text).unwrap();
            (*name, text)
        });
        files.chain([("index.html", PAGE.to_owned())]).collect()
    }

    /// The texts of the signing page, which that page's function serves.
    const SIGN_TEXTS: &str = include_str!("../../sign/page/texts.txt");

    /// Returns the texts in all languages, by name.
    fn texts(files: &BTreeMap<&str, String>) -> BTreeMap<String, Vec<String>> {
        table(&files["texts.txt"])
    }

    fn table(text: &str) -> BTreeMap<String, Vec<String>> {
        let rows = text.lines().map(|line| {
            let (name, texts) = line.split_once('|').unwrap();
            (name.to_owned(), texts.split('|').map(str::to_owned).collect::<Vec<_>>())
        });
        let texts: BTreeMap<_, _> = rows.collect();
        assert_eq!(texts.len(), text.lines().count(), "a name occurs twice");
        texts
    }

    fn scripts(files: &BTreeMap<&str, String>) -> String {
        files.iter().filter(|(name, _)| name.ends_with(".js")).map(|(_, script)| script.as_str()).collect()
    }

    /// Returns the texts between each `start` and the next `end`.
    fn between<'a>(text: &'a str, start: &str, end: char) -> BTreeSet<&'a str> {
        text.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
    }

    #[test]
    fn the_page_is_small() {
        let files = files();
        let loaded: usize = files.values().map(String::len).sum();
        assert!(files["index.html"].len() <= PAGE_BYTES && loaded <= LOADED_BYTES, "{loaded} bytes");
        let packed: usize = FILES.iter().map(|(_, content)| content.len()).sum();
        assert!(packed <= PACKED_BYTES, "{packed} bytes, compressed");
    }

    #[test]
    fn nothing_is_inline_or_from_elsewhere() {
        for (name, content) in files() {
            for address in ["http:", "https:", "//cdn", "data:text", "@import", "url("] {
                // The only allowed addresses are SVG's namespace, and "https?" for the addresses of labels.
                let content = content.replace("http://www.w3.org/2000/svg", "");
                assert!(!content.contains(address), "{name} contains {address}");
            }
            for markup in
                [" style=\"", "<style", "onclick", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!content.contains(markup), "{name} contains {markup}");
            }
        }
        let page = &files()["index.html"];
        assert_eq!(page.matches("<script").count(), page.matches("<script type=\"module\" src=\"/v1/app/").count());
    }

    #[test]
    fn every_language_has_every_text_with_the_same_values() {
        for (name, texts) in texts(&files()).into_iter().chain(table(SIGN_TEXTS)) {
            assert_eq!(texts.len(), LANGUAGES, "{name}");
            let expected = between(&texts[0], "{", '}');
            for text in &texts {
                // Both forms, if the text has a singular and a plural.
                assert!(text.split('~').count() <= 2, "{name}: {text}");
                for form in text.split('~') {
                    assert!(!form.trim().is_empty(), "{name}");
                    assert_eq!(between(form, "{", '}'), expected, "{name}: {text}");
                }
            }
        }
    }

    #[test]
    fn every_text_is_used_and_no_text_is_missing() {
        let files = files();
        let scripts = scripts(&files);
        let texts = texts(&files);
        for name in texts.keys() {
            let family = name.split_once('.').is_some_and(|(family, _)| scripts.contains(&format!("`{family}.${{")));
            assert!(family || scripts.contains(&format!("'{name}'")), "{name} is not used");
        }
        let calls = ["t('", "sentence('"].into_iter().flat_map(|call| {
            // Excludes the end of another name, such as `input('`.
            scripts.split(call).collect::<Vec<_>>().windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
        });
        let mut used = 0;
        for (before, after) in calls {
            if before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '.' | '_')) {
                continue;
            }
            let name = after.split('\'').next().unwrap();
            assert!(texts.contains_key(name), "{name} has no text");
            used += 1;
        }
        assert!(used > 150, "only {used} calls were found");
    }

    #[test]
    fn statuses_and_the_errors_that_people_meet_have_texts() {
        let texts = texts(&files());
        let statuses =
            ["in_stock", "preparing", "in_use", "in_service", "returned", "scrapped"].map(|name| format!("status.{name}"));
        let runs = ["in_progress", "completed", "cancelled"].map(|name| format!("run.{name}"));
        let roles = ["viewer", "helpdesk", "technician", "admin"].map(|name| format!("role.{name}"));
        let outcomes = ["seen", "moved", "elsewhere", "unknown", "ambiguous"].map(|name| format!("outcome.{name}"));
        let errors = [
            "UNAUTHORIZED",
            "FORBIDDEN",
            "NOT_FOUND",
            "CONFLICT",
            "PROCESS_RUNNING",
            "WRONG_ASSET_STATUS",
            "TRANSITION_NOT_ALLOWED",
            "PROCESS_INACTIVE",
            "INSTANCE_CLOSED",
            "STEP_MOVED",
            "STEP_SUBMITTED",
            "DUPLICATE",
            "IN_USE",
            "REQUEST_IN_PROGRESS",
            "PRECONDITION_FAILED",
            "VALIDATION_ERROR",
            "RATE_LIMITED",
            "INTERNAL_ERROR",
            "UNAVAILABLE",
        ];
        let errors = errors.map(|code| format!("error.{code}"));
        for name in [&statuses[..], &runs, &roles, &outcomes, &errors].concat() {
            assert!(texts.contains_key(&name), "{name}");
        }
    }

    #[test]
    fn each_code_of_a_field_has_a_text_with_its_limit() {
        use ErrorCode::{NotMultiple, TooFewItems, TooLarge, TooLong, TooManyItems, TooManyLevels, TooOld, TooShort, TooSmall};
        let texts = texts(&files());
        for code in ErrorCode::ALL {
            let text = texts.get(&format!("fault.{code}")).unwrap_or_else(|| panic!("{code} has no text"));
            let of_number = matches!(code, TooSmall | TooLarge | TooOld | NotMultiple);
            let has_limit = of_number || matches!(code, TooShort | TooLong | TooFewItems | TooManyItems | TooManyLevels);
            let expected: BTreeSet<&str> = has_limit.then_some("count").into_iter().collect();
            assert_eq!(between(&text[0], "{", '}'), expected, "{code}");
        }
        // `fault.other` is for errors without a code.
        let faults = texts.keys().filter(|name| name.starts_with("fault.") && *name != "fault.other");
        assert_eq!(faults.count(), ErrorCode::ALL.len(), "there is a text without a code");
    }
}
