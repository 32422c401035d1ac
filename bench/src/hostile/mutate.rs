//! Mutations of requests: most are left as they are, so that the service accepts something, too.

use super::attack::Attack;
use super::generate::TEXTS;
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// How often something is mutated: one time in this many.
const RARITY: u8 = 4;

fn is_mutated(rng: &mut Rng) -> bool {
    rng.u8(..RARITY) == 0
}

/// Doubles a parameter, adds an unknown one, or replaces a value.
pub fn query(rng: &mut Rng, query: &mut Vec<(String, String)>) {
    if !is_mutated(rng) {
        return;
    }
    let text = (*rng.choice(TEXTS).unwrap_or_default()).to_owned();
    match (rng.u8(..3), rng.choice(0..query.len())) {
        (0, Some(n)) => query.push(query[n].clone()),
        (1, Some(n)) => query[n].1 = text,
        _ => query.push(("unknown".to_owned(), text)),
    }
}

/// Changes one member of a JSON value: leaves it out, misspells its name, or gives it another value.
pub fn json(rng: &mut Rng, value: &mut Value) {
    if !is_mutated(rng) {
        return;
    }
    let Value::Object(object) = value else { return };
    let name = rng.choice(object.keys()).cloned().unwrap_or_default();
    let hostile = match rng.u8(..8) {
        0 => Value::Null,
        1 => json!([[[[[[[[[[]]]]]]]]]]),
        2 => json!("x".repeat(rng.usize(..70_000))),
        3 => json!(-1),
        4 => json!(1e308),
        5 => Value::Object((0..rng.usize(..2000)).map(|n| (format!("n{n}"), json!(n))).collect::<Map<_, _>>()),
        6 => json!({"$ref": "#"}),
        _ => json!(rng.choice(TEXTS)),
    };
    match rng.u8(..4) {
        0 => drop(object.remove(&name)),
        1 => drop(object.insert(format!("{name}x"), hostile)),
        _ => drop(object.insert(name, hostile)),
    }
}

/// Cuts bytes off, changes one, or puts something that is not UTF-8 between them.
pub fn bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() || rng.u8(..20) > 0 {
        return;
    }
    let place = rng.usize(..bytes.len());
    match rng.u8(..4) {
        0 => bytes.truncate(place),
        1 => bytes[place] = rng.u8(..),
        2 => bytes.insert(place, 0xff),
        _ => drop(bytes.splice(0..0, [0xef, 0xbb, 0xbf])),
    }
}

/// Adds a header, or changes the method or the media type.
pub fn head(rng: &mut Rng, attack: &mut Attack) {
    if !is_mutated(rng) {
        return;
    }
    let random: Vec<u8> = (0..rng.usize(..60)).map(|_| rng.u8(..)).collect();
    let (name, value): (_, &[u8]) = match rng.u8(..12) {
        0 => ("if-match", b"\"1\" ,, W/\"2\""),
        1 => ("if-match", b"*"),
        2 => ("if-none-match", &random),
        3 => ("if-match", &random),
        4 => ("idempotency-key", &random),
        5 => ("idempotency-key", b"the same for all"),
        6 => ("content-encoding", b"gzip"),
        7 => ("accept", b"application/xml;q=2"),
        8 => ("x-http-method-override", b"DELETE"),
        9 => ("host", b"elsewhere.example.com"),
        10 => {
            attack.headers = vec![("content-type", random)];
            return;
        }
        _ => {
            attack.method = rng.choice(["HEAD", "OPTIONS", "PUT", "TRACE"]).unwrap_or("PUT");
            return;
        }
    };
    attack.headers.push((name, value.to_vec()));
}
