//! Values in other words, such as `Lager` for `in_stock`, and values that all rows get.

use crate::folded::folded;
use crate::import::columns::{Kind, OWNER_NAME, Target, sent_name};
use std::collections::BTreeMap;
use std::str::FromStr;

/// `--map-value "Status:Lager=in_stock"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMapping {
    /// `COLUMN:VALUE`. Both can contain colons: only the file's columns tell where the value begins.
    pub cell: String,
    /// An empty one leaves the field alone.
    pub meaning: String,
}

impl FromStr for ValueMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (cell, meaning) = text.rsplit_once('=').filter(|(cell, _)| cell.contains(':')).ok_or(
            "must be COLUMN:VALUE=MEANING, such as Status:Lager=in_stock, or COLUMN:VALUE= to treat the value as an empty cell",
        )?;
        Ok(Self { cell: cell.to_owned(), meaning: meaning.trim().to_owned() })
    }
}

impl ValueMapping {
    #[must_use]
    pub fn new(column: &str, value: &str, meaning: &str) -> Self {
        Self { cell: format!("{column}:{value}"), meaning: meaning.to_owned() }
    }

    /// The column with the longest name that the cell begins with, and the value.
    fn split<'a>(&'a self, names: &[String]) -> Option<(usize, &'a str)> {
        let places = self.cell.match_indices(':').map(|(place, _)| (&self.cell[..place], &self.cell[place + 1..]));
        let column = |name: &str| names.iter().position(|known| known.trim() == name.trim());
        places.filter_map(|(name, value)| Some((column(name)?, value.trim()))).next_back()
    }
}

/// `--set asset_type_code=LAP`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    pub field: String,
    pub value: String,
}

impl FromStr for Constant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (field, value) = text.split_once('=').filter(|(_, value)| !value.trim().is_empty()).ok_or("must be FIELD=VALUE")?;
        Ok(Self { field: field.trim().to_owned(), value: value.trim().to_owned() })
    }
}

/// Adds a problem for each constant that can't be one.
pub fn check_constants(kind: Kind, constants: &[Constant], targets: &[Target], names: &[String], problems: &mut Vec<String>) {
    for (index, Constant { field, .. }) in constants.iter().enumerate() {
        let is_mapped = |target: &Target| matches!(target, Target::Field(mapped) if sent_name(mapped) == field);
        if field == OWNER_NAME {
            problems.push(format!("--set {field}: name the user of all rows with --set assigned_to_email=ADDRESS"));
        } else if !kind.has_column(field) {
            problems.push(format!("--set {field}: {field:?} is not a field of {}", kind.path()));
        } else if let Some((_, name)) = targets.iter().zip(names).find(|(target, _)| is_mapped(target)) {
            problems.push(format!("--set {field}: the column {name:?} is {field} already; ignore it with --map \"{name}=\""));
        } else if constants.iter().take(index).any(|earlier| earlier.field == *field) {
            problems.push(format!("--set {field}: is there twice"));
        }
    }
}

/// The meanings of a column's values, in the order in which they were given.
type Meanings = Vec<(String, String)>;

/// The meanings of values, by the column's name in the file.
#[derive(Debug, Clone, Default)]
pub struct Values(BTreeMap<String, Meanings>);

impl Values {
    /// Adds a problem for each mapping that fits no column.
    pub fn resolve(mappings: &[ValueMapping], names: &[String], targets: &[Target], problems: &mut Vec<String>) -> Self {
        let mut values = Self::default();
        for mapping in mappings {
            let mut problem = |detail: &str| problems.push(format!("--map-value {:?}: {detail}", mapping.cell));
            let Some((index, value)) = mapping.split(names) else {
                problem("the file has no such column; name it as the file does, not by its field");
                continue;
            };
            if !matches!(targets.get(index), Some(Target::Field(_))) {
                problem("the column is not imported");
                continue;
            }
            let meanings = values.0.entry(names.get(index).cloned().unwrap_or_default()).or_default();
            if meanings.iter().any(|(known, _)| known == value) {
                problem("is there twice");
            }
            meanings.push((value.to_owned(), mapping.meaning.clone()));
        }
        values
    }

