//! Property tests of snapshots: a snapshot is read back exactly as written, or not at all.

use super::{SnapshotError, SnapshotSource, check_snapshot, decode_header, decode_index, encode_snapshot};
use crate::domain::assets::asset::{Cell, Status};
use crate::domain::keys::api_key::Role;
use crate::domain::record::{Kind, Record};
use crate::domain::values::hex;
use crate::domain::values::id::{EventId, Id, TenantId};
use crate::domain::values::time::{Date, Timestamp};
use crate::store::lists::list_index::columns::{
    AssetColumns, AssetFacet, AssetIndex, InstanceColumns, InstanceFacet, MovementColumns, UserColumns, UserFacet,
};
use crate::store::lists::list_index::rows::{Row, SortedRows};
use crate::store::lists::list_index::snapshots::{Decoder, Encoder};
use crate::store::lists::list_index::{AppliedEvents, ListIndex, LoadedIndex, UnknownEvent};
use proptest::prelude::*;
use uuid::Uuid;

type Movements = SortedRows<MovementColumns>;

fn now() -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000)
}

fn source(kind: Kind) -> SnapshotSource<'static> {
    SnapshotSource { table: "table", tenant: TenantId::new(now(), [1; 10]), kind }
}

fn write<I: ListIndex>(index: I) -> (LoadedIndex<I>, Vec<u8>) {
    let unknown_events = [UnknownEvent(EventId::new(now(), [9; 10]))].into();
    let loaded = LoadedIndex { index, synced_at: now(), loaded_at: now(), unknown_events, applied: AppliedEvents::default() };
    let bytes = encode_snapshot(source(I::Entity::KIND), &loaded, now(), EventId::new(now(), [2; 10]));
    (loaded, bytes)
}

fn decode<I: ListIndex>(
    source: SnapshotSource<'_>,
    bytes: &[u8],
    max_bytes: usize,
    now: Timestamp,
) -> Result<LoadedIndex<I>, SnapshotError> {
    let (header, body) = check_snapshot(source, bytes, max_bytes, now)?;
    decode_index(&header, body, max_bytes, now)
}

fn read<I: ListIndex>(bytes: &[u8]) -> Result<LoadedIndex<I>, SnapshotError> {
    decode(source(I::Entity::KIND), bytes, usize::MAX, now())
}

fn body(snapshot: &[u8]) -> &[u8] {
    decode_header(source(Kind::Asset), snapshot).expect("a header").1
}

fn asset_columns() -> impl Strategy<Value = AssetColumns> {
    let times = ((any::<i64>(), any::<i64>()), any::<Option<i64>>());
    let dates = (proptest::option::of(700_000..720_000i32), proptest::option::of(700_000..720_000i32));
    (any::<Option<u128>>(), times, dates, any::<Option<u64>>()).prop_map(
        |(assigned_to, ((updated_at, status_at), seen_at), dates, price)| {
            let mut columns = AssetColumns {
                updated_at: Timestamp::from_millis(updated_at),
                status_changed_at: Timestamp::from_millis(status_at),
                assigned_to: assigned_to.map(Uuid::from_u128),
                purchase_date: dates.0.and_then(Date::from_days),
                warranty_until: dates.1.and_then(Date::from_days),
                ..AssetColumns::default()
            };
            columns.set_price(price);
            columns.set_last_seen_at(seen_at.map(Timestamp::from_millis));
            columns
        },
    )
}

fn asset_facet() -> impl Strategy<Value = AssetFacet> {
    let ids = (proptest::option::of(0..3u128), any::<Option<u128>>());
    (ids, proptest::option::of(0..Status::ALL.len()), proptest::option::of("[AB]{0,2}")).prop_map(
        |((asset_type, model), status, manufacturer)| AssetFacet {
            status: status.map(|status| Status::ALL[status]),
            asset_type: asset_type.map(Uuid::from_u128),
            model: model.map(Uuid::from_u128),
            manufacturer: manufacturer.map(Box::from),
        },
    )
}

/// Generates rows with few different IDs, so that some rows replace others.
fn assets() -> impl Strategy<Value = AssetIndex> {
    let cell = prop_oneof![
        any::<i32>().prop_map(|n| Cell::Number(n.into())),
        "[aß]{0,3}".prop_map(|text: String| Cell::Text(text.into())),
        Just(Cell::Unfit)
    ];
    let coded = proptest::collection::btree_map("(location|custom_fields\\.[ab])", cell, 0..3);
    let texts = ("[aßZ \u{1F600}]{0,12}", "[A-Z]{0,8}");
    let row = (any::<u16>(), any::<u64>(), asset_facet(), asset_columns(), texts, coded);
    proptest::collection::vec(row, 0..700).prop_map(|rows| {
        let mut index = AssetIndex::default();
        for (n, version, facet, columns, (name, tag), coded) in rows {
            let id = Uuid::from_u128(u128::from(n / 2) << 80 | u128::from(n));
            let searched = vec![name, tag.to_lowercase(), String::new()];
            let coded = coded.into_iter().collect();
            index.assets.upsert(Row { id, version, facet, columns, searched, exact: vec![tag, String::new()], coded });
        }
        index
    })
}

