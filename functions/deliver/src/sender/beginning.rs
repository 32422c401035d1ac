//! The beginning of a response's body, which the record of an attempt keeps.

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use shared::domain::webhooks::MAX_RESPONSE_BYTES;
use tokio::time::{Instant, timeout_at};

/// The beginning of a body, as far as it arrives in time; `None` if it is empty.
pub(super) async fn read(mut body: impl Body<Data = Bytes> + Unpin, until: Instant) -> Option<String> {
    let mut beginning = Vec::new();
    let reading = async {
        while beginning.len() < MAX_RESPONSE_BYTES
            && let Some(Ok(frame)) = body.frame().await
        {
            let data = frame.data_ref().map_or_else(Default::default, AsRef::<[u8]>::as_ref);
            let missing = MAX_RESPONSE_BYTES - beginning.len();
            beginning.extend_from_slice(&data[..data.len().min(missing)]);
        }
    };
    // The bytes until then count.
    let _ = timeout_at(until, reading).await;
    text(&beginning)
}

/// U+FFFD replaces bytes that are not UTF-8. A character that is cut off at the end is left out.
fn text(bytes: &[u8]) -> Option<String> {
    let complete = match std::str::from_utf8(bytes) {
        // Without a length, the error is an end that came too early.
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    (!complete.is_empty()).then(|| String::from_utf8_lossy(complete).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Bytes, MAX_RESPONSE_BYTES, read, text};
    use http_body_util::Full;
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn what_is_not_utf8_is_replaced() {
        assert_eq!(text(b""), None);
        assert_eq!(text(b"\xff"), Some("\u{fffd}".to_owned()));
        assert_eq!(text(b"ok\xffok"), Some("ok\u{fffd}ok".to_owned()));
        assert_eq!(text(&"aé".as_bytes()[..2]), Some("a".to_owned()));
    }

    #[tokio::test]
    async fn a_body_is_cut_at_a_characters_end() {
        let until = Instant::now() + Duration::from_secs(60);
        let body = |text: String| Full::new(Bytes::from(text));
        assert_eq!(read(body(String::new()), until).await, None);
        assert_eq!(read(body("fine".to_owned()), until).await, Some("fine".to_owned()));
        let exact = "a".repeat(MAX_RESPONSE_BYTES);
        assert_eq!(read(body(exact.clone()), until).await, Some(exact.clone()));
        assert_eq!(read(body(format!("{exact}b")), until).await, Some(exact));
        let shifted = format!("a{}", "é".repeat(MAX_RESPONSE_BYTES));
        assert_eq!(read(body(shifted.clone()), until).await, Some(shifted[..MAX_RESPONSE_BYTES - 1].to_owned()));
    }
}
