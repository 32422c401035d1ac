//! The copies of the engine's database.

use crate::table;
use crate::table_calls::{TableEngine, TableResponse};
use anyhow::Result;
use serde_json::Value;

/// A copy of the table as of some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    /// All that is committed: for writes, their conditions, and reads of single items.
    Committed,
    /// For queries and batches.
    Visible,
    /// For an index, by its place in the template.
    Index(usize),
}

struct IndexDatabase {
    name: &'static str,
    range_key: &'static str,
    database: TableEngine,
}

pub struct Databases {
    committed: TableEngine,
    visible: TableEngine,
    indexes: Vec<IndexDatabase>,
}

impl Databases {
    pub fn new() -> Result<Self> {
        let mut indexes = Vec::new();
        for index in &table::declared()?.global_secondary_indexes {
            let range_key = index.key_schema.last().map_or("", |part| part.attribute_name.as_str());
            indexes.push(IndexDatabase { name: &index.index_name, range_key, database: TableEngine::in_memory()? });
        }
        Ok(Self { committed: TableEngine::in_memory()?, visible: TableEngine::in_memory()?, indexes })
    }

    /// Place and name of each index, with the attribute that an item needs to be in it.
    pub fn indexes(&self) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
        self.indexes.iter().enumerate().map(|(place, index)| (place, index.name, index.range_key))
    }

    pub fn index(&self, name: &str) -> Option<View> {
        self.indexes.iter().position(|index| index.name == name).map(View::Index)
    }

    pub fn execute(&self, view: View, operation: &str, body: &Value) -> TableResponse {
        let database = match view {
            View::Committed => &self.committed,
            View::Visible => &self.visible,
            View::Index(place) => &self.indexes[place].database,
        };
        database.execute(operation, body.clone())
    }

    /// Executes a call about the table itself on all copies, and returns the response of the committed one. The others have only
    /// the index that they show.
    pub fn execute_on_all(&self, operation: &str, body: &Value) -> TableResponse {
        let shown = std::iter::once((&self.visible, None));
        let indexes = self.indexes.iter().map(|index| (&index.database, Some(index.name)));
        for (database, index) in shown.chain(indexes) {
            let mut body = body.clone();
            if operation == "CreateTable" {
                keep_index(&mut body, index);
            }
            database.execute(operation, body);
        }
        self.committed.execute(operation, body.clone())
    }
}

/// Leaves one index in a CreateTable request, or none, and the attributes that are keys then.
fn keep_index(body: &mut Value, name: Option<&str>) {
    let Some(request) = body.as_object_mut() else { return };
    let mut indexes = request.remove("GlobalSecondaryIndexes").unwrap_or_default();
    if let Some(indexes) = indexes.as_array_mut() {
        indexes.retain(|index| index["IndexName"].as_str() == name);
    }
    let keys = format!("{} {indexes}", request["KeySchema"]);
    if let Some(attributes) = request["AttributeDefinitions"].as_array_mut() {
        attributes.retain(|attribute| keys.contains(&attribute["AttributeName"].to_string()));
    }
    if indexes.as_array().is_some_and(|indexes| !indexes.is_empty()) {
        request.insert("GlobalSecondaryIndexes".to_owned(), indexes);
    }
}
