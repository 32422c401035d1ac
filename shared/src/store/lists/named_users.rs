//! Users by their display names, from the list index.

use crate::domain::people::called::{Called, name_key, only, words};
use crate::domain::user::User;
use crate::domain::values::id::{Id, UserId};
use crate::store::lists::list_index::{Freshness, SortedRows, UserColumns};
use crate::store::{BatchGet, Reader, StoreError};
use fields::compared::compatible;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// The searched texts of a user in the list index.
const DISPLAY_NAME: usize = 0;
const EMAIL: usize = 1;
/// Maximum number of users to compare with a name that no user has.
const MAX_SIMILAR: usize = 6;
/// Maximum number of names for which similar users are looked up.
const MAX_WITH_SIMILAR: usize = 10;
/// Maximum number of users with the same name in an error.
const MAX_SAME: usize = 6;

/// The users that a name could mean.
#[derive(Default)]
struct Candidates {
    /// Users with exactly this name, and whether they are active.
    same: Vec<(Uuid, bool)>,
    similar: Vec<Uuid>,
}

impl Reader {
    /// Finds the only active user with each of these names, in either word order, or addresses. For each other name, returns what is wrong, with
    /// the users that it could mean. Reads nothing without names.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read, or when the list of users is too large.
    pub async fn users_called(&self, names: &BTreeSet<String>) -> Result<HashMap<String, Result<UserId, String>>, StoreError> {
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        let find = |rows: &SortedRows<UserColumns>| find(rows, names);
        let (found, _) = self.with_list_index(Freshness::Refreshed, find).await?;
        let unclear = |found: &&Candidates| found.same.iter().filter(|(_, is_active)| *is_active).count() != 1;
        let shown: Vec<UserId> = found
            .values()
            .filter(unclear)
            .flat_map(|found| found.same.iter().map(|(id, _)| *id).take(MAX_SAME).chain(found.similar.iter().copied()))
            .map(UserId::from_uuid)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let records = self.batch_get(BatchGet::new().with_all::<User>(shown.iter().copied())).await?;
        let called = |id: &Uuid| {
            let user = records.get(Some(UserId::from_uuid(*id))).ok()??;
            let User { id, display_name, email, is_active, .. } = user.value;
            let (display_name, email) = (String::from(display_name), email.as_str().to_owned());
            Some(Called { id: id.to_string(), display_name, email, is_active })
        };
        let decide = |(name, found): (&str, &Candidates)| {
            let active: Vec<Uuid> = found.same.iter().filter(|(_, is_active)| *is_active).map(|(id, _)| *id).collect();
            if let [id] = active.as_slice() {
                return Ok(UserId::from_uuid(*id));
            }
            let mut same: Vec<Called> = found.same.iter().filter_map(|(id, _)| called(id)).collect();
            let mut similar: Vec<Called> = found.similar.iter().filter_map(called).collect();
            [&mut same, &mut similar].into_iter().for_each(|users| users.sort_by(|one, other| one.email.cmp(&other.email)));
            let user = only(name, &same, &similar)?;
            user.id.parse().map_err(|_| "is not the name of a user".to_owned())
        };
        Ok(found.iter().map(|(name, found)| (name.clone(), decide((name, found)))).collect())
    }
}

fn find(rows: &SortedRows<UserColumns>, names: &BTreeSet<String>) -> BTreeMap<String, Candidates> {
    let mut found: BTreeMap<String, Candidates> = names.iter().map(|name| (name.clone(), Candidates::default())).collect();
    let mut by_key = HashMap::<String, Vec<&String>>::new();
    names.iter().for_each(|name| by_key.entry(name_key(name)).or_default().push(name));
    let addresses: HashMap<String, &String> = names.iter().map(|name| (compatible(name.trim()), name)).collect();
    let rows: Vec<_> = rows.iter().collect();
    for row in &rows {
        let of_name = by_key.get(&name_key(row.searched_text(DISPLAY_NAME))).into_iter().flatten();
        for name in of_name.chain(addresses.get(row.searched_text(EMAIL))) {
            found.entry((*name).clone()).or_default().same.push((row.sort_key.id(), row.facet.is_active));
        }
    }
    for (name, found) in found.iter_mut().filter(|(_, found)| found.same.is_empty()).take(MAX_WITH_SIMILAR) {
        let (all, longest) = words(name);
        let has = |text: &str, words: &str| words.split(' ').all(|word| text.contains(word));
        let of = |words: &str| -> Vec<Uuid> {
            let words = compatible(words);
            let is_similar = |text: &str| !words.is_empty() && has(text, &words);
            let similar = rows.iter().filter(|row| is_similar(row.searched_text(DISPLAY_NAME)));
            similar.map(|row| row.sort_key.id()).take(MAX_SIMILAR).collect()
        };
        found.similar = of(&all);
        if let (true, Some(longest)) = (found.similar.is_empty(), longest) {
            found.similar = of(longest);
        }
    }
    found
}
