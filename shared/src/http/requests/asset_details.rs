//! The details of an asset in bodies.

use super::body::{FieldGroup, Fields, field_schema};
use crate::domain::assets::details::AssetDetailsChange;
use crate::domain::assets::location::Location;
use crate::domain::values::money::Price;
use crate::domain::values::text::Line;
use crate::domain::values::time::Date;
use crate::http::openapi::describe::add_schema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

const LOCATION: &str = "Where it is: up to 8 levels separated by `/`, the largest first.";

impl FieldGroup for AssetDetailsChange {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            serial_number: fields.nullable("serial_number"),
            location: fields.nullable("location"),
            purchase_date: fields.nullable("purchase_date"),
            purchase_price: fields.nullable("purchase_price"),
            warranty_until: fields.nullable("warranty_until"),
        }
    }

    fn describe(object: ObjectBuilder) -> ObjectBuilder {
        let price = "Purchase price, a number or its decimal text. Every digit is kept.";
        object
            .property("serial_number", field_schema::<Line>(true, "Serial number."))
            .property("location", field_schema::<Location>(true, LOCATION))
            .property("purchase_date", field_schema::<Date>(true, "Date of purchase, `YYYY-MM-DD`."))
            .property("purchase_price", field_schema::<Price>(true, price))
            .property("warranty_until", field_schema::<Date>(true, "Last day of the warranty, `YYYY-MM-DD`."))
    }

    fn add_schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add_schema::<Line>(schemas);
        add_schema::<Location>(schemas);
        add_schema::<Date>(schemas);
        add_schema::<Price>(schemas);
    }
}
