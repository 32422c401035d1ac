//! Permitted webhook URLs: HTTPS URLs of public hosts. Private ranges come from IANA's registries of special-purpose addresses
//! ([IPv4](https://www.iana.org/assignments/iana-ipv4-special-registry),
//! [IPv6](https://www.iana.org/assignments/iana-ipv6-special-registry)); multicast is not public.

use crate::values::field_error::{ErrorCode, ValueError, text_form};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use url::{Host, Url};

const MAX_CHARS: usize = 2_048;
pub const PUBLIC_PORTS: [u16; 2] = [443, 8443];
/// Reserved domains without public hosts (RFC 6761, RFC 6762, RFC 8375, RFC 9476).
const LOCAL_DOMAINS: [&str; 8] = ["localhost", "local", "internal", "test", "invalid", "onion", "alt", "home.arpa"];

/// URL of a webhook: HTTPS, on port 443 or 8443 of a public host, without a user name or fragment. Normalized as in the URL
/// standard, with a lower-case ASCII host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 2048, pattern = "^[Hh][Tt][Tt][Pp][Ss]?://", examples("https://example.com/hooks/assets"))]
pub struct WebhookUrl(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressPolicy {
    /// HTTPS on port 443 or 8443.
    #[default]
    Public,
    /// Also HTTP and HTTPS to loopback addresses on any port, for the dev server's `--allow-local-webhooks`.
    PublicOrLoopback,
}

impl WebhookUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the URL for the history, without its query. The query can contain a token that authenticates the sender, and other
    /// webhooks can receive the history.
    pub fn without_query(&self) -> String {
        self.0.split_once('?').map_or_else(|| self.0.clone(), |(rest, _)| format!("{rest}?…"))
    }

    /// Checks only the URL. The addresses that its host name resolves to are checked at every attempt.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] when webhooks can't have this URL.
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
            return Err(ValueError::form("must start with https://"));
        }
        let is_public = match url.host() {
            Some(Host::Domain(name)) => !is_local_name(name),
            Some(Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
            None => false,
        };
        if !is_public {
            return Err(ValueError::new("must have a host on the public internet"));
        }
        if !url.port_or_known_default().is_some_and(|port| PUBLIC_PORTS.contains(&port)) {
            return Err(ValueError::new("must have port 443 or 8443"));
        }
        Ok(())
    }
}

/// Whether no public host can have this name: it has no dot, or is in a reserved domain. Ignores a trailing dot.
pub fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_in = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    !name.contains('.') || LOCAL_DOMAINS.iter().any(|domain| is_in(domain))
}

