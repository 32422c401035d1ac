//! Coded columns: dictionary encoding of locations, models and custom fields, whose values many rows share. Each value is stored
//! once, and a row contains the number of its value.

use super::Columns;
use super::segment::{Extremes, Segment};
use crate::domain::assets::asset::{Cell, CellRange};
use crate::domain::values::text::{fold, is_at_or_below};
use crate::store::lists::list_index::snapshots::{Decoder, Encoder, to_u32};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::OnceLock;

/// The number for no value. Other numbers are the value's position plus one.
pub const NO_VALUE: u32 = 0;
/// The end of a chain of values with the same hash.
const END: u32 = u32::MAX;

/// The distinct values of one column.
#[derive(Debug)]
struct Dictionary {
    name: Box<str>,
    values: Vec<Entry>,
    /// The first value with each hash of the case-folded text.
    by_hash: HashMap<u32, u32>,
    free: Vec<u32>,
    text_bytes: usize,
    /// Number of rows with a value.
    rows: u32,
    unfit_rows: u32,
}

#[derive(Debug)]
struct Entry {
    /// `None` if the entry is free.
    cell: Option<Cell>,
    rows: u32,
    /// Position of the next value with the same hash.
    next: u32,
}

#[derive(Debug, Default)]
pub struct CodedColumns {
    columns: Vec<Dictionary>,
    by_name: HashMap<Box<str>, u32>,
    /// Whether the optional columns were dropped because memory was short.
    is_left_out: bool,
}

/// The matching values of a column, including [`NO_VALUE`] if rows without a value match.
pub struct Selected {
    column: Option<u32>,
    /// Whether each value is selected, by number.
    are_selected: Vec<bool>,
}

/// A list's condition on the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct CodedCondition {
    pub column: String,
    /// Texts of exported cells to match, case-insensitive.
    pub texts: Vec<String>,
    /// A location. Locations below it match, too.
    pub place: Option<String>,
    /// Values in this range match.
    pub range: Option<CellRange>,
    /// Whether rows with an unfit value match.
    pub unfit: bool,
    /// Texts that sort before this text, byte by byte, match.
    pub sorted_before: Option<String>,
    /// Whether rows without a value match.
    pub none: bool,
}

impl CodedCondition {
    /// Creates a condition that nothing matches yet.
    #[must_use]
    pub fn on(column: String) -> Self {
        Self { column, texts: Vec::new(), place: None, range: None, unfit: false, sorted_before: None, none: false }
    }
}

fn hash_of(folded: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    folded.hash(&mut hasher);
    (hasher.finish() & u64::from(u32::MAX)) as u32
}

impl Dictionary {
    fn new(name: &str) -> Self {
        let (values, by_hash, free) = (Vec::new(), HashMap::new(), Vec::new());
        Self { name: name.into(), values, by_hash, free, text_bytes: 0, rows: 0, unfit_rows: 0 }
    }

    fn chain(&self, hash: u32) -> impl Iterator<Item = (u32, &Entry)> {
        let entry = |place: u32| self.values.get(place as usize).map(|entry| (place, entry));
        let first = self.by_hash.get(&hash).copied().and_then(entry);
        std::iter::successors(first, move |(_, previous)| entry(previous.next))
    }

    /// Counts a row with this value. Returns the value's number.
    fn add(&mut self, cell: Cell) -> u32 {
        let hash = hash_of(&fold(&cell.text()));
        self.rows += 1;
        self.unfit_rows += u32::from(cell == Cell::Unfit);
        let present = self.chain(hash).find(|(_, entry)| entry.cell.as_ref() == Some(&cell)).map(|(place, _)| place);
        let place = present.unwrap_or_else(|| self.insert(cell, hash));
        self.values.get_mut(place as usize).into_iter().for_each(|entry| entry.rows += 1);
        place + 1
    }

