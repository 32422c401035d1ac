//! Lists: filter, search, sort, count and cut. The only module that knows how a list gets its candidates.
//!
//! For now it reads every item of the kind, strongly consistent, so that a list right after a write shows it:
//! right for any data, at a cost that grows with the tenant (docs/adr/0005).

use super::TenantStore;
use super::error::StoreError;
use crate::domain::api_key::ApiKey;
use crate::domain::asset::{Asset, Status};
use crate::domain::catalog::{AssetKind, AssetType, Manufacturer, Model};
use crate::domain::id::{AssetId, AssetTypeId, ManufacturerId, ModelId, ProcessId, UserId};
use crate::domain::instance::{Instance, InstanceStatus};
use crate::domain::movement::Movement;
use crate::domain::process::{Process, ProcessStatus};
use crate::domain::record::{Record, Stored};
use crate::domain::scope::{Role, words};
use crate::domain::text::fold;
use crate::domain::time::Date;
use crate::domain::user::User;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Which part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// From 1.
    pub number: u32,
    /// How many things a page has, 1 to 100.
    pub limit: u32,
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    /// The page's things, in the list's order.
    pub items: Vec<T>,
    /// How many things all pages have.
    pub total: usize,
    /// Which page.
    pub page: Page,
}

/// Words that must all occur in some text of a thing, without regard to case.
#[derive(Debug, Clone, Default)]
struct Words(Vec<String>);

impl Words {
    fn of(search: Option<&str>) -> Self {
        Self(fold(search.unwrap_or_default()).split_whitespace().map(str::to_owned).collect())
    }

    fn occur_in(&self, texts: &[Option<&str>]) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let texts: Vec<String> = texts.iter().flatten().map(|text| fold(text)).collect();
        self.0.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }
}

words! {
    /// What assets can be sorted by; `-` before it turns the order round.
    SortField, "created_at, updated_at, name, asset_tag, status, each perhaps with - before it", {
        /// When it was made.
        CreatedAt = "created_at",
        /// When it was last changed.
        UpdatedAt = "updated_at",
        /// Its name, without regard to case.
        Name = "name",
        /// Its tag.
        AssetTag = "asset_tag",
        /// Its status, by the letters of the word.
        Status = "status",
    }
}

/// An order of assets. Equal ones stand by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssetSort {
    field: SortField,
    descending: bool,
}

impl Default for AssetSort {
    /// Newest first.
    fn default() -> Self {
        Self { field: SortField::CreatedAt, descending: true }
    }
}

impl std::str::FromStr for AssetSort {
    type Err = crate::domain::refusal::Refusal;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (descending, field) = text.strip_prefix('-').map_or((false, text), |field| (true, field));
        Ok(Self { field: field.parse()?, descending })
    }
}

impl AssetSort {
    fn compare(self, a: &Stored<Asset>, b: &Stored<Asset>) -> Ordering {
        let order = match self.field {
            SortField::CreatedAt => a.created_at.cmp(&b.created_at),
            SortField::UpdatedAt => a.updated_at.cmp(&b.updated_at),
            SortField::Name => fold(&a.value.name).cmp(&fold(&b.value.name)),
            SortField::AssetTag => a.value.asset_tag.cmp(&b.value.asset_tag),
            SortField::Status => a.value.status.as_str().cmp(b.value.status.as_str()),
        };
        let order = if self.descending { order.reverse() } else { order };
        order.then_with(|| a.value.id.cmp(&b.value.id))
    }
}

/// Which assets a list has. Everything that is set must hold.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /assets")]
pub struct AssetFilter {
    pub q: Option<String>,
    pub status: Option<Status>,
    pub asset_type_id: Option<AssetTypeId>,
    pub kind: Option<AssetKind>,
    pub assigned_to: Option<UserId>,
    pub model_id: Option<ModelId>,
    pub asset_tag: Option<String>,
    pub serial_number: Option<String>,
    pub warranty_before: Option<Date>,
    pub sort: AssetSort,
}

/// Which users a list has.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /users")]
pub struct UserFilter {
    pub q: Option<String>,
    pub role: Option<Role>,
    pub is_active: Option<bool>,
}

/// Which models a list has.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /catalog/models")]
pub struct ModelFilter {
    pub q: Option<String>,
    pub manufacturer_id: Option<ManufacturerId>,
    pub asset_type_id: Option<AssetTypeId>,
}

/// Which definitions a list has.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /processes")]
pub struct ProcessFilter {
    pub status: Option<ProcessStatus>,
}

/// Which runs a list has.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /processes/instances")]
pub struct InstanceFilter {
    /// `None`: all but cancelled ones (contract 7).
    pub status: Option<InstanceStatus>,
    pub asset_id: Option<AssetId>,
    pub process_id: Option<ProcessId>,
}

fn holds<T: PartialEq>(wanted: &Option<T>, has: Option<&T>) -> bool {
    wanted.as_ref().is_none_or(|wanted| has == Some(wanted))
}

impl AssetFilter {
    /// Whether `asset` belongs to the list; `logical` are the types of kind logical.
    fn keeps(&self, words: &Words, logical: &BTreeSet<AssetTypeId>, asset: &Asset) -> bool {
        let kind = match asset.asset_type_id {
            Some(id) if logical.contains(&id) => AssetKind::Logical,
            _ => AssetKind::Physical,
        };
        holds(&self.status, Some(&asset.status))
            && holds(&self.asset_type_id, asset.asset_type_id.as_ref())
            && holds(&self.kind, Some(&kind))
            && holds(&self.assigned_to, asset.assigned_to.as_ref())
            && holds(&self.model_id, asset.model_id.as_ref())
            && holds(&self.asset_tag, Some(&asset.asset_tag))
            && self.serial_number.as_deref().is_none_or(|wanted| asset.serial_number.as_deref() == Some(wanted))
            && self.warranty_before.is_none_or(|day| asset.warranty_until.is_some_and(|until| until < day))
            && words.occur_in(&[Some(&asset.name), Some(&asset.asset_tag), asset.serial_number.as_deref()])
    }
}

