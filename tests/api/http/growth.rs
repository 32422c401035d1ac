//! The cost of an unauthenticated request grows at most linearly with its size.

use crate::support::prelude::*;
use axum::body::Bytes;
use dev_server::meter::cpu_time;
use dev_server::test_data::{made_up_key, made_up_link, unknown_tenant};

/// Length of the shorter input, in bytes. A URL can have at most 65,534 bytes (crate `http`).
const LENGTH: usize = 30_000;
/// Runs of each request. The fastest counts, because the machine can be busy.
const RUNS: usize = 3;
/// Further attempts if a cost seems to grow too fast.
const ATTEMPTS: usize = 5;
/// Tolerance for variations in clock speed and caches, in a debug build.
const TOLERANCE: Duration = Duration::from_millis(4);

/// Whether the cost at most doubles with the input's length, plus a tolerance for noise. A quadratic cost would quadruple.
fn is_linear(once: Duration, twice: Duration) -> bool {
    twice <= once * 5 / 2 + TOLERANCE
}

/// A part of a request without a fixed length.
struct Input {
    name: &'static str,
    text: &'static str,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    /// Appended to the path.
    Path,
    Query,
    /// The value of this header.
    Header(&'static str),
    /// The value of many headers of this name.
    Headers(&'static str),
    Body,
}

const INPUTS: [Input; 37] = [
    Input { name: "slashes", text: "/", place: Place::Path },
    Input { name: "segments", text: "/a", place: Place::Path },
    Input { name: "known segments", text: "/assets", place: Place::Path },
    Input { name: "a long segment", text: "a", place: Place::Path },
    Input { name: "encoded slashes", text: "%2F", place: Place::Path },
    Input { name: "bytes that are not UTF-8", text: "%ff", place: Place::Path },
    Input { name: "parents", text: "/..", place: Place::Path },
    Input { name: "braces", text: "/{id}", place: Place::Path },
    Input { name: "a long value", text: "a", place: Place::Query },
    Input { name: "unknown parameters", text: "&a=1", place: Place::Query },
    Input { name: "known parameters", text: "&status=in_use", place: Place::Query },
    Input { name: "dry runs", text: "&dry_run=true", place: Place::Query },
    Input { name: "separators", text: "&", place: Place::Query },
    Input { name: "equals signs", text: "=", place: Place::Query },
    Input { name: "encoded letters", text: "%41", place: Place::Query },
    Input { name: "lists", text: "&expand=a,a", place: Place::Query },
    Input { name: "a key", text: "a", place: Place::Header("authorization") },
    Input { name: "a scheme and spaces", text: "Bearer ", place: Place::Header("authorization") },
    Input { name: "keys", text: "Bearer apl_a", place: Place::Headers("authorization") },
    Input { name: "cookies", text: "a=b; ", place: Place::Header("cookie") },
    Input { name: "cookies in many headers", text: "a=b", place: Place::Headers("cookie") },
    Input { name: "media ranges", text: "text/html;q=0.5,", place: Place::Header("accept") },
    Input { name: "media ranges in many headers", text: "text/*;a=b", place: Place::Headers("accept") },
    Input { name: "languages", text: "de;q=0.1,", place: Place::Header("accept-language") },
    Input { name: "entity tags", text: "\"1-0123456789abcdef\",", place: Place::Header("if-match") },
    Input { name: "entity tags to compare", text: "\"a\",", place: Place::Header("if-none-match") },
    Input { name: "entity tags in many headers", text: "\"a\"", place: Place::Headers("if-none-match") },
    Input { name: "an idempotency key", text: "k", place: Place::Header("idempotency-key") },
    Input { name: "parameters of a media type", text: "text/csv; charset=", place: Place::Header("content-type") },
    Input { name: "content codings", text: "identity, ", place: Place::Header("content-encoding") },
    Input { name: "proxies", text: "192.0.2.1, ", place: Place::Header("x-forwarded-for") },
    Input { name: "nesting", text: "[", place: Place::Body },
    Input { name: "nested objects", text: "{\"a\":", place: Place::Body },
    Input { name: "a text", text: "\"\\u0041\\ud83d\\ude00", place: Place::Body },
    Input { name: "combining characters", text: "\u{323}\u{301}", place: Place::Body },
    Input { name: "rows", text: "a,\"b\"\"\",c\r\n", place: Place::Body },
    Input { name: "lines of JSON", text: "{\"name\":\"a\"}\n", place: Place::Body },
];

impl Input {
    fn request(&self, method: &str, path: &str, content_type: &str, length: usize) -> Request<Body> {
        let text = self.text.repeat(length / self.text.len());
        let uri = match self.place {
            Place::Path => format!("{path}{text}"),
            Place::Query => format!("{path}?q={text}"),
            _ => path.to_owned(),
        };
        let mut request = Request::builder().method(method).uri(uri).header("content-type", content_type);
        let body = match self.place {
            Place::Body => {
                // Without a well-formed credential, the body would not be read.
                let made_up = if path.starts_with("/v1/sign/") { made_up_link } else { made_up_key };
                request = request.header("authorization", format!("Bearer {}", made_up(unknown_tenant())));
                Bytes::from(text)
            }
            Place::Header(name) => {
                request = request.header(name, text);
                Bytes::new()
            }
            Place::Headers(name) => {
                request = (0..length / self.text.len()).fold(request, |request, _| request.header(name, self.text));
                Bytes::new()
            }
            Place::Path | Place::Query => Bytes::new(),
        };
        request.body(Body::from(body)).unwrap()
    }

    /// Returns the minimum CPU time with `length` bytes of input.
    async fn cost(&self, router: &Router, (method, path, content_type): (&str, &str, &str), length: usize) -> Duration {
        let mut least = Duration::MAX;
        for _ in 0..RUNS {
            let request = self.request(method, path, content_type, length);
            let before = cpu_time();
            let reply = call(router, request).await;
            least = least.min(cpu_time() - before);
            assert!(reply.status.as_u16() < 500, "{}: {}", self.name, reply.text());
        }
        least
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_stranger_sends_costs_at_most_twice_as_much_if_it_is_twice_as_long() {
    let (_api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let paths = ["/", "/v1", "/v1/docs", "/v1/health", "/v1/none", "/v1/processes/instances"];
    let mut targets: Vec<(&str, String, &str)> = paths.map(|path| ("GET", path.to_owned(), "")).into();
    targets.extend(operations.iter().map(|operation| {
        (operation.method.as_str(), format!("/v1{}", samples.path(&operation.path)), content_type(&operation.path))
    }));
    // Paths without a route are the most expensive to refuse.
    let nowhere = ("GET", "/v1/".to_owned(), "");
    for (method, path, content_type) in sample(&targets, 2).into_iter().chain([&nowhere]) {
        for input in INPUTS {
            // Bodies can be longer.
            let length = if matches!(input.place, Place::Body) { 10 * LENGTH } else { LENGTH };
            let target = (*method, path.as_str(), *content_type);
            let once = input.cost(&client.router, target, length).await;
            let twice = input.cost(&client.router, target, 2 * length).await;
            assert!(is_linear(once, twice), "{method} {path}, {}: {once:?}, and twice as long {twice:?}", input.name);
        }
    }
}

fn parameters(count: usize) -> String {
    (0..count).map(|n| format!("&{n:x}")).collect()
}

#[tokio::test(start_paused = true)]
async fn who_has_a_key_or_a_link_pays_twice_as_much_for_twice_as_many_names() {
    let client = over_http().await;
    let path = started(&client, json!([signature_step()])).await;
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    for (client, path) in [(&client, "/assets"), (&client, "/settings"), (&signer, "/sign/session")] {
        let cost = async |count| {
            let mut least = Duration::MAX;
            for _ in 0..RUNS {
                let path = format!("{path}?a{}", parameters(count));
                let before = cpu_time();
                client.get(&path).await.problem(422, "VALIDATION_ERROR");
                least = least.min(cpu_time() - before);
            }
            least
        };
        // Other load can only increase the minimum times, so more attempts don't hide growth.
        let (mut once, mut twice) = (cost(5_000).await, cost(10_000).await);
        for _ in 0..ATTEMPTS {
            if is_linear(once, twice) {
                break;
            }
            (once, twice) = (once.min(cost(5_000).await), twice.min(cost(10_000).await));
        }
        assert!(is_linear(once, twice), "{path}: {once:?}, and twice as many {twice:?}");
    }
}
