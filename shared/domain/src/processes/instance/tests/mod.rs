//! Tests of process instances.

mod advance;
mod lifecycle;
mod signed;
mod through;
mod typed_signatures;

use super::*;
use crate::samples::{self, time};
use crate::values::signature_image::DecodedImages;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A PNG with a black row and a white one.
fn image(width: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = png::Encoder::new(&mut bytes, width, 2);
    encoder
        .write_header()
        .expect("a header")
        .write_image_data(&[vec![0; width as usize], vec![255; width as usize]].concat())
        .expect("data");
    bytes
}

fn alice() -> UserId {
    samples::user(1)
}

fn bob() -> UserId {
    samples::user(2)
}

/// A process from `preparing` to `in_use` with five steps.
fn process() -> Process {
    samples::process(&json!([
        {"type": "user_picker", "key": "employee", "label": "Who?", "required": true},
        {"type": "checklist", "key": "parts", "label": "Parts", "items": ["Device", "Cable"]},
        {"type": "text", "key": "remark", "label": "Remark"},
        {"type": "signature", "key": "signature", "label": "Signature"},
        {"type": "complete", "key": "complete", "label": "Done"}
    ]))
}

fn instance(step: usize) -> Instance {
    Instance { state: State::InProgress { step }, ..samples::instance(30, &process()) }
}

/// Only Alice is an active user.
fn advance(instance: &Instance, data: Value) -> Result<AdvanceOutcome, ProcessError> {
    instance.advance(
        None,
        data.as_object().expect("an object"),
        None,
        &BTreeSet::from([alice()]),
        &DecodedImages::default(),
        time(5),
    )
}

fn advanced(instance: &Instance, data: Value) -> Instance {
    advance(instance, data).expect("acceptable").instance
}
