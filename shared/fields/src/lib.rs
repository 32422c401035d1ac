//! Fields of assets and users, shared by the service and assetctl.

pub mod compared;
pub mod serial_number;

/// Maximum number of rows that an error lists. The error counts the others.
const MAX_NAMED_ROWS: usize = 5;

/// Returns the error for a row whose match value also occurs in other rows. `rows` are all rows with the value, `own` is the row
/// with the error.
pub fn same_value(rows: &[u64], own: u64) -> String {
    let others = rows.iter().filter(|row| **row != own).map(u64::to_string);
    let (shown, more) = (others.take(MAX_NAMED_ROWS).collect::<Vec<_>>().join(", "), rows.len().saturating_sub(1));
    match more {
        1 => format!("has the same value in row {shown}"),
        more if more <= MAX_NAMED_ROWS => format!("has the same value in rows {shown}"),
        more => format!("has the same value in rows {shown} and {} more", more - MAX_NAMED_ROWS),
    }
}

/// The format of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellType {
    /// Text, with surrounding whitespace.
    Text,
    /// Text without surrounding whitespace.
    Word,
    /// A date, `YYYY-MM-DD`.
    Date,
    /// A decimal number.
    Number,
    /// `true` or `false`, case-insensitive.
    Boolean,
    Json,
}

/// A column of imports and exports.
#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    pub cell: CellType,
    pub is_exported: bool,
    /// Headings of this column in other systems' files, as a list separated by spaces. The headings are lowercase, without spaces
    /// or punctuation. If several headings of a file match, the one listed first here wins.
    pub headings: &'static str,
}

impl Column {
    pub const fn new(name: &'static str, cell: CellType, headings: &'static str) -> Self {
        Self { name, cell, is_exported: true, headings }
    }

    const fn only_imported(name: &'static str, cell: CellType) -> Self {
        Self { name, cell, is_exported: false, headings: "" }
    }
}

/// The columns of assets, besides `custom_fields.<name>`.
///
/// Headings come from exports and import templates of Snipe-IT (sample file, importer's aliases, table exports), device exports
/// of Intune (admin center and Graph), searches and inventory preload of Jamf Pro, and German, French and Spanish spreadsheets.
pub const ASSET_COLUMNS: &[Column] = &[
    Column::new("id", CellType::Word, ""),
    Column::new("asset_tag", CellType::Word, ASSET_TAG),
    Column::new("name", CellType::Text, NAME),
    Column::new("status", CellType::Word, "status statuslabel assetstatus zustand lagerstatus statut état estado"),
    Column::new("asset_type_id", CellType::Word, ""),
    Column::new("asset_type_code", CellType::Word, ASSET_TYPE_CODE),
    Column::new("model_id", CellType::Word, ""),
    Column::only_imported("manufacturer_name", CellType::Text),
    Column::only_imported("model_name", CellType::Text),
    Column::new("manufacturer", CellType::Text, MANUFACTURER),
    Column::new(
        "model",
        CellType::Text,
        "modelname model devicemodel assetmodel modell modelidentifier modèle modelo modelnumber herstellermodell manufacturermodel makemodel",
    ),
    Column::new("serial_number", CellType::Text, SERIAL_NUMBER),
    Column::new("location", CellType::Text, ""),
    Column::new("purchase_date", CellType::Date, PURCHASE_DATE),
    Column::new("purchase_price", CellType::Number, PURCHASE_PRICE),
    Column::new("warranty_until", CellType::Date, WARRANTY_UNTIL),
    Column::new("assigned_to", CellType::Word, ""),
    Column::new("assigned_to_email", CellType::Word, ASSIGNED_TO_EMAIL),
    Column { is_exported: false, ..Column::new("assigned_to_name", CellType::Text, ASSIGNED_TO_NAME) },
    Column::new("assigned_since", CellType::Date, ""),
    Column::new("notes", CellType::Text, NOTES),
    Column::new("last_seen_at", CellType::Word, ""),
    Column::new("status_changed_at", CellType::Word, ""),
    Column::new("created_at", CellType::Word, ""),
    Column::new("updated_at", CellType::Word, ""),
    Column::only_imported("custom_fields", CellType::Json),
];