/// Formats the rows as text, because columns can't be compared.
fn rows_of(index: &AssetIndex) -> Vec<String> {
    index.assets.iter().map(|row| format!("{:?}", row.to_row())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn an_index_is_read_as_it_was_written(index in assets()) {
        let (written, bytes) = write(index);
        let read: LoadedIndex<AssetIndex> = read(&bytes).expect("an index");
        prop_assert_eq!(rows_of(&read.index), rows_of(&written.index));
        prop_assert_eq!((read.index.len(), read.synced_at), (written.index.len(), written.synced_at));
        prop_assert_eq!(&read.unknown_events, &written.unknown_events);
        // The header differs, because the memory that an index takes depends on how it was built.
        let (_, again) = write(read.index);
        prop_assert_eq!(body(&again), body(&bytes));
    }

    #[test]
    fn a_snapshot_that_is_cut_off_or_longer_is_ignored(index in assets(), cut in any::<prop::sample::Index>(), more in any::<u8>()) {
        let (_, mut bytes) = write(index);
        prop_assert!(read::<AssetIndex>(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(more);
        prop_assert!(read::<AssetIndex>(&bytes).is_err());
    }

    #[test]
    fn a_snapshot_with_a_damaged_byte_is_ignored(index in assets(), place in any::<prop::sample::Index>(), flipped in 1u8..) {
        let (_, mut bytes) = write(index);
        let place = place.index(bytes.len());
        bytes[place] ^= flipped;
        prop_assert!(read::<AssetIndex>(&bytes).is_err());
    }

    #[test]
    fn a_header_with_any_damaged_byte_is_ignored(flipped in 1u8..) {
        let (_, bytes) = write(AssetIndex::default());
        for place in 0..bytes.len() - body(&bytes).len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= flipped;
            prop_assert!(decode_header(source(Kind::Asset), &damaged).is_err(), "byte {place}");
        }
    }

    #[test]
    fn arbitrary_bytes_are_not_a_snapshot(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read::<AssetIndex>(&bytes).is_err());
        prop_assert!(decode_header(source(Kind::Asset), &bytes).is_err());
    }

    /// Checks that any body with valid checksums is either read or refused.
    #[test]
    fn any_body_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut encoder = Encoder::default();
        encoder.bytes(&bytes);
        let (body, raw_bytes) = encoder.finish();
        let _ = AssetIndex::decode(&mut Decoder::new(&body, raw_bytes), true);
        let _ = Movements::decode(&mut Decoder::new(&body, raw_bytes), true);
    }
}

#[test]
fn no_number_of_facets_without_values_fills_the_memory() {
    let mut encoder = Encoder::default();
    encoder.number(u64::MAX);
    let (body, raw_bytes) = encoder.finish();
    assert!(Movements::decode(&mut Decoder::new(&body, raw_bytes), true).is_none());
}

#[test]
fn a_snapshot_of_another_table_tenant_or_kind_is_ignored() {
    let (_, bytes) = write(AssetIndex::default());
    let of = |source| decode::<AssetIndex>(source, &bytes, usize::MAX, now()).map(|_| ());
    let own = source(Kind::Asset);
    assert_eq!(of(own), Ok(()));
    assert_eq!(of(SnapshotSource { table: "tabl", ..own }), Err(SnapshotError::Source));
    assert_eq!(of(SnapshotSource { tenant: TenantId::new(now(), [2; 10]), ..own }), Err(SnapshotError::Source));
    assert_eq!(of(SnapshotSource { kind: Kind::User, ..own }), Err(SnapshotError::Source));
    let mut other_format = bytes.clone();
    other_format[8] += 1;
    assert_eq!(read::<AssetIndex>(&other_format).map(|_| ()), Err(SnapshotError::Format));
}