    fn insert(&mut self, cell: Cell, hash: u32) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| to_u32(self.values.len()));
        self.text_bytes += heap_bytes(&cell);
        let next = self.by_hash.insert(hash, place).unwrap_or(END);
        let entry = Entry { cell: Some(cell), rows: 0, next };
        match self.values.get_mut(place as usize) {
            Some(free) => *free = entry,
            None => self.values.push(entry),
        }
        place
    }

    /// Removes a row with this value from the count. Drops a value without rows.
    fn remove(&mut self, number: u32) {
        let Some(place) = number.checked_sub(1) else { return };
        let Some(entry) = self.values.get_mut(place as usize) else { return };
        entry.rows = entry.rows.saturating_sub(1);
        self.rows = self.rows.saturating_sub(1);
        self.unfit_rows -= u32::from(entry.cell == Some(Cell::Unfit));
        if entry.rows > 0 {
            return;
        }
        let (Some(cell), next) = (entry.cell.take(), entry.next) else { return };
        let hash = hash_of(&fold(&cell.text()));
        let previous = self.chain(hash).find(|(_, entry)| entry.next == place).map(|(previous, _)| previous);
        match previous.and_then(|previous| self.values.get_mut(previous as usize)) {
            Some(previous) => previous.next = next,
            None if next == END => drop(self.by_hash.remove(&hash)),
            None => drop(self.by_hash.insert(hash, next)),
        }
        self.text_bytes -= heap_bytes(&cell);
        self.free.push(place);
    }

    fn cell(&self, number: u32) -> Option<&Cell> {
        self.values.get(number.checked_sub(1)? as usize)?.cell.as_ref()
    }

    fn select(&self, wanted: &CodedCondition) -> Vec<bool> {
        let mut are_selected = vec![false; self.values.len() + 1];
        if let Some(none) = are_selected.first_mut() {
            *none = wanted.none;
        }
        let mut select = |place: u32| are_selected.get_mut(place as usize + 1).into_iter().for_each(|it| *it = true);
        for text in &wanted.texts {
            let folded = fold(text);
            for (place, entry) in self.chain(hash_of(&folded)) {
                if entry.cell.as_ref().is_some_and(|cell| *cell != Cell::Unfit && fold(&cell.text()) == folded) {
                    select(place);
                }
            }
        }
        if wanted.range.is_some() || wanted.unfit || wanted.sorted_before.is_some() {
            for (at, cell) in self.values.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.cell.as_ref()?))) {
                let is_in_range = wanted.range.is_some_and(|range| range.contains(cell));
                let is_before = matches!((cell, &wanted.sorted_before), (Cell::Text(text), Some(before)) if **text < **before);
                if is_in_range || is_before || wanted.unfit && *cell == Cell::Unfit {
                    select(to_u32(at));
                }
            }
        }
        if let Some(place) = wanted.place.as_deref().map(fold) {
            for (at, entry) in self.values.iter().enumerate() {
                if matches!(&entry.cell, Some(Cell::Text(text)) if is_inside(&place, text)) {
                    select(to_u32(at));
                }
            }
        }
        are_selected
    }

    fn bytes(&self) -> usize {
        let by_hash = self.by_hash.capacity() * (size_of::<(u32, u32)>() + 1);
        let values = self.values.capacity() * size_of::<Entry>() + self.free.capacity() * size_of::<u32>();
        size_of::<Self>() + 2 * self.name.len() + size_of::<(Box<str>, u32)>() + by_hash + values + self.text_bytes
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.text(&self.name);
        encoder.number(self.values.len() as u64);
        for entry in &self.values {
            match &entry.cell {
                None => encoder.byte(0),
                Some(Cell::Number(number)) => {
                    encoder.byte(1);
                    encoder.bytes(&number.to_le_bytes());
                }
                Some(Cell::Text(text)) => {
                    encoder.byte(2);
                    encoder.text(text);
                }
                Some(Cell::Unfit) => encoder.byte(3),
            }
            encoder.may_end_block();
        }
    }

    /// Reads a dictionary from a snapshot. Row counts are 0 until the rows are counted.
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let mut dictionary = Self::new(decoder.text()?);
        for _ in 0..decoder.number()? {
            let cell = match decoder.byte()? {
                0 => None,
                1 => Some(Cell::Number(Some(f64::from_le_bytes(decoder.array()?)).filter(|number| number.is_finite())?)),
                2 => Some(Cell::Text(decoder.text()?.into())),
                3 => Some(Cell::Unfit),
                _ => return None,
            };
            dictionary.values.push(Entry { cell, rows: 0, next: END });
        }
        Some(dictionary)
    }

    /// Checks the dictionary after all rows are counted. `None` if a value has no rows or occurs twice.
    fn finish(&mut self) -> Option<()> {
        for place in 0..self.values.len() {
            let Some(entry) = self.values.get(place) else { continue };
            let Some(cell) = &entry.cell else {
                (entry.rows == 0).then_some(())?;
                self.free.push(to_u32(place));
                continue;
            };
            (entry.rows > 0).then_some(())?;
            let hash = hash_of(&fold(&cell.text()));
            self.chain(hash).all(|(_, other)| other.cell.as_ref() != Some(cell)).then_some(())?;
            self.text_bytes += heap_bytes(cell);
            self.unfit_rows += if *cell == Cell::Unfit { entry.rows } else { 0 };
            let next = self.by_hash.insert(hash, to_u32(place)).unwrap_or(END);
            self.values.get_mut(place)?.next = next;
        }
        self.values.shrink_to_fit();
        Some(())
    }
}