/// Parses a URL. Stricter than the URL standard, which also accepts `https:example.com` and removes line breaks.
fn parse(text: &str) -> Result<Url, ValueError> {
    let has_scheme = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if !(has_scheme("https://") || has_scheme("http://")) {
        return Err(ValueError::form("must be a URL that starts with https://"));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(ValueError::new("must not contain spaces, control characters or backslashes"));
    }
    let url = Url::parse(text).map_err(|error| ValueError::form(format!("must be a URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ValueError::new("must not contain a user name or password; verify the signature of each delivery instead"));
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
        let too_long = |length: usize| {
            let text = format!("must have at most {MAX_CHARS} characters; this has {length}");
            ValueError::limited(ErrorCode::TooLong, MAX_CHARS, text)
        };
        // Escaping can only make the URL longer.
        if text.len() > MAX_CHARS {
            return Err(too_long(text.chars().count()));
        }
        let url = String::from(parse(text.trim())?);
        if url.len() > MAX_CHARS { Err(too_long(url.len())) } else { Ok(Self(url)) }
    }
}

text_form!(WebhookUrl, |url| url.0);

/// A range of IPv4 addresses: its first address and its prefix length.
type Range4 = (Ipv4Addr, u32);
type Range6 = (Ipv6Addr, u32);

/// All IPv4 ranges that are not public. Ignores exceptions within a range, such as in 192.0.0.0/24: no receiver has such an
/// address.
const NOT_PUBLIC_4: [Range4; 15] = [
    // "This network": on many systems, 0.0.0.0 is the machine itself.
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    // Private.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Carrier-grade NAT.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback.
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, including the metadata services of clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Private.
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // Protocol assignments.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Documentation.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // 6to4 relays.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Private.
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarks.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Documentation.
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    // Documentation.
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, and broadcast.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The only IPv6 range assigned to the internet. Loopback, unique-local, link-local and multicast addresses are outside, and so
/// are forms that embed an IPv4 address: mapped (`::ffff:0:0/96`), compatible (`::/96`), and translated (`64:ff9b::/96`,
/// `64:ff9b:1::/48`).
const GLOBAL_UNICAST_6: Range6 = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// All ranges within [`GLOBAL_UNICAST_6`] that are not public.
const NOT_PUBLIC_6: [Range6; 4] = [
    // Protocol assignments: Teredo, which embeds an IPv4 address; benchmarks; identifiers that aren't addresses (ORCHID).
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4, which embeds an IPv4 address.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    // Documentation.
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_4.iter().any(|range| in_range_4(address, *range)),
        IpAddr::V6(address) => {
            in_range_6(address, GLOBAL_UNICAST_6) && !NOT_PUBLIC_6.iter().any(|range| in_range_6(address, *range))
        }
    }
}

fn in_range_4(address: Ipv4Addr, (first, bits): Range4) -> bool {
    (address.to_bits() ^ first.to_bits()).leading_zeros() >= bits
}

fn in_range_6(address: Ipv6Addr, (first, bits): Range6) -> bool {
    (address.to_bits() ^ first.to_bits()).leading_zeros() >= bits
}

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

    fn public(address: &str) -> bool {
        is_public(address.parse::<IpAddr>().unwrap_or_else(|error| panic!("{address}: {error}")))
    }

    /// Covers the first and last address of every range, and their neighbours if these are public.
    #[test]
    fn ranges_end_where_the_registries_say() {
        let ranges = [
            (None, "0.0.0.0", "0.255.255.255", Some("1.0.0.0")),
            (Some("9.255.255.255"), "10.0.0.0", "10.255.255.255", Some("11.0.0.0")),
            (Some("100.63.255.255"), "100.64.0.0", "100.127.255.255", Some("100.128.0.0")),
            (Some("126.255.255.255"), "127.0.0.0", "127.255.255.255", Some("128.0.0.0")),
            (Some("169.253.255.255"), "169.254.0.0", "169.254.255.255", Some("169.255.0.0")),
            (Some("172.15.255.255"), "172.16.0.0", "172.31.255.255", Some("172.32.0.0")),
            (Some("191.255.255.255"), "192.0.0.0", "192.0.0.255", Some("192.0.1.0")),
            (Some("192.0.1.255"), "192.0.2.0", "192.0.2.255", Some("192.0.3.0")),
            (Some("192.88.98.255"), "192.88.99.0", "192.88.99.255", Some("192.88.100.0")),
            (Some("192.167.255.255"), "192.168.0.0", "192.168.255.255", Some("192.169.0.0")),
            (Some("198.17.255.255"), "198.18.0.0", "198.19.255.255", Some("198.20.0.0")),
            (Some("198.51.99.255"), "198.51.100.0", "198.51.100.255", Some("198.51.101.0")),
            (Some("203.0.112.255"), "203.0.113.0", "203.0.113.255", Some("203.0.114.0")),
            (Some("223.255.255.255"), "224.0.0.0", "239.255.255.255", None),
            (None, "240.0.0.0", "255.255.255.255", None),
            (None, "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None),
            (None, "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Some("2001:200::")),
            (Some("2001:db7:ffff::1"), "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Some("2001:db9::")),
            (Some("2001:ffff:ffff::1"), "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("2003::")),
            (Some("3ffe:ffff::1"), "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Some("3fff:1000::")),
            (Some("3fff:ffff::1"), "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None),
        ];
        for (before, first, last, after) in ranges {
            assert!(!public(first), "{first}");
            assert!(!public(last), "{last}");
            for neighbour in before.into_iter().chain(after) {
                assert!(public(neighbour), "{neighbour}");
            }
        }
    }

    #[test]
    fn well_known_traps_are_not_public() {
        for (address, what) in [
            ("0.0.0.0", "unspecified"),
            ("::", "unspecified"),
            ("127.0.0.1", "loopback"),
            ("::1", "loopback"),
            ("169.254.169.254", "metadata of a machine"),
            ("169.254.170.2", "credentials of a container"),
            ("fd00:ec2::254", "metadata of a machine"),
            ("fc00::1", "unique-local"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("::ffff:127.0.0.1", "mapped loopback"),
            ("::ffff:169.254.169.254", "mapped link-local"),
            ("::ffff:8.8.8.8", "mapped"),
            ("::127.0.0.1", "IPv4-compatible"),
            ("::ffff:0:127.0.0.1", "IPv4-translated"),
            ("64:ff9b::a9fe:a9fe", "NAT64"),
            ("64:ff9b::808:808", "NAT64"),
            ("64:ff9b:1::a00:1", "NAT64 of a network"),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
            ("2001:2::1", "benchmarks"),
            ("2001:10::1", "ORCHID"),
            ("2001:20::1", "ORCHIDv2"),
            ("2002:7f00:1::1", "6to4"),
            ("100::1", "discard-only"),
            ("5f00::1", "segment routing"),
        ] {
            assert!(!public(address), "{address}: {what}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for address in ["1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001:82a::200e", "2620:4f:8000::1"] {
            assert!(public(address), "{address}");
        }
        assert_eq!(PUBLIC_PORTS, [443, 8443]);
    }
}
