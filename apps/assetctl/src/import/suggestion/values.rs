//! Suggestions for values: users, and words for values of a vocabulary.

use crate::import::args::Import;
use crate::import::columns::values::ValueMapping;
use crate::import::columns::{Mapping, OWNER_NAME};
use crate::import::suggestion::survey::{Survey, Surveyed};
use crate::import::suggestion::words::{guess, known};

/// The cells of a column of users tell whether they are names or e-mail addresses, whatever its heading is. A column with
/// addresses makes those with names superfluous. Columns that the user has named stay.
pub fn owners(options: &mut Import, survey: &Survey, given: &[Mapping], notes: &mut Vec<String>) {
    let has_addresses = |column: &&Surveyed| column.addresses * 2 > column.filled;
    let addresses = survey.owners().find(has_addresses).map(|column| column.name.as_str());
    let is_open = |column: &&Surveyed| column.filled > 0 && !given.iter().any(|mapping| mapping.column == column.name);
    for column in survey.owners().filter(is_open) {
        let name = &column.name;
        let (field, note) = if addresses == Some(name) {
            (Some("assigned_to_email"), None)
        } else if let Some(other) = addresses {
            (None, Some(format!("{name}: ignored, since {other} has the e-mail addresses of users.")))
        } else if column.names * 2 > column.filled {
            let note = "names of users, who are looked up: each must be the display name of one active user.";
            (Some(OWNER_NAME), Some(format!("{name}: {note}")))
        } else {
            (None, Some(format!("{name}: ignored, since it has neither names nor e-mail addresses of users.")))
        };
        options.mappings.retain(|known| known.column != *name);
        options.mappings.push(Mapping { column: name.clone(), field: field.map(str::to_owned) });
        notes.extend(note);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn mapped(given: &[&str], columns: [(&str, &str, u64, u64); 2]) -> Vec<String> {
        let arguments = [&["assetctl", "import", "a.csv"], given].concat();
        let Command::Import(mut options) = Cli::try_parse_from(arguments).unwrap().command else { panic!("not an import") };
        let given = options.mappings.clone();
        let column = |(name, field, addresses, names): (&str, &str, u64, u64)| {
            let (name, field) = (name.to_owned(), field.to_owned());
            Surveyed { name, field, filled: 10, addresses, names, ..Surveyed::default() }
        };
        let survey = Survey { columns: columns.map(column).into(), ..Survey::default() };
        owners(&mut options, &survey, &given, &mut Vec::new());
        options.mappings.iter().map(crate::import::columns::suggest::as_option).collect()
    }

    #[test]
    fn cells_tell_how_users_are_named() {
        let (login, mail) = (("Nutzer", OWNER_NAME, 0, 0), ("Mail", "assigned_to_email", 10, 0));
        let (named, other) = (("Nutzer", OWNER_NAME, 0, 9), ("Ort", "notes", 0, 9));
        assert_eq!(mapped(&[], [named, other]), ["--map Nutzer=assigned_to_name"]);
        assert_eq!(mapped(&[], [login, other]), ["--map Nutzer="]);
        assert_eq!(mapped(&[], [named, mail]), ["--map Nutzer=", "--map Mail=assigned_to_email"]);
        assert_eq!(mapped(&[], [("Nutzer", OWNER_NAME, 10, 0), other]), ["--map Nutzer=assigned_to_email"]);
        assert_eq!(mapped(&["--map", "Nutzer=assigned_to_name"], [login, other]), ["--map Nutzer=assigned_to_name"]);
    }
}
