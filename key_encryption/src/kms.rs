//! Sealing by AWS KMS: the key never leaves it.

use crate::PURPOSE;
use aws_sdk_kms::Client;
use aws_sdk_kms::config::retry::RetryConfig;
use aws_sdk_kms::config::timeout::TimeoutConfig;
use aws_sdk_kms::config::{BehaviorVersion, Builder, Config};
use aws_sdk_kms::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_kms::primitives::Blob;
use futures_util::future::{BoxFuture, FutureExt};
use shared::domain::id::TenantId;
use shared::key_encryption::{KeyEncryption, KeyEncryptionError};
use shared::store::client::{Environment, EnvironmentError, endpoint, environment};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

/// As for the table (docs/adr/0003).
const ATTEMPTS: u32 = 3;
const BACKOFF: Duration = Duration::from_millis(50);
const CONNECT: Duration = Duration::from_secs(1);
const ATTEMPT: Duration = Duration::from_secs(2);
const OPERATION: Duration = Duration::from_secs(5);

/// Makes a client of KMS.
pub type Connect = dyn Fn() -> Result<Client, KeyEncryptionError> + Send + Sync;

/// Seals by a KMS key; the tenant is the encryption context, which KMS authenticates and logs.
pub struct KmsKeyEncryption {
    /// Made when it is first needed: most cold starts need none.
    client: OnceLock<Client>,
    connect: Box<Connect>,
    key: String,
}

impl KmsKeyEncryption {
    /// The KMS key `key`, as the client of `connect` reaches it.
    #[must_use]
    pub fn new(connect: Box<Connect>, key: String) -> Self {
        Self { client: OnceLock::new(), connect, key }
    }

    fn client(&self) -> Result<&Client, KeyEncryptionError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = (self.connect)()?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// A function's client of KMS, at `AWS_ENDPOINT_URL_KMS` if there is one.
///
/// # Errors
///
/// A variable that Lambda sets is missing.
pub fn client_of_function() -> Result<Client, KeyEncryptionError> {
    let refused = |error: EnvironmentError| KeyEncryptionError::Refused(error.into());
    let Environment { region, credentials, http } = environment().map_err(refused)?;
    let mut config = configure(Config::builder())
        .behavior_version(BehaviorVersion::latest())
        .region(region)
        .credentials_provider(credentials)
        .http_client(http);
    config.set_endpoint_url(endpoint("AWS_ENDPOINT_URL_KMS").map_err(refused)?);
    Ok(Client::from_conf(config.build()))
}

/// Limits and retries.
#[must_use]
pub fn configure(config: Builder) -> Builder {
    let retries = RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(BACKOFF);
    config.retry_config(retries).timeout_config(
        TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(ATTEMPT).operation_timeout(OPERATION).build(),
    )
}

fn about(tenant: TenantId) -> HashMap<String, String> {
    HashMap::from([("purpose".to_owned(), PURPOSE.to_owned()), ("tenant_id".to_owned(), tenant.to_string())])
}

fn failed<E>(error: SdkError<E>) -> KeyEncryptionError
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    const LATER: [&str; 4] =
        ["ThrottlingException", "KMSInternalException", "DependencyTimeoutException", "KeyUnavailableException"];
    let later = match &error {
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => true,
        SdkError::ServiceError(answer) => {
            answer.raw().status().is_server_error() || answer.err().code().is_some_and(|code| LATER.contains(&code))
        }
        _ => false,
    };
    if later { KeyEncryptionError::Unavailable(error.into()) } else { KeyEncryptionError::Refused(error.into()) }
}

impl KeyEncryption for KmsKeyEncryption {
    fn name(&self) -> &'static str {
        "kms"
    }

    fn encrypt_key<'a>(&'a self, tenant: TenantId, secret: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, KeyEncryptionError>> {
        async move {
            let request = self.client()?.encrypt().key_id(&self.key).set_encryption_context(Some(about(tenant)));
            let answer = request.plaintext(Blob::new(secret)).send().await.map_err(failed)?;
            let sealed = answer.ciphertext_blob.ok_or_else(|| KeyEncryptionError::Refused("KMS sealed nothing".into()))?;
            Ok(sealed.into_inner())
        }
        .boxed()
    }

    fn decrypt_key<'a>(&'a self, tenant: TenantId, sealed: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, KeyEncryptionError>> {
        async move {
            let request = self.client()?.decrypt().key_id(&self.key).set_encryption_context(Some(about(tenant)));
            let answer = request.ciphertext_blob(Blob::new(sealed)).send().await.map_err(failed)?;
            let secret = answer.plaintext.ok_or_else(|| KeyEncryptionError::Refused("KMS opened nothing".into()))?;
            Ok(secret.into_inner())
        }
        .boxed()
    }
}
