//! Providers that encrypt receipt keys and webhook secrets: AWS KMS or, without it, a key in a file.

mod file;
mod kms;

pub use aws_sdk_kms as sdk;
pub use file::FileKeyEncryption;
pub use kms::{Connect, KmsKeyEncryption, configure, function_client};

use shared::aws::environment::variable;
use shared::key_encryption::KeyEncryption;
use std::path::Path;
use std::sync::Arc;

pub const KMS_KEY: &str = "RECEIPT_KMS_KEY_ID";
pub const KEY_FILE: &str = "RECEIPT_KEY_FILE";

/// Returns the provider configured in the environment: KMS if `RECEIPT_KMS_KEY_ID` is set, otherwise the key file at the path in
/// `RECEIPT_KEY_FILE`; `None` if neither variable is set. `connect` creates the KMS client.
///
/// # Errors
///
/// Returns an I/O error when the key file can't be used.
pub fn from_env(connect: Box<Connect>) -> Result<Option<Arc<dyn KeyEncryption>>, std::io::Error> {
    match (variable(KMS_KEY), variable(KEY_FILE)) {
        (Some(key), _) => Ok(Some(Arc::new(KmsKeyEncryption::new(connect, key)))),
        (None, Some(file)) => Ok(Some(Arc::new(FileKeyEncryption::open(Path::new(&file))?))),
        (None, None) => Ok(None),
    }
}
