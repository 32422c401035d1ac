//! Suggests an option or an edit of the file for each error of a row.

use crate::import::args::Import;
use crate::import::rows::{Original, RowError};
use crate::output::quote;
use domain::import::OWNER_NAME;
use domain::import::columns::Columns;
use domain::import::dates::date_of_day_number;
use domain::import::parameters::{Mapping, ValueMapping};
use domain::import::prices::{Decimal, price_with_comma, price_with_point};
use domain::import::suggestion::survey::formats_of;
use domain::import::suggestion::words::guess;
use fields::CellType;
use fields::serial_number::{SHORTENED, is_placeholder};

/// Prefix of the reason for rows with the same value.
pub const SAME_VALUE: &str = "has the same value in row";

const CORRECT: &str = "correct the cell";

pub struct Remedies<'a> {
    pub options: &'a Import,
    pub names: &'a [String],
    pub columns: &'a Columns,
}

#[derive(Debug, Default)]
pub struct Help {
    pub text: String,
    /// An option to add, which can differ among rows with the same reason.
    pub option: Option<String>,
    /// Advice if most rows have the error.
    pub if_most: Option<String>,
}

impl From<String> for Help {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Remedies<'_> {
    /// Returns advice for an error, which names the column as the file does.
    pub fn of(&self, error: &RowError, original: &Original) -> Help {
        let Some(column) = error.column.as_deref() else { return of_row(&error.detail).to_owned().into() };
        let cell = original.text(self.names, column).unwrap_or_default();
        let (field, is_in_file) = self.field(column).map_or((column, false), |field| (field, true));
        let meaning = |meaning: &str| format!("--value {}", quote(&ValueMapping::new(field, &cell, meaning).to_string()));
        let ignore = || format!("--map {}", quote(&Mapping::of(column, None).to_string()));
        if error.detail.contains('\u{fffd}') {
            return of_row(&error.detail).to_owned().into();
        }
        if error.detail.starts_with(SAME_VALUE) {
            return "keep only one of these rows, or correct the value".to_owned().into();
        }
        if error.detail == SHORTENED {
            return "copy the column from the source again, formatted as text".to_owned().into();
        }
        if error.code.as_deref() == Some("PROCESS_RUNNING") {
            let without =
                if is_in_file { format!("; or leave these cells out: --skip-bad {}", quote(column)) } else { String::new() };
            return format!("a running process holds this field: complete or cancel it first{without}").into();
        }
        if self.options.match_by.column() == Some(field) {
            return self.unmatched(field, &cell);
        }
        if field == "serial_number" && is_placeholder(&cell) {
            return Help { option: Some(meaning("")), ..Help::from("if they have no serial number:".to_owned()) };
        }
        let text = match field {
            "name" | "email" | "display_name" if !is_in_file => {
                format!("map a column to it, --map \"COLUMN={field}\"; or set it in all rows, --set {field}=…")
            }
            _ if !is_in_file => "correct the row".into(),
            "status" | "role" | "is_active" => match guess(field, &cell) {
                Some(guess) => format!("if it means {guess}: {}", meaning(guess)),
                None => format!("map it to its meaning: {}", meaning("MEANING")),
            },
            "asset_type_code" => format!("map it to the code of a type: {}; or create that type", meaning("CODE")),
            "assigned_to_email" | OWNER_NAME => format!(
                "map it to the user's address: {}; or import the user first, with --users; or leave bad cells out: --skip-bad {}",
                meaning("ADDRESS"),
                quote(column)
            ),
            "model_name" | "manufacturer_name" => {
                format!("create the model in the catalog; or let the cells be free text: {}", self.free_text())
            }
            "asset_tag" => format!("an asset's tag can't change: correct the cell, or leave the tags out with {}", ignore()),
            "updated_at" => format!("export again, and repeat your changes; or overwrite the newer ones: {}", ignore()),
            _ => match self.cell_type(field) {
                Some(CellType::Date) => self.date(&cell),
                Some(CellType::Number) => self.price(&cell),
                _ => CORRECT.into(),
            },
        };
        let if_most = (text == CORRECT && is_in_file).then(|| self.of_most(field, column));
        Help { if_most, ..Help::from(text) }
    }

