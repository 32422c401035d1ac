//! The service's address and the API key.

use crate::error::{CliError, Result};
use reqwest::Url;
use reqwest::header::HeaderValue;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Connection {
    /// Address of the service, ending in `/v1`.
    pub base_url: Url,
    pub api_key: ApiKey,
}

/// An API key, which `Debug` doesn't disclose.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey")
    }
}

impl ApiKey {
    pub fn authorization(&self) -> Result<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0))
            .map_err(|_| CliError::Usage("the API key contains invalid characters".into()))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Returns the API key. `sources` are a key and a key file: first from the options, which take precedence, then from the
/// environment.
///
/// # Errors
///
/// Returns [`CliError::Usage`] if there is no key, or if other people can read the key file.
pub fn api_key(sources: [(Option<String>, Option<PathBuf>); 2]) -> Result<ApiKey> {
    let twice = ["give --api-key or --api-key-file, not both", "set ASSETCTL_API_KEY or ASSETCTL_API_KEY_FILE, not both"];
    for (source, twice) in sources.into_iter().zip(twice) {
        let key = match source {
            (Some(_), Some(_)) => return Err(CliError::Usage(twice.into())),
            (Some(key), None) => key,
            (None, Some(path)) => read_key(&path)?,
            (None, None) => continue,
        };
        return match key.trim() {
            "" => Err(CliError::Usage("the API key is empty".into())),
            key => Ok(ApiKey(key.to_owned())),
        };
    }
    Err(CliError::Usage(
        "no API key: write it to a file that only you can read (chmod 600), and set ASSETCTL_API_KEY_FILE to its path".into(),
    ))
}

fn read_key(path: &Path) -> Result<String> {
    let wrong = |error: std::io::Error| CliError::Usage(format!("{}: {error}", path.display()));
    if is_open_to_others(&std::fs::metadata(path).map_err(wrong)?) {
        let path = path.display();
        let advice = format!("run `chmod 600 {path}`, and consider rotating the key");
        return Err(CliError::Usage(format!("others can read the API key in {path}: {advice}")));
    }
    std::fs::read_to_string(path).map_err(wrong)
}

#[cfg(unix)]
fn is_open_to_others(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &std::fs::Metadata) -> bool {
    false
}

const VERSION: &str = "/v1";

/// Parses the base URL. A URL without a path gets `/v1`.
///
/// # Errors
///
/// Returns [`CliError::Usage`] if there is no URL, if it doesn't end in `/v1`, or if the key would be sent unencrypted.
pub fn base_url(text: Option<&str>, insecure_http: bool) -> Result<Url> {
    let text = text.ok_or_else(|| {
        CliError::Usage("no base URL: set ASSETCTL_BASE_URL, for example to https://assets.example.com/v1".into())
    })?;
    let url = Url::parse(text)
        .map_err(|_| CliError::Usage(format!("--base-url {text:?} is not a URL, such as https://assets.example.com/v1")))?;
    let url = with_version(url)?;
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() => {
            Err(CliError::Usage("--base-url may contain only a scheme, a host and a path".into()))
        }
        "https" => Ok(url),
        "http" if is_local(&url) || insecure_http => Ok(url),
        "http" => Err(CliError::Usage(format!(
            "{url} would send the key unencrypted: use https, or --insecure-http in a network that you trust"
        ))),
        _ => Err(CliError::Usage(format!("--base-url {text:?}: must begin with https://"))),
    }
}

pub fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn with_version(mut url: Url) -> Result<Url> {
    match url.path().trim_end_matches('/') {
        "" if !url.cannot_be_a_base() => url.set_path(VERSION),
        path if path.ends_with(VERSION) => {}
        _ => {
            let example = "such as https://assets.example.com/v1";
            return Err(CliError::Usage(format!("--base-url {url}: must end in {VERSION}, {example}")));
        }
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_url_ends_in_the_version() {
        let read = |text: &str| base_url(Some(text), false).map(String::from);
        for text in ["https://a.example", "https://a.example/", "https://a.example/v1"] {
            assert_eq!(read(text).unwrap(), "https://a.example/v1", "{text}");
        }
        assert_eq!(read("https://a.example/assets/v1/").unwrap(), "https://a.example/assets/v1/");
        for text in ["https://a.example/v2", "https://a.example/v1/assets", "mailto:a@example.com"] {
            assert!(read(text).unwrap_err().to_string().contains("must end in /v1, such as https://"), "{text}");
        }
    }

    #[test]
    fn plain_http_stays_on_this_computer() {
        for url in ["https://a.example/v1", "http://localhost:3000/v1", "http://127.0.0.1/v1", "http://[::1]:1/v1"] {
            assert!(base_url(Some(url), false).is_ok(), "{url}");
        }
        for url in
            ["http://a.example/v1", "ftp://a", "a.example", "https://user:secret@a.example/v1", "http://localhost.example/v1"]
        {
            assert!(base_url(Some(url), false).is_err(), "{url}");
        }
        assert!(base_url(Some("http://a.example/v1"), true).is_ok());
        assert!(base_url(None, false).is_err());
    }

    #[test]
    fn the_command_line_comes_before_the_environment() {
        let key = |option, variable| api_key([option, variable].map(|key: Option<&str>| (key.map(str::to_owned), None)));
        assert_eq!(key(Some("a"), Some("b")).unwrap(), ApiKey("a".into()));
        assert_eq!(key(None, Some(" b\n")).unwrap(), ApiKey("b".into()));
        assert!(key(None, None).is_err());
        assert!(key(Some(" "), None).is_err());
    }

    #[test]
    fn keys_are_not_displayed() {
        let key = ApiKey("apl_0351f4Sj8zZ02J8pdPLh51".into());
        assert_eq!(format!("{key:?}"), "ApiKey");
        assert!(!format!("{:?}", key.authorization().unwrap()).contains("apl_"));
    }
}
