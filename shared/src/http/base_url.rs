//! The base URL of the API, for links to it.
//!
//! In Lambda, this is `PUBLIC_URL` if set, or else the gateway's domain from the request context. The client's `Host` header is
//! used only without an AWS gateway: in the dev server, `sam local` and `cargo lambda watch`.

use super::openapi::{Describe, Schemas};
use crate::aws::environment::variable;
use axum::Router;
use axum::extract::{Extension, FromRequestParts, Request};
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::map_request;
use lambda_http::request::RequestContext;
use std::convert::Infallible;
use std::net::Ipv6Addr;
use utoipa::openapi::path::Operation;

/// The header in which `app.rs` passes on the client's `Host`.
pub(crate) const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Maximum lengths of a domain name and of a label (RFC 1035 §2.3.4).
const MAX_DOMAIN: usize = 253;
const MAX_LABEL: usize = 63;

/// Scheme, host and port of the API, such as `https://api.example.com`. Empty if unknown: links are then just paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaseUrl(String);

#[derive(Debug, thiserror::Error)]
#[error("PUBLIC_URL must be http:// or https:// and a host, with a port if needed, such as https://api.example.com")]
pub struct PublicUrlError;

impl BaseUrl {
    /// Returns the URL without a trailing slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `PUBLIC_URL`, or `None` if it is missing or empty.
    ///
    /// # Errors
    ///
    /// Returns [`PublicUrlError`] if it is anything other than a scheme and a host, with or without a port.
    pub fn from_env() -> Result<Option<Self>, PublicUrlError> {
        variable("PUBLIC_URL").map(|url| Self::configured(url).ok_or(PublicUrlError)).transpose()
    }

    /// Checks the operator's value; returns `None` if it is invalid.
    fn configured(url: String) -> Option<Self> {
        let host = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        host.is_some_and(is_host).then_some(Self(url))
    }

    /// Takes the host from the `Host` header, for a server without TLS.
    fn of_host(headers: &HeaderMap, name: &HeaderName) -> Option<Self> {
        let mut hosts = headers.get_all(name).iter();
        // With two headers, a server and a proxy could each use a different one.
        let (host, None) = (hosts.next()?, hosts.next()) else { return None };
        let host = host.to_str().ok().filter(|host| is_host(host))?;
        Some(Self(format!("http://{host}")))
    }

    /// Takes the host from the gateway's domain in the request context.
    fn of_gateway(domain: &str, headers: &HeaderMap) -> Option<Self> {
        if matches!(domain, "localhost" | "127.0.0.1") {
            // `sam local` and `cargo lambda watch` always report these domains, regardless of their address.
            return Self::of_host(headers, &FORWARDED_HOST);
        }
        is_domain(domain).then(|| Self(format!("https://{domain}")))
    }
}

/// Sets a fixed base URL, regardless of the request.
pub fn with_base_url<S: Clone + Send + Sync + 'static>(routes: Router<S>, base_url: BaseUrl) -> Router<S> {
    routes.layer(Extension(base_url))
}

/// Takes the base URL from the `Host` header, for a server without a gateway.
pub fn with_host_header<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes.layer(map_request(async |mut request: Request| {
        if let Some(base_url) = BaseUrl::of_host(request.headers(), &HOST) {
            request.extensions_mut().insert(base_url);
        }
        request
    }))
}

/// Whether a URL can have this host, with or without a port.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => match address.parse::<Ipv6Addr>() {
            Ok(_) if port.is_empty() => (None, None),
            Ok(_) => match port.strip_prefix(':') {
                Some(port) => (None, Some(port)),
                None => return false,
            },
            Err(_) => return false,
        },
        None => text.split_once(':').map_or((Some(text), None), |(host, port)| (Some(host), Some(port))),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    host.is_none_or(is_domain) && port.is_none_or(is_port)
}