#[test]
fn a_snapshot_that_exceeds_the_budget_or_is_from_the_future_is_ignored() {
    let mut index = AssetIndex::default();
    let searched = vec!["a".repeat(5_000), String::new(), String::new()];
    let exact = vec![String::new(); 2];
    let (facet, columns) = (AssetFacet::default(), AssetColumns::default());
    index.assets.upsert(Row { id: Uuid::from_u128(1), version: 1, facet, columns, searched, exact, coded: Vec::new() });
    let (_, bytes) = write(index);
    assert!(bytes.len() < 1_000, "the text is compressed");
    let at = |max_bytes, now| decode::<AssetIndex>(source(Kind::Asset), &bytes, max_bytes, now).map(|_| ());
    assert_eq!(at(5_000, now()), Err(SnapshotError::TooLarge));
    assert_eq!(at(50_000, now()), Ok(()));
    assert_eq!(at(50_000, Timestamp::from_millis(now().millis() - 2_000)), Ok(()));
    assert_eq!(at(50_000, Timestamp::from_millis(now().millis() - 2_001)), Err(SnapshotError::Future));
}

/// Tests a function that has less memory than the writer of the snapshot.
#[test]
fn custom_fields_are_left_out_of_a_snapshot_that_is_too_large_with_them() {
    let mut index = AssetIndex::default();
    for n in 0..100 {
        let coded = vec![
            ("location".to_owned(), Cell::Text("Bonn".into())),
            ("custom_fields.a".to_owned(), Cell::Text(format!("{n:0200}").into())),
        ];
        let (facet, columns, searched) = (AssetFacet::default(), AssetColumns::default(), vec![String::new(); 3]);
        let id = Uuid::from_u128(n << 80);
        index.assets.upsert(Row { id, version: 1, facet, columns, searched, exact: vec![String::new(); 2], coded });
    }
    index.shrink_to_fit();
    let whole = index.bytes();
    let (_, bytes) = write(index);
    let columns = |max_bytes| {
        let read = decode::<AssetIndex>(source(Kind::Asset), &bytes, max_bytes, now()).expect("an index").index;
        assert_eq!(read.len(), 100);
        (read.assets.coded().len(), read.assets.coded().is_left_out())
    };
    // Vectors that have grown have spare capacity.
    assert_eq!(columns(whole + 10_000), (3, false));
    assert_eq!(columns(whole - 1), (2, true));
    assert!(decode::<AssetIndex>(source(Kind::Asset), &bytes, 1_000, now()).is_err());
}

#[test]
fn a_snapshot_that_was_loaded_in_the_future_is_ignored() {
    let (loaded, _) = write(AssetIndex::default());
    let loaded_after = |millis| {
        let loaded_at = Timestamp::from_millis(now().millis() + millis);
        let bytes = encode_snapshot(source(Kind::Asset), &loaded, loaded_at, EventId::new(now(), [2; 10]));
        read::<AssetIndex>(&bytes).map(|_| ())
    };
    assert_eq!(loaded_after(2_000), Ok(()));
    assert_eq!(loaded_after(2_001), Err(SnapshotError::Future));
}

/// Returns the start of the body's hash, which is the same on every machine.
fn body_hash<I: ListIndex>(index: I) -> String {
    let (_, bytes) = write(index);
    let (_, body) = decode_header(source(I::Entity::KIND), &bytes).expect("a header");
    hex::sha256(body)[..16].to_owned()
}

/// If this fails, existing snapshots would be misread or rejected: raise the format number, and replace the hashes. If only the
/// compression has changed, just replace the hashes.
#[test]
fn the_format_is_the_one_that_its_number_names() {
    let id = Uuid::from_u128(5 << 80);
    let (mut assets, mut users, mut instances) = (AssetIndex::default(), SortedRows::default(), SortedRows::default());
    let facet = AssetFacet { status: Some(Status::InUse), manufacturer: Some("Dell".into()), ..AssetFacet::default() };
    let mut columns = AssetColumns { warranty_until: Date::from_days(730_000), ..AssetColumns::default() };
    columns.set_price(Some(300));
    let coded = vec![("location".to_owned(), Cell::Text("Bonn".into())), ("custom_fields.a".to_owned(), Cell::Number(1.5))];
    let searched = ["name", "tag", "serial"].map(str::to_owned).into();
    let exact = ["Tag", "Serial"].map(str::to_owned).into();
    assets.assets.upsert(Row { id, version: 300, facet, columns, searched, exact, coded });
    let facet = UserFacet { role: Some(Role::Viewer), is_active: true };
    let searched = vec!["ada".to_owned(), "a@b.c".to_owned()];
    users.upsert(Row { id, version: 1, facet, columns: UserColumns, searched, exact: Vec::new(), coded: Vec::new() });
    let (facet, columns) = (InstanceFacet::default(), InstanceColumns { asset: Some(id) });
    instances.upsert(Row { id, version: 2, facet, columns, searched: Vec::new(), exact: Vec::new(), coded: Vec::new() });
    let hashes = [body_hash(assets), body_hash(users), body_hash(instances)];
    assert_eq!(hashes, ["51bec40e87da20a2", "ba31f699f080445b", "8aee9365c21fdd7e"]);
}
