//! Who seals the keys that receipts are signed with: AWS KMS where there is one, else a key in a file.

mod file;
mod kms;

pub use aws_sdk_kms as sdk;
pub use file::FileKeyEncryption;
pub use kms::{Connect, KmsKeyEncryption, client_of_function, configure};

use shared::key_encryption::KeyEncryption;
use shared::store::client::set;
use std::path::Path;
use std::sync::Arc;

/// The variable that names the KMS key.
pub const KMS_KEY: &str = "RECEIPT_KMS_KEY_ID";
/// The variable that names the file, where there is no KMS.
pub const KEY_FILE: &str = "RECEIPT_KEY_FILE";
/// What everything sealed here is for; bound to it together with the tenant.
pub const PURPOSE: &str = "asset-lifecycle receipt key";

/// The key_encryption that the environment names; `None` when it names none. `connect` makes a client if that is KMS.
///
/// # Errors
///
/// The file can't be used.
pub fn from_env(connect: Box<Connect>) -> Result<Option<Arc<dyn KeyEncryption>>, std::io::Error> {
    match (set(KMS_KEY), set(KEY_FILE)) {
        (Some(key), _) => Ok(Some(Arc::new(KmsKeyEncryption::new(connect, key)))),
        (None, Some(file)) => Ok(Some(Arc::new(FileKeyEncryption::open(Path::new(&file))?))),
        (None, None) => Ok(None),
    }
}
