//! Guesses the fields of columns from the names in other systems, for suggestions only: no import relies on a guess.

use crate::import::columns::{Kind, LEVELS, Mapping, REASONS};

#[must_use]
pub fn field(kind: Kind, column: &str) -> Option<&'static str> {
    let is_place =
        || kind == Kind::Assets && PLACES.iter().any(|level| level.split_whitespace().any(|word| word == plain(column)));
    guess(kind, column).map(|(field, _)| field).or_else(|| is_place().then_some(LOCATION))
}

/// In lower case, without spaces and punctuation, and without the prefix of Homebox's headings.
#[must_use]
pub fn plain(column: &str) -> String {
    let column = column.strip_prefix("HB.").unwrap_or(column);
    column.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// How headings begin in a list of assets that are about the holder.
const HOLDERS: [&str; 3] = ["checkedoutto", "assignedto", "primaryuser"];

/// The [plain] heading of a column about the holder of an asset, without what says so; `None` for other columns.
fn of_holder(column: &str) -> Option<String> {
    let plain = plain(column);
    let rest = HOLDERS.iter().find_map(|holder| plain.strip_prefix(holder))?;
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// The [plain] heading. Users can come from a list of what they have.
fn heading(kind: Kind, column: &str) -> String {
    let of_holder = (kind == Kind::Users).then(|| of_holder(column)).flatten();
    of_holder.unwrap_or_else(|| plain(column))
}

/// The field, and the rank of the name: 0 is best.
fn guess(kind: Kind, column: &str) -> Option<(&'static str, usize)> {
    let plain = heading(kind, column);
    // A place can be in several columns: see `join_levels`.
    let columns = kind.import_columns().filter(|column| column.name != LOCATION);
    let known = columns.clone().find_map(|column| {
        let rank = column.headings.split_whitespace().position(|heading| heading == plain)?;
        Some((column.name, rank + 1))
    });
    // The names of fields themselves, in another case or with spaces.
    let same = || columns.clone().find(|column| column.name.replace('_', "") == plain);
    known.or_else(|| same().map(|column| (column.name, 0)))
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// One for each field that a column could be.
    pub mappings: Vec<Mapping>,
    /// Columns without a field, or with a better column for it.
    pub unknown: Vec<String>,
}

/// For columns that are neither known nor mapped already.
#[must_use]
pub fn suggestions(kind: Kind, columns: &[String], given: &[Mapping]) -> Suggestions {
    let columns: Vec<&str> = columns.iter().map(|column| column.trim()).collect();
    let is_mapped = |column: &str| given.iter().any(|mapping| mapping.column == column);
    let is_taken = |field: &str| columns.contains(&field) || given.iter().any(|mapping| mapping.field.as_deref() == Some(field));
    let open =
        || columns.iter().filter(|name| !name.is_empty() && **name != REASONS && !kind.has_column(name) && !is_mapped(name));
    // In a list of what users have, the other columns are about the assets: `Name` isn't theirs.
    let is_of_holder = |column: &str| kind == Kind::Users && of_holder(column).is_some();
    let has_holders = open().any(|column| is_of_holder(column) && field(kind, column) == Some("email"));
    let is_candidate = |column: &str| !has_holders || is_of_holder(column);
    let guess = |column: &str| guess(kind, column).filter(|_| is_candidate(column));
    let mut suggestions = Suggestions::default();
    for column in open() {
        let better = |field: &str, rank: usize| {
            open().any(|other| guess(other).is_some_and(|(same, other)| same == field && other < rank))
        };
        let is_new = |field: &str| !suggestions.mappings.iter().any(|mapping| mapping.field.as_deref() == Some(field));
        match guess(column) {
            Some((field, rank)) if !is_taken(field) && !better(field, rank) && is_new(field) => {
                suggestions.mappings.push(Mapping { column: (*column).to_owned(), field: Some(field.to_owned()) });
            }
            _ => suggestions.unknown.push((*column).to_owned()),
        }
    }
    if kind == Kind::Users && !is_taken("display_name") {
        suggestions.join_names(is_candidate);
    }
    if kind == Kind::Assets && !is_taken(LOCATION) {
        suggestions.join_levels();
    }
    suggestions
}

const LOCATION: &str = "location";
/// Headings of the levels of a place, the widest level first.
const PLACES: [&str; 4] = [
    "site standort location campus niederlassung lagerort lieu emplacement ubicación sede ort place",
    "building gebäude bâtiment edificio",
    "floor etage stockwerk étage planta piso",
    "room raum zimmer salle sala",
];

const FIRST_NAMES: &str = "firstname givenname forename vorname prénom nombre";
const LAST_NAMES: &str = "lastname surname familyname nachname nom apellido apellidos";

impl Suggestions {
    /// Makes the place of a column for each of its levels.
    fn join_levels(&mut self) {
        let find = |headings: &&str| {
            let column = |heading: &str| self.unknown.iter().find(|column| plain(column) == heading);
            headings.split_whitespace().find_map(column).cloned()
        };
        let levels: Vec<String> = PLACES.iter().filter_map(find).collect();
        if !levels.is_empty() {
            self.unknown.retain(|column| !levels.contains(column));
            self.mappings.push(Mapping { column: levels.join(LEVELS), field: Some(LOCATION.to_owned()) });
        }
    }

    /// Makes the display name of first and last name, if no column has it.
    fn join_names(&mut self, is_candidate: impl Fn(&str) -> bool) {
        if self.mappings.iter().any(|mapping| mapping.field.as_deref() == Some("display_name")) {
            return;
        }
        let find = |headings: &str| {
            let is_one = |column: &&String| headings.split_whitespace().any(|known| known == heading(Kind::Users, column));
            self.unknown.iter().filter(|column| is_candidate(column)).find(is_one).cloned()
        };
        if let (Some(first), Some(last)) = (find(FIRST_NAMES), find(LAST_NAMES)) {
            self.unknown.retain(|column| *column != first && *column != last);
            self.mappings.push(Mapping { column: format!("{first} + {last}"), field: Some("display_name".to_owned()) });
        }
    }
}

#[must_use]
pub fn as_option(mapping: &Mapping) -> String {
    let text = format!("{}={}", mapping.column, mapping.field.as_deref().unwrap_or_default());
    format!("--map {}", quote(&text))
}

/// For a POSIX shell, if the word needs quotes.
#[must_use]
pub fn quote(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_./:=@%+,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else if word.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        format!("\"{word}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kind: Kind, header: &str) -> (Vec<String>, Vec<String>) {
        let columns: Vec<String> = header.split(',').map(str::to_owned).collect();
        let suggestions = suggestions(kind, &columns, &[]);
        (suggestions.mappings.iter().map(as_option).collect(), suggestions.unknown)
    }

    #[test]
    fn snipe_it_sample_file() {
        let (options, unknown) = options(
            Kind::Assets,
            "Company,Name,Asset Tag,Category,Supplier,Manufacturer,Location,Order Number,Model,Model Notes,Model Number,\
             Asset Notes,Purchase Date,Purchase Cost,Checkout Type,Checked Out To: Username,Checked Out To: Email",
        );
        assert_eq!(
            options,
            [
                "--map Name=name",
                "--map \"Asset Tag=asset_tag\"",
                "--map Category=asset_type_code",
                "--map Manufacturer=manufacturer",
                "--map Model=model",
                "--map \"Asset Notes=notes\"",
                "--map \"Purchase Date=purchase_date\"",
                "--map \"Purchase Cost=purchase_price\"",
                "--map \"Checked Out To: Email=assigned_to_email\"",
                "--map Location=location",
            ]
        );
        assert_eq!(
            unknown,
            ["Company", "Supplier", "Order Number", "Model Notes", "Model Number", "Checkout Type", "Checked Out To: Username"]
        );
    }

    #[test]
    fn intune_device_export() {
        let (options, unknown) = options(
            Kind::Assets,
            "Device ID,Device name,Enrollment date,OS,Primary user UPN,Primary user email address,Manufacturer,Model,Serial number",
        );
        assert_eq!(
            options,
            [
                "--map \"Device name=name\"",
                "--map \"Primary user email address=assigned_to_email\"",
                "--map Manufacturer=manufacturer",
                "--map Model=model",
                "--map \"Serial number=serial_number\"",
            ]
        );
        assert_eq!(unknown, ["Device ID", "Enrollment date", "OS", "Primary user UPN"]);
        assert_eq!(field(Kind::Assets, "userPrincipalName"), Some("assigned_to_email"));
        assert_eq!(field(Kind::Assets, "deviceName"), Some("name"));
    }

    #[test]
    fn jamf_pro_search_and_inventory_preload() {
        let (options, unknown) = options(
            Kind::Assets,
            "JSS Computer ID,Computer Name,Asset Tag,Serial Number,Make,Model,Email Address,PO Date,Purchase Price,Warranty Expiration",
        );
        assert_eq!(options.len(), 9, "{options:?}");
        assert_eq!(unknown, ["JSS Computer ID"]);
        for (column, expected) in
            [("Make", "manufacturer"), ("PO Date", "purchase_date"), ("Warranty Expiration", "warranty_until")]
        {
            assert_eq!(field(Kind::Assets, column), Some(expected));
        }
        assert_eq!(field(Kind::Assets, "Lease Expiration"), None);
    }

    #[test]
    fn german_spreadsheets_and_users() {
        let (assets, _) = options(Kind::Assets, "Inventarnummer,Gerät,Seriennummer,Kaufdatum,Kaufpreis,Garantie bis,E-Mail");
        assert_eq!(assets.len(), 7, "{assets:?}");
        let (assets, unknown) = options(
            Kind::Assets,
            "Inv.-Nr.,Bezeichnung,Gerätetyp,Anschaffungswert,Garantieablauf,Kommentar,Lagerort,Verantwortlicher",
        );
        assert_eq!(unknown, [""; 0]);
        assert_eq!(
            assets,
            [
                "--map Inv.-Nr.=asset_tag",
                "--map Bezeichnung=name",
                "--map Gerätetyp=asset_type_code",
                "--map Anschaffungswert=purchase_price",
                "--map Garantieablauf=warranty_until",
                "--map Kommentar=notes",
                "--map Verantwortlicher=assigned_to_name",
                "--map Lagerort=location",
            ]
        );
        for (heading, expected) in
            [("Typ", "asset_type_code"), ("Kategorie", "asset_type_code"), ("Einkaufspreis", "purchase_price")]
        {
            assert_eq!(field(Kind::Assets, heading), Some(expected));
        }
        let (users, unknown) = options(Kind::Users, "displayName,userPrincipalName,mail,accountEnabled,id");
        assert_eq!(users, ["--map displayName=display_name", "--map mail=email", "--map accountEnabled=is_active"]);
        assert_eq!(unknown, ["userPrincipalName"]);
    }

    #[test]
    fn homebox_files_and_names_in_two_columns() {
        let (assets, _) = options(
            Kind::Assets,
            "HB.location,HB.asset_id,HB.name,HB.notes,HB.purchase_price,HB.purchase_time,HB.manufacturer,HB.model_number,\
             HB.serial_number,HB.warranty_expires",
        );
        assert_eq!(
            assets,
            [
                "--map HB.asset_id=asset_tag",
                "--map HB.name=name",
                "--map HB.notes=notes",
                "--map HB.purchase_price=purchase_price",
                "--map HB.purchase_time=purchase_date",
                "--map HB.manufacturer=manufacturer",
                "--map HB.model_number=model",
                "--map HB.serial_number=serial_number",
                "--map HB.warranty_expires=warranty_until",
                "--map HB.location=location",
            ]
        );
        for (heading, expected) in [
            ("Purchased Price", "purchase_price"),
            ("Purchased Time", "purchase_date"),
            ("Item Name", "name"),
            ("barcode", "asset_tag"),
        ] {
            assert_eq!(field(Kind::Assets, heading), Some(expected), "{heading}");
        }
        let (users, unknown) = options(Kind::Users, "First Name,Last Name,email,username");
        assert_eq!(
            (users, unknown),
            (vec!["--map \"First Name + Last Name=display_name\"".to_owned()], vec!["username".to_owned()])
        );
    }

    #[test]
    fn users_of_a_list_of_assets_are_their_holders() {
        let (options, unknown) = options(
            Kind::Users,
            "Name,Email,First Name,Checked Out To: Username,Checked Out To: Email,Checked Out To: First Name,Checked Out To: Last Name",
        );
        assert_eq!(
            options,
            [
                "--map \"Checked Out To: Email=email\"",
                "--map \"Checked Out To: First Name + Checked Out To: Last Name=display_name\""
            ]
        );
        assert_eq!(unknown, ["Name", "Email", "First Name", "Checked Out To: Username"]);
        let (options, _) = self::options(Kind::Users, "Device name,Primary user UPN,Primary user display name");
        assert_eq!(options, ["--map \"Primary user UPN=email\"", "--map \"Primary user display name=display_name\""]);
    }

    #[test]
    fn the_levels_of_a_place_are_joined() {
        for (header, expected) in [
            ("Name,Room,Building,Floor", "--map \"Building / Floor / Room=location\""),
            ("Bezeichnung,Standort,Raum", "--map \"Standort / Raum=location\""),
            ("Gerät,Ort,Gebäude", "--map \"Ort / Gebäude=location\""),
            ("Nom,Lieu,Bâtiment,Salle", "--map \"Lieu / Bâtiment / Salle=location\""),
            ("Nombre,Ubicación,Sala", "--map \"Ubicación / Sala=location\""),
            ("Name,Site", "--map Site=location"),
        ] {
            let (options, unknown) = options(Kind::Assets, header);
            assert_eq!((options.last().map(String::as_str), unknown.len()), (Some(expected), 0), "{header}");
        }
        // One column of a level is enough, and a place that is known is not guessed.
        assert_eq!(options(Kind::Assets, "Name,Location,Site").1, ["Location"]);
        let columns: Vec<String> = ["location", "Room"].map(str::to_owned).to_vec();
        let given = suggestions(Kind::Assets, &columns, &["location=notes".parse().unwrap()]);
        assert!(given.mappings.is_empty());
        assert_eq!(options(Kind::Users, "Name,Location").1, ["Location"]);
    }

    #[test]
    fn what_is_settled_is_not_guessed() {
        let columns: Vec<String> = ["serial_number", "Serial Number", "E-Mail", "OS"].map(str::to_owned).to_vec();
        let suggestions = suggestions(Kind::Assets, &columns, &["E-Mail=notes".parse().unwrap(), "OS=".parse().unwrap()]);
        assert_eq!(suggestions, Suggestions { mappings: vec![], unknown: vec!["Serial Number".into()] });
    }

    #[test]
    fn no_heading_stands_for_two_columns() {
        for kind in [Kind::Assets, Kind::Users] {
            let all: Vec<_> = kind.import_columns().flat_map(|column| column.headings.split_whitespace()).collect();
            let distinct: std::collections::HashSet<_> = all.iter().collect();
            assert_eq!(all.len(), distinct.len());
        }
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        for (word, quoted) in [("a=b", "a=b"), ("a b", "\"a b\""), ("it's $5", "'it'\\''s $5'"), ("", "\"\"")] {
            assert_eq!(quote(word), quoted);
        }
    }
}
