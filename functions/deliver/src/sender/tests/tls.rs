//! Accepted and refused certificates.

use super::receiver::{Certificates, Identity, OK, Receiver, certificates};
use super::{
    AddressPolicy, Arc, AttemptFailure, CheckedResolver, Limits, NAME, Names, Sender, assert_error, assert_status, send, sender,
    test_rules,
};

#[tokio::test]
async fn only_valid_certificates_are_accepted() {
    let Certificates { root: _, valid, other_name, expired, untrusted } = certificates();
    let names = Arc::new(Names::with_receiver());
    let cases: [(&str, &Identity, bool); 4] = [
        ("valid", valid, true),
        ("for a different name", other_name, false),
        ("expired", expired, false),
        ("untrusted", untrusted, false),
    ];
    for (what, identity, is_accepted) in cases {
        let receiver = Receiver::start(Some(identity), |accepted| accepted.respond_always(OK)).await;
        let attempt = send(&sender(test_rules(), &names, Limits::default()), &receiver.url()).await;
        if is_accepted {
            assert_status(&attempt, 200);
        } else {
            assert_error(&attempt, AttemptFailure::TlsFailed);
        }
        assert_eq!(receiver.requests().len(), usize::from(is_accepted), "{what}");
        assert_eq!(receiver.connections().len(), 1, "{what}");
    }
}

#[tokio::test]
async fn a_receiver_that_speaks_something_else_fails_in_tls() {
    let receiver = Receiver::plain(|mut accepted| async move {
        accepted.write("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        accepted.until_closed().await;
    })
    .await;
    let attempt = send(&sender(test_rules(), &Arc::new(Names::with_receiver()), Limits::default()), &receiver.url()).await;
    assert_error(&attempt, AttemptFailure::TlsFailed);
}

#[tokio::test]
async fn the_services_roots_do_not_include_those_of_tests() {
    let receiver = Receiver::responding(OK).await;
    let roots: rustls::RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    assert!(roots.len() > 50);
    let names = Names::with_receiver();
    let lookup = move |name: String| Box::pin(std::future::ready(names.answer(&name))) as _;
    let resolver = CheckedResolver { policy: AddressPolicy::Public, is_public: |_| true, lookup: Arc::new(lookup) };
    let sender = Sender::with(resolver, roots, Limits::default()).unwrap();
    assert_error(&send(&sender, &receiver.url()).await, AttemptFailure::TlsFailed);
    assert!(receiver.requests().is_empty());
}

/// The certificate is checked against the host of the URL, whether that is a name or an address.
#[tokio::test]
async fn certificates_of_addresses_are_checked_too() {
    let receiver = Receiver::responding(OK).await;
    let other = Receiver::start(Some(&certificates().other_name), |accepted| accepted.respond_always(OK)).await;
    let sender = sender(test_rules(), &Arc::new(Names::new().with(NAME, &["127.0.0.1"])), Limits::default());
    assert_status(&send(&sender, &format!("https://127.0.0.1:{}/", receiver.port)).await, 200);
    assert_error(&send(&sender, &format!("https://127.0.0.1:{}/", other.port)).await, AttemptFailure::TlsFailed);
}

/// A name with a trailing dot is resolved without search domains, and needs the same certificate.
#[tokio::test]
async fn a_dot_at_the_end_of_a_name_is_fine() {
    let receiver = Receiver::responding(OK).await;
    let names = Arc::new(Names::new().with("receiver.example.com.", &["127.0.0.1"]));
    let sender = sender(test_rules(), &names, Limits::default());
    assert_status(&send(&sender, &format!("https://{NAME}.:{}/", receiver.port)).await, 200);
    assert_eq!(names.asked(), ["receiver.example.com."]);
}
