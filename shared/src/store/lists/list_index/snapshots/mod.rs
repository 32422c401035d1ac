//! Format of snapshots: list indexes as bytes, stored outside the table (docs/adr/0013).
//!
//! A snapshot has a header and a body. The header contains the source and the time of the snapshot and the checksum of its body,
//! and ends with a checksum of the header itself. A snapshot is not used if a single byte is damaged, or if it belongs to a
//! different table, tenant, kind or format.
//!
//! The body contains values in blocks, each compressed with LZ4. Blocks are small, so that neither writing nor reading needs a
//! second copy of a large index in memory.

#[cfg(test)]
mod properties;

use crate::domain::record::Kind;
use crate::domain::values::id::{EventId, Id, TenantId};
use crate::domain::values::time::Timestamp;
use crate::store::CLOCK_SKEW;
use crate::store::lists::list_index::{AppliedEvents, ListIndex, LoadedIndex, UnknownEvent};
use fields::ASSET_FILTERS;
use sha2::{Digest, Sha256};
use std::str::FromStr;
use uuid::Uuid;

const MAGIC: [u8; 8] = *b"ALSNAPSH";
/// Raise this number with every change that affects the written bytes, such as to columns, case folding or row order, but not for
/// a new asset filter. Snapshots of other formats are ignored, and rewritten by the deployed version.
const FORMAT: u32 = 9;
const CHECKSUM_BYTES: usize = 32;
pub const MAX_HEADER_BYTES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotSource<'a> {
    pub table: &'a str,
    pub tenant: TenantId,
    pub kind: Kind,
}

impl SnapshotSource<'_> {
    pub fn key(&self) -> String {
        format!("list-index/{}/{}/{}", self.table, self.tenant, self.kind.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    #[error("not a snapshot, or a damaged header")]
    Header,
    /// The snapshot was written by another version of the service.
    #[error("another format")]
    Format,
    #[error("of another table, tenant or kind")]
    Source,
    #[error("cut off or damaged")]
    Body,
    #[error("too large")]
    TooLarge,
    /// The snapshot is from the future, according to this function instance's clock.
    #[error("from the future")]
    Future,
    /// The table lacks an event that it contained when the snapshot was written.
    #[error("of another state of the table")]
    State,
    /// The events after the snapshot don't continue from its state.
    #[error("inconsistent with the events since then")]
    Inconsistent,
    /// Reading the events after the snapshot costs more than a load.
    #[error("too many events since then")]
    TooManyEvents,
}

/// The state of the index, from the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The index contains every earlier write.
    pub synced_at: Timestamp,
    /// When the index was loaded from the secondary index. Since then, the index has only followed events.
    pub loaded_at: Timestamp,
    /// The tenant's latest event when the snapshot was written. A table that was restored to an earlier time lacks this event.
    pub latest_event: EventId,
    pub rows: u64,
    /// Size in memory.
    pub index_bytes: u64,
    /// The part of `index_bytes` that is optional.
    pub optional_bytes: u64,
    body_bytes: u64,
    /// Uncompressed size of the body.
    raw_bytes: u64,
    body_checksum: [u8; CHECKSUM_BYTES],
}

impl SnapshotHeader {
    /// Returns the size in memory without optional parts.
    pub fn least_bytes(&self) -> u64 {
        self.index_bytes.saturating_sub(self.optional_bytes)
    }
}

