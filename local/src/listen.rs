//! Addresses to listen on.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Parses an address of the command line.
///
/// # Errors
///
/// Returns a text that says what is right.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:3001".to_owned())
}

/// Says why an address can't be listened on, and what to give to `option` instead.
pub fn cant_listen(option: &str, address: SocketAddr, error: &Error) -> String {
    let (reason, instead) = match error.kind() {
        ErrorKind::AddrInUse => {
            let next = SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or_default());
            ("the port is in use, perhaps by another dev server: stop that, or choose another port, such as".to_owned(), next)
        }
        ErrorKind::PermissionDenied => {
            ("you may not use this port: choose one from 1024 on, such as".to_owned(), SocketAddr::new(address.ip(), 3000))
        }
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
    fn errors_say_what_to_give_instead() {
        let line = |text: &str, kind: ErrorKind| cant_listen("--addr", text.parse().unwrap(), &kind.into());
        for (text, kind, end) in [
            ("127.0.0.1:3000", ErrorKind::AddrInUse, "such as --addr 127.0.0.1:3001"),
            ("[::1]:65535", ErrorKind::AddrInUse, "such as --addr [::1]:0"),
            ("0.0.0.0:80", ErrorKind::PermissionDenied, "from 1024 on, such as --addr 0.0.0.0:3000"),
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
