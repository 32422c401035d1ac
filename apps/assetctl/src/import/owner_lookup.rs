//! Looks up the users that a file has by their names.

use crate::error::Result;
use crate::http::client::Client;
use crate::import::args::Import;
use crate::import::columns::owners::Owners;
use crate::import::columns::{Columns, OWNER_NAME, Target};
use crate::import::source::Source;
use crate::output::count;
use crate::people::Directory;
use std::collections::BTreeSet;
use terminal::Notice;

/// So few names are searched, each with a request or two. For more, all users are read, mostly with one request: to the service,
/// that of 500 users costs as much as a search.
const FEW: usize = 10;

/// Looks each name up once, however many rows have it. Without a column of names, nothing is sent.
pub async fn find_owners(client: &Client, source: &Source, options: &Import, columns: &Columns) -> Result<Owners> {
    let (names, mut owners) = (names(source, options, columns)?, Owners::default());
    let _notice =
        (!names.is_empty()).then(|| Notice::show(&format!("Looking up {} of users", count(names.len() as u64, "name"))));
    let directory = if names.len() <= FEW { Directory::Service(client) } else { Directory::read(client).await? };
    for name in &names {
        owners.add(name, directory.find(name).await?);
    }
    Ok(owners)
}

/// All that rows have after `--map-value`.
fn names(source: &Source, options: &Import, columns: &Columns) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut targets = columns.targets.iter().zip(&source.names);
    let is_owner = |target: &Target| matches!(target, Target::Field(field) if field == OWNER_NAME);
    let Some((_, column)) = targets.find(|(target, _)| is_owner(target)) else { return Ok(names) };
    let mut rows = source.rows(options, columns)?;
    while let Some(row) = rows.next()? {
        let cell = row.original.text(&source.names, column).unwrap_or_default();
        // One that is ambiguous is the row's error.
        let name = columns.fields.values.translate(column, &cell).unwrap_or_default().trim();
        if !name.is_empty() && name != "\\N" {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}
