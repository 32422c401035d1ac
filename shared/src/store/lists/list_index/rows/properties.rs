//! Properties of rows: they answer every query as a plain list of the same rows would.

use super::facets::Facet;
use super::first_rows::FirstRows;
use super::order::{SortBy, SortOrder};
use super::row::{Row, RowRef, SortKey};
use super::row_query::{Filter, RowQuery};
use super::search_terms::SearchTerms;
use super::sorted_rows::{RowPosition, SortedRows};
use crate::domain::assets::asset::Status;
use crate::domain::values::text::fold;
use crate::domain::values::time::Timestamp;
use crate::store::lists::list_index::{AssetColumns, AssetFacet};
use crate::store::lists::page::PageRequest;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

type AssetRow = Row<AssetColumns>;

#[derive(Debug, Clone)]
enum Step {
    Upsert(u16, AssetFacet, AssetColumns, String, String),
    Remove(u16),
}

/// Few ids, so that some replace others, and more than a segment has.
fn id(n: u16) -> Uuid {
    let n = u128::from(n % 700);
    Uuid::from_u128((n / 3) << 80 | n)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let facet = (0..Status::ALL.len(), proptest::option::of("[AB]")).prop_map(|(status, manufacturer)| AssetFacet {
        status: Some(Status::ALL[status]),
        manufacturer: manufacturer.map(Box::from),
        ..AssetFacet::default()
    });
    let columns = (0..50i64, any::<u64>()).prop_map(|(updated_at, price)| AssetColumns {
        updated_at: Timestamp::from_millis(updated_at),
        price,
        ..AssetColumns::default()
    });
    let upsert = (any::<u16>(), facet, columns, "[abß]{0,6}", "[aB]{0,3}");
    let upsert = upsert.prop_map(|(n, facet, columns, name, tag)| Step::Upsert(n, facet, columns, name, tag));
    proptest::collection::vec(prop_oneof![4 => upsert, 1 => any::<u16>().prop_map(Step::Remove)], 0..1500)
}

fn build(steps: Vec<Step>, search_at: usize) -> (SortedRows<AssetColumns>, BTreeMap<SortKey, AssetRow>) {
    let (mut rows, mut map) = (SortedRows::default(), BTreeMap::new());
    for (version, step) in steps.into_iter().enumerate() {
        if version == search_at {
            // From now on, changes must keep the trigrams, and find the extremes anew.
            rows.segments()
                .iter()
                .for_each(|segment| assert!(segment.searched.extremes(0).and(segment.exact.extremes(0)).is_some()));
            rows.segments().iter().for_each(|segment| assert!(segment.may_have(&SearchTerms::default())));
            let _ = rows.segments().iter().filter(|segment| segment.may_have(&SearchTerms::of(Some("aab")))).count();
        }
        match step {
            Step::Upsert(n, facet, columns, name, tag) => {
                let (version, searched, exact) = (version as u64, vec![fold(&name), fold(&tag)], vec![tag]);
                let row = Row { id: id(n), version, facet, columns, searched, exact };
                map.insert(SortKey::of(id(n)), row.clone());
                rows.upsert(row);
            }
            Step::Remove(n) => {
                map.remove(&SortKey::of(id(n)));
                rows.remove(id(n));
            }
        }
    }
    (rows, map)
}

/// As text: columns have no equality.
fn text(row: &AssetRow) -> String {
    format!("{row:?}")
}

fn found(rows: Vec<RowRef<'_, AssetColumns>>) -> Vec<String> {
    rows.iter().map(|row| text(&row.to_row())).collect()
}

#[derive(Debug, Clone)]
struct Query {
    words: Option<String>,
    status: Option<Status>,
    updated_since: Option<i64>,
    tag: Option<String>,
    /// 0 for the default.
    order: usize,
    descending: bool,
    page: PageRequest,
}

