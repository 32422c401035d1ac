//! Suggestion of the column by which rows find what they update.

use crate::import::args::{Import, MatchBy};
use crate::import::columns::Mapping;
use crate::import::columns::convert::ValueMapping;
use crate::import::suggestion::are;
use crate::import::suggestion::survey::{Survey, Surveyed};

/// Serial numbers come first, because other files know the same devices by them; the ID only an export has.
const ASSETS: [MatchBy; 3] = [MatchBy::Id, MatchBy::SerialNumber, MatchBy::AssetTag];
const USERS: [MatchBy; 2] = [MatchBy::Id, MatchBy::Email];

/// Leaves out a column `id` with the numbers of another system.
pub fn foreign_ids(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    let Some(column) = survey.column("id").filter(|column| column.ids == 0) else { return };
    if options.mappings.iter().any(|mapping| mapping.column == column.name) {
        return;
    }
    options.mappings.push(Mapping { column: column.name.clone(), field: None });
    notes.push(format!("{}: ignored, since its values are not IDs of this service.", column.name));
}

pub fn suggest(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    let candidates = if options.users { &USERS[..] } else { &ASSETS };
    let is_usable = |column: &&Surveyed| column.distinct() > 0 && (column.field != "id" || column.ids > 0);
    let column_of = |matching: &MatchBy| survey.column(matching.column()?).filter(is_usable);
    if options.match_by == MatchBy::None {
        let found = candidates.iter().find(|matching| column_of(matching).is_some());
        options.match_by = found.copied().unwrap_or(MatchBy::None);
        // Tags of new assets are unknown, too.
        options.create_unmatched |= options.match_by == MatchBy::AssetTag;
    }
    let Some(column) = column_of(&options.match_by) else {
        let names: Vec<&str> = candidates.iter().filter_map(|matching| matching.column()).collect();
        notes.push(format!(
            "No --match, since no column has {}: importing the file twice creates everything twice.",
            names.join(" or ")
        ));
        return;
    };
    let usable = column.distinct() + column.doubled;
    let missing = survey.rows.saturating_sub(usable);
    if missing > 0 && !options.create_unmatched {
        notes.push(format!(
            "{}: {} without a value to match, and will be refused.{}",
            column.name,
            are(missing, "row"),
            seen(column)
        ));
    }
    if column.doubled > 0 {
        let others = are(column.doubled, "value");
        notes.push(format!("{}: {others} in another row, too. Rows with the same value will be refused.", column.name));
    }
    if options.match_by != MatchBy::SerialNumber
        && let Some(serials) = survey.column("serial_number")
    {
        // The service takes them for serial numbers, unless rows are matched by them.
        let given = |new: &ValueMapping| options.value_mappings.iter().any(|known| known.cell == new.cell);
        let placeholders = serials.spellings().map(|value| ValueMapping::new(&serials.name, value, ""));
        let new: Vec<_> = placeholders.filter(|new| !given(new)).collect();
        options.value_mappings.extend(new);
    }
}

fn seen(column: &Surveyed) -> String {
    let placeholders: Vec<&str> = column.spellings().collect();
    if placeholders.is_empty() { String::new() } else { format!(" Placeholders: {}.", placeholders.join(", ")) }
}
