//! Suggestions for values: users, and words for values of a vocabulary.

use crate::import::args::Import;
use crate::import::columns::values::ValueMapping;
use crate::import::columns::{Mapping, OWNER_NAME};
use crate::import::suggestion::survey::{Survey, Surveyed};
use crate::import::suggestion::words::{guess, known};

/// The cells of a column of users tell whether they are names or e-mail addresses, whatever its heading is.
pub fn owners(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    for column in survey.owners().filter(|column| column.filled > 0) {
        let (field, detail) = if column.addresses * 2 > column.filled {
            (Some("assigned_to_email"), None)
        } else if column.names * 2 > column.filled {
            (Some(OWNER_NAME), Some("names of users, who are looked up: each must be the display name of one active user"))
        } else {
            (None, Some("neither names nor e-mail addresses of users, so the command ignores it"))
        };
        let is_taken = field.is_some_and(|field| field != column.field && survey.column(field).is_some());
        let mapping = Mapping { column: column.name.clone(), field: field.filter(|_| !is_taken).map(str::to_owned) };
        options.mappings.retain(|known| known.column != column.name);
        options.mappings.push(mapping);
        notes.extend(detail.map(|detail| format!("{}: {detail}.", column.name)));
    }
    // Two columns can't both name the user of a row.
    let is_email = |mapping: &Mapping| mapping.field.as_deref() == Some("assigned_to_email");
    if options.mappings.iter().any(is_email) {
        for mapping in &mut options.mappings {
            if mapping.field.as_deref() == Some(OWNER_NAME) {
                mapping.field = None;
            }
        }
    }
}

pub fn vocabularies(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    let given: Vec<String> = options.value_mappings.iter().map(|mapping| mapping.cell.clone()).collect();
    for column in survey.columns.iter().filter(|column| known(&column.field).next().is_some()) {
        let is_open = |value: &str| {
            let is_known = known(&column.field).any(|known| known == value);
            !is_known && !given.iter().any(|cell| *cell == format!("{}:{value}", column.name))
        };
        let mut strange = Vec::new();
        for value in column.spellings().filter(|value| is_open(value)) {
            match guess(&column.field, value) {
                Some(meaning) => options.value_mappings.push(ValueMapping::new(&column.name, value, meaning)),
                None => strange.push(value),
            }
        }
        notes.extend((!strange.is_empty()).then(|| unguessed(column, &strange)));
    }
}

fn unguessed(column: &Surveyed, strange: &[&str]) -> String {
    let values: Vec<&str> = known(&column.field).collect();
    let first = strange.first().copied().unwrap_or_default();
    format!(
        "{}: no guess for {}. Say what it means, --map-value \"{}:{first}=…\": {}.",
        column.name,
        strange.join(", "),
        column.name,
        values.join(", ")
    )
}