/// Whether a string is a domain name or an IPv4 address: letters, digits and hyphens between dots.
fn is_domain(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= MAX_LABEL
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= MAX_DOMAIN && text.split('.').all(is_label)
}

impl<S: Sync> FromRequestParts<S> for BaseUrl {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let configured = parts.extensions.get::<Self>().cloned();
        let of_gateway = || match parts.extensions.get::<RequestContext>() {
            Some(RequestContext::ApiGatewayV2(context)) => Self::of_gateway(context.domain_name.as_deref()?, &parts.headers),
            _ => None,
        };
        Ok(configured.or_else(of_gateway).unwrap_or_default())
    }
}

impl Describe for BaseUrl {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    /// Returns the headers that a function receives from a local gateway.
    fn forwarded(host: &str) -> HeaderMap {
        HeaderMap::from_iter([(FORWARDED_HOST, HeaderValue::from_str(host).expect(host))])
    }

    fn text(base_url: Option<BaseUrl>) -> String {
        base_url.unwrap_or_default().0
    }

    #[test]
    fn the_domain_of_the_gateway_begins_links() {
        let ignored = forwarded("evil.example");
        for domain in ["abc123.execute-api.eu-central-1.amazonaws.com", "api.example.com", "API.example"] {
            assert_eq!(text(BaseUrl::of_gateway(domain, &ignored)), format!("https://{domain}"));
        }
        let long = format!("{}.example", "a".repeat(64));
        let longer = ["a".repeat(60).as_str(); 5].join(".");
        for domain in [
            "", ".", "a..b", "-a.b", "a-.b", "a_b.c", "a b", "a/b", "a@b", "a:443", "a?b", "a#b", "ä.de", "a\nb", "[::1]", &long,
            &longer,
        ] {
            assert_eq!(text(BaseUrl::of_gateway(domain, &ignored)), "", "{domain:?}");
        }
    }

    #[test]
    fn local_gateways_have_no_tls_and_are_where_the_caller_found_them() {
        for host in ["127.0.0.1:3001", "localhost:9000", "laptop.local", "192.0.2.7:3000", "[::1]:3000", "[fe80::1]"] {
            assert_eq!(text(BaseUrl::of_gateway("localhost", &forwarded(host))), format!("http://{host}"));
            assert_eq!(text(BaseUrl::of_gateway("127.0.0.1", &forwarded(host))), format!("http://{host}"));
        }
        for host in [
            "",
            ":",
            ":80",
            "a:",
            "a:b",
            "a:65536",
            "a:+80",
            "a:80:80",
            "a@b",
            "a/b",
            "a?b",
            "a#b",
            "a b",
            "a,b",
            "<a>",
            "\"a\"",
            "[::1",
            "::1",
            "[a]",
            "[::1]80",
            "[::1]:",
            "[]",
            "[fe80::1%25eth0]",
        ] {
            assert_eq!(text(BaseUrl::of_gateway("localhost", &forwarded(host))), "", "{host:?}");
        }
        let mut two = forwarded("a.example");
        two.append(FORWARDED_HOST, HeaderValue::from_static("b.example"));
        assert_eq!(text(BaseUrl::of_gateway("localhost", &two)), "");
        assert_eq!(text(BaseUrl::of_gateway("localhost", &HeaderMap::new())), "");
    }

    #[test]
    fn operators_set_a_scheme_and_a_host() {
        for url in ["https://api.example.com", "http://127.0.0.1:3001", "https://[2001:db8::1]:8443"] {
            assert_eq!(text(BaseUrl::configured(url.to_owned())), url);
        }
        for url in [
            "api.example.com",
            "https://",
            "https://a/",
            "https://a/v1",
            "https://a?b",
            "https://a#b",
            "https://a@b",
            "ftp://a",
            "HTTPS://a",
            "https://a ",
            "javascript:alert(1)",
        ] {
            assert_eq!(BaseUrl::configured(url.to_owned()), None, "{url}");
        }
    }
}
