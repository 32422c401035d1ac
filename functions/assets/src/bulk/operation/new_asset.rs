//! Assets that operations create: their IDs, tags and fields.

use super::{AssetOperation, AssetOutcome, Inputs};
use crate::bulk::write::{Action, AssetWrite};
use crate::inputs::{AssetInputs, change_error, free_tag, taken_tag};
use shared::auth::Principal;
use shared::domain::assets::asset::Asset;
use shared::domain::assets::tag::TagRange;
use shared::domain::record::Record;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::AssetId;
use shared::domain::values::text::Name;
use shared::http::error::ApiError;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Reservations for the asset that an operation may create.
pub(in crate::bulk) struct Reserved {
    id: AssetId,
    tag: Option<String>,
    /// The new asset, without its tag if that is to be generated, until it is attempted.
    draft: Mutex<Option<Asset>>,
}

impl AssetOperation {
    /// Notes the ID and, for a probable creation, the tag and the draft.
    fn reserve(&self, id: AssetId, tag: Option<String>, draft: Option<Asset>) {
        // Only done once.
        let _ = self.reserved.set(Reserved { id, tag, draft: Mutex::new(draft) });
    }

    /// Reserves IDs and tags for the assets that the operations will probably create, both in the order of the operations.
    pub(super) async fn reserve_all(principal: &Principal, operations: &[&Self]) -> Result<(), ApiError> {
        let ids = principal.store.new_ids(principal.context.at, operations.len())?;
        let new_asset = |(operation, id): (&&Self, &AssetId)| operation.new_asset(principal, *id);
        let new_assets: Vec<Option<(Asset, Option<TagRange>)>> = operations.iter().zip(&ids).map(new_asset).collect();
        let (drafts, ranges): (Vec<Option<Asset>>, Vec<Option<TagRange>>) =
            new_assets.into_iter().map(|new| new.map_or((None, None), |(draft, range)| (Some(draft), range))).unzip();
        let mut counts: HashMap<String, (&TagRange, u64)> = HashMap::new();
        for range in ranges.iter().flatten() {
            counts.entry(range.counter()).or_insert((range, 0)).1 += 1;
        }
        let mut next_numbers = HashMap::new();
        for (pattern, (range, count)) in counts {
            next_numbers.insert(pattern, principal.store.next_number(range, count).await? + 1 - count);
        }
        for (((operation, id), draft), range) in operations.iter().zip(ids).zip(drafts).zip(ranges) {
            let tag = match range {
                Some(range) => {
                    let next = next_numbers.entry(range.counter()).or_default();
                    let mut tag = range.tag(*next);
                    *next += 1;
                    if operation.assets.is_brought(&tag)
                        && let Some(draft) = &draft
                    {
                        tag = free_tag(principal, &range, draft, |tag| operation.assets.is_brought(tag)).await?;
                    }
                    Some(tag)
                }
                None => None,
            };
            operation.reserve(id, tag, draft);
        }
        Ok(())
    }

    /// Draft and range of the tag, if the operation creates an asset. An asset that brings its tag has no range.
    fn new_asset(&self, principal: &Principal, id: AssetId) -> Option<(Asset, Option<TagRange>)> {
        let (Action::Write(write), Ok((None, _))) = (&self.action, self.found()) else { return None };
        let inputs = self.assets.inputs(None, &write.change).ok()?;
        let draft = self.draft(principal, write, &inputs, id).ok()?;
        let range = if draft.asset_tag.is_empty() { Some(inputs.tag_range(principal).ok()?) } else { None };
        Some((draft, range))
    }

    /// Creates the asset of a request with one operation.
    ///
    /// # Errors
    ///
    /// As [`Principal::execute`]. A request with errors takes no number.
    pub(crate) async fn create(&self, principal: &Principal, inputs: Inputs) -> Result<AssetOutcome, ApiError> {
        self.reserve(principal.store.new_id(principal.context.at)?, None, None);
        let inputs = self.with_tag(principal, inputs, false).await?;
        principal.execute(self, inputs).await
    }

    /// Adds the new asset of a creation. Unless it brings its tag, it gets one here, once it has no other errors.
    pub(super) async fn with_tag(&self, principal: &Principal, inputs: Inputs, is_retry: bool) -> Result<Inputs, ApiError> {
        let (Action::Write(write), None) = (&self.action, &inputs.asset.asset) else { return Ok(inputs) };
        let reserved = self.reserved.get().ok_or_else(|| ApiError::Internal("an operation without an ID".into()))?;
        let drafted = reserved.draft.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut draft = match drafted.filter(|_| !is_retry) {
            Some(draft) => draft,
            None => self.draft(principal, write, &inputs.asset, reserved.id)?,
        };
        if !draft.asset_tag.is_empty() {
            if is_retry {
                let owners = principal.store.owners::<Asset>(&draft.unique()).await?;
                if let Some(owner) = owners.into_values().find(|owner| *owner != draft.id) {
                    return Err(taken_tag(principal, owner).await?);
                }
            }
            return Ok(Inputs { draft: Some(draft), ..inputs });
        }
        let range = inputs.asset.tag_range(principal)?;
        draft.asset_tag = match &reserved.tag {
            _ if is_retry => free_tag(principal, &range, &draft, |tag| self.assets.is_brought(tag)).await?,
            Some(tag) => tag.clone(),
            None => range.tag(principal.store.next_number(&range, 1).await?),
        };
        Ok(Inputs { draft: Some(draft), ..inputs })
    }

    /// The new asset, without its tag if that is to be generated.
    fn draft(&self, principal: &Principal, write: &AssetWrite, inputs: &AssetInputs, id: AssetId) -> Result<Asset, ApiError> {
        let mut change = write.with_custom_fields(None, inputs);
        write.unchanged.refuse_in_creation(&mut change.errors);
        if change.name.is_none() && !change.errors.iter().any(|error| error.is_about("name")) {
            change.errors.push(FieldError::field("name", "is required"));
        }
        // Without a name there is an error, and no asset; the others are found nevertheless.
        let name = change.name.clone().unwrap_or_else(|| Name::from_stored(String::new()));
        let created = Asset::create(id, name, &change, &inputs.references, &self.validations(principal));
        created.map_err(|error| self.located(write, change_error(error)))
    }
}
