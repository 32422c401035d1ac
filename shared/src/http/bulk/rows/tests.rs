use super::*;
use crate::domain::values::field_error::ErrorLocation;

const COLUMNS: &[Column] = &[
    Column::new("name", CellType::Text, ""),
    Column::new("price", CellType::Number, ""),
    Column::new("active", CellType::Boolean, ""),
    Column::new("custom_fields", CellType::Json, ""),
];

crate::body! {
    /// A row.
    pub struct TestRow {
        /// A text.
        optional name: crate::domain::values::text::Name,
        /// A flag.
        optional active: bool,
    }
    unchanged: &["price", "custom_fields"]
}

fn csv(text: &str) -> Vec<Row> {
    parse(text.as_bytes(), RowFormat::Csv, COLUMNS, None).unwrap_or_else(|error| unreachable!("{error}"))
}

fn members(row: &Row) -> Vec<(&str, &str)> {
    row.members.iter().map(|(name, json)| (name.as_str(), json.as_str())).collect()
}

#[test]
fn cells_become_json_by_the_type_of_their_column() {
    let rows = csv(
        "name,price,active,custom_fields,custom_fields.a\n12,12.50,TRUE,\"{\"\"x\"\":1}\",5\n'=x,\"1,5\",yes,none,\\N\n,\\N,,,\n",
    );
    assert_eq!(members(&rows[0]), [("name", "\"12\""), ("price", "12.50"), ("active", "true"), ("custom_fields", "{\"x\":1}")]);
    assert_eq!(rows[0].custom_fields, [("a".to_owned(), CustomCell::Text("5".to_owned()))]);
    assert_eq!(
        members(&rows[1]),
        [("name", "\"=x\""), ("price", "\"1,5\""), ("active", "\"yes\""), ("custom_fields", "\"none\"")]
    );
    assert_eq!(rows[1].custom_fields, [("a".to_owned(), CustomCell::Clear)]);
    assert_eq!(members(&rows[2]), [("price", "null")]);
    assert_eq!((rows[0].text("name"), rows[0].text("price")), (Some("12".to_owned()), None));
}

#[test]
fn a_row_that_is_cut_off_or_not_utf8_is_the_only_one_that_is_lost() {
    let text = b"name,price\ngood,1\nb\xffd,2\nshort\n\n\"quoted \"\"inside\"\"\",3\n\"cut off,4";
    let rows = parse(text, RowFormat::Csv, COLUMNS, None).unwrap_or_default();
    let locations = |row: &Row| row.read::<TestRow>().1.into_iter().map(|error| error.location).collect::<Vec<_>>();
    let found: Vec<_> = rows.iter().map(locations).collect();
    let expected =
        [vec![], vec![ErrorLocation::Column("name".to_owned())], vec![ErrorLocation::Whole], vec![], vec![ErrorLocation::Whole]];
    assert_eq!(found, expected);
    assert_eq!(rows[3].text("name").as_deref(), Some("quoted \"inside\""));
    let two_quotes = parse(b"name,price\n5\" disk,\"cut off", RowFormat::Csv, COLUMNS, None).unwrap_or_default();
    assert_eq!(locations(&two_quotes[0]), [ErrorLocation::Whole]);
    let inches = parse(b"name,price\nMonitor 24\",1", RowFormat::Csv, COLUMNS, None).unwrap_or_default();
    assert_eq!((locations(&inches[0]), inches[0].text("name").as_deref()), (vec![], Some("Monitor 24\"")));
    let in_last_column = parse(b"name,price\na,\"1", RowFormat::Csv, COLUMNS, None).unwrap_or_default();
    assert_eq!(locations(&in_last_column[0]), [ErrorLocation::Whole]);
}

#[test]
fn the_errors_of_a_row_name_its_columns() {
    let (row, errors) = csv("name,active\n ,perhaps\n")[0].read::<TestRow>();
    let columns: Vec<_> = errors.into_iter().map(|error| error.location).collect();
    assert!(row.is_some_and(|row| row.name.is_none() && row.active.is_none() && row.unchanged.is_empty()));
    assert_eq!(columns, ["name", "active"].map(|column| ErrorLocation::Column(column.to_owned())));
}
