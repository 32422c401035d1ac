//! Query parameters.

use super::text;
use percent_encoding::percent_decode_str;
use shared::domain::catalog::AssetKind;
use shared::domain::keys::scope::Role;
use shared::domain::processes::instance::InstanceStatus;
use shared::domain::user::Email;
use shared::domain::values::field_error::ErrorLocation;
use shared::domain::values::id::{AssetId, AssetTypeId};
use shared::domain::values::text::SearchText;
use shared::domain::values::time::{Date, Timestamp};
use shared::http::error::ApiError;
use shared::http::requests::params::{FromQuery, Limit, PageNumber, Params};
use shared::store::{AssetSort, Assignee, Statuses};
use std::fmt::Write;

shared::query! {
    /// A query with a parameter of each type.
    pub struct Everything {
        /// A page number.
        page: PageNumber as PageNumber,
        /// A page size.
        limit: Limit as Limit,
        /// Search text.
        q: SearchText as SearchText,
        /// Asset statuses.
        status: Statuses as Statuses,
        /// A user or none.
        assigned_to: Assignee as Assignee,
        /// A time.
        since: Timestamp as Timestamp,
        /// An address.
        email: Email as Email,
        /// A process instance status.
        state: InstanceStatus as InstanceStatus,
        /// An asset kind.
        kind: AssetKind as AssetKind,
        /// An id.
        asset_id: AssetId as AssetId,
        /// Another id.
        asset_type_id: AssetTypeId as AssetTypeId,
        /// A date.
        before: Date as Date,
        /// A role.
        role: Role as Role,
        /// A boolean.
        active: bool as bool,
        /// A sort order.
        sort: AssetSort as String,
    }
}

/// Percent-encoding every character doesn't change the result, and every error names a parameter of the query.
pub fn run(bytes: &[u8]) {
    let query = text(bytes);
    let read = read_query(query);
    if let Err(ApiError::Malformed(_)) = read {
        return;
    }
    let pairs: Vec<(String, String)> = pairs(query).collect();
    let escaped: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    let again = read_query(&escaped.join("&"));
    match (read, again) {
        (Ok(read), Ok(again)) => assert_eq!(format!("{read:?}"), format!("{again:?}")),
        (Err(ApiError::Invalid(errors)), Err(ApiError::Invalid(again))) => {
            assert_eq!(errors, again);
            for field_error in errors {
                let ErrorLocation::Parameter(parameter) = &field_error.location else { unreachable!("{field_error:?}") };
                assert!(pairs.iter().any(|(name, _)| name == parameter), "{field_error:?}");
            }
        }
        (read, again) => unreachable!("{query:?}: {read:?}, but {again:?}"),
    }
}

fn read_query(query: &str) -> Result<Everything, ApiError> {
    Everything::from_params(Params::parse(query)?)
}

/// Decoded names and values.
fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    let decode = |part: &str| {
        let with_spaces = part.replace('+', " ");
        percent_decode_str(&with_spaces).decode_utf8().expect("a query that was accepted is UTF-8").into_owned()
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

/// Percent-encodes every byte.
fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        let _ = write!(escaped, "%{byte:02X}");
        escaped
    })
}
