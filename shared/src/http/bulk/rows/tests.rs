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

#[test]
fn a_zero_byte_costs_only_its_row_and_utf16_the_whole_body() {
    let locations = |row: &Row| row.read::<TestRow>().1.into_iter().map(|error| error.location).collect::<Vec<_>>();
    let name = || vec![ErrorLocation::Column("name".to_owned())];
    let rows = parse(b"name,custom_fields.x\na,1\nb\0,2\nc,3\0\n", RowFormat::Csv, COLUMNS, None).unwrap_or_default();
    let custom = vec![ErrorLocation::Column("custom_fields.x".to_owned())];
    assert_eq!(rows.iter().map(locations).collect::<Vec<_>>(), [vec![], name(), custom]);
    let rows = parse(b"{\"name\":\"a\0\"}\n{\"name\":\"b\"}\n", RowFormat::Ndjson, COLUMNS, None).unwrap_or_default();
    assert_eq!(rows.iter().map(locations).collect::<Vec<_>>(), [vec![ErrorLocation::Whole], vec![]]);
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for (body, format) in [
        (utf16("name\na\n"), RowFormat::Csv),
        (utf16("{\"name\":\"a\"}\n"), RowFormat::Ndjson),
        (utf16("\u{feff}{\"name\":\"a\"}\n"), RowFormat::Ndjson),
        (b"PK\x03\x04\x14\0\x06\0\n".to_vec(), RowFormat::Csv),
    ] {
        let refused = parse(&body, format, COLUMNS, None);
        assert!(matches!(refused, Err(ApiError::Malformed(detail)) if detail.contains("UTF-16")), "{body:?}");
    }
}

#[test]
fn an_empty_heading_is_an_error_only_of_a_column_with_cells() {
    let rows = csv("name,,price\na,,1\nb, ,2\n");
    assert_eq!((members(&rows[0]).len(), members(&rows[1]).len()), (2, 2));
    let Err(ApiError::Invalid(errors)) = parse(b"name,,price\na,,1\nb,x,2\n", RowFormat::Csv, COLUMNS, None) else {
        panic!("it was accepted")
    };
    assert_eq!(errors.len(), 1);
    assert!(errors[0].reason.text.starts_with("Column 2 has cells but no heading."), "{errors:?}");
}

#[test]
fn headings_that_look_the_same_name_the_same_field() {
    let rows = csv("custom_fields.Fa\u{308}rg ,custom_fields. ram\n1,2\n");
    let names: Vec<&str> = rows[0].custom_fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["F\u{e4}rg", "ram"]);
    for (text, column) in [
        ("custom_fields.Fa\u{308}rg,custom_fields.F\u{e4}rg\n", "custom_fields.F\u{e4}rg"),
        ("custom_fields.\u{200b}x\n", "custom_fields.\u{200b}x"),
        ("custom_fields.\n", "custom_fields."),
    ] {
        let refused = parse(text.as_bytes(), RowFormat::Csv, COLUMNS, None);
        let Err(ApiError::Invalid(errors)) = refused else { panic!("{text} was accepted") };
        assert_eq!(errors.iter().map(|error| &error.location).collect::<Vec<_>>(), [&ErrorLocation::Column(column.to_owned())]);
    }
    let rows = parse(b"{\"custom_fields.a \":1,\"custom_fields.a\":2}", RowFormat::Ndjson, COLUMNS, None).unwrap_or_default();
    assert_eq!(rows[0].read::<TestRow>().1.len(), 1);
}