fn put_text(header: &mut Vec<u8>, text: &str) {
    header.extend_from_slice(&to_u32(text.len()).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
}

/// Returns the format number, and the fields of asset filters, whose texts are in the rows.
fn format() -> Vec<u8> {
    let mut bytes = FORMAT.to_le_bytes().to_vec();
    ASSET_FILTERS.iter().for_each(|(field, _)| put_text(&mut bytes, field));
    bytes
}

/// Returns the first bytes of every header of this format for this source.
fn identification(source: SnapshotSource<'_>) -> Vec<u8> {
    let mut bytes = [MAGIC.as_slice(), &format()].concat();
    put_text(&mut bytes, source.table);
    put_text(&mut bytes, source.kind.as_str());
    bytes.extend_from_slice(source.tenant.uuid().as_bytes());
    bytes
}

/// Writes a snapshot. `loaded_at` is the time at which the index was loaded from the secondary index; `latest_event` is the
/// tenant's latest event.
pub fn encode_snapshot<I: ListIndex>(
    source: SnapshotSource<'_>,
    loaded: &LoadedIndex<I>,
    loaded_at: Timestamp,
    latest_event: EventId,
) -> Vec<u8> {
    let mut encoder = Encoder::default();
    let mut unknown_events: Vec<EventId> = loaded.unknown_events.iter().map(|UnknownEvent(id)| *id).collect();
    unknown_events.sort_unstable();
    encoder.number(unknown_events.len() as u64);
    unknown_events.iter().for_each(|id| encoder.id(id.uuid()));
    loaded.index.encode(&mut encoder);
    let (body, raw_bytes) = encoder.finish();
    let mut snapshot = identification(source);
    for time in [loaded.synced_at, loaded_at] {
        snapshot.extend_from_slice(&time.millis().to_le_bytes());
    }
    snapshot.extend_from_slice(latest_event.uuid().as_bytes());
    for number in [loaded.index.len(), loaded.index.bytes(), loaded.index.optional_bytes(), body.len(), raw_bytes] {
        snapshot.extend_from_slice(&(number as u64).to_le_bytes());
    }
    snapshot.extend_from_slice(&Sha256::digest(&body));
    let header_checksum = Sha256::digest(&snapshot);
    snapshot.extend_from_slice(&header_checksum);
    snapshot.extend_from_slice(&body);
    snapshot
}

/// Reads the header of a snapshot. The body can be cut off.
///
/// # Errors
///
/// Returns [`SnapshotError::Header`], [`SnapshotError::Format`] or [`SnapshotError::Source`].
pub fn decode_header<'b>(source: SnapshotSource<'_>, snapshot: &'b [u8]) -> Result<(SnapshotHeader, &'b [u8]), SnapshotError> {
    let rest = snapshot.strip_prefix(&MAGIC).ok_or(SnapshotError::Header)?;
    rest.strip_prefix(format().as_slice()).ok_or(SnapshotError::Format)?;
    let rest = snapshot.strip_prefix(identification(source).as_slice()).ok_or(SnapshotError::Source)?;
    read_header(snapshot, rest).ok_or(SnapshotError::Header)
}

fn read_header<'b>(snapshot: &[u8], rest: &'b [u8]) -> Option<(SnapshotHeader, &'b [u8])> {
    let (synced_at, rest) = rest.split_first_chunk()?;
    let (loaded_at, rest) = rest.split_first_chunk()?;
    let (latest_event, rest) = rest.split_first_chunk()?;
    let (rows, rest) = rest.split_first_chunk()?;
    let (index_bytes, rest) = rest.split_first_chunk()?;
    let (optional_bytes, rest) = rest.split_first_chunk()?;
    let (body_bytes, rest) = rest.split_first_chunk()?;
    let (raw_bytes, rest) = rest.split_first_chunk()?;
    let (body_checksum, rest) = rest.split_first_chunk()?;
    let (header_checksum, body) = rest.split_first_chunk::<CHECKSUM_BYTES>()?;
    let header = snapshot.get(..snapshot.len() - rest.len())?;
    (Sha256::digest(header).as_slice() == header_checksum).then_some(())?;
    let header = SnapshotHeader {
        synced_at: Timestamp::from_millis(i64::from_le_bytes(*synced_at)),
        loaded_at: Timestamp::from_millis(i64::from_le_bytes(*loaded_at)),
        latest_event: EventId::from_uuid(uuid::Uuid::from_bytes(*latest_event)),
        rows: u64::from_le_bytes(*rows),
        index_bytes: u64::from_le_bytes(*index_bytes),
        optional_bytes: u64::from_le_bytes(*optional_bytes),
        body_bytes: u64::from_le_bytes(*body_bytes),
        raw_bytes: u64::from_le_bytes(*raw_bytes),
        body_checksum: *body_checksum,
    };
    Some((header, body))
}