fn heap_bytes(cell: &Cell) -> usize {
    // The allocator takes at least about 16 bytes per text.
    if let Cell::Text(text) = cell { text.len().max(16) } else { 0 }
}

/// Whether a location is inside a place. Most locations differ from the place in their first character, so their whole text need
/// not be case-folded.
fn is_inside(folded_place: &str, location: &str) -> bool {
    let may_be_inside = match (folded_place.as_bytes().first(), location.as_bytes().first()) {
        (Some(a), Some(b)) if a.is_ascii() && b.is_ascii() => a.eq_ignore_ascii_case(b),
        _ => true,
    };
    may_be_inside && is_at_or_below(folded_place, &fold(location))
}

impl CodedColumns {
    /// Creates the columns of an empty index. `kept` are the columns that are never dropped.
    pub fn new(kept: &[&str]) -> Self {
        let mut columns = Self::default();
        for name in kept {
            columns.number_of(name);
        }
        columns
    }

    fn number_of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        let number = to_u32(self.columns.len());
        self.columns.push(Dictionary::new(name));
        self.by_name.insert(name.into(), number);
        number
    }

    pub fn column(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub fn cell(&self, column: u32, number: u32) -> Option<&Cell> {
        self.columns.get(column as usize)?.cell(number)
    }

    pub fn name(&self, column: u32) -> Option<&str> {
        self.columns.get(column as usize).map(|column| &*column.name)
    }

    /// Returns the names of the columns in which some row has a value.
    pub fn used_columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|column| column.rows > 0).map(|column| &*column.name)
    }

    pub fn cells(&self, column: u32) -> impl Iterator<Item = &Cell> {
        self.columns.get(column as usize).into_iter().flat_map(|column| column.values.iter().filter_map(|it| it.cell.as_ref()))
    }

    pub fn has_unfit(&self, column: u32) -> bool {
        self.columns.get(column as usize).is_some_and(|column| column.unfit_rows > 0)
    }

    pub fn is_left_out(&self) -> bool {
        self.is_left_out
    }

    /// Counts a row's values, except in dropped columns. Returns the column and number of each value, sorted by column.
    pub fn add(&mut self, cells: Vec<(String, Cell)>, kept: usize) -> Vec<(u32, u32)> {
        let mut numbers = Vec::with_capacity(cells.len());
        for (name, cell) in cells {
            let known = self.column(&name).filter(|column| !self.is_left_out || (*column as usize) < kept);
            let Some(column) = known.or_else(|| (!self.is_left_out).then(|| self.number_of(&name))) else { continue };
            if let Some(dictionary) = self.columns.get_mut(column as usize) {
                numbers.push((column, dictionary.add(cell)));
            }
        }
        numbers.sort_unstable();
        numbers
    }

    pub fn remove(&mut self, numbers: &[(u32, u32)]) {
        for (column, number) in numbers {
            self.columns.get_mut(*column as usize).into_iter().for_each(|dictionary| dictionary.remove(*number));
        }
    }

    /// Permanently drops all columns except the first `kept`.
    pub fn leave_out(&mut self, kept: usize) {
        self.columns.truncate(kept);
        self.by_name.retain(|_, number| (*number as usize) < kept);
        self.by_name.shrink_to_fit();
        self.columns.shrink_to_fit();
        self.is_left_out = true;
    }

    pub fn select(&self, wanted: &CodedCondition) -> Selected {
        match self.column(&wanted.column).and_then(|number| Some((number, self.columns.get(number as usize)?))) {
            Some((number, dictionary)) => Selected { column: Some(number), are_selected: dictionary.select(wanted) },
            None => Selected { column: None, are_selected: vec![wanted.none] },
        }
    }

    /// Counts the selected rows out of `rows`. Reads only the counts of selected values, because a column can have as many values
    /// as rows.
    pub fn count_selected(&self, Selected { column, are_selected }: &Selected, rows: usize) -> usize {
        let dictionary = column.and_then(|column| self.columns.get(column as usize));
        let values = dictionary.map_or(&[][..], |dictionary| &dictionary.values);
        let selected = are_selected.iter().skip(1).zip(values).filter(|(is_selected, _)| **is_selected);
        let count: usize = selected.map(|(_, entry)| entry.rows as usize).sum();
        let without_value = || rows - dictionary.map_or(0, |dictionary| dictionary.rows as usize);
        count + if are_selected.first() == Some(&true) { without_value() } else { 0 }
    }

    pub fn shrink_to_fit(&mut self) {
        for dictionary in &mut self.columns {
            dictionary.values.shrink_to_fit();
            dictionary.by_hash.shrink_to_fit();
        }
        self.columns.shrink_to_fit();
    }

    pub fn bytes(&self, columns: Range<usize>) -> usize {
        self.columns.iter().skip(columns.start).take(columns.len()).map(Dictionary::bytes).sum()
    }

    pub fn len(&self) -> usize {
        self.columns.len()
    }

    pub fn encode(&self, columns: Range<usize>, encoder: &mut Encoder) {
        encoder.number(columns.len() as u64);
        for dictionary in self.columns.iter().skip(columns.start).take(columns.len()) {
            dictionary.encode(encoder);
            encoder.may_end_block();
        }
    }

    /// Adds columns from a snapshot. Afterwards, count all rows with [`CodedColumns::count`], and then call
    /// [`CodedColumns::finish`]. `None` if a name occurs twice.
    pub fn decode_more(&mut self, decoder: &mut Decoder<'_>) -> Option<()> {
        for _ in 0..decoder.number()? {
            let dictionary = Dictionary::decode(decoder)?;
            let number = to_u32(self.columns.len());
            self.by_name.insert(dictionary.name.clone(), number).is_none().then_some(())?;
            self.columns.push(dictionary);
        }
        Some(())
    }

    /// Counts rows of a snapshot; `None` for a number that the column doesn't have.
    pub fn count(&mut self, column: u32, numbers: &[u32]) -> Option<()> {
        let dictionary = self.columns.get_mut(column as usize)?;
        for number in numbers.iter().filter(|number| **number != NO_VALUE) {
            dictionary.values.get_mut(*number as usize - 1)?.rows += 1;
            dictionary.rows += 1;
        }
        Some(())
    }

    /// Completes the columns read from a snapshot; `None` if they are inconsistent.
    pub fn finish(&mut self, columns: Range<usize>) -> Option<()> {
        self.columns.iter_mut().skip(columns.start).take(columns.len()).try_for_each(Dictionary::finish)
    }

    pub fn set_left_out(&mut self) {
        self.is_left_out = true;
    }
}

