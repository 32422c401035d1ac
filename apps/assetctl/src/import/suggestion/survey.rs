//! Surveys the cells of a file's columns, and suggests values: users, and words for fields with a fixed vocabulary, in English,
//! German, French and Spanish. No import relies on a guess.

use crate::error::Result;
use crate::import::args::Import;
use crate::import::columns::convert::{ValueMapping, date_of_day_number};
use crate::import::columns::fields::{Fields, compared};
use crate::import::columns::suggest::plain;
use crate::import::columns::{Columns, Mapping, OWNER_NAME, Target, joined};
use crate::import::source::Source;
use crate::import::suggestion::QUANTITIES;
use crate::import::suggestion::dates::{Dates, Prices};
use crate::lookup::is_id;
use crate::output::folded;
use fields::CellType;
use fields::serial_number::{is_placeholder, is_shortened};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use strsim::osa_distance;

/// The different values of a column that are kept.
const MAX_VALUES: usize = 50;

const OWNERS: [&str; 2] = [OWNER_NAME, "assigned_to_email"];

/// A column that is imported.
#[derive(Debug, Default)]
pub struct Surveyed {
    pub name: String,
    pub field: String,
    pub filled: u64,
    /// Placeholders, values of a vocabulary, and types.
    pub values: BTreeSet<String>,
    pub addresses: u64,
    /// Cells with an ID of this service.
    pub ids: u64,
    /// The number of serial numbers that a spreadsheet has shortened, and the first.
    pub shortened: Option<(u64, String)>,
    /// The number of dates that are day numbers of a spreadsheet, and the first.
    pub day_numbers: Option<(u64, String)>,
    /// Cells with several words.
    pub names: u64,
    /// Cells that are no placeholders and have the value of an earlier one.
    pub doubled: u64,
    pub hashes: HashSet<u64>,
}

impl Surveyed {
    /// The different values of an identifier, without placeholders.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// The values, each once, case-insensitive.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        let mut seen = HashSet::new();
        self.values.iter().map(String::as_str).filter(move |value| seen.insert(folded(value)))
    }

    fn note(&mut self, cell: &str) {
        if cell.is_empty() || cell == "\\N" {
            return;
        }
        self.filled += 1;
        let is_vocabulary = known(&self.field).next().is_some();
        let is_identifier = ["id", "serial_number", "asset_tag", "email"].contains(&self.field.as_str());
        let is_missing = self.field == "serial_number" && is_placeholder(cell);
        if (is_vocabulary || is_missing || self.field == "asset_type_code") && self.values.len() < MAX_VALUES {
            self.values.insert(cell.to_owned());
        }
        if is_identifier && !is_missing {
            let mut hasher = DefaultHasher::new();
            compared(&self.field, cell).hash(&mut hasher);
            self.doubled += u64::from(!self.hashes.insert(hasher.finish()));
        }
        self.ids += u64::from(is_id(cell));
        if self.field == "serial_number" && is_shortened(cell) {
            self.shortened.get_or_insert_with(|| (0, cell.to_owned())).0 += 1;
        }
        self.addresses += u64::from(cell.contains('@'));
        self.names += u64::from(cell.contains([' ', ',']));
    }
}

#[derive(Debug, Default)]
pub struct Survey {
    pub rows: u64,
    pub columns: Vec<Surveyed>,
    pub dates: Dates,
    pub prices: Prices,
    /// Rows with a holder whose status is in_stock, or missing.
    pub held_in_stock: u64,
    /// The column of quantities, the number of rows with more than one thing, and the first quantity.
    pub quantity: Option<(String, u64, String)>,
}

