//! Accepted addresses of webhooks: https addresses of public hosts.

use super::{PUBLIC_PORTS, is_public};
use crate::values::field_error::{ValueError, text_form};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::str::FromStr;
use url::{Host, Url};

/// In characters.
const MAX_CHARS: usize = 2_048;
/// The last labels of names that no public host has (RFC 6761, RFC 6762, RFC 8375, RFC 9476).
const LOCAL_DOMAINS: [&str; 8] = ["localhost", "local", "internal", "test", "invalid", "onion", "alt", "home.arpa"];

/// The address of a webhook: https, on port 443 or 8443 of a public host, without user name and fragment. As the URL standard
/// writes it, with a host of ASCII characters in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 2048, pattern = "^[Hh][Tt][Tt][Pp][Ss]?://", examples("https://example.com/hooks/assets"))]
pub struct WebhookUrl(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressPolicy {
    /// https, port 443 or 8443.
    #[default]
    Public,
    /// Also http and https to loopback addresses, at any port, as the dev server's `--allow-local-webhooks` permits.
    PublicOrLoopback,
}

impl WebhookUrl {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For the history, which other webhooks may get: receivers know senders by tokens in queries.
    #[must_use]
    pub fn without_query(&self) -> String {
        self.0.split_once('?').map_or_else(|| self.0.clone(), |(rest, _)| format!("{rest}?…"))
    }

    /// Checks the address alone. The addresses that a name resolves to are checked at every attempt.
    ///
    /// # Errors
    ///
    /// Says which addresses webhooks may have.
    pub fn check(&self, policy: AddressPolicy) -> Result<(), ValueError> {
        let url = parse(&self.0)?;
        let is_loopback = match url.host() {
            Some(Host::Domain(name)) => is_local_name(name),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if policy == AddressPolicy::PublicOrLoopback && is_loopback {
            return Ok(());
        }
        if url.scheme() != "https" {
            return Err(ValueError::new("must begin with https://"));
        }
        let is_public = match url.host() {
            Some(Host::Domain(name)) => !is_local_name(name),
            Some(Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
            None => false,
        };
        if !is_public {
            return Err(ValueError::new("must have the name or address of a host in the public internet"));
        }
        if !url.port_or_known_default().is_some_and(|port| PUBLIC_PORTS.contains(&port)) {
            return Err(ValueError::new("must have port 443 or 8443"));
        }
        Ok(())
    }
}

/// No public host has such a name, which may end with a dot: names without a dot, and those of reserved domains.
#[must_use]
pub fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_in = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    !name.contains('.') || LOCAL_DOMAINS.iter().any(|domain| is_in(domain))
}

/// Stricter than the URL standard, which also accepts `https:example.com` and removes line breaks.
fn parse(text: &str) -> Result<Url, ValueError> {
    let has_scheme = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if !(has_scheme("https://") || has_scheme("http://")) {
        return Err(ValueError::new("must be a URL that begins with https://"));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(ValueError::new("must not contain spaces, control characters or backslashes"));
    }
    // The parser knows more reasons than anybody wants to read.
    let url = Url::parse(text).map_err(|error| ValueError::new(format!("must be a URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ValueError::new("must not contain a user name or password: deliveries are signed"));
    }
    if url.fragment().is_some() {
        return Err(ValueError::new("must not contain a fragment, which is not sent"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(ValueError::new("must name a host"));
    }
    Ok(url)
}

impl FromStr for WebhookUrl {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let too_long = |length: usize| ValueError::new(format!("must have at most {MAX_CHARS} characters; this has {length}"));
        // Escaping makes it longer at most.
        if text.len() > MAX_CHARS {
            return Err(too_long(text.chars().count()));
        }
        let url = String::from(parse(text.trim())?);
        if url.len() > MAX_CHARS { Err(too_long(url.len())) } else { Ok(Self(url)) }
    }
}

text_form!(WebhookUrl, |url| url.0);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn checked(text: &str, policy: AddressPolicy) -> Result<(), ValueError> {
        text.parse::<WebhookUrl>()?.check(policy)
    }

    #[test]
    fn addresses_are_kept_as_the_url_standard_writes_them() {
        for (text, expected) in [
            ("https://example.com", "https://example.com/"),
            (" HTTPS://EXAMPLE.com:443/Hook?a=b ", "https://example.com/Hook?a=b"),
            ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
            ("https://0x7f.1/", "https://127.0.0.1/"),
            ("https://[0:0::1]/", "https://[::1]/"),
            ("https://example.com/a/../b", "https://example.com/b"),
        ] {
            let url: WebhookUrl = text.parse().expect(text);
            assert_eq!(url.as_str(), expected);
            assert_eq!(url.as_str().parse(), Ok(url), "{text} differs when it is read again");
        }
    }

    #[test]
    fn what_is_no_address_of_a_host_is_refused() {
        let long = format!("https://example.com/{}", "a".repeat(2_048));
        let long_when_escaped = format!("https://example.com/{}", "ü".repeat(400));
        for wrong in [
            "",
            "example.com",
            "ftp://example.com/",
            "javascript:alert(1)",
            "https:example.com",
            "https://",
            "https:///",
            "https://ada@example.com/",
            "https://ada:secret@example.com/",
            "https://:secret@example.com/",
            "https://example.com/#part",
            "https://example.com/a b",
            "https://example.com/a\nb",
            "https://example.com\\@evil.example/",
            "https://exa\u{200b}mple com/",
            "https://example.com:99999/",
            "https://[::1/",
            "https://999.999.999.999/",
            &long,
            &long_when_escaped,
        ] {
            assert!(wrong.parse::<WebhookUrl>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_https_to_public_hosts_and_ports_is_allowed() {
        for good in [
            "https://example.com/",
            "https://example.com:8443/x",
            "https://93.184.215.14/",
            "https://hooks.localhost.example.com/",
        ] {
            assert_eq!(checked(good, AddressPolicy::Public), Ok(()), "{good}");
            assert_eq!(checked(good, AddressPolicy::PublicOrLoopback), Ok(()), "{good}");
        }
        for wrong in [
            "http://example.com/",
            "https://example.com:8080/",
            "https://example.com:22/",
            "https://10.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://[fd00:ec2::254]/",
            "https://[::ffff:10.0.0.1]/",
            "https://192.168.1/",
            "http://10.0.0.1/",
        ] {
            assert!(checked(wrong, AddressPolicy::Public).is_err(), "{wrong}");
            assert!(checked(wrong, AddressPolicy::PublicOrLoopback).is_err(), "{wrong}");
        }
    }

    #[test]
    fn loopback_addresses_and_local_names_need_the_other_policy() {
        for local in [
            "http://127.0.0.1:9000/hook",
            "https://127.8.9.10/",
            "http://2130706433/",
            "https://0177.0.0.1/",
            "http://[::1]:3001/",
            "http://localhost:9000/",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://printer.local/",
            "https://db.internal./",
            "https://intranet/",
            "https://router.home.arpa/",
        ] {
            assert!(checked(local, AddressPolicy::Public).is_err(), "{local}");
            assert_eq!(checked(local, AddressPolicy::PublicOrLoopback), Ok(()), "{local}");
        }
        assert!(checked("http://[::ffff:127.0.0.1]/", AddressPolicy::Public).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_reads_back_the_same(text in "(https?://)?[\\PC\\[\\]:@#/.%0-9a-fx]{0,40}") {
            if let Ok(url) = text.parse::<WebhookUrl>() {
                prop_assert_eq!(url.as_str().parse::<WebhookUrl>(), Ok(url.clone()));
                prop_assert!(url.as_str().is_ascii() && url.as_str().len() <= MAX_CHARS);
                let is_allowed = url.check(AddressPolicy::Public).is_ok();
                prop_assert!(!is_allowed || url.as_str().starts_with("https://"));
                prop_assert!(!is_allowed || url.check(AddressPolicy::PublicOrLoopback).is_ok());
            }
        }
    }
}
