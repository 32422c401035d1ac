//! Query parameters.

use super::text;
use percent_encoding::percent_decode_str;
use shared::domain::asset::Status;
use shared::domain::catalog::AssetKind;
use shared::domain::field_error::ErrorLocation;
use shared::domain::id::{AssetId, AssetTypeId};
use shared::domain::instance::InstanceStatus;
use shared::domain::scope::Role;
use shared::domain::text::SearchText;
use shared::domain::time::Date;
use shared::http::error::ApiError;
use shared::http::params::{FromQuery, Limit, PageNumber};
use shared::store::AssetSort;
use std::fmt::Write;

shared::query! {
    /// A parameter of each type.
    pub struct Everything {
        /// A page's number.
        page: PageNumber as PageNumber,
        /// A page's length.
        limit: Limit as Limit,
        /// Words.
        q: SearchText as SearchText,
        /// A status of assets.
        status: Status as Status,
        /// A state of runs.
        state: InstanceStatus as InstanceStatus,
        /// Physical or logical.
        kind: AssetKind as AssetKind,
        /// An id.
        asset_id: AssetId as AssetId,
        /// Another.
        asset_type_id: AssetTypeId as AssetTypeId,
        /// A day.
        before: Date as Date,
        /// A role.
        role: Role as Role,
        /// Yes or no.
        active: bool as bool,
        /// An order.
        sort: AssetSort as String,
    }
}

/// A query reads the same when every character of it is escaped; each field_error names a parameter that was sent.
pub fn run(bytes: &[u8]) {
    let query = text(bytes);
    let read = Everything::from_query(query);
    if let Err(ApiError::Malformed(_)) = read {
        return;
    }
    let pairs: Vec<(String, String)> = pairs(query).collect();
    let escaped: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    let again = Everything::from_query(&escaped.join("&"));
    match (read, again) {
        (Ok(read), Ok(again)) => assert_eq!(format!("{read:?}"), format!("{again:?}")),
        (Err(ApiError::Invalid(errors)), Err(ApiError::Invalid(again))) => {
            assert_eq!(errors, again);
            for field_error in errors {
                let ErrorLocation::Parameter(named) = &field_error.location else { unreachable!("{field_error:?}") };
                assert!(pairs.iter().any(|(name, _)| name == named), "{field_error:?}");
            }
        }
        (read, again) => unreachable!("{query:?}: {read:?}, but {again:?}"),
    }
}

/// Names and values, decoded.
fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    let decode = |part: &str| {
        let spaced = part.replace('+', " ");
        percent_decode_str(&spaced).decode_utf8().expect("a query that was accepted is UTF-8").into_owned()
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        let _ = write!(escaped, "%{byte:02X}");
        escaped
    })
}