    /// Returns advice for an error that most rows have: its cause is an option rather than a cell.
    fn of_most(&self, field: &str, column: &str) -> String {
        let is_date = self.cell_type(field) == Some(CellType::Date);
        let map = quote(&Mapping::of(column, Some(field)).to_string());
        format!("most rows have this error: check {}--map {map}", if is_date { "--date-format, and " } else { "" })
    }

    fn cell_type(&self, field: &str) -> Option<CellType> {
        self.options.kind().column(field).map(|column| column.cell)
    }

    fn field(&self, column: &str) -> Option<&str> {
        self.columns.columns.iter().find(|known| known.heading == column).map(|known| known.field.as_str())
    }

    fn column_of(&self, field: &str) -> Option<&str> {
        self.columns.column(field).map(|column| column.heading.as_str())
    }

    /// Returns advice for a row whose value doesn't identify a record to update.
    fn unmatched(&self, field: &str, cell: &str) -> Help {
        let is_missing = cell.is_empty() || (field == "serial_number" && is_placeholder(cell));
        let text = match field {
            "serial_number" if is_missing && self.column_of("asset_tag").is_some() => {
                "if they are new, import the refused rows by their tags: --match asset_tag --create-unmatched"
            }
            "serial_number" if is_missing => {
                "give the assets a serial number or a tag; or create them again at each import: --create-unmatched"
            }
            "asset_tag" => "if they are new: --create-unmatched",
            _ => CORRECT,
        };
        let is_placeholder = is_missing && !cell.is_empty();
        let option = is_placeholder.then(|| format!("--value {}", quote(&ValueMapping::new(field, cell, "").to_string())));
        Help { option, ..Help::from(text.to_owned()) }
    }

    fn free_text(&self) -> String {
        let map = |(from, to): (&str, &str)| {
            self.column_of(from).map(|column| format!("--map {}", quote(&Mapping::of(column, Some(to)).to_string())))
        };
        let fields = [("manufacturer_name", "manufacturer"), ("model_name", "model")];
        fields.into_iter().filter_map(map).collect::<Vec<_>>().join(" ")
    }

    fn date(&self, cell: &str) -> String {
        if date_of_day_number(cell).is_some() {
            return "format the column as a date in the spreadsheet, and save the file again".into();
        }
        match formats_of(cell).as_slice() {
            [first, others @ ..] if self.options.date_formats.is_empty() => {
                let others = others.iter().map(|format| format!(", or {}", quote(format))).collect::<String>();
                format!("--date-format {}{others}", quote(first))
            }
            _ => CORRECT.into(),
        }
    }

    fn price(&self, cell: &str) -> String {
        let has_comma = self.options.decimal == Some(Decimal::Comma);
        if !has_comma && price_with_point(cell, true).is_some() {
            format!("if the comma in {cell} separates thousands: --decimal point; if it is a decimal comma: --decimal comma")
        } else if !has_comma && price_with_comma(cell).is_some() {
            format!("to read {cell}: --decimal comma")
        } else if cell.is_empty() {
            "write a price, or leave the member out".into()
        } else {
            format!("write {cell} as in {}", if has_comma { "1.249,00" } else { "1249.00" })
        }
    }
}

