//! The details of an asset in bodies.

use super::body::{FieldGroup, Fields, field_schema};
use crate::domain::assets::details::AssetDetailsChange;
use crate::domain::values::money::Price;
use crate::domain::values::text::Line;
use crate::domain::values::time::Date;
use crate::http::openapi::describe::add_schema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

macro_rules! details {
    ($($(#[$shown:meta])* $field:ident: $type:ident as $cell:ident {
        sent: $sent:literal, filter: $filter:tt, headings: $headings:literal,
    })*) => {
        impl FieldGroup for AssetDetailsChange {
            fn read(fields: &mut Fields<'_>) -> Self {
                Self { $($field: fields.nullable(stringify!($field)),)* }
            }

            fn describe(object: ObjectBuilder) -> ObjectBuilder {
                object $(.property(stringify!($field), field_schema::<$type>(true, $sent)))*
            }

            fn add_schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                $(add_schema::<$type>(schemas);)*
            }
        }
    };
}
fields::asset_details! { details! }