/// Checks a complete snapshot, and splits it into header and body.
///
/// # Errors
///
/// Returns a [`SnapshotError`] when the snapshot can't be used, or when its index would take more than `max_bytes`.
pub fn check_snapshot<'b>(
    source: SnapshotSource<'_>,
    snapshot: &'b [u8],
    max_bytes: usize,
    now: Timestamp,
) -> Result<(SnapshotHeader, &'b [u8]), SnapshotError> {
    let (header, body) = decode_header(source, snapshot)?;
    if header.least_bytes() > max_bytes as u64 {
        return Err(SnapshotError::TooLarge);
    }
    if body.len() as u64 != header.body_bytes || Sha256::digest(body).as_slice() != header.body_checksum {
        return Err(SnapshotError::Body);
    }
    if header.synced_at.max(header.loaded_at) > now.plus(CLOCK_SKEW) {
        return Err(SnapshotError::Future);
    }
    Ok((header, body))
}

/// Reads the index as of `synced_at`. The index counts as loaded at `now`.
///
/// # Errors
///
/// Returns [`SnapshotError::Body`] when the body can't be read, and [`SnapshotError::TooLarge`] when the index takes more than
/// `max_bytes`.
pub fn decode_index<I: ListIndex>(
    header: &SnapshotHeader,
    body: &[u8],
    max_bytes: usize,
    now: Timestamp,
) -> Result<LoadedIndex<I>, SnapshotError> {
    let mut loaded: LoadedIndex<I> = decode_body(header, body, max_bytes, now).ok_or(SnapshotError::Body)?;
    if loaded.index.bytes() > max_bytes {
        loaded.index.leave_out();
    }
    if loaded.index.bytes() > max_bytes { Err(SnapshotError::TooLarge) } else { Ok(loaded) }
}

fn decode_body<I: ListIndex>(header: &SnapshotHeader, body: &[u8], max_bytes: usize, now: Timestamp) -> Option<LoadedIndex<I>> {
    let mut decoder = Decoder::new(body, usize::try_from(header.raw_bytes).ok()?.min(max_bytes));
    let unknown_events =
        (0..decoder.number()?).map(|_| Some(UnknownEvent(EventId::from_uuid(decoder.id()?)))).collect::<Option<_>>()?;
    let with_optional = header.index_bytes <= max_bytes as u64;
    let index = I::decode(&mut decoder, with_optional)?;
    let is_whole = (decoder.is_at_end() || !with_optional) && index.len() as u64 == header.rows;
    is_whole.then_some(LoadedIndex {
        index,
        synced_at: header.synced_at,
        loaded_at: now,
        unknown_events,
        applied: AppliedEvents::default(),
    })
}

/// When a block reaches this size, it is compressed, and a new block starts.
const BLOCK_BYTES: usize = 256 * 1024;
/// Larger blocks are invalid. A segment's texts can make a block larger than [`BLOCK_BYTES`], but not larger than this.
const MAX_BLOCK_BYTES: usize = 64 * BLOCK_BYTES;
/// Number of bits of a number per byte. The eighth bit indicates that another byte follows.
const NUMBER_BITS: u32 = 7;

#[derive(Debug, Default)]
pub struct Encoder {
    block: Vec<u8>,
    body: Vec<u8>,
    raw_bytes: usize,
}

impl Encoder {
    /// Adds bytes without their number, which the reader must know.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    pub fn byte(&mut self, byte: u8) {
        self.block.push(byte);
    }

    /// Adds a number with seven bits per byte, so that small numbers take one byte.
    pub fn number(&mut self, mut number: u64) {
        while number >> NUMBER_BITS > 0 {
            self.byte((number & 0x7F) as u8 | 0x80);
            number >>= NUMBER_BITS;
        }
        self.byte(number as u8);
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub fn id(&mut self, id: Uuid) {
        self.bytes(id.as_bytes());
    }

    /// Adds a flag for the presence of a value, and then the value.
    pub fn option<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Self, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            encode(self, value);
        }
    }

    /// Starts a new block if the current block is large enough.
    pub fn may_end_block(&mut self) {
        if self.block.len() >= BLOCK_BYTES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let packed = lz4_flex::block::compress(&self.block);
        self.body.extend_from_slice(&to_u32(self.block.len()).to_le_bytes());
        self.body.extend_from_slice(&to_u32(packed.len()).to_le_bytes());
        self.body.extend_from_slice(&packed);
        self.raw_bytes += self.block.len();
        self.block.clear();
    }

    /// Returns the blocks, and their uncompressed size.
    pub fn finish(mut self) -> (Vec<u8>, usize) {
        if !self.block.is_empty() {
            self.end_block();
        }
        (self.body, self.raw_bytes)
    }
}

