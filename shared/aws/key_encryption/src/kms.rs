//! Encryption with AWS KMS. The KMS key never leaves KMS.

use aws_sdk_kms::Client;
use aws_sdk_kms::config::{BehaviorVersion, Builder, Config};
use aws_sdk_kms::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_kms::primitives::Blob;
use futures_util::future::FutureExt;
use shared::aws::environment::{EnvironmentError, endpoint, function_environment, limits};
use shared::domain::values::id::TenantId;
use shared::key_encryption::{KeyBytes, KeyEncryption, KeyEncryptionError, Purpose};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Error codes to retry, besides HTTP 5xx.
const RETRYABLE_CODES: [&str; 4] =
    ["ThrottlingException", "KMSInternalException", "DependencyTimeoutException", "KeyUnavailableException"];

pub type Connect = dyn Fn() -> Result<Client, KeyEncryptionError> + Send + Sync;

/// Encrypts with a KMS key. The tenant is in the encryption context, which KMS authenticates and logs.
pub struct KmsKeyEncryption {
    /// The KMS client, created on first use: most cold starts don't need it.
    client: OnceLock<Client>,
    connect: Box<Connect>,
    key_id: String,
}

impl KmsKeyEncryption {
    #[must_use]
    pub fn new(connect: Box<Connect>, key_id: String) -> Self {
        Self { client: OnceLock::new(), connect, key_id }
    }

    fn client(&self) -> Result<&Client, KeyEncryptionError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = (self.connect)()?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// Creates the KMS client of a Lambda function. `AWS_ENDPOINT_URL_KMS` can override its endpoint.
///
/// # Errors
///
/// Returns [`KeyEncryptionError::Rejected`] when a variable that Lambda sets is missing or invalid.
pub fn function_client() -> Result<Client, KeyEncryptionError> {
    let rejected = |error: EnvironmentError| KeyEncryptionError::Rejected(error.into());
    let environment = function_environment().map_err(rejected)?;
    let mut config = configure(Config::builder())
        .behavior_version(BehaviorVersion::latest())
        .http_client(environment.http_client())
        .region(environment.region)
        .credentials_provider(environment.credentials);
    config.set_endpoint_url(endpoint("AWS_ENDPOINT_URL_KMS").map_err(rejected)?);
    Ok(Client::from_conf(config.build()))
}

/// Sets the timeouts and retries of every KMS client.
#[must_use]
pub fn configure(config: Builder) -> Builder {
    let (retries, timeouts) = limits();
    config.retry_config(retries).timeout_config(timeouts)
}

fn encryption_context(purpose: Purpose, tenant: TenantId) -> HashMap<String, String> {
    HashMap::from([("purpose".to_owned(), purpose.as_str().to_owned()), ("tenant_id".to_owned(), tenant.to_string())])
}

fn key_encryption_error<E>(error: SdkError<E>) -> KeyEncryptionError
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let retryable = match &error {
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => true,
        SdkError::ServiceError(response) => {
            response.raw().status().is_server_error() || response.err().code().is_some_and(|code| RETRYABLE_CODES.contains(&code))
        }
        _ => false,
    };
    if retryable { KeyEncryptionError::Unavailable(error.into()) } else { KeyEncryptionError::Rejected(error.into()) }
}

impl KeyEncryption for KmsKeyEncryption {
    fn name(&self) -> &'static str {
        "kms"
    }

    fn encrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, secret: &'a [u8]) -> KeyBytes<'a> {
        async move {
            let request =
                self.client()?.encrypt().key_id(&self.key_id).set_encryption_context(Some(encryption_context(purpose, tenant)));
            let response = request.plaintext(Blob::new(secret)).send().await.map_err(key_encryption_error)?;
            let ciphertext = response.ciphertext_blob;
            ciphertext.map(Blob::into_inner).ok_or_else(|| KeyEncryptionError::Rejected("KMS returned no ciphertext".into()))
        }
        .boxed()
    }

    fn decrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, ciphertext: &'a [u8]) -> KeyBytes<'a> {
        async move {
            let request =
                self.client()?.decrypt().key_id(&self.key_id).set_encryption_context(Some(encryption_context(purpose, tenant)));
            let response = request.ciphertext_blob(Blob::new(ciphertext)).send().await.map_err(key_encryption_error)?;
            let secret = response.plaintext;
            secret.map(Blob::into_inner).ok_or_else(|| KeyEncryptionError::Rejected("KMS returned no plaintext".into()))
        }
        .boxed()
    }
}