fn of_row(detail: &str) -> &'static str {
    if detail.contains('\u{fffd}') {
        "replace \u{fffd} in the file of refused rows, or use the correct --encoding"
    } else if detail.contains("in a column without a name") {
        "name the column in the first row of the file, or empty the cell"
    } else {
        "correct the row"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::args::tests::parsed;
    use domain::import::parameters::Reading;
    use std::collections::BTreeMap;

    fn help(options: &[&str], column: &str, detail: &str, cells: &[&str]) -> Help {
        help_for(options, &RowError::of_column(column, detail), cells)
    }

    fn help_for(options: &[&str], error: &RowError, cells: &[&str]) -> Help {
        let options = parsed(&[&["a.csv"], options].concat());
        let fields = ["serial_number", "asset_tag", "status", "purchase_date", "purchase_price", OWNER_NAME, "model_name"];
        let names = ["Serie", "Tag", "Zustand", "Datum", "Preis", "Wer", "Modell"].map(str::to_owned);
        let maps = names.iter().zip(fields).map(|(name, field)| ("map", format!("{name}={field}")));
        let maps: Vec<_> = maps.collect();
        let reading = Reading::parse(maps.iter().map(|(name, value)| (*name, value.as_str()))).unwrap();
        let columns = Columns::resolve(options.kind(), &names, &BTreeMap::new(), &reading, None).unwrap();
        let original = Original::Cells(cells.to_vec().into());
        Remedies { options: &options, names: &names, columns: &columns }.of(error, &original)
    }

    #[test]
    fn each_error_has_a_remedy() {
        let row = ["n/a", "INV-1", " Auf Lager", "05.03.2025", "1.249,00 €", "Ada L.", "T14"];
        let by_serial = ["--match", "serial_number"];
        for (options, column, detail, expected) in [
            (&by_serial[..], "Serie", "is a placeholder", "--match asset_tag --create-unmatched --value serial_number:n/a="),
            (&by_serial, "Serie", "has the same value in row 7", "keep only one"),
            (&["--match", "asset_tag"], "Tag", "is not the tag", "--create-unmatched"),
            (&["--match", "asset_tag"], "Serie", "is a placeholder", "no serial number: --value serial_number:n/a="),
            (&[], "Tag", "is read-only and can't change", "--map Tag="),
            (&[], "Zustand", "must be one of in_stock", "if it means in_stock: --value \"status:Auf Lager=in_stock\""),
            (&[], "Datum", "must be a date", "--date-format DD.MM.YYYY"),
            (&["--date-format", "YYYY/MM/DD"], "Datum", "is not a date of the form", "correct the cell"),
            (&[], "Preis", "must be a number", "--decimal comma"),
            (&[], "Serie", SHORTENED, "formatted as text"),
            (&[], "Wer", "\"Ada L.\" is not the name of a user", "--skip-bad Wer"),
            (&["--decimal", "comma"], "Preis", "is not a price", "as in 1.249,00"),
            (&[], "Wer", "\"Ada L.\" is not the name of a user", "--value \"assigned_to_name:Ada L.=ADDRESS\""),
            (&[], "Modell", "is not the name of a model", "--map Modell=model"),
            (&[], "name", "is required", "--map \"COLUMN=name\""),
            (&[], "Datum", "has \u{fffd} where bytes can't be read", "--encoding"),
        ] {
            let found = help(options, column, detail, &row);
            let found = format!("{} {}", found.text, found.option.unwrap_or_default());
            assert!(found.contains(expected), "{column} {detail}: {found}");
        }
        let held = RowError { code: Some("PROCESS_RUNNING".to_owned()), ..RowError::of_column("Zustand", "is held") };
        assert!(help_for(&[], &held, &row).text.ends_with("--skip-bad Zustand"));
        let odd = help(&[], "Zustand", "must be one of", &["", "", "a:b=c"]);
        assert_eq!(odd.text, "map it to its meaning: --value status:a:b=c=MEANING");
        let of_most = |options: &[&str], column| help(options, column, "is wrong", &row).if_most;
        let date = "most rows have this error: check --date-format, and --map Datum=purchase_date";
        assert_eq!(of_most(&["--date-format", "YYYY/MM/DD"], "Datum").as_deref(), Some(date));
        assert_eq!(of_most(&["--decimal", "comma"], "Preis"), None);
        assert_eq!(of_row("has 3 cells, but the header has 4"), "correct the row");
    }
}