/// Exact-match filters of asset lists, with the descriptions of their query parameters. The projection of `list_index` in
/// template.yaml lists the same fields.
pub const ASSET_FILTERS: &[(&str, &str)] = &[
    ("asset_tag", "Filter by asset tag (exact match)."),
    ("serial_number", "Filter by serial number. Case, width and whitespace don't matter."),
];

const ASSET_TAG: &str = "assettag assettagid assetnumber assetno inventorynumber inventarnummer inventarnr invnr numérodinventaire \
    ndinventaire nºdinventaire nodinventaire númerodeinventario ninventario nºinventario assetid barcode inventorycode annotatedassetid invčíslo inventárníčíslo";
const ASSET_TYPE_CODE: &str =
    "assettypecode assettype devicetype gerätetyp geraetetyp typ type kategorie category catégorie categoría tipo";
const NAME: &str = "assetname itemname devicename computername displayname hostname name partname bezeichnung gerätename gerät désignation \
    nom nombre product produkt název descripción artikel";
const SERIAL_NUMBER: &str = "serialnumber serial serialno serialnr sn deviceserialnumber hardwareserial seriennummer seriennr \
    numérodesérie númerodeserie ndesérie ndeserie nºdesérie nºdeserie nsérie nºsérie nodesérie";
const PURCHASE_DATE: &str = "purchasedate purchased purchasedtime purchasetime podate invoicedate dateofpurchase kaufdatum anschaffungsdatum dateachat \
     datedachat fechadecompra bought boughton purchasedon gekauft gekauftam datumpořízení anschaffung";
const PURCHASE_PRICE: &str = "purchaseprice purchasedprice purchasecost price cost preis kaufpreis anschaffungspreis \
    anschaffungskosten anschaffungswert einkaufspreis prix prixdachat precio preciodecompra initialprice cena";
const WARRANTY_UNTIL: &str = "warrantyexpiration warrantyend warrantyexpires warrantyexpirationdate warrantyexpiry warrantyuntil \
    warrantyenddate garantiebis garantieende garantieablauf findegarantie garantíahasta warranty garantie";
const MANUFACTURER: &str = "manufacturer make brand devicemanufacturer hersteller fabrikat fabricant marque fabricante marca";
const NOTES: &str = "assetnotes itemnotes notes comments remarks kommentar kommentare notizen bemerkung bemerkungen \
    remarques notas observaciones";
const ASSIGNED_TO_EMAIL: &str = "checkedouttoemail primaryuseremailaddress assignedtoemail useremailaddress emailaddress useremail \
    email mail primaryuserupn userprincipalname upn emailadresse benutzeremail assigneduser owneremail usermail";

const ASSIGNED_TO_NAME: &str = "assignedtoname primaryuserdisplayname checkedouttoname checkedoutto assignedto primaryuser owner user userfullname employee \
    benutzer nutzer benutzername anwender mitarbeiter besitzer inhaber verantwortlicher verantwortliche zugewiesenan ausgegebenan primärerbenutzer \
    hauptbenutzer utilisateur utilisateurprincipal attribuéà affectéà usuario asignadoa annotateduser";

pub const USER_COLUMNS: &[Column] = &[
    Column::new("id", CellType::Word, ""),
    Column::new("email", CellType::Word, EMAIL),
    Column::new("display_name", CellType::Text, "displayname fullname name realname anzeigename vollername"),
    Column::new("role", CellType::Word, "role rolle"),
    Column::new("is_active", CellType::Boolean, "isactive active activated accountenabled enabled aktiv"),
    Column::new("created_at", CellType::Word, ""),
    Column::new("updated_at", CellType::Word, ""),
];

const EMAIL: &str = "email emailaddress mail useremail userprincipalname upn primaryuserupn emailadresse";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_the_same_value_name_one_another() {
        assert_eq!(same_value(&[1, 5], 5), "has the same value in row 1");
        assert_eq!(same_value(&[1, 2, 7], 2), "has the same value in rows 1, 7");
        assert_eq!(same_value(&[1, 2, 3, 4, 5, 6, 7, 8], 1), "has the same value in rows 2, 3, 4, 5, 6 and 2 more");
    }
}
