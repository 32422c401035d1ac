//! Rows in a snapshot: segment by segment, as they are in memory.

use super::blocks::{Decoder, Encoder};
use crate::store::lists::list_index::columns::Columns;
use crate::store::lists::list_index::row::{PackedRow, SortKey};
use crate::store::lists::list_index::segment::{Segment, to_u32};
use crate::store::lists::list_index::sorted_rows::{MAX_SEGMENT_ROWS, SortedRows};
use std::str::FromStr;

/// The empty text stands for no value.
pub fn decode_text<T: FromStr>(decoder: &mut Decoder<'_>) -> Option<Option<T>> {
    match decoder.text()? {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    }
}

pub fn decode_flag(decoder: &mut Decoder<'_>) -> Option<bool> {
    match decoder.byte()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

pub fn encode_rows<C: Columns>(rows: &SortedRows<C>, encoder: &mut Encoder) {
    encoder.number(rows.segments.len() as u64);
    for segment in &rows.segments {
        encode_segment(segment, encoder);
        encoder.may_end_block();
    }
}

/// `None` if the rows are not in order, or impossible in segments.
pub fn decode_rows<C: Columns>(decoder: &mut Decoder<'_>) -> Option<SortedRows<C>> {
    let mut rows = SortedRows::default();
    let mut last = None;
    for _ in 0..decoder.number()? {
        let segment = decode_segment(decoder, &mut last)?;
        rows.len += segment.rows.len();
        rows.segments.push(segment);
    }
    Some(rows)
}

fn encode_segment<C: Columns>(segment: &Segment<C>, encoder: &mut Encoder) {
    encoder.number(segment.rows.len() as u64);
    encoder.text(&segment.searched);
    encoder.text(&segment.exact);
    let (mut searched, mut exact) = (0, 0);
    for PackedRow { sort_key, version, searched_end, exact_end, columns } in &segment.rows {
        encoder.bytes(&sort_key.0);
        encoder.number(*version);
        encoder.number(u64::from(searched_end - searched));
        encoder.number(u64::from(exact_end - exact));
        columns.encode(encoder);
        (searched, exact) = (*searched_end, *exact_end);
    }
}

/// All rows must come after the row `last`.
fn decode_segment<C: Columns>(decoder: &mut Decoder<'_>, last: &mut Option<SortKey>) -> Option<Segment<C>> {
    let count = decoder.count().filter(|count| (1..=MAX_SEGMENT_ROWS).contains(count))?;
    let (searched, exact) = (decoder.text()?.to_owned(), decoder.text()?.to_owned());
    let mut rows = Vec::with_capacity(count);
    let (mut searched_end, mut exact_end) = (0, 0);
    for _ in 0..count {
        let sort_key = Some(SortKey(decoder.array()?)).filter(|key| last.is_none_or(|last| last < *key))?;
        let version = decoder.number()?;
        searched_end = text_end(&searched, searched_end, decoder.count()?)?;
        exact_end = text_end(&exact, exact_end, decoder.count()?)?;
        let columns = C::decode(decoder)?;
        rows.push(PackedRow { sort_key, version, searched_end: to_u32(searched_end), exact_end: to_u32(exact_end), columns });
        *last = Some(sort_key);
    }
    (searched_end == searched.len() && exact_end == exact.len()).then_some(Segment { rows, searched, exact })
}

/// The end of a text of this length; `None` if that is no position in the texts.
fn text_end(texts: &str, start: usize, length: usize) -> Option<usize> {
    start.checked_add(length).filter(|end| texts.is_char_boundary(*end))
}
