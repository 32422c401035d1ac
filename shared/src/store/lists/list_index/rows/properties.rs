//! Property tests of rows: every query has the same result as on a plain list of the same rows.

use super::coded::CodedCondition;
use super::segment::narrow;
use super::{
    ColumnFilter, Facet, Filter, FirstRows, Row, RowPosition, RowQuery, RowRef, SearchTerms, SortBy, SortKey, SortOrder,
    SortedRows,
};
use crate::domain::assets::asset::{Cell, Status};
use crate::domain::values::natural_order::natural_cmp;
use crate::domain::values::text::fold;
use crate::domain::values::time::Timestamp;
use crate::store::lists::indexed_lists::PageRequest;
use crate::store::lists::list_index::{AssetColumns, AssetFacet, AssetVectors};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

type AssetRow = Row<AssetColumns>;

#[derive(Debug, Clone)]
enum Step {
    Upsert(u16, AssetFacet, AssetColumns, [String; 2], Vec<(String, Cell)>),
    Remove(u16),
}

/// Returns one of a limited number of IDs, so that some rows replace others. There are more IDs than fit in a segment.
fn id(n: u16) -> Uuid {
    let n = u128::from(n % 700);
    Uuid::from_u128((n / 3) << 80 | n)
}

/// Generates cells of a location, which is never dropped, and of two custom fields.
fn cells() -> impl Strategy<Value = Vec<(String, Cell)>> {
    let text = |pattern: &'static str| pattern.prop_map(|text: String| Cell::Text(text.into()));
    let place = text("[aÄ]( / [bB]){0,2}");
    let value = prop_oneof![(0..9i32).prop_map(|number| Cell::Number(number.into())), text("[aA]?[019]{0,2}")];
    let fields = (proptest::option::of(place), proptest::option::of(value.clone()), proptest::option::of(value));
    fields.prop_map(|(place, first, second)| {
        let cells = COLUMNS.iter().zip([place, first, second]);
        cells.filter_map(|(name, cell)| Some(((*name).to_owned(), cell?))).collect()
    })
}

const COLUMNS: [&str; 3] = ["location", "custom_fields.a", "custom_fields.b"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let facet = (0..Status::ALL.len(), proptest::option::of("[AB]")).prop_map(|(status, manufacturer)| AssetFacet {
        status: Some(Status::ALL[status]),
        manufacturer: manufacturer.map(Box::from),
        ..AssetFacet::default()
    });
    let columns = (0..50i64, proptest::option::of(0..20u64)).prop_map(|(updated_at, price)| {
        let mut columns = AssetColumns { updated_at: Timestamp::from_millis(updated_at), ..AssetColumns::default() };
        columns.set_price(price);
        columns
    });
    let upsert = (any::<u16>(), facet, columns, ("[abß]{0,6}", "[aB01]{0,3}"), cells());
    let upsert = upsert.prop_map(|(n, facet, columns, (name, tag), cells)| Step::Upsert(n, facet, columns, [name, tag], cells));
    proptest::collection::vec(prop_oneof![4 => upsert, 1 => any::<u16>().prop_map(Step::Remove)], 0..1500)
}