/// Reads values in the order in which they were written. Every method returns `None` if a value is invalid.
#[derive(Debug)]
pub struct Decoder<'a> {
    body: &'a [u8],
    block: Vec<u8>,
    /// The position of the next value in the block.
    at: usize,
    left: usize,
}

impl<'a> Decoder<'a> {
    /// Starts to read a body. `max_bytes` limits the uncompressed size of all blocks.
    pub fn new(body: &'a [u8], max_bytes: usize) -> Self {
        Self { body, block: Vec::new(), at: 0, left: max_bytes }
    }

    fn next_block(&mut self) -> Option<()> {
        let (raw, rest) = self.body.split_first_chunk()?;
        let (packed, rest) = rest.split_first_chunk()?;
        let raw = usize::try_from(u32::from_le_bytes(*raw)).ok().filter(|raw| *raw <= MAX_BLOCK_BYTES.min(self.left))?;
        let (packed, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*packed)).ok()?)?;
        self.block.clear();
        self.block.resize(raw, 0);
        let written = lz4_flex::block::decompress_into(packed, &mut self.block).ok()?;
        (written == raw).then_some(())?;
        (self.at, self.left, self.body) = (0, self.left - raw, rest);
        Some(())
    }

    pub fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        if count > 0 && self.at == self.block.len() {
            self.next_block()?;
        }
        let end = self.at.checked_add(count)?;
        let bytes = self.block.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn number(&mut self) -> Option<u64> {
        // Most numbers in an index take one byte.
        if let Some(byte) = self.block.get(self.at).filter(|byte| **byte < 0x80) {
            self.at += 1;
            return Some(u64::from(*byte));
        }
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(NUMBER_BITS as usize) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            ((bits << shift) >> shift == bits).then_some(())?;
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number of bytes or values.
    pub fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub fn text(&mut self) -> Option<&str> {
        let length = self.count()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    pub fn id(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    pub fn option<T>(&mut self, decode: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            1 => decode(self).map(Some),
            _ => None,
        }
    }

    pub fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Reads a value that is written as text. An empty text means no value.
    pub fn parsed<T: FromStr>(&mut self) -> Option<Option<T>> {
        match self.text()? {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        }
    }

    /// Reads several values. `count` must be small, because memory is reserved for that many values.
    pub fn many<T>(&mut self, count: usize, mut decode: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(decode(self)?);
        }
        Some(values)
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.block.len() && self.body.is_empty()
    }
}

/// Converts an offset to the type used in rows. The offset fits, because a segment has a few hundred texts of a few kilobytes.
pub fn to_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_read_as_they_were_written(values in proptest::collection::vec((any::<u64>(), any::<Option<u64>>(), ".{0,40}"), 0..50)) {
            let mut encoder = Encoder::default();
            for (number, option, text) in &values {
                encoder.number(*number);
                encoder.option(*option, Encoder::number);
                encoder.text(text);
                encoder.end_block();
            }
            let (body, raw_bytes) = encoder.finish();
            let mut decoder = Decoder::new(&body, raw_bytes);
            for (number, option, text) in &values {
                prop_assert_eq!(decoder.number(), Some(*number));
                prop_assert_eq!(decoder.option(Decoder::number), Some(*option));
                prop_assert_eq!(decoder.text(), Some(text.as_str()));
            }
            prop_assert!(decoder.is_at_end());
            prop_assert_eq!(decoder.byte(), None);
        }

        /// Checks that no input makes the reader panic or exceed its memory limit.
        #[test]
        fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::new(&body, 1000);
            while decoder.text().is_some() && decoder.number().is_some() && !decoder.is_at_end() {}
        }
    }

    #[test]
    fn a_block_that_is_larger_than_allowed_is_refused() {
        let mut encoder = Encoder::default();
        encoder.bytes(&[7; 1000]);
        let (body, raw_bytes) = encoder.finish();
        assert!(body.len() < 100 && raw_bytes == 1000);
        assert!(Decoder::new(&body, 1000).byte().is_some());
        assert!(Decoder::new(&body, 999).byte().is_none());
    }
}
