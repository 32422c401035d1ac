//! Guesses the fields of columns from headings of other systems.

use crate::import::parameters::LEVELS;
use crate::import::{Kind, OWNER_NAME};

const LOCATION: &str = "location";
/// Headings of a location's levels, from the widest to the narrowest.
const PLACES: [&str; 4] = [
    "site standort location campus niederlassung lagerort aufstellort lieu emplacement ubicación sede ort place annotatedlocation",
    "building gebäude bâtiment edificio pavilon",
    "floor etage stockwerk étage planta piso",
    "room raum zimmer salle sala místnost",
];

const FIRST_NAMES: &str = "firstname givenname forename vorname prénom nombre";
const LAST_NAMES: &str = "lastname surname familyname nachname nom apellido apellidos";

/// Prefixes of headings about the holder of an asset.
const HOLDERS: [&str; 4] = ["checkedoutto", "assignedto", "primaryuser", "borrower"];

/// Custom fields that many organisations have, with their headings.
const CUSTOM: [(&str, &str); 1] =
    [("custom_fields.cost_center", "costcenter costcentre kostenstelle centredecoût centredecoûts centrodecoste centrodecosto")];

/// Longer headings aren't recognized.
const MAX_LENGTH: usize = 200;

/// Words of headings that say how a value is given, not what it is.
const MANNERS: [&str; 20] = [
    "brutto", "netto", "gross", "net", "eur", "euro", "euros", "usd", "chf", "gbp", "inkl", "incl", "mwst", "ust", "vat", "ttc",
    "ht", "czk", "in", "dd",
];

pub fn field(kind: Kind, heading: &str) -> Option<&'static str> {
    let is_place = || kind == Kind::Assets && PLACES.iter().any(|level| has(level, &plain(heading)));
    guess(kind, heading).map(|(field, _)| field).or_else(|| is_place().then_some(LOCATION))
}

fn has(headings: &str, plain: &str) -> bool {
    headings.split_whitespace().any(|known| known == plain)
}

