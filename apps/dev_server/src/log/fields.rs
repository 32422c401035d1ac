//! The fields of a log event.

use std::fmt::{Debug, Write};
use tracing::field::{Field, Visit};

#[derive(Debug, Default)]
pub struct Fields {
    pub message: String,
    pub others: Vec<(&'static str, String)>,
}

impl Fields {
    /// An empty text if the event has no such field.
    pub fn get(&self, name: &str) -> &str {
        self.others.iter().find(|(other, _)| *other == name).map_or("", |(_, text)| text)
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.others.push((name, value.to_owned())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a text can't fail.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}