/// A column of a segment: the number of each row's value.
#[derive(Debug)]
pub struct SegmentColumn {
    pub column: u32,
    pub numbers: Vec<u32>,
    /// The numbers of the least and the greatest value. Computed for the first list sorted by the column, and dropped at the next
    /// change.
    extremes: OnceLock<Option<Extremes>>,
}

impl SegmentColumn {
    pub fn new(column: u32, numbers: Vec<u32>) -> Self {
        Self { column, numbers, extremes: OnceLock::new() }
    }

    pub fn get(&self, row: usize) -> u32 {
        self.numbers.get(row).copied().unwrap_or(NO_VALUE)
    }

    /// Returns the least and the greatest value; `None` if no row has a value.
    pub fn extremes(&self, coded: &CodedColumns) -> Option<Extremes> {
        *self.extremes.get_or_init(|| {
            let values = self.numbers.iter().filter_map(|number| Some((*number, coded.cell(self.column, *number)?)));
            let least = values.clone().min_by(|(_, a), (_, b)| a.compare(b))?;
            let greatest = values.max_by(|(_, a), (_, b)| a.compare(b))?;
            Some(Extremes { least: least.0, greatest: greatest.0 })
        })
    }

    pub fn changed(&mut self) -> &mut Vec<u32> {
        self.extremes.take();
        &mut self.numbers
    }
}

