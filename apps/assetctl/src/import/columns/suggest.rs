//! Guesses the fields of columns from headings of other systems. Only suggestions use guesses, never an import.

use crate::import::columns::{Kind, LEVELS, Mapping, REASONS};
use crate::output::quote;

pub fn field(kind: Kind, column: &str) -> Option<&'static str> {
    let is_place =
        || kind == Kind::Assets && PLACES.iter().any(|level| level.split_whitespace().any(|word| word == plain(column)));
    guess(kind, column).map(|(field, _)| field).or_else(|| is_place().then_some(LOCATION))
}

/// Normalizes a heading: removes Homebox's prefix `HB.`, spaces and punctuation, and converts the rest to lower case.
pub fn plain(column: &str) -> String {
    let column = column.strip_prefix("HB.").unwrap_or(column);
    column.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Prefixes of headings about the holder of an asset.
const HOLDERS: [&str; 3] = ["checkedoutto", "assignedto", "primaryuser"];

/// Returns the [plain] heading of a column about the holder of an asset, without the prefix; `None` for other columns.
fn of_holder(column: &str) -> Option<String> {
    let plain = plain(column);
    let rest = HOLDERS.iter().find_map(|holder| plain.strip_prefix(holder))?;
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// Returns the [plain] heading, without the prefix of a holder's column in an import of users: the file can be a list of their
/// assets.
fn heading(kind: Kind, column: &str) -> String {
    let of_holder = (kind == Kind::Users).then(|| of_holder(column)).flatten();
    of_holder.unwrap_or_else(|| plain(column))
}

/// Guesses the field. Returns it with the rank of the heading, where 0 is best.
fn guess(kind: Kind, column: &str) -> Option<(&'static str, usize)> {
    let plain = heading(kind, column);
    // A location can consist of several columns: see `join_levels`.
    let columns = kind.import_columns().filter(|column| column.name != LOCATION);
    let known = columns.clone().find_map(|column| {
        let rank = column.headings.split_whitespace().position(|heading| heading == plain)?;
        Some((column.name, rank + 1))
    });
    // The field's name itself, possibly with different case or with spaces.
    let same = || columns.clone().find(|column| column.name.replace('_', "") == plain);
    known.or_else(|| same().map(|column| (column.name, 0)))
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// A mapping for each field that a column matches.
    pub mappings: Vec<Mapping>,
    /// Columns that match no field, or whose field another column matches better.
    pub unknown: Vec<String>,
}

/// Suggests mappings for columns that are neither known nor mapped.
pub fn suggestions(kind: Kind, columns: &[String], given: &[Mapping]) -> Suggestions {
    let columns: Vec<&str> = columns.iter().map(|column| column.trim()).collect();
    let is_mapped = |column: &str| given.iter().any(|mapping| mapping.column == column);
    let is_taken = |field: &str| columns.contains(&field) || given.iter().any(|mapping| mapping.field.as_deref() == Some(field));
    let open =
        || columns.iter().filter(|name| !name.is_empty() && **name != REASONS && !kind.has_column(name) && !is_mapped(name));
    // In a list of users' assets, other columns describe the assets, so `Name` isn't the user's.
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
/// Headings of a location's levels, from the widest to the narrowest.
const PLACES: [&str; 4] = [
    "site standort location campus niederlassung lagerort lieu emplacement ubicación sede ort place",
    "building gebäude bâtiment edificio",
    "floor etage stockwerk étage planta piso",
    "room raum zimmer salle sala",
];

const FIRST_NAMES: &str = "firstname givenname forename vorname prénom nombre";
const LAST_NAMES: &str = "lastname surname familyname nachname nom apellido apellidos";

impl Suggestions {
    /// Joins the columns with levels of a location.
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

    /// Joins first and last name to the display name, unless a column has it.
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

pub fn as_option(mapping: &Mapping) -> String {
    let text = format!("{}={}", mapping.column, mapping.field.as_deref().unwrap_or_default());
    format!("--map {}", quote(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mappings suggested for a header, and the unknown columns.
    fn suggested(kind: Kind, header: &str) -> (String, String) {
        let columns: Vec<String> = header.split(',').map(str::to_owned).collect();
        let suggestions = suggestions(kind, &columns, &[]);
        let mapped = |mapping: &Mapping| format!("{}={}", mapping.column, mapping.field.as_deref().unwrap_or_default());
        (suggestions.mappings.iter().map(mapped).collect::<Vec<_>>().join(","), suggestions.unknown.join(","))
    }

    /// In this order: Snipe-IT, Intune, Jamf Pro, two German spreadsheets, and Homebox.
    #[test]
    fn headings_of_other_asset_systems_are_mapped() {
        for (header, mapped, unknown) in [
            (
                "Company,Name,Asset Tag,Category,Supplier,Manufacturer,Location,Order Number,Model,Model Notes,Model Number,\
                 Asset Notes,Purchase Date,Purchase Cost,Checkout Type,Checked Out To: Username,Checked Out To: Email",
                "Name=name,Asset Tag=asset_tag,Category=asset_type_code,Manufacturer=manufacturer,Model=model,Asset Notes=notes,\
                 Purchase Date=purchase_date,Purchase Cost=purchase_price,Checked Out To: Email=assigned_to_email,Location=location",
                "Company,Supplier,Order Number,Model Notes,Model Number,Checkout Type,Checked Out To: Username",
            ),
            (
                "Device ID,Device name,Enrollment date,OS,Primary user UPN,Primary user email address,Manufacturer,Model,\
                 Serial number",
                "Device name=name,Primary user email address=assigned_to_email,Manufacturer=manufacturer,Model=model,\
                 Serial number=serial_number",
                "Device ID,Enrollment date,OS,Primary user UPN",
            ),
            (
                "JSS Computer ID,Computer Name,Asset Tag,Serial Number,Make,Model,Email Address,PO Date,Purchase Price,\
                 Warranty Expiration",
                "Computer Name=name,Asset Tag=asset_tag,Serial Number=serial_number,Make=manufacturer,Model=model,\
                 Email Address=assigned_to_email,PO Date=purchase_date,Purchase Price=purchase_price,\
                 Warranty Expiration=warranty_until",
                "JSS Computer ID",
            ),
            (
                "Inventarnummer,Gerät,Seriennummer,Kaufdatum,Kaufpreis,Garantie bis,E-Mail",
                "Inventarnummer=asset_tag,Gerät=name,Seriennummer=serial_number,Kaufdatum=purchase_date,\
                 Kaufpreis=purchase_price,Garantie bis=warranty_until,E-Mail=assigned_to_email",
                "",
            ),
            (
                "Inv.-Nr.,Bezeichnung,Gerätetyp,Anschaffungswert,Garantieablauf,Kommentar,Lagerort,Verantwortlicher",
                "Inv.-Nr.=asset_tag,Bezeichnung=name,Gerätetyp=asset_type_code,Anschaffungswert=purchase_price,\
                 Garantieablauf=warranty_until,Kommentar=notes,Verantwortlicher=assigned_to_name,Lagerort=location",
                "",
            ),
            (
                "HB.location,HB.asset_id,HB.name,HB.notes,HB.purchase_price,HB.purchase_time,HB.manufacturer,HB.model_number,\
                 HB.serial_number,HB.warranty_expires",
                "HB.asset_id=asset_tag,HB.name=name,HB.notes=notes,HB.purchase_price=purchase_price,\
                 HB.purchase_time=purchase_date,HB.manufacturer=manufacturer,HB.model_number=model,\
                 HB.serial_number=serial_number,HB.warranty_expires=warranty_until,HB.location=location",
                "",
            ),
        ] {
            assert_eq!(suggested(Kind::Assets, header), (mapped.to_owned(), unknown.to_owned()));
        }
        for (heading, expected) in [
            ("userPrincipalName", Some("assigned_to_email")),
            ("deviceName", Some("name")),
            ("Item Name", Some("name")),
            ("barcode", Some("asset_tag")),
            ("Typ", Some("asset_type_code")),
            ("Kategorie", Some("asset_type_code")),
            ("Einkaufspreis", Some("purchase_price")),
            ("Purchased Price", Some("purchase_price")),
            ("Purchased Time", Some("purchase_date")),
            ("Lease Expiration", None),
        ] {
            assert_eq!(field(Kind::Assets, heading), expected, "{heading}");
        }
    }

    /// In lists of assets, the holders are users.
    #[test]
    fn headings_of_other_user_directories_are_mapped() {
        for (header, mapped, unknown) in [
            (
                "displayName,userPrincipalName,mail,accountEnabled,id",
                "displayName=display_name,mail=email,accountEnabled=is_active",
                "userPrincipalName",
            ),
            ("First Name,Last Name,email,username", "First Name + Last Name=display_name", "username"),
            (
                "Name,Email,First Name,Checked Out To: Username,Checked Out To: Email,Checked Out To: First Name,\
                 Checked Out To: Last Name",
                "Checked Out To: Email=email,Checked Out To: First Name + Checked Out To: Last Name=display_name",
                "Name,Email,First Name,Checked Out To: Username",
            ),
            (
                "Device name,Primary user UPN,Primary user display name",
                "Primary user UPN=email,Primary user display name=display_name",
                "Device name",
            ),
            ("Name,Location", "Name=display_name", "Location"),
        ] {
            assert_eq!(suggested(Kind::Users, header), (mapped.to_owned(), unknown.to_owned()));
        }
    }

    #[test]
    fn the_levels_of_a_place_are_joined() {
        for (header, expected) in [
            ("Name,Room,Building,Floor", "Building / Floor / Room=location"),
            ("Bezeichnung,Standort,Raum", "Standort / Raum=location"),
            ("Gerät,Ort,Gebäude", "Ort / Gebäude=location"),
            ("Nom,Lieu,Bâtiment,Salle", "Lieu / Bâtiment / Salle=location"),
            ("Nombre,Ubicación,Sala", "Ubicación / Sala=location"),
            ("Name,Site", "Site=location"),
        ] {
            let (mapped, unknown) = suggested(Kind::Assets, header);
            assert!(mapped.ends_with(&format!("=name,{expected}")) && unknown.is_empty(), "{header}: {mapped} {unknown}");
        }
        // Only one column is used per level, and a column with a known location is not guessed again.
        assert_eq!(suggested(Kind::Assets, "Name,Location,Site").1, "Location");
        let columns: Vec<String> = ["location", "Room"].map(str::to_owned).to_vec();
        let given = suggestions(Kind::Assets, &columns, &["location=notes".parse().unwrap()]);
        assert!(given.mappings.is_empty());
    }

    #[test]
    fn known_and_mapped_columns_are_not_guessed() {
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
}
