//! Finds the assets that tags, serial numbers, IDs and scanned codes mean.

use shared::domain::assets::asset::Asset;
use shared::domain::assets::code::{AssetKey, Candidate, candidates};
use shared::domain::record::Stored;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::values::id::AssetId;
use shared::http::responses::ApiError;
use shared::store::{BatchGet, BatchResult, Reader, SerialMatch};
use std::collections::{BTreeSet, HashMap};

/// What identifies an asset in a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Identifier {
    Key(AssetKey),
    /// Whatever a scanner typed.
    Code(String),
}

pub(crate) enum Match {
    Asset {
        asset: Box<Stored<Asset>>,
        /// Whether the code is an address at an unknown host.
        is_foreign: bool,
    },
    /// The assets with an ambiguous serial number.
    Several(Vec<Stored<Asset>>),
    Nothing,
}

/// Returns the assets that a code can mean: several if a serial number is ambiguous.
pub(crate) async fn assets_of_code(store: &Reader, code: String, base_url: &str) -> Result<BTreeSet<AssetId>, ApiError> {
    let lookup = Lookup::read(store, &[Identifier::Code(code)], base_url).await?;
    Ok(match lookup.find(0)? {
        Match::Asset { asset, .. } => BTreeSet::from([asset.value.id]),
        Match::Several(assets) => assets.iter().map(|asset| asset.value.id).collect(),
        Match::Nothing => BTreeSet::new(),
    })
}

/// The assets of several identifiers.
pub(crate) struct Lookup {
    candidates: Vec<Vec<Candidate>>,
    owners: HashMap<String, AssetId>,
    by_serial: HashMap<String, SerialMatch>,
    records: BatchResult,
}

impl Lookup {
    /// Looks all identifiers up together. Takes two round trips for tags and IDs, two more for serial numbers (more if the list
    /// index isn't in memory), and one more for addresses.
    pub(crate) async fn read(store: &Reader, identifiers: &[Identifier], base_url: &str) -> Result<Self, ApiError> {
        let has_address =
            identifiers.iter().any(|identifier| matches!(identifier, Identifier::Code(code) if code.contains("://")));
        let template = match has_address {
            true => store.get::<Tenant>(store.id()).await?.and_then(|tenant| tenant.value.label_url_template),
            false => None,
        };
        let of = |identifier: &Identifier| match identifier {
            Identifier::Key(key) => vec![Candidate::from(key.clone())],
            Identifier::Code(code) => candidates(code, template.as_ref(), base_url),
        };
        let candidates: Vec<Vec<Candidate>> = identifiers.iter().map(of).collect();
        let tags: BTreeSet<&str> = candidates.iter().flatten().filter_map(|candidate| tag(&candidate.key)).collect();
        let tags: Vec<_> = tags.into_iter().map(Asset::unique_tag).collect();
        let owners = store.owners::<Asset>(&tags).await?;
        // A taken tag ends the search, even if its asset is deleted.
        let is_taken = |candidate: &Candidate| tag(&candidate.key).is_some_and(|tag| owners.contains_key(tag));
        let open = || candidates.iter().flat_map(|candidates| candidates.iter().take_while(|candidate| !is_taken(candidate)));
        let serials = open()
            .filter_map(|candidate| if let AssetKey::Serial(serial) = &candidate.key { Some(serial.clone()) } else { None });
        let ids = open().filter_map(|candidate| if let AssetKey::Id(id) = candidate.key { Some(id) } else { None });
        let ids: BTreeSet<AssetId> = ids.chain(owners.values().copied()).collect();
        let (serials, assets) = (serials.collect(), BatchGet::new().with_all::<Asset>(ids));
        let by_serial = async { store.assets_by_serial(&serials).await };
        let (by_serial, records) = tokio::try_join!(by_serial, store.batch_get(assets))?;
        Ok(Self { candidates, owners, by_serial, records })
    }

    /// Returns the asset that the text with this index means.
    pub(crate) fn find(&self, index: usize) -> Result<Match, ApiError> {
        for Candidate { key, is_foreign } in self.candidates.get(index).into_iter().flatten() {
            let (asset, is_last) = match key {
                AssetKey::Tag(tag) => {
                    let owner = self.owners.get(tag).copied();
                    (self.records.get::<Asset>(owner)?, owner.is_some())
                }
                AssetKey::Id(id) => (self.records.get::<Asset>(Some(*id))?, false),
                AssetKey::Serial(serial) => {
                    let found = self.by_serial.get(serial).cloned().unwrap_or_default();
                    if let Some(record) = found.unreadable {
                        return Err(ApiError::Unreadable(record));
                    }
                    if found.assets.len() > 1 {
                        return Ok(Match::Several(found.assets));
                    }
                    (found.assets.into_iter().next(), false)
                }
            };
            match asset {
                Some(asset) => return Ok(Match::Asset { asset: Box::new(asset), is_foreign: *is_foreign }),
                None if is_last => break,
                None => {}
            }
        }
        Ok(Match::Nothing)
    }
}

fn tag(key: &AssetKey) -> Option<&str> {
    if let AssetKey::Tag(tag) = key { Some(tag) } else { None }
}