impl Selected {
    /// Returns the numbers of a segment's rows in the column, and whether each number is selected. If no numbers are returned,
    /// all rows match; returns `None` if no row matches.
    pub fn in_segment<'s, C: Columns>(&'s self, segment: &'s Segment<C>) -> Option<(&'s [u32], &'s [bool])> {
        let column = self.column.and_then(|column| segment.coded.iter().find(|it| it.column == column));
        match column {
            Some(column) => Some((&column.numbers, &self.are_selected)),
            None if self.are_selected.first() == Some(&true) => Some((&[], &self.are_selected)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::assets::asset::CellBound;

    fn text(text: &str) -> Cell {
        Cell::Text(text.into())
    }

    fn wanted(texts: &[&str]) -> CodedCondition {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        CodedCondition { texts, ..CodedCondition::on("c".to_owned()) }
    }

    fn selected(coded: &CodedColumns, wanted: &CodedCondition) -> Vec<u32> {
        let selected = coded.select(wanted).are_selected;
        selected.iter().enumerate().filter(|(_, is_selected)| **is_selected).map(|(number, _)| to_u32(number)).collect()
    }

    #[test]
    fn a_value_is_stored_once_and_forgotten_with_its_last_row() {
        let mut coded = CodedColumns::new(&["c"]);
        let mut add = |cell| coded.add(vec![("c".to_owned(), cell)], 1);
        let (first, second, other) = (add(text("Room")), add(text("Room")), add(text("ROOM")));
        assert_eq!((&first, &second, &other), (&vec![(0, 1)], &vec![(0, 1)], &vec![(0, 2)]));
        assert_eq!(selected(&coded, &wanted(&["room"])), [1, 2]);
        coded.remove(&first);
        assert_eq!(selected(&coded, &wanted(&["room"])), [1, 2]);
        coded.remove(&second);
        assert_eq!((selected(&coded, &wanted(&["room"])), coded.cell(0, 1)), (vec![2], None));
        assert_eq!(coded.add(vec![("c".to_owned(), text("new"))], 1), [(0, 1)], "a free number is given again");
        coded.remove(&[(0, 1), (0, 2)]);
        assert!(coded.columns[0].by_hash.is_empty() && coded.columns[0].text_bytes == 0);
    }

    #[test]
    fn values_are_found_by_the_text_of_their_exported_cell() {
        let mut coded = CodedColumns::new(&["c"]);
        for cell in [Cell::Number(1.0), text("1"), text("1.0"), text("none"), Cell::Unfit] {
            coded.add(vec![("c".to_owned(), cell)], 1);
        }
        for (texts, numbers) in [(&["1.0"][..], &[3][..]), (&["1"], &[1, 2]), (&["1e0", "NONE"], &[4]), (&[""], &[])] {
            assert_eq!(selected(&coded, &wanted(texts)), numbers, "{texts:?}");
        }
        assert!(coded.has_unfit(0));
        coded.remove(&[(0, 5)]);
        assert!(!coded.has_unfit(0));
    }

    #[test]
    fn a_range_has_numbers_or_dates_and_unfit_values_are_in_none() {
        let mut coded = CodedColumns::new(&["c"]);
        for cell in
            [Cell::Number(-1.0), Cell::Number(10.0), text("9.5"), text("2026-11-21"), text("2026-11"), text("x"), Cell::Unfit]
        {
            coded.add(vec![("c".to_owned(), cell)], 1);
        }
        let day = |day: &str| CellBound::Day(day.parse().expect(day));
        for (from, before, numbers) in [
            (Some(CellBound::Number(-1.0)), None, &[1, 2, 3][..]),
            (Some(CellBound::Number(9.5)), Some(CellBound::Number(10.0)), &[3]),
            (None, Some(day("2026-11-22")), &[4]),
            (Some(day("2026-11-22")), None, &[]),
            (Some(day("2026-11-21")), Some(CellBound::Number(1.0)), &[]),
        ] {
            let wanted = CodedCondition { range: Some(CellRange { from, before }), ..wanted(&[]) };
            assert_eq!(selected(&coded, &wanted), numbers, "{from:?} {before:?}");
        }
        assert_eq!(selected(&coded, &CodedCondition { unfit: true, ..wanted(&[]) }), [7]);
    }

    #[test]
    fn a_place_is_found_with_all_below_it() {
        let mut coded = CodedColumns::new(&["c"]);
        for place in ["Straße", "STRASSE / 1", "Strassen", "Ärzte / 2"] {
            coded.add(vec![("c".to_owned(), text(place))], 1);
        }
        for (place, numbers) in [("strasse", &[1, 2][..]), ("ÄRZTE", &[4]), ("Ärzte / 2", &[4]), ("a", &[])] {
            let wanted = CodedCondition { place: Some(place.to_owned()), none: true, ..wanted(&[]) };
            assert_eq!(selected(&coded, &wanted), [&[0], numbers].concat(), "{place}");
            assert_eq!(coded.count_selected(&coded.select(&wanted), 10), numbers.len() + 6);
            let with_value = coded.select(&CodedCondition { none: false, ..wanted });
            assert_eq!(coded.count_selected(&with_value, 10), numbers.len());
        }
    }

    #[test]
    fn left_out_columns_take_no_memory_and_are_not_filled_again() {
        let mut coded = CodedColumns::new(&["kept"]);
        let cells = || vec![("kept".to_owned(), text("a")), ("c".to_owned(), text("b"))];
        assert_eq!(coded.add(cells(), 1), [(0, 1), (1, 1)]);
        coded.leave_out(1);
        assert_eq!(coded.add(cells(), 1), [(0, 1)]);
        assert!(coded.is_left_out() && coded.column("c").is_none() && coded.len() == 1);
    }
}