/// Counts, and cuts out the page.
fn cut<T>(mut all: Vec<T>, page: Page, compare: impl FnMut(&T, &T) -> Ordering) -> Listed<T> {
    all.sort_unstable_by(compare);
    let total = all.len();
    let limit = page.limit as usize;
    let skip = (page.number as usize).saturating_sub(1).saturating_mul(limit);
    Listed { items: all.into_iter().skip(skip).take(limit).collect(), total, page }
}

/// Newest first, equals by id.
fn newest<T: Record>(a: &Stored<T>, b: &Stored<T>) -> Ordering {
    b.created_at.cmp(&a.created_at).then_with(|| a.value.id().cmp(&b.value.id()))
}

impl TenantStore {
    /// A page of the tenant's assets.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_assets(&self, filter: &AssetFilter, page: Page) -> Result<Listed<Stored<Asset>>, StoreError> {
        let types = async { if filter.kind.is_some() { self.all::<AssetType>().await } else { Ok(Vec::new()) } };
        let (assets, types) = futures_util::try_join!(self.all::<Asset>(), types)?;
        let logical = types.iter().filter(|t| t.value.kind == AssetKind::Logical).map(|t| t.value.id).collect();
        let words = Words::of(filter.q.as_deref());
        let kept = assets.into_iter().filter(|asset| filter.keeps(&words, &logical, &asset.value)).collect();
        Ok(cut(kept, page, |a, b| filter.sort.compare(a, b)))
    }

    /// A page of the tenant's users.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_users(&self, filter: &UserFilter, page: Page) -> Result<Listed<Stored<User>>, StoreError> {
        let words = Words::of(filter.q.as_deref());
        self.list(page, |user: &User| {
            holds(&filter.role, Some(&user.role))
                && holds(&filter.is_active, Some(&user.is_active))
                && words.occur_in(&[Some(&user.display_name), Some(user.email.as_str())])
        })
        .await
    }

    /// A page of the tenant's asset types; `q` searches name and code.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_asset_types(&self, q: Option<&str>, page: Page) -> Result<Listed<Stored<AssetType>>, StoreError> {
        let words = Words::of(q);
        self.list(page, |t: &AssetType| words.occur_in(&[Some(&t.name), Some(t.code.as_str())])).await
    }

    /// A page of the tenant's manufacturers; `q` searches the name.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_manufacturers(&self, q: Option<&str>, page: Page) -> Result<Listed<Stored<Manufacturer>>, StoreError> {
        let words = Words::of(q);
        self.list(page, |maker: &Manufacturer| words.occur_in(&[Some(&maker.name)])).await
    }

    /// A page of the tenant's models; `q` searches the name.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_models(&self, filter: &ModelFilter, page: Page) -> Result<Listed<Stored<Model>>, StoreError> {
        let words = Words::of(filter.q.as_deref());
        self.list(page, |model: &Model| {
            holds(&filter.manufacturer_id, Some(&model.manufacturer_id))
                && holds(&filter.asset_type_id, Some(&model.asset_type_id))
                && words.occur_in(&[Some(&model.name)])
        })
        .await
    }

    /// A page of the tenant's process definitions.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_processes(&self, filter: ProcessFilter, page: Page) -> Result<Listed<Stored<Process>>, StoreError> {
        self.list(page, |process: &Process| holds(&filter.status, Some(&process.status))).await
    }

    /// A page of the tenant's runs.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_instances(&self, filter: InstanceFilter, page: Page) -> Result<Listed<Stored<Instance>>, StoreError> {
        self.list(page, |run: &Instance| {
            let status = run.status();
            let wanted = filter.status.map_or(status != InstanceStatus::Cancelled, |wanted| wanted == status);
            wanted && holds(&filter.asset_id, Some(&run.asset_id)) && holds(&filter.process_id, Some(&run.process_id))
        })
        .await
    }

    /// A page of the tenant's movements.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_movements(&self, page: Page) -> Result<Listed<Stored<Movement>>, StoreError> {
        self.list(page, |_: &Movement| true).await
    }

    /// A page of the tenant's keys.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_keys(&self, page: Page) -> Result<Listed<Stored<ApiKey>>, StoreError> {
        self.list(page, |_: &ApiKey| true).await
    }

    async fn list<T: Record>(&self, page: Page, keeps: impl Fn(&T) -> bool) -> Result<Listed<Stored<T>>, StoreError> {
        let kept = self.all::<T>().await?.into_iter().filter(|stored| keeps(&stored.value)).collect();
        Ok(cut(kept, page, newest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_occur_somewhere() {
        let texts = [Some("Dell XPS 13"), None, Some("SN-äß")];
        assert!(Words::of(Some("xps DELL")).occur_in(&texts));
        assert!(Words::of(Some("ÄSS 13")).occur_in(&texts));
        assert!(Words::of(Some("  ")).occur_in(&[]));
        assert!(!Words::of(Some("dell mac")).occur_in(&texts));
    }

    #[test]
    fn a_page_past_the_end_is_empty_with_the_true_total() {
        let list = cut((0..5).collect(), Page { number: 3, limit: 2 }, Ord::cmp);
        assert_eq!((list.items, list.total), (vec![4], 5));
        let list = cut((0..5).collect(), Page { number: u32::MAX, limit: 100 }, Ord::cmp);
        assert_eq!((list.items, list.total), (vec![], 5));
    }
}