impl Survey {
    /// Reads all rows.
    pub fn of(source: &Source, options: &Import) -> Result<Self> {
        let kind = options.kind();
        let (mappings, _) = joined(&options.mappings, &source.names, &mut Vec::new());
        let field_of = |name: &str| match mappings.iter().find(|mapping| mapping.column == name) {
            Some(mapping) => mapping.field.clone(),
            None => kind.has_column(name).then(|| name.to_owned()),
        };
        let surveyed =
            |name: &String| Some(Surveyed { name: name.trim().to_owned(), field: field_of(name.trim())?, ..Surveyed::default() });
        let mut survey = Self { columns: source.names.iter().filter_map(surveyed).collect(), ..Self::default() };
        // Cells stay as they are.
        let columns = Columns { targets: vec![Target::Ignored; source.names.len()], fields: Fields::new(kind) };
        let quantity = source.names.iter().find(|name| QUANTITIES.contains(&plain(name).as_str()));
        let mut rows = source.rows(options, &columns)?;
        while let Some(row) = rows.next()? {
            survey.rows += 1;
            let (mut is_held, mut is_in_stock) = (false, true);
            for column in &mut survey.columns {
                let cell = row.original.text(&source.names, &column.name).unwrap_or_default();
                match kind.import_column(&column.field).map(|column| column.cell) {
                    Some(CellType::Date) => {
                        survey.dates.note(&cell);
                        if date_of_day_number(&cell).is_some() {
                            column.day_numbers.get_or_insert_with(|| (0, cell.clone())).0 += 1;
                        }
                    }
                    Some(CellType::Number) => survey.prices.note(&cell),
                    _ => {}
                }
                is_held |= OWNERS.contains(&column.field.as_str()) && !cell.is_empty();
                if column.field == "status" && !cell.is_empty() {
                    is_in_stock = guess("status", &cell) == Some("in_stock");
                }
                column.note(&cell);
            }
            survey.held_in_stock += u64::from(is_held && is_in_stock);
            if let Some(name) = quantity
                && let Some(cell) = row.original.text(&source.names, name)
                && cell.parse::<f64>().is_ok_and(|number| number > 1.0)
            {
                survey.quantity.get_or_insert_with(|| (name.clone(), 0, cell)).1 += 1;
            }
        }
        Ok(survey)
    }

    #[must_use]
    pub fn column(&self, field: &str) -> Option<&Surveyed> {
        self.columns.iter().find(|column| column.field == field)
    }

    /// The column of users: by name, or by e-mail address.
    pub fn owners(&self) -> impl Iterator<Item = &Surveyed> {
        self.columns.iter().filter(|column| OWNERS.contains(&column.field.as_str()))
    }
}

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

/// Texts that are no codes of asset types count as empty, until somebody fills in their codes.
pub fn types(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    let Some(column) = survey.column("asset_type_code") else { return };
    let name = &column.name;
    if column.values.len() >= MAX_VALUES {
        if let Some(mapping) = options.mappings.iter_mut().find(|mapping| mapping.column == *name) {
            mapping.field = None;
            notes.push(format!("{name}: ignored, since it has too many values for types of assets."));
        }
        return;
    }
    let is_code =
        |text: &str| (2..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let is_given = |new: &ValueMapping| options.value_mappings.iter().any(|known| known.cell == new.cell);
    let texts = column.spellings().filter(|text| !is_code(text)).map(|text| ValueMapping::new(name, text, ""));
    let new: Vec<ValueMapping> = texts.filter(|new| !is_given(new)).collect();
    if let Some(first) = new.first() {
        notes.push(format!(
            "{name}: {}. Write the code after each \"=\", such as --map-value \"{}=LAP\": without one, \
             these assets get no type.",
            if new.len() == 1 {
                "1 value is no code of an asset type".to_owned()
            } else {
                format!("{} values are no codes of asset types", new.len())
            },
            first.cell
        ));
    }
    options.value_mappings.extend(new);
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

/// The field, its value, and words for it, separated by commas, in lower case and without punctuation. Words that mean several values
/// are missing: "in service" is a repair here, and elsewhere use.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "status",
        "in_stock",
        "in stock,stock,available,free,spare,stored,storage,unassigned,ready to deploy,lager,auf lager,im lager,eingelagert,verfügbar,\
         frei,vorrat,reserve,en stock,disponible,réserve,libre,en almacén,almacén,reserva",
    ),
    (
        "status",
        "preparing",
        "preparation,in preparation,staging,provisioning,being set up,vorbereitung,in vorbereitung,wird vorbereitet,einrichtung,\
         in einrichtung,préparation,en préparation,preparación,en preparación",
    ),
    (
        "status",
        "in_use",
        "used,active,deployed,assigned,checked out,issued,in operation,in benutzung,in nutzung,im einsatz,in gebrauch,in betrieb,benutzt,\
         genutzt,aktiv,ausgegeben,vergeben,zugewiesen,utilisé,en utilisation,en service,attribué,affecté,actif,en uso,en servicio,asignado,entregado,activo",
    ),
    (
        "status",
        "in_service",
        "repair,in repair,being repaired,out for repair,maintenance,in maintenance,broken,defective,reparatur,in reparatur,zur reparatur,\
         wartung,in wartung,defekt,kaputt,réparation,en réparation,en maintenance,en panne,reparación,en reparación,averiado,\
         mantenimiento,en mantenimiento",
    ),
    (
        "status",
        "returned",
        "return,given back,handed back,zurück,zurückgegeben,rückgabe,rückläufer,retour,retourné,rendu,restitué,devuelto",
    ),
    (
        "status",
        "scrapped",
        "retired,disposed,disposed of,discarded,decommissioned,recycled,written off,end of life,verschrottet,ausgemustert,entsorgt,\
         abgeschrieben,ausgesondert,stillgelegt,rebut,mis au rebut,réformé,déclassé,mis hors service,desechado,retirado,descartado,\
         dado de baja,de baja",
    ),
    ("role", "viewer", "reader,read only,leser,lesend,lecteur,lector"),
    ("role", "helpdesk", "help desk,service desk,support,first level,1st level"),
    ("role", "technician", "techniker,technicien,technicienne,técnico,técnica"),
    ("role", "admin", "administrator,administrateur,administratrice,administrador,administradora"),
    ("is_active", "true", "yes,y,1,x,active,enabled,ja,j,wahr,aktiv,oui,o,vrai,actif,sí,si,s,verdadero,activo"),
    ("is_active", "false", "no,n,0,inactive,disabled,nein,falsch,inaktiv,deaktiviert,gesperrt,non,faux,inactif,falso,inactivo"),
];

