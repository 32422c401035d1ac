//! A tenant and its settings.

use crate::assets::label_url::LabelUrlTemplate;
use crate::assets::tag::{TagPrefix, TagTemplate};
use crate::assets::transitions::Transitions;
use crate::record::{Kind, Record, fields};
use crate::record_change::record_change;
use crate::tenants::locale::Locale;
use crate::tenants::time_zone::TimeZone;
use crate::values::id::TenantId;
use crate::values::text::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    pub id: TenantId,
    pub name: Name,
    /// Replaces `{PREFIX}` in asset tags.
    pub asset_tag_prefix: TagPrefix,
    pub asset_tag_template: TagTemplate,
    /// The changes of status that a PATCH of an asset may make; `None` permits all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_transitions: Option<Transitions>,
    /// The time zone of pages that people read.
    pub time_zone: TimeZone,
    /// The format of dates on pages that people read.
    pub locale: Locale,
    /// The address in the codes of labels; `None` for the asset tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_url_template: Option<LabelUrlTemplate>,
}

record_change! {
    /// A change to the settings.
    TenantChange of Tenant::changed {
        set name: Name,
        set asset_tag_prefix: TagPrefix,
        set asset_tag_template: TagTemplate,
        set_or_clear status_transitions: Transitions,
        set time_zone: TimeZone,
        set locale: Locale,
        set_or_clear label_url_template: LabelUrlTemplate,
    }
}

impl Tenant {
    #[must_use]
    pub fn new(id: TenantId, name: Name) -> Self {
        Self {
            id,
            name,
            asset_tag_prefix: TagPrefix::default(),
            asset_tag_template: TagTemplate::default(),
            status_transitions: None,
            time_zone: TimeZone::default(),
            locale: Locale::default(),
            label_url_template: None,
        }
    }
}

impl Record for Tenant {
    const KIND: Kind = Kind::Tenant;
    type Id = TenantId;

    fn id(&self) -> TenantId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, name, asset_tag_prefix, asset_tag_template, status_transitions, time_zone, locale, label_url_template } =
            self;
        fields([
            ("name", json!(name)),
            ("asset_tag_prefix", json!(asset_tag_prefix)),
            ("asset_tag_template", json!(asset_tag_template)),
            ("status_transitions", json!(status_transitions)),
            ("time_zone", json!(time_zone)),
            ("locale", json!(locale)),
            ("label_url_template", json!(label_url_template)),
        ])
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRange {
    /// The tag with `{N}` in place of its number.
    pub pattern: String,
    pub last_number: u64,
    /// The minimum number of digits.
    pub width: u64,
}

impl NumberRange {
    /// The count of numbers with `width` digits. Further numbers take one digit more.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        10u64.saturating_pow(u32::try_from(self.width).unwrap_or(u32::MAX)).saturating_sub(1)
    }

    /// The used part of the numbers; above 1 once numbers have another digit.
    #[must_use]
    pub fn fill_level(&self) -> f64 {
        self.last_number as f64 / self.capacity().max(1) as f64
    }
}

/// The `most` ranges with the highest fill level, in the order in which they were.
#[must_use]
pub fn fullest(ranges: Vec<NumberRange>, most: usize) -> Vec<NumberRange> {
    let mut ranked: Vec<(usize, NumberRange)> = ranges.into_iter().enumerate().collect();
    ranked.sort_by(|(_, a), (_, b)| b.fill_level().total_cmp(&a.fill_level()));
    ranked.truncate(most);
    ranked.sort_by_key(|(place, _)| *place);
    ranked.into_iter().map(|(_, range)| range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_ranges_keep_their_order() {
        let range = |pattern: &str, last_number, width| NumberRange { pattern: pattern.to_owned(), last_number, width };
        let ranges = vec![range("a", 5, 3), range("b", 900, 3), range("c", 900, 6), range("d", 998, 3)];
        let shown = |most| fullest(ranges.clone(), most).into_iter().map(|range| range.pattern).collect::<String>();
        assert_eq!(
            (shown(0), shown(1), shown(2), shown(3), shown(9)),
            ("".into(), "d".into(), "bd".into(), "abd".into(), "abcd".into())
        );
    }
}
