//! Addresses to listen on, and the address that clients can use.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// # Errors
///
/// Returns a message with an example.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:3001".to_owned())
}

/// Returns the address that clients should use for a server listening on `address`: if it listens on all interfaces, the address
/// in the network, or else loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let ip = address_in_network().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    SocketAddr::new(ip, address.port())
}

/// Returns the source address of packets to other networks. Connecting a UDP socket sends nothing.
fn address_in_network() -> Option<IpAddr> {
    // An address for documentation (RFC 5737): no packet is sent to it.
    const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Returns an error text with the reason, and a better value for `option`.
pub fn cant_listen(option: &str, address: SocketAddr, error: &Error) -> String {
    let (reason, instead) = match error.kind() {
        ErrorKind::AddrInUse => {
            let next = SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or_default());
            ("the port is in use, perhaps by another dev server: stop that, or choose another port, such as".to_owned(), next)
        }
        ErrorKind::PermissionDenied => (
            "you don't have permission to use this port: choose one from 1024 up, such as".to_owned(),
            SocketAddr::new(address.ip(), 3000),
        ),
        ErrorKind::AddrNotAvailable => {
            let here = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
            ("this computer doesn't have that address: choose another, such as".to_owned(), here)
        }
        _ => (format!("{error}: choose another address, such as"), SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)),
    };
    format!("can't listen on {address}: {reason} {option} {instead}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_an_address_that_they_can_open() {
        for address in ["127.0.0.1:3000", "192.0.2.7:80", "[::1]:3000"] {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), address);
        }
        for address in ["0.0.0.0:3000", "[::]:3000"] {
            let shown = reachable(address.parse().unwrap());
            assert!(!shown.ip().is_unspecified() && shown.port() == 3000, "{shown}");
        }
    }

    #[test]
    fn errors_say_what_to_give_instead() {
        let line = |text: &str, kind: ErrorKind| cant_listen("--addr", text.parse().unwrap(), &kind.into());
        for (text, kind, end) in [
            ("127.0.0.1:3000", ErrorKind::AddrInUse, "such as --addr 127.0.0.1:3001"),
            ("[::1]:65535", ErrorKind::AddrInUse, "such as --addr [::1]:0"),
            ("0.0.0.0:80", ErrorKind::PermissionDenied, "from 1024 up, such as --addr 0.0.0.0:3000"),
            ("192.0.2.1:3000", ErrorKind::AddrNotAvailable, "such as --addr 127.0.0.1:3000"),
            ("127.0.0.1:3000", ErrorKind::Other, "such as --addr 127.0.0.1:0"),
        ] {
            let line = line(text, kind);
            assert!(line.starts_with(&format!("can't listen on {text}: ")) && line.ends_with(end), "{line}");
        }
        assert_eq!(address("127.0.0.1:3000"), Ok(([127, 0, 0, 1], 3000).into()));
        assert!(address("3000").unwrap_err().contains("127.0.0.1:3001"));
    }
}