    /// The meaning of a cell: that of the same value, or else of the only one that differs in nothing but case.
    ///
    /// # Errors
    ///
    /// Returns the error for the row if several values with different meanings differ from the cell only in case.
    pub fn translate<'a>(&'a self, column: &str, cell: &'a str) -> Result<&'a str, String> {
        let Some(meanings) = self.0.get(column) else { return Ok(cell) };
        let value = cell.trim();
        if let Some((_, meaning)) = meanings.iter().find(|(known, _)| known == value) {
            return Ok(meaning);
        }
        let folded = folded(value);
        let mut similar = meanings.iter().filter(|(known, _)| crate::folded::folded(known) == folded);
        match similar.next() {
            None => Ok(cell),
            Some((_, meaning)) if similar.all(|(_, other)| other == meaning) => Ok(meaning),
            Some((first, _)) => Err(format!("{value:?} is {first:?} in another case, and so is another value of --map-value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(texts: &[&str]) -> Result<Values, Vec<String>> {
        let names = ["Status", "Status: Ort", "Farbe"].map(str::to_owned);
        let targets = [Target::Field("status".into()), Target::Field("notes".into()), Target::Ignored];
        let mappings: Vec<ValueMapping> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let mut problems = Vec::new();
        let values = Values::resolve(&mappings, &names, &targets, &mut problems);
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    #[test]
    fn a_value_means_what_was_said_in_any_case() {
        let values = resolve(&[
            "Status:Lager=in_stock",
            "Status: Ort:a=b=Köln",
            "Status:=preparing",
            "Status:n/a=",
            "Status:Zurück=returned",
        ])
        .unwrap();
        for (column, cell, meaning) in [
            ("Status", " LAGER ", "in_stock"),
            ("Status", "Lager 2", "Lager 2"),
            ("Status", " ", "preparing"),
            ("Status", "N/A", ""),
            ("Status", "zuru\u{308}ck", "returned"),
            ("Status: Ort", "a=b", "Köln"),
            ("Farbe", "Lager", "Lager"),
        ] {
            assert_eq!(values.translate(column, cell), Ok(meaning), "{column} {cell}");
        }
    }

    #[test]
    fn an_ambiguous_case_is_refused_and_an_exact_value_is_not() {
        let values = resolve(&["Status:Ab=in_stock", "Status:aB=returned", "Status:Cd=in_use", "Status:cD=in_use"]).unwrap();
        assert_eq!((values.translate("Status", "aB"), values.translate("Status", "CD")), (Ok("returned"), Ok("in_use")));
        assert!(values.translate("Status", "AB").is_err_and(|error| error.contains("in another case")));
    }

    #[test]
    fn mappings_must_fit_the_file() {
        for (text, problem) in
            [("status:Lager=in_stock", "the file has no such column"), ("Farbe:rot=red", "the column is not imported")]
        {
            assert!(resolve(&[text]).is_err_and(|problems| problems[0].contains(problem)), "{text}");
        }
        assert!(resolve(&["Status:a=b", "Status:a=c"]).is_err_and(|problems| problems[0].contains("is there twice")));
        assert!("Lager=in_stock".parse::<ValueMapping>().is_err() && "Status:Lager".parse::<ValueMapping>().is_err());
    }

    #[test]
    fn constants_are_fields_that_the_file_does_not_have() {
        let targets = [Target::Field("serial_number".into()), Target::Field(OWNER_NAME.into())];
        let names = ["S/N".to_owned(), "Nutzer".to_owned()];
        let constants: Vec<Constant> =
            ["asset_type_code=LAP", "serial_number=1", "assigned_to=1", "colour=red", "asset_type_code=PHO"]
                .map(|text| text.parse().unwrap())
                .to_vec();
        let mut problems = Vec::new();
        check_constants(Kind::Assets, &constants, &targets, &names, &mut problems);
        assert_eq!(
            problems,
            [
                "--set serial_number: the column \"S/N\" is serial_number already; ignore it with --map \"S/N=\"",
                "--set assigned_to: the column \"Nutzer\" is assigned_to already; ignore it with --map \"Nutzer=\"",
                "--set colour: \"colour\" is not a field of assets",
                "--set asset_type_code: is there twice",
            ]
        );
        assert!("status=".parse::<Constant>().is_err());
    }
}
