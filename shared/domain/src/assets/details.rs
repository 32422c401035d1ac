//! The details of an asset: the fields that have no rules of their own.

use crate::record_change::record_change;
use crate::values::money::Price;
use crate::values::text::Line;
use crate::values::time::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

macro_rules! details {
    ($($(#[$shown:meta])* $field:ident: $type:ident as $cell:ident {
        sent: $sent:literal, filter: $filter:tt, headings: $headings:literal,
    })*) => {
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct AssetDetails {$(
            #[doc = $sent]
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $field: Option<$type>,
        )*}

        record_change! {
            AssetDetailsChange of AssetDetails::with {
                $(set_or_clear $field: $type,)*
            }
        }

        impl AssetDetailsChange {
            /// Without the fields that have these values already.
            #[must_use]
            pub fn unless(self, present: &AssetDetails) -> Self {
                Self { $($field: self.$field.unless(present.$field.as_ref()),)* }
            }
        }

        impl AssetDetails {
            pub(crate) fn history_fields(&self) -> impl Iterator<Item = (&'static str, Value)> {
                // Prices as text, since the canonical form (RFC 8785 §3.2.2.3) would round a number to a double.
                [$((stringify!($field), json!(self.$field)),)*].into_iter()
            }
        }
    };
}
fields::asset_details! { details! }