/// Normalizes a heading: removes Homebox's prefix `HB.`, spaces and punctuation, and converts the rest to lower case.
pub fn plain(heading: &str) -> String {
    let heading = if heading.len() > MAX_LENGTH { "" } else { heading };
    let heading = heading.strip_prefix("HB.").unwrap_or(heading);
    heading.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the [plain] heading, and the one without brackets, currencies and words such as `brutto`: `Price (EUR)` is `price`.
fn readings(heading: &str) -> Vec<String> {
    if heading.len() > MAX_LENGTH {
        return Vec::new();
    }
    let mut depth = 0_u32;
    let outside = heading.chars().filter(|character| {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    });
    let outside: String = outside.collect();
    let words = outside.split(|character: char| character.is_whitespace() || character == ',');
    let bare: Vec<&str> = words.filter(|word| !MANNERS.contains(&plain(word).as_str())).collect();
    let mut readings = vec![plain(heading), plain(&outside), plain(&bare.concat())];
    readings.dedup();
    readings
}

/// Returns the heading of a column about the holder of an asset, without the prefix; `None` for other columns.
fn of_holder(heading: &str) -> Option<String> {
    let plain = plain(heading);
    let rest = HOLDERS.iter().find_map(|holder| plain.strip_prefix(holder))?;
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// Guesses the field. Returns it with the rank of the heading, where 0 is best. In a list of users, the headings about the
/// holders of assets count without their prefix.
fn guess(kind: Kind, heading: &str) -> Option<(&'static str, usize)> {
    let of_holder = (kind == Kind::Users).then(|| of_holder(heading)).flatten();
    let readings = of_holder.map_or_else(|| readings(heading), |heading| vec![heading]);
    readings.iter().filter(|reading| !reading.is_empty()).zip((0..).step_by(100)).find_map(|(reading, penalty)| {
        // A location can consist of several columns.
        let columns = || kind.columns().iter().filter(|column| column.name != LOCATION);
        let custom = CUSTOM.iter().filter(|_| kind == Kind::Assets).find(|(_, headings)| has(headings, reading));
        let known = columns().find_map(|column| {
            let rank = column.headings.split_whitespace().position(|known| known == reading)?;
            Some((column.name, penalty + rank + 1))
        });
        // The field's name itself, possibly with different case or with spaces.
        let same = || columns().find(|column| column.name.replace('_', "") == *reading);
        known.or_else(|| same().map(|column| (column.name, penalty))).or_else(|| custom.map(|(field, _)| (*field, penalty)))
    })
}

/// Columns that stand for a field: usually one, or several to be joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub columns: Vec<usize>,
    pub separator: &'static str,
    pub field: &'static str,
}

/// Places the `open` columns of a file, unless other columns are the field already. `fitting` returns the field that the cells of a
/// column can be, if its heading says a field.
pub fn place(
    kind: Kind,
    names: &[String],
    open: &[usize],
    is_taken: impl Fn(&str) -> bool,
    mut fitting: impl FnMut(usize, &'static str) -> Option<&'static str>,
) -> Vec<Placed> {
    let name = |index: usize| names.get(index).map_or("", |name| name.as_str());
    // In a list of users' assets, other columns describe the assets, so `Name` isn't the user's.
    let is_of_holder = |index: usize| kind == Kind::Users && of_holder(name(index)).is_some();
    let has_holders = open.iter().any(|index| is_of_holder(*index) && field(kind, name(*index)) == Some("email"));
    let is_candidate = |index: usize| !has_holders || is_of_holder(index);
    let mut guessed = |index: usize| {
        let (field, rank) = guess(kind, name(index)).filter(|_| is_candidate(index))?;
        Some((fitting(index, field)?, rank))
    };
    let guesses: Vec<Option<(&'static str, usize)>> = open.iter().map(|index| guessed(*index)).collect();
    let mut placed = Vec::<Placed>::new();
    for (index, guess) in open.iter().zip(&guesses) {
        let Some((field, rank)) = *guess else { continue };
        let is_better = guesses.iter().flatten().any(|(other, better)| *other == field && *better < rank);
        if !is_taken(field) && !is_better && !placed.iter().any(|other| other.field == field) {
            placed.push(Placed { columns: vec![*index], separator: " ", field });
        }
    }
    let rest = |placed: &[Placed]| -> Vec<usize> {
        let is_free = |index: &usize| !placed.iter().any(|other| other.columns.contains(index));
        open.iter().copied().filter(is_free).collect()
    };
    let is_open = |placed: &[Placed], field: &str| !is_taken(field) && !placed.iter().any(|other| other.field == field);
    let display_name = if kind == Kind::Users { "display_name" } else { OWNER_NAME };
    if is_open(&placed, display_name) {
        let free = rest(&placed);
        let find = |headings: &str| {
            let heading = |index: usize| match kind {
                Kind::Users => of_holder(name(index)).or_else(|| Some(plain(name(index)))),
                Kind::Assets => of_holder(name(index)),
            };
            free.iter()
                .copied()
                .filter(|index| is_candidate(*index))
                .find(|index| heading(*index).is_some_and(|it| has(headings, &it)))
        };
        if let (Some(first), Some(last)) = (find(FIRST_NAMES), find(LAST_NAMES)) {
            placed.push(Placed { columns: vec![first, last], separator: " + ", field: display_name });
        }
    }
    if kind == Kind::Assets && is_open(&placed, LOCATION) {
        let free = rest(&placed);
        let level = |headings: &&str| {
            let column = |heading: &str| free.iter().copied().find(|index| plain(name(*index)) == heading);
            headings.split_whitespace().find_map(column)
        };
        let levels: Vec<usize> = PLACES.iter().filter_map(level).collect();
        if !levels.is_empty() {
            placed.push(Placed { columns: levels, separator: LEVELS, field: LOCATION });
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mappings suggested for a header, and the unknown columns.
    fn suggested(kind: Kind, header: &str) -> (String, String) {
        let names: Vec<String> = header.split(',').map(str::to_owned).collect();
        let open: Vec<usize> = (0..names.len()).filter(|index| !kind.has_field(&names[*index])).collect();
        let placed = place(kind, &names, &open, |field| names.iter().any(|name| name == field), |_, field| Some(field));
        let columns = |placed: &Placed| placed.columns.iter().map(|index| names[*index].as_str()).collect::<Vec<_>>();
        let mapped = |placed: &Placed| format!("{}={}", columns(placed).join(placed.separator), placed.field);
        let is_unknown = |index: &&usize| !placed.iter().any(|placed| placed.columns.contains(index));
        let unknown: Vec<&str> = open.iter().filter(is_unknown).map(|index| names[*index].as_str()).collect();
        (placed.iter().map(mapped).collect::<Vec<_>>().join(","), unknown.join(","))
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
        assert_eq!(suggested(Kind::Assets, "location,Room").1, "Room");
    }

    #[test]
    fn headings_have_units_and_brackets() {
        for (heading, expected) in [
            ("Price (EUR)", Some("purchase_price")),
            ("Preis brutto", Some("purchase_price")),
            ("Kaufpreis [€]", Some("purchase_price")),
            ("Kaufdatum (TT.MM.JJJJ)", Some("purchase_date")),
            ("Bought", Some("purchase_date")),
            ("Warranty", Some("warranty_until")),
            ("Owner email", Some("assigned_to_email")),
            ("Cost Center", Some("custom_fields.cost_center")),
            ("Hersteller / Modell", Some("model")),
            ("Fabrikat", Some("manufacturer")),
            ("Anschaffung", Some("purchase_date")),
            ("Affecté à", Some("assigned_to_name")),
            ("Nº inventario", Some("asset_tag")),
            ("Descripción", Some("name")),
            ("Status Label", Some("status")),
            ("()", None),
        ] {
            assert_eq!(field(Kind::Assets, heading), expected, "{heading}");
        }
        assert_eq!(
            suggested(Kind::Assets, "Borrower First name,Borrower Last name").0,
            "Borrower First name + Borrower Last name=assigned_to_name"
        );
    }

    #[test]
    fn no_heading_stands_for_two_columns() {
        for kind in [Kind::Assets, Kind::Users] {
            let all: Vec<_> = kind.columns().iter().flat_map(|column| column.headings.split_whitespace()).collect();
            let distinct: std::collections::HashSet<_> = all.iter().collect();
            assert_eq!(all.len(), distinct.len());
        }
    }
}