/// The values of a field with a fixed vocabulary; none for other fields.
pub fn known(field: &str) -> impl Iterator<Item = &'static str> {
    WORDS.iter().filter(move |(known, ..)| *known == field).map(|(_, value, _)| *value)
}

/// The value that a word means: one of its own words, or the only one with words that are spelled almost like it.
#[must_use]
pub fn guess(field: &str, word: &str) -> Option<&'static str> {
    let word = spaced(word);
    let candidates = || {
        let of_field = WORDS.iter().filter(|(known, ..)| *known == field);
        of_field.flat_map(|(_, value, words)| {
            std::iter::once(spaced(value)).chain(words.split(',').map(str::to_owned)).map(|w| (*value, w))
        })
    };
    if let Some((value, _)) = candidates().find(|(_, candidate)| *candidate == word) {
        return Some(value);
    }
    let tolerance = match word.chars().count() {
        0..=4 => return None,
        5..=8 => 1,
        _ => 2,
    };
    let near: Vec<(usize, &str)> = candidates().map(|(value, candidate)| (osa_distance(&word, &candidate), value)).collect();
    let (least, value) = near.iter().copied().min().filter(|(least, _)| *least <= tolerance)?;
    near.iter().all(|(distance, other)| *distance > least || *other == value).then_some(value)
}

/// In lower case, with single spaces instead of punctuation.
fn spaced(text: &str) -> String {
    let lower = crate::output::folded(text);
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use shared::domain::assets::asset::Status;
    use shared::domain::keys::api_key::Role;

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

    #[test]
    fn the_values_are_those_of_the_service() {
        assert!(known("status").eq(Status::ALL.iter().map(|status| status.as_str())));
        assert!(known("role").eq(Role::ALL.iter().map(|role| role.as_str())));
        assert!(known("is_active").eq(["true", "false"]) && known("name").next().is_none());
    }

    #[test]
    fn words_and_slips_of_the_pen_have_a_meaning() {
        for (field, word, meaning) in [
            ("status", "Auf Lager", "in_stock"),
            ("status", " LAGER ", "in_stock"),
            ("status", "In-Use", "in_use"),
            ("status", "im Einsatz", "in_use"),
            ("status", "ausgemusert", "scrapped"),
            ("status", "Zuru\u{308}ckgegeben", "returned"),
            ("status", "en réparation", "in_service"),
            ("status", "en service", "in_use"),
            ("status", "Dado de baja", "scrapped"),
            ("role", "Administratorr", "admin"),
            ("is_active", "Ja", "true"),
        ] {
            assert_eq!(guess(field, word), Some(meaning), "{word}");
        }
        for (field, word) in [("status", "verkauft"), ("status", ""), ("status", "?"), ("is_active", "jein"), ("name", "yes")] {
            assert_eq!(guess(field, word), None, "{word}");
        }
    }

    #[test]
    fn no_word_means_two_values() {
        let words: Vec<(&str, &str)> =
            WORDS.iter().flat_map(|(field, _, words)| words.split(',').map(move |word| (*field, word))).collect();
        let distinct: std::collections::HashSet<_> = words.iter().collect();
        assert_eq!(words.len(), distinct.len());
        assert!(words.iter().all(|(_, word)| spaced(word) == *word));
    }
}