fn build(steps: Vec<Step>, search_at: usize) -> (SortedRows<AssetColumns>, BTreeMap<SortKey, AssetRow>) {
    let (mut rows, mut map) = (SortedRows::default(), BTreeMap::new());
    for (version, step) in steps.into_iter().enumerate() {
        if version == search_at {
            // From now on, changes must update the trigrams, and recompute the extremes and the size.
            assert!(rows.bytes() > 0);
            rows.segments()
                .iter()
                .for_each(|segment| assert!(segment.searched.extremes(0).and(segment.exact.extremes(0)).is_some()));
            rows.segments().iter().for_each(|segment| assert!(segment.may_have(&SearchTerms::default())));
            let _ = rows.segments().iter().filter(|segment| segment.may_have(&SearchTerms::of(Some("aab")))).count();
            let coded = rows.segments().iter().flat_map(|segment| &segment.coded);
            let _ = coded.filter(|column| column.extremes(rows.coded()).is_some()).count();
        }
        match step {
            Step::Upsert(n, facet, columns, [name, tag], coded) => {
                let (version, searched, exact) = (version as u64, vec![fold(&name), fold(&tag)], vec![tag]);
                let row = Row { id: id(n), version, facet, columns, searched, exact, coded };
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

/// Formats a row as text, because columns can't be compared, and coded values have no order.
fn text(row: &AssetRow) -> String {
    let mut row = row.clone();
    row.coded.sort_by(|(a, _), (b, _)| a.cmp(b));
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
    wanted: Option<CodedCondition>,
    created: (Option<i64>, Option<i64>),
    /// Number of the sort order; 0 is the default.
    order: usize,
    descending: bool,
    page: PageRequest,
}

fn queries() -> impl Strategy<Value = Query> {
    let status = proptest::option::of((0..Status::ALL.len()).prop_map(|n| Status::ALL[n]));
    let page = (1..8u32, prop_oneof![1..30u32, Just(u32::MAX)]).prop_map(|(number, limit)| PageRequest { number, limit });
    let filters =
        (proptest::option::of("[abs]{1,4}( b)?"), status, proptest::option::of(0..50i64), proptest::option::of("[aB01]{0,3}"));
    let bounds = (proptest::option::of(0..250i64), proptest::option::of(0..250i64));
    let values = (proptest::option::of(wanted()), prop_oneof![3 => Just((None, None)), 1 => bounds]);
    (filters, values, 0..9usize, any::<bool>(), page).prop_map(
        |((words, status, updated_since, tag), (wanted, created), order, descending, page)| Query {
            words,
            status,
            updated_since,
            tag: tag.filter(|tag| !tag.is_empty()),
            wanted,
            created,
            order,
            descending,
            page,
        },
    )
}

fn wanted() -> impl Strategy<Value = CodedCondition> {
    let at = |place| CodedCondition { place: Some(place), ..CodedCondition::on("location".into()) };
    let place = "[aäÄ]( / b)?".prop_map(at);
    let texts = (1..3usize, proptest::collection::vec("[aA]?[019]{0,2}", 0..3), any::<bool>());
    let texts =
        texts.prop_map(|(column, texts, none)| CodedCondition { texts, none, ..CodedCondition::on(COLUMNS[column].into()) });
    let of_unknown = |none| CodedCondition { texts: vec!["a".into()], none, ..CodedCondition::on("custom_fields.x".into()) };
    let unknown = any::<bool>().prop_map(of_unknown);
    prop_oneof![place, texts, unknown]
}

/// Checks a condition in a simple reference implementation.
fn is_wanted(row: &AssetRow, wanted: &CodedCondition) -> bool {
    let Some((_, cell)) = row.coded.iter().find(|(name, _)| *name == wanted.column) else { return wanted.none };
    let text = fold(&cell.text());
    let is_text = |wanted: &String| *cell != Cell::Unfit && fold(wanted) == text;
    let is_inside = |place: &String| text == fold(place) || text.starts_with(&(fold(place) + " / "));
    wanted.texts.iter().any(is_text) || wanted.place.iter().any(is_inside)
}

impl Query {
    fn row_query(&self) -> RowQuery<'_, AssetColumns> {
        let sort_by: Option<SortBy<AssetColumns>> = match self.order {
            0 => None,
            1 => Some(SortBy::CreatedAt),
            2 => Some(SortBy::Number(|columns: &AssetVectors, row: usize| columns.updated_at.get(row).map(|at| at.millis()))),
            3 => Some(SortBy::Facet(|facet: &AssetFacet| facet.status.map_or("", Status::as_str))),
            4 => Some(SortBy::Searched(0)),
            5 => Some(SortBy::Exact(0)),
            6 => Some(SortBy::Number(|columns: &AssetVectors, row: usize| columns.price(row)?.try_into().ok())),
            order => Some(SortBy::Coded(COLUMNS[order - 7].to_owned())),
        };
        let facets = self.status.map(|status| Box::new(move |facet: &AssetFacet| facet.status == Some(status)) as Filter<'_, _>);
        let is_updated = |since: i64| -> ColumnFilter<'static, AssetColumns> {
            Box::new(move |columns: &AssetVectors, matches: &mut [bool]| {
                narrow(matches, &columns.updated_at, |at| at.millis() >= since);
            })
        };
        RowQuery {
            terms: SearchTerms::of(self.words.as_deref()),
            facets,
            columns: self.updated_since.map(is_updated),
            exact: self.tag.iter().map(|tag| (0, tag.clone())).collect(),
            coded: self.wanted.clone().into_iter().collect(),
            either: Vec::new(),
            created: (self.created.0.map(Timestamp::from_millis), self.created.1.map(Timestamp::from_millis)),
            ids: None,
            order: sort_by.map(|sort_by| SortOrder { sort_by, descending: self.descending }),
        }
    }

    fn matches(&self, row: &AssetRow) -> bool {
        let words = self.words.as_deref().unwrap_or_default();
        words.split(' ').all(|word| row.searched.iter().any(|text| text.contains(word)))
            && self.status.is_none_or(|status| row.facet.status == Some(status))
            && self.updated_since.is_none_or(|since| row.columns.updated_at.millis() >= since)
            && self.tag.as_ref().is_none_or(|tag| row.exact[0] == *tag)
            && self.wanted.as_ref().is_none_or(|wanted| is_wanted(row, wanted))
            && self.created.0.is_none_or(|from| SortKey::of(row.id).created_at().millis() >= from)
            && self.created.1.is_none_or(|before| SortKey::of(row.id).created_at().millis() < before)
    }

    fn compare(&self, a: &AssetRow, b: &AssetRow) -> Ordering {
        let created_at = |row: &AssetRow| SortKey::of(row.id).created_at();
        let status = |row: &AssetRow| row.facet.status.map_or("", Status::as_str);
        let ascending = match self.order {
            1 => created_at(a).cmp(&created_at(b)),
            2 => a.columns.updated_at.cmp(&b.columns.updated_at),
            3 => status(a).cmp(status(b)),
            4 => natural_cmp(&a.searched[0], &b.searched[0]),
            5 => natural_cmp(&a.exact[0], &b.exact[0]),
            order => {
                let cell = |row: &AssetRow| match order {
                    6 => row.columns.price().map(|price| Cell::Number(f64::from(u32::try_from(price).unwrap()))),
                    order => row.coded.iter().find(|(name, _)| *name == COLUMNS[order - 7]).map(|(_, cell)| cell.clone()),
                };
                match (cell(a), cell(b)) {
                    (Some(a), Some(b)) => a.compare(&b),
                    // Rows without a value come last in both directions.
                    (a, b) => return a.is_none().cmp(&b.is_none()),
                }
            }
        };
        if self.descending { ascending.reverse() } else { ascending }
    }

    fn plain_page(&self, map: &BTreeMap<SortKey, AssetRow>) -> (usize, Vec<String>) {
        let mut rows: Vec<&AssetRow> = map.values().filter(|row| self.matches(row)).collect();
        if self.order > 0 {
            rows.sort_by(|a, b| self.compare(a, b).then(a.id.cmp(&b.id)));
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
        prop_assert_eq!((rows.len(), rows.bytes()), (map.len(), rows.count_bytes()));
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
        let mut columns = AssetColumns::default();
        columns.set_price(Some((n % 5) as u64));
        rows.upsert(Row {
            id: Uuid::from_u128(n << 80),
            version: 1,
            facet,
            columns,
            searched,
            exact: vec![serial],
            coded: vec![("location".to_owned(), Cell::Text(["Berlin", "Kiel"][(n / 6 % 2) as usize].into()))],
        });
    }
    rows
}

/// Checks that 1,000,000 assets with five custom fields fit in 500 MB. Two of the fields are different in each asset.
#[test]
fn an_asset_with_five_custom_fields_needs_at_most_500_bytes() {
    let mut rows: SortedRows<AssetColumns> = SortedRows::default();
    for n in 0..20_000_u128 {
        let field = |name: &str, text: String| (format!("custom_fields.{name}"), Cell::Text(text.into()));
        let coded = vec![
            ("location".to_owned(), Cell::Text(format!("Berlin / {} / {}", n % 9, n % 200).into())),
            ("model".to_owned(), Cell::Text(format!("ThinkPad T{}", n % 40).into())),
            field("cost_center", (4_700 + n % 60).to_string()),
            field("imei", (356_938_035_000_000 + n * 7).to_string()),
            field("os", "Windows 11".to_owned()),
            ("custom_fields.ram_gb".to_owned(), Cell::Number(16.0)),
            field("hostname", format!("LT-{n:08}")),
        ];
        let searched = vec![format!("ThinkPad T14 of {n}"), format!("ast-{n:06}"), format!("pf{n:06x}")];
        let (facet, columns) = (AssetFacet::default(), AssetColumns::default());
        let id = Uuid::from_u128((20_000 - n) << 80);
        rows.upsert(Row { id, version: 1, facet, columns, exact: searched[1..].to_vec(), searched, coded });
    }
    rows.shrink_to_fit();
    let each = rows.bytes() / rows.len();
    assert!(each <= 500, "{each} bytes an asset");
    assert!(rows.optional_bytes() < rows.bytes() / 2 && rows.leave_out() && !rows.leave_out());
    assert!(rows.bytes() / rows.len() <= 300, "{} bytes", rows.bytes());
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
    let seen = std::cell::Cell::new(0);
    let (facets, count) = rows.facets().select(|facet| {
        seen.set(seen.get() + 1);
        facet.status == Some(Status::InUse)
    });
    assert_eq!((facets.len(), count, seen.get()), (6, 3_333, 6));
    assert_eq!(AssetFacet::default().text_bytes(), 0);
}

/// Checks pages of a list in which every segment has the same few values.
#[test]
fn pages_of_equal_values_follow_each_other_in_both_directions() {
    let (mut rows, mut map) = (SortedRows::default(), BTreeMap::new());
    for n in 0..700_u16 {
        let facet = AssetFacet { status: Some(Status::ALL[usize::from(n % 4)]), ..AssetFacet::default() };
        let mut columns = AssetColumns { updated_at: Timestamp::from_millis(i64::from(n % 3)), ..AssetColumns::default() };
        columns.set_price((n % 5 > 0).then_some(u64::from(n % 5)));
        let (name, tag) = (format!("a{}", n % 3), format!("B{}", n % 4));
        let cells = COLUMNS.iter().zip([n % 2, n % 3, n % 5]).filter(|(_, value)| *value > 0);
        let coded = cells.map(|(name, value)| ((*name).to_owned(), Cell::Text(format!("a{value}").into()))).collect();
        let row = Row { id: id(n), version: 1, facet, columns, searched: vec![name, fold(&tag)], exact: vec![tag], coded };
        map.insert(SortKey::of(id(n)), row.clone());
        rows.upsert(row);
    }
    assert!(rows.segments().len() >= 5);
    let filters = [(None, None), (Some(Status::ALL[1]), None), (None, Some(1))];
    let orders = (0..9).flat_map(|order| [(order, false), (order, true)]);
    for ((order, descending), (status, updated_since)) in orders.flat_map(|order| filters.map(|filter| (order, filter))) {
        let query = |number, limit| {
            let (words, tag, wanted, created) = (None, None, None, (None, None));
            let page = PageRequest { number, limit };
            Query { words, status, updated_since, tag, wanted, created, order, descending, page }
        };
        let (total, plain) = query(1, u32::MAX).plain_page(&map);
        let mut pages = Vec::new();
        for number in (1..).take(total.div_ceil(50)) {
            let query = query(number, 50);
            pages.extend(found(query.row_query().select(&rows, query.page).1));
        }
        assert!(pages == plain, "order {order}, descending {descending}, {status:?}, updated since {updated_since:?}");
    }
}

#[test]
fn a_sorted_page_looks_at_few_segments() {
    let rows = many_rows();
    let status = |facet: &AssetFacet| facet.status.map_or("", Status::as_str);
    let location = || SortBy::Coded("location".to_owned());
    let price = |columns: &AssetVectors, row: usize| -> Option<i64> { columns.price(row)?.try_into().ok() };
    let orders: [(SortBy<AssetColumns>, bool, usize); 9] = [
        (SortBy::Searched(0), false, 8),
        (SortBy::Exact(0), true, 50),
        (SortBy::Facet(status), false, 4),
        (SortBy::Facet(status), true, 4),
        (location(), false, 4),
        (location(), true, 4),
        (SortBy::Number(price), false, 4),
        (SortBy::Number(price), true, 4),
        (SortBy::CreatedAt, false, 2),
    ];
    for (sort_by, descending, most) in orders {
        let is_in_use = |facet: &AssetFacet| facet.status == Some(Status::InUse);
        let order = SortOrder { sort_by, descending };
        let query = RowQuery { facets: Some(Box::new(is_in_use)), order: Some(order), ..RowQuery::default() };
        let (total, page) = query.select(&rows, PageRequest { number: 2, limit: 20 });

        let order = query.order.as_ref().expect("an order").of_rows(&rows);
        let order = &order;
        let (mut first, mut segments, mut is_complete) = (FirstRows::new(&rows, order, 40), 0, false);
        for (at, segment, value) in rows.segments_by(order) {
            let may_take = first.may_take_from(segment, value.as_ref());
            assert!(!is_complete || !may_take, "a segment after one without rows of the page has some");
            is_complete = !may_take;
            if !is_complete {
                segments += 1;
                (0..segment.len()).for_each(|row| first.offer(RowPosition::new(at, row)));
            }
        }
        assert!(segments <= most, "{segments} of {} segments", rows.segments().len());

        let value = |row: &RowRef<'_, AssetColumns>| {
            let (facet, row) = (row.facet.clone(), row.to_row());
            match &order.sort_by {
                SortBy::Exact(_) => row.exact[0].clone(),
                SortBy::Searched(_) => row.searched[0].clone(),
                SortBy::Facet(_) => status(&facet).to_owned(),
                SortBy::Number(_) => row.columns.price().unwrap_or_default().to_string(),
                SortBy::CreatedAt => SortKey::of(row.id).created_at().millis().to_string(),
                _ => row.coded[0].1.text().into_owned(),
            }
        };
        let mut plain: Vec<_> = rows.iter().filter(|row| is_in_use(row.facet)).collect();
        plain.sort_by_key(|row| row.sort_key.id());
        plain.sort_by(|a, b| {
            let ascending = natural_cmp(&value(a), &value(b));
            if descending { ascending.reverse() } else { ascending }
        });
        assert_eq!((total, found(page)), (plain.len(), found(plain[20..40].to_vec())));
    }
}