fn queries() -> impl Strategy<Value = Query> {
    let status = proptest::option::of((0..Status::ALL.len()).prop_map(|n| Status::ALL[n]));
    let page = (1..8u32, prop_oneof![1..30u32, Just(u32::MAX)]).prop_map(|(number, limit)| PageRequest { number, limit });
    let filters =
        (proptest::option::of("[abs]{1,4}( b)?"), status, proptest::option::of(0..50i64), proptest::option::of("[aB]{0,3}"));
    (filters, 0..6usize, any::<bool>(), page).prop_map(|((words, status, updated_since, tag), order, descending, page)| Query {
        words,
        status,
        updated_since,
        tag: tag.filter(|tag| !tag.is_empty()),
        order,
        descending,
        page,
    })
}

impl Query {
    fn row_query(&self) -> RowQuery<'_, AssetColumns> {
        let sort_by = match self.order {
            0 => None,
            1 => Some(SortBy::CreatedAt),
            2 => Some(SortBy::Time(|columns: &AssetColumns| columns.updated_at)),
            3 => Some(SortBy::Facet(|facet: &AssetFacet| facet.status.map_or("", Status::as_str))),
            4 => Some(SortBy::Searched(0)),
            _ => Some(SortBy::Exact(0)),
        };
        let facets = self.status.map(|status| Box::new(move |facet: &AssetFacet| facet.status == Some(status)) as Filter<'_, _>);
        let columns = self
            .updated_since
            .map(|since| Box::new(move |columns: &AssetColumns| columns.updated_at.millis() >= since) as Filter<'_, _>);
        RowQuery {
            terms: SearchTerms::of(self.words.as_deref()),
            facets,
            columns,
            exact: self.tag.iter().map(|tag| (0, tag.clone())).collect(),
            order: sort_by.map(|sort_by| SortOrder { sort_by, descending: self.descending }),
        }
    }

    fn matches(&self, row: &AssetRow) -> bool {
        let words = self.words.as_deref().unwrap_or_default();
        words.split(' ').all(|word| row.searched.iter().any(|text| text.contains(word)))
            && self.status.is_none_or(|status| row.facet.status == Some(status))
            && self.updated_since.is_none_or(|since| row.columns.updated_at.millis() >= since)
            && self.tag.as_ref().is_none_or(|tag| row.exact[0] == *tag)
    }

    /// As text that sorts like the value.
    fn sort_value(&self, row: &AssetRow) -> String {
        match self.order {
            1 => format!("{:020}", SortKey::of(row.id).created_at().millis()),
            2 => format!("{:020}", row.columns.updated_at.millis()),
            3 => row.facet.status.map_or("", Status::as_str).to_owned(),
            4 => row.searched[0].clone(),
            _ => row.exact[0].clone(),
        }
    }

    fn plain_page(&self, map: &BTreeMap<SortKey, AssetRow>) -> (usize, Vec<String>) {
        let mut rows: Vec<&AssetRow> = map.values().filter(|row| self.matches(row)).collect();
        if self.order > 0 {
            rows.sort_by(|a, b| {
                let order = self.sort_value(a).cmp(&self.sort_value(b));
                if self.descending { order.reverse() } else { order }.then(a.id.cmp(&b.id))
            });
        }
        let page = rows.iter().skip(self.page.skip()).take(self.page.limit as usize);
        (rows.len(), page.map(|row| text(row)).collect())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn rows_answer_queries_as_a_plain_list_would(
        steps in steps(),
        queries in proptest::collection::vec(queries(), 20),
        search_at in 0..1500usize,
    ) {
        let (rows, map) = build(steps, search_at);
        prop_assert_eq!(rows.len(), map.len());
        prop_assert_eq!(found(rows.iter().collect()), map.values().map(text).collect::<Vec<_>>());
        for n in 0..700 {
            let row = rows.get(id(n));
            prop_assert_eq!(row.as_ref().map(text), map.get(&SortKey::of(id(n))).map(text));
        }
        for query in queries {
            let (total, page) = query.row_query().select(&rows, query.page);
            prop_assert_eq!((total, found(page)), query.plain_page(&map), "{:?}", query);
        }
    }

    #[test]
    fn facets_have_the_numbers_of_their_rows(steps in steps()) {
        let (rows, map) = build(steps, 0);
        let counted: HashMap<AssetFacet, usize> = rows.facets().iter().map(|(facet, count)| (facet.clone(), count)).collect();
        let mut expected = HashMap::new();
        map.into_values().for_each(|row| *expected.entry(row.facet).or_default() += 1);
        prop_assert_eq!(counted, expected);
    }
}

fn many_rows() -> SortedRows<AssetColumns> {
    let mut rows = SortedRows::default();
    for n in 0..20_000_u128 {
        let facet = AssetFacet { status: Some(Status::ALL[(n % 6) as usize]), ..AssetFacet::default() };
        let serial = fold(&format!("SN{:010X}", (n * 2_654_435_761) % 0xFF_FFFF_FFFF));
        let searched = vec![format!("thinkpad x1 of room {:04}", n % 7919), serial.clone()];
        let columns = AssetColumns::default();
        rows.upsert(Row { id: Uuid::from_u128(n << 80), version: 1, facet, columns, searched, exact: vec![serial] });
    }
    rows
}

#[test]
fn a_search_looks_at_few_segments_without_its_words() {
    let rows = many_rows();
    let searched = |words: &str| {
        let terms = SearchTerms::of(Some(words));
        rows.segments().iter().filter(|segment| segment.may_have(&terms)).count()
    };
    let all = rows.segments().len();
    assert!(all >= 78, "{all} segments");
    assert_eq!(searched("thinkpad room"), all);
    assert_eq!(searched("nosuchthing"), 0);
    assert_eq!(searched("thinkpad nosuchthing"), 0);
    let serial = rows.iter().nth(5_000).and_then(|row| row.exact_text(0)).expect("a serial number");
    let of_serial = searched(serial);
    assert!((1..=3).contains(&of_serial), "{of_serial} segments for {serial}");
}

#[test]
fn a_filter_by_facets_looks_at_them_and_not_at_rows() {
    let rows = many_rows();
    let seen = Cell::new(0);
    let (facets, count) = rows.facets().select(|facet| {
        seen.set(seen.get() + 1);
        facet.status == Some(Status::InUse)
    });
    assert_eq!((facets.len(), count, seen.get()), (6, 3_333, 6));
    assert_eq!(AssetFacet::default().text_bytes(), 0);
}

#[test]
fn a_page_sorted_by_text_looks_at_few_segments() {
    let rows = many_rows();
    for (sort_by, descending, most) in [(SortBy::Searched(0), false, 8), (SortBy::Exact(0), true, 50)] {
        let is_in_use = |facet: &AssetFacet| facet.status == Some(Status::InUse);
        let order = SortOrder { sort_by, descending };
        let query = RowQuery { facets: Some(Box::new(is_in_use)), order: Some(order), ..RowQuery::default() };
        let (total, page) = query.select(&rows, PageRequest { number: 2, limit: 20 });

        let order = query.order.as_ref().expect("an order");
        let (mut first, mut segments) = (FirstRows::new(&rows, order, 40), 0);
        for (at, segment) in rows.segments_by(order) {
            if first.may_take_from(at) {
                segments += 1;
                (0..segment.len()).for_each(|row| first.offer(RowPosition::new(at, row)));
            }
        }
        assert!(segments <= most, "{segments} of {} segments", rows.segments().len());

        let value = |row: &RowRef<'_, AssetColumns>| {
            let row = row.to_row();
            if descending { row.exact[0].clone() } else { row.searched[0].clone() }
        };
        let mut plain: Vec<_> = rows.iter().filter(|row| is_in_use(row.facet)).collect();
        plain.sort_by_key(|row| row.sort_key.id());
        plain.sort_by(|a, b| if descending { value(b).cmp(&value(a)) } else { value(a).cmp(&value(b)) });
        assert_eq!((total, found(page)), (plain.len(), found(plain[20..40].to_vec())));
    }
}
