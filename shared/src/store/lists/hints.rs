//! Hints beside empty lists and groups, from the list index: a list with a hint reads nothing more.

use crate::domain::assets::asset::{CUSTOM_FIELD, Cell};
use crate::domain::assets::hint::{Missing, hint};
use crate::domain::values::text::{fold, upper_levels};
use crate::store::lists::filters::{AssetFilter, ManufacturerName};
use crate::store::lists::list_index::{AssetFacet, AssetIndex, CodedCondition, LOCATION};
use std::collections::HashSet;

/// The deepest level of a location.
const MAX_LEVELS: usize = 8;

/// Returns a sentence for each condition of the filter, and for the column by which assets are grouped, that no asset meets
/// because no asset has such a value. Conditions on other fields, whose values are known, have no hint.
pub fn hint_for(index: &AssetIndex, filter: &AssetFilter, grouped_by: Option<&str>) -> Option<String> {
    let values = filter.values.iter().filter_map(|wanted| of_condition(index, wanted));
    let columns = filter.bounds.custom_fields.iter().map(|(column, _)| column.as_str()).chain(grouped_by);
    let fields = columns.filter_map(|column| of_field(index, column));
    let sentences = values.chain(of_manufacturer(index, filter)).chain(of_type(index, filter)).chain(fields);
    // The same field can be in several conditions.
    let mut distinct: Vec<String> = Vec::new();
    for sentence in sentences {
        if !distinct.contains(&sentence) {
            distinct.push(sentence);
        }
    }
    (!distinct.is_empty()).then(|| distinct.join(" "))
}

fn of_condition(index: &AssetIndex, wanted: &CodedCondition) -> Option<String> {
    if wanted.column != LOCATION
        && let Some(hint) = of_field(index, &wanted.column).filter(|_| !wanted.none)
    {
        return Some(hint);
    }
    let values: Vec<&str> = wanted.texts.iter().chain(&wanted.place).map(String::as_str).collect();
    let coded = index.assets.coded();
    if wanted.none || values.is_empty() || coded.count_selected(&coded.select(wanted), index.assets.len()) > 0 {
        return None;
    }
    let cells = coded.column(&wanted.column).into_iter().flat_map(|column| coded.cells(column));
    Some(match wanted.column.strip_prefix(CUSTOM_FIELD) {
        Some(name) => hint(Missing::ValueOf(name), &values, cells.map(|cell| cell.text().into_owned()).collect()),
        None => hint(Missing::Location, &values, cells.flat_map(levels).collect()),
    })
}

/// Returns a location and the places that contain it.
fn levels(location: &Cell) -> HashSet<String> {
    let location = location.text();
    (1..=MAX_LEVELS).map(|depth| upper_levels(&location, depth).to_owned()).collect()
}

/// Returns the hint for a custom field that no asset has.
fn of_field(index: &AssetIndex, column: &str) -> Option<String> {
    let name = column.strip_prefix(CUSTOM_FIELD)?;
    let coded = index.assets.coded();
    let known: Vec<String> =
        coded.used_columns().filter_map(|known| known.strip_prefix(CUSTOM_FIELD)).map(str::to_owned).collect();
    (!known.iter().any(|known| known == name)).then(|| hint(Missing::CustomField, &[name], known))
}

fn of_manufacturer(index: &AssetIndex, filter: &AssetFilter) -> Option<String> {
    let ManufacturerName::Named(wanted) = filter.manufacturer.as_ref()? else { return None };
    let name = |facet: &AssetFacet| {
        let of_model = index.catalog_names(facet).manufacturer.map(String::from);
        of_model.or_else(|| facet.manufacturer.as_deref().map(str::to_owned))
    };
    let known: Vec<String> = index.assets.facets().iter().filter_map(|(facet, _)| name(facet)).collect();
    (!known.iter().any(|known| fold(known) == fold(wanted))).then(|| hint(Missing::Manufacturer, &[wanted], known))
}

fn of_type(index: &AssetIndex, filter: &AssetFilter) -> Option<String> {
    let wanted = filter.asset_type_code.as_ref()?.as_str();
    let known: Vec<String> =
        index.assets.facets().iter().filter_map(|(facet, _)| index.type_code(facet)).map(str::to_owned).collect();
    (!known.iter().any(|known| known == wanted)).then(|| hint(Missing::TypeCode, &[wanted], known))
}
