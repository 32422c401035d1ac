//! Why there is no response, from what the libraries say.

use shared::domain::webhook::AttemptError;
use std::error::Error;
use std::fmt;
use std::io;

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectError(pub AttemptError);

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no connection: {:?}", self.0)
    }
}

impl Error for ConnectError {}

/// Returns what an error means: the first of its causes that says so. Whatever is unknown is a connection that failed.
pub(super) fn classify(error: &(dyn Error + 'static)) -> AttemptError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(ConnectError(meaning)) = error.downcast_ref() {
            return *meaning;
        }
        if error.is::<rustls::Error>() {
            return AttemptError::TlsFailed;
        }
        cause = match error.downcast_ref::<io::Error>() {
            Some(error) if error.kind() == io::ErrorKind::TimedOut => return AttemptError::TimedOut,
            // An I/O error's source is not the error that it contains, but the source of that.
            Some(error) => error.get_ref().map(|error| error as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    AttemptError::ConnectionFailed
}

#[cfg(test)]
mod tests {
    use super::{AttemptError, ConnectError, Error, classify, io};
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
        let refused = || ConnectError(AttemptError::AddressNotAllowed);
        let cases: Vec<(Box<dyn Error>, AttemptError)> = vec![
            (Box::new(refused()), AttemptError::AddressNotAllowed),
            (Box::new(wrapped(refused())), AttemptError::AddressNotAllowed),
            (Box::new(wrapped(wrapped(ConnectError(AttemptError::NameNotFound)))), AttemptError::NameNotFound),
            (Box::new(io::Error::other(refused())), AttemptError::AddressNotAllowed),
            (Box::new(tls()), AttemptError::TlsFailed),
            (Box::new(io::Error::new(io::ErrorKind::InvalidData, tls())), AttemptError::TlsFailed),
            (Box::new(wrapped(io::Error::other(wrapped(tls())))), AttemptError::TlsFailed),
            (Box::new(io::Error::from(io::ErrorKind::TimedOut)), AttemptError::TimedOut),
            (Box::new(wrapped(io::Error::from(io::ErrorKind::TimedOut))), AttemptError::TimedOut),
            (Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)), AttemptError::ConnectionFailed),
            (Box::new(wrapped(io::Error::from(io::ErrorKind::UnexpectedEof))), AttemptError::ConnectionFailed),
            (Box::new(wrapped(fmt::Error)), AttemptError::ConnectionFailed),
        ];
        for (error, expected) in cases {
            assert_eq!(classify(error.as_ref()), expected, "{error:?}");
        }
    }
}
