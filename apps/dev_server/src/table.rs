//! Creates the table as template.yaml declares it, so that the two can't differ.

use anyhow::{Context, Result, bail};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, TimeToLiveSpecification,
};
use serde::Deserialize;
use std::sync::OnceLock;
use yaml_serde::Value;

/// The contents of template.yaml at build time.
pub const TEMPLATE: &str = include_str!("../../../template.yaml");

/// Properties of `AWS::DynamoDB::Table` that are needed to create the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TableProperties {
    pub attribute_definitions: Vec<Attribute>,
    pub key_schema: Vec<KeyPart>,
    pub global_secondary_indexes: Vec<Index>,
    pub stream_specification: Stream,
    pub time_to_live_specification: Ttl,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Attribute {
    pub attribute_name: String,
    pub attribute_type: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct KeyPart {
    pub attribute_name: String,
    pub key_type: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Index {
    pub index_name: String,
    pub key_schema: Vec<KeyPart>,
    pub projection: Projected,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Projected {
    pub projection_type: String,
    pub non_key_attributes: Option<Vec<String>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Ttl {
    pub attribute_name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Stream {
    pub stream_view_type: String,
}

/// From template.yaml.
///
/// # Errors
///
/// Returns an error when the template has no resource `Table` with these properties.
pub fn declared() -> Result<&'static TableProperties> {
    // Parsing the template takes longer than creating the table, and tests create hundreds of tables.
    static DECLARED: OnceLock<TableProperties> = OnceLock::new();
    if let Some(declared) = DECLARED.get() {
        return Ok(declared);
    }
    let declared = read_declared()?;
    Ok(DECLARED.get_or_init(|| declared))
}

fn read_declared() -> Result<TableProperties> {
    let template: Value = yaml_serde::from_str(TEMPLATE).context("can't parse template.yaml")?;
    let properties = template.get("Resources").and_then(|r| r.get("Table")?.get("Properties"));
    let properties = properties.context("template.yaml has no resource Table")?.clone();
    yaml_serde::from_value(properties).context("can't read the resource Table of template.yaml")
}

fn key_schema(parts: &[KeyPart]) -> Result<Vec<KeySchemaElement>> {
    let part = |part: &KeyPart| {
        let key_type = KeyType::from(part.key_type.as_str());
        KeySchemaElement::builder().attribute_name(&part.attribute_name).key_type(key_type).build()
    };
    Ok(parts.iter().map(part).collect::<Result<_, _>>()?)
}

fn index(index: &Index) -> Result<GlobalSecondaryIndex> {
    let projection = Projection::builder()
        .projection_type(ProjectionType::from(index.projection.projection_type.as_str()))
        .set_non_key_attributes(index.projection.non_key_attributes.clone())
        .build();
    let keys = key_schema(&index.key_schema)?;
    Ok(GlobalSecondaryIndex::builder().index_name(&index.index_name).set_key_schema(Some(keys)).projection(projection).build()?)
}

/// Fails when another version created the table with other index attributes, which lists would miss.
async fn check_indexes(client: &Client, name: &str, declared: &TableProperties) -> Result<()> {
    let described = client.describe_table().table_name(name).send().await.context("can't describe the table")?;
    let indexes = described.table().map(|table| table.global_secondary_indexes()).unwrap_or_default();
    for index in &declared.global_secondary_indexes {
        let existing = indexes.iter().find(|existing| existing.index_name() == Some(&index.index_name));
        let existing = existing.and_then(|existing| existing.projection());
        let mut actual: Vec<String> = existing.map(|projection| projection.non_key_attributes().to_vec()).unwrap_or_default();
        let mut expected = index.projection.non_key_attributes.clone().unwrap_or_default();
        actual.sort_unstable();
        expected.sort_unstable();
        if actual != expected {
            bail!(
                "another version created this data: its index {} differs; delete the data folder, or choose another one with --data",
                index.index_name
            );
        }
    }
    Ok(())
}

/// Creates the table, unless it exists. Its stream is enabled only where somebody reads it: [`crate::stream::enable`].
///
/// # Errors
///
/// Returns an error when a call to the engine fails, or when the existing table has other indexes.
pub async fn create(client: &Client, name: &str) -> Result<()> {
    let declared = declared()?;
    let attribute = |a: &Attribute| {
        let kind = ScalarAttributeType::from(a.attribute_type.as_str());
        AttributeDefinition::builder().attribute_name(&a.attribute_name).attribute_type(kind).build()
    };
    let created = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_attribute_definitions(Some(declared.attribute_definitions.iter().map(attribute).collect::<Result<_, _>>()?))
        .set_key_schema(Some(key_schema(&declared.key_schema)?))
        .set_global_secondary_indexes(Some(declared.global_secondary_indexes.iter().map(index).collect::<Result<_>>()?))
        .send()
        .await;
    match created {
        Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_in_use_exception()) => {
            return check_indexes(client, name, declared).await;
        }
        other => other.context("can't create the table")?,
    };
    let ttl =
        TimeToLiveSpecification::builder().attribute_name(&declared.time_to_live_specification.attribute_name).enabled(true);
    client.update_time_to_live().table_name(name).time_to_live_specification(ttl.build()?).send().await?;
    Ok(())
}
