//! The reason of a missing response, from the errors of libraries.

use shared::domain::webhooks::AttemptFailure;
use std::error::Error;
use std::fmt;
use std::io;

/// By the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused(pub AttemptFailure);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no address of the name is used: {:?}", self.0)
    }
}

impl Error for Refused {}

/// From the first known cause. Unknown errors count as a failed connection.
pub(super) fn classify(error: &(dyn Error + 'static)) -> AttemptFailure {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(Refused(meaning)) = error.downcast_ref() {
            return *meaning;
        }
        if error.is::<rustls::Error>() {
            return AttemptFailure::TlsFailed;
        }
        cause = match error.downcast_ref::<io::Error>() {
            Some(error) if error.kind() == io::ErrorKind::TimedOut => return AttemptFailure::TimedOut,
            // An I/O error's source is not the error that it contains, but the source of that.
            Some(error) => error.get_ref().map(|error| error as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    AttemptFailure::ConnectionFailed
}

#[cfg(test)]
mod tests {
    use super::{AttemptFailure, Error, Refused, classify, io};
    use std::fmt;

    /// An error of a library that wraps another.
    #[derive(Debug)]
    struct Wrapper(Box<dyn Error + Send + Sync>);

    impl fmt::Display for Wrapper {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("client error")
        }
    }

    impl Error for Wrapper {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self.0.as_ref())
        }
    }

    fn wrapped(error: impl Error + Send + Sync + 'static) -> Wrapper {
        Wrapper(Box::new(error))
    }

    #[test]
    fn errors_have_the_meaning_of_their_cause() {
        let tls = || rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let refused = || Refused(AttemptFailure::AddressNotAllowed);
        let cases: Vec<(Box<dyn Error>, AttemptFailure)> = vec![
            (Box::new(refused()), AttemptFailure::AddressNotAllowed),
            (Box::new(wrapped(refused())), AttemptFailure::AddressNotAllowed),
            (Box::new(wrapped(wrapped(Refused(AttemptFailure::NameNotFound)))), AttemptFailure::NameNotFound),
            (Box::new(io::Error::other(refused())), AttemptFailure::AddressNotAllowed),
            (Box::new(tls()), AttemptFailure::TlsFailed),
            (Box::new(io::Error::new(io::ErrorKind::InvalidData, tls())), AttemptFailure::TlsFailed),
            (Box::new(wrapped(io::Error::other(wrapped(tls())))), AttemptFailure::TlsFailed),
            (Box::new(io::Error::from(io::ErrorKind::TimedOut)), AttemptFailure::TimedOut),
            (Box::new(wrapped(io::Error::from(io::ErrorKind::TimedOut))), AttemptFailure::TimedOut),
            (Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)), AttemptFailure::ConnectionFailed),
            (Box::new(wrapped(io::Error::from(io::ErrorKind::UnexpectedEof))), AttemptFailure::ConnectionFailed),
            (Box::new(wrapped(fmt::Error)), AttemptFailure::ConnectionFailed),
        ];
        for (error, expected) in cases {
            assert_eq!(classify(error.as_ref()), expected, "{error:?}");
        }
    }
}
