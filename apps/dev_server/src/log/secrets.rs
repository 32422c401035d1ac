//! Addresses without secrets.

use percent_encoding::percent_decode_str;
use shared::domain::keys::token::Credential;
use shared::domain::values::id::{ApiKeyId, LinkId};

/// Parts of the names of parameters whose values are secrets. The service has none; people type them nevertheless.
const NAMES: [&str; 6] = ["key", "token", "secret", "password", "auth", "signature"];
const HIDDEN: &str = "…";

/// Hides everything that may be a secret. A part that only shows a secret once it is decoded is shown decoded.
pub fn without_secrets(path: &str, query: Option<&str>) -> String {
    let mut text = without_keys(path);
    if let Some(query) = query {
        let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if is_secret(&decoded(name)) => format!("{name}={HIDDEN}"),
            _ => without_keys(parameter),
        });
        text.push('?');
        text.push_str(&parameters.collect::<Vec<_>>().join("&"));
    }
    text
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().chars().filter(|character| !character.is_control()).collect()
}

/// Hides everything that looks like an API key or the secret of a signing link.
fn without_keys(text: &str) -> String {
    let decoded = decoded(text);
    let prefixes = [ApiKeyId::PREFIX, LinkId::PREFIX];
    let text = if prefixes.iter().any(|prefix| decoded.contains(prefix)) { decoded } else { text.to_owned() };
    prefixes.into_iter().fold(text, |text, prefix| {
        let mut parts = text.split(prefix);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            let rest = part.trim_start_matches(|character: char| character.is_ascii_alphanumeric());
            text + prefix + HIDDEN + rest
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_nothing_else() {
        for (path, query, shown) in [
            ("/v1/assets", None, "/v1/assets"),
            ("/v1/assets", Some("q=think%20pad&limit=3&"), "/v1/assets?q=think%20pad&limit=3&"),
            ("/v1/assets", Some("api_key=abc&limit=3"), "/v1/assets?api_key=…&limit=3"),
            ("/v1/assets", Some("q=apl_0351f4Sj8z%20x&access_TOKEN=x"), "/v1/assets?q=apl_… x&access_TOKEN=…"),
            ("/v1/keys/apl_0351f4Sj8z-x/rotate", None, "/v1/keys/apl_…-x/rotate"),
            ("/v1/assets", Some("q=apl%5F0351f4Sj8z"), "/v1/assets?q=apl_…"),
            ("/v1/assets", Some("q=%61pl_0351%66&%6bey=abc"), "/v1/assets?q=apl_…&%6bey=…"),
            ("/v1/%61pl%5f0351f4Sj8z", None, "/v1/apl_…"),
            ("/v1/apl_a/apl_b", Some(""), "/v1/apl_…/apl_…?"),
            ("/v1/sign", Some("apl_a=sgn%5Fb1"), "/v1/sign?apl_…=sgn_…"),
        ] {
            assert_eq!(without_secrets(path, query), shown);
        }
    }
}
