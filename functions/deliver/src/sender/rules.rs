//! The rules for addresses of receivers.

use shared::domain::webhooks::{AddressPolicy, PUBLIC_PORTS, is_public};
use std::net::IpAddr;

/// A policy, and the definition of public addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub policy: AddressPolicy,
    /// Tests have no public addresses, so they let others count.
    pub is_public: fn(IpAddr) -> bool,
    /// For receivers on public addresses.
    pub is_public_port: fn(u16) -> bool,
}

impl Rules {
    pub fn new(policy: AddressPolicy) -> Self {
        Self { policy, is_public, is_public_port: |port| PUBLIC_PORTS.contains(&port) }
    }

    /// Some hosts can be connected to, with TLS or without, at this port. If not, their names need not be resolved.
    pub fn permit_port(&self, with_tls: bool, port: u16) -> bool {
        self.permit_public(with_tls, port) || self.policy == AddressPolicy::PublicOrLoopback
    }

    /// One address that must not be reached excludes the host.
    pub fn permit_addresses(&self, with_tls: bool, port: u16, addresses: &[IpAddr]) -> bool {
        let public = || self.permit_public(with_tls, port) && addresses.iter().all(|address| (self.is_public)(*address));
        let loopback = || self.policy == AddressPolicy::PublicOrLoopback && addresses.iter().all(IpAddr::is_loopback);
        !addresses.is_empty() && (public() || loopback())
    }

    fn permit_public(&self, with_tls: bool, port: u16) -> bool {
        with_tls && (self.is_public_port)(port)
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressPolicy, Rules};
    use std::net::IpAddr;

    fn permits(policy: AddressPolicy, with_tls: bool, port: u16, addresses: &[&str]) -> bool {
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let rules = Rules::new(policy);
        let permitted = rules.permit_addresses(with_tls, port, &addresses);
        assert!(rules.permit_port(with_tls, port) || !permitted);
        permitted
    }

    #[test]
    fn public_hosts_need_tls_and_a_port_of_it() {
        for policy in [AddressPolicy::Public, AddressPolicy::PublicOrLoopback] {
            for (expected, with_tls, port, addresses) in [
                (true, true, 443, &["1.1.1.1"] as &[&str]),
                (true, true, 8443, &["1.1.1.1", "2606:4700::1111"]),
                (false, false, 443, &["1.1.1.1"]),
                (false, false, 80, &["1.1.1.1"]),
                (false, true, 80, &["1.1.1.1"]),
                (false, true, 8444, &["1.1.1.1"]),
                (false, true, 22, &["1.1.1.1"]),
                (false, true, 443, &["1.1.1.1", "10.0.0.1"]),
                (false, true, 443, &["10.0.0.1", "1.1.1.1"]),
                (false, true, 443, &["1.1.1.1", "127.0.0.1"]),
                (false, true, 443, &["192.168.0.1"]),
                (false, true, 443, &["0.0.0.0"]),
                (false, true, 443, &["::ffff:127.0.0.1"]),
                (false, true, 443, &[]),
            ] {
                assert_eq!(permits(policy, with_tls, port, addresses), expected, "{policy:?} {with_tls} {port} {addresses:?}");
            }
        }
    }

    #[test]
    fn loopback_needs_the_policy_and_nothing_else() {
        for (with_tls, port) in [(true, 443), (false, 80), (false, 9000), (true, 9000)] {
            for addresses in [&["127.0.0.1"] as &[&str], &["::1"], &["127.0.0.1", "::1"], &["127.255.255.254"]] {
                assert!(permits(AddressPolicy::PublicOrLoopback, with_tls, port, addresses), "{port} {addresses:?}");
                assert!(!permits(AddressPolicy::Public, with_tls, port, addresses), "{port} {addresses:?}");
            }
        }
    }
}
