//! Sealing by AWS KMS: the key never leaves it.

use crate::PURPOSE;
use aws_sdk_kms::Client;
use aws_sdk_kms::config::Builder;
use aws_sdk_kms::config::retry::RetryConfig;
use aws_sdk_kms::config::timeout::TimeoutConfig;
use aws_sdk_kms::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_kms::primitives::Blob;
use aws_smithy_http_client::tls;
use futures_util::future::{BoxFuture, FutureExt};
use shared::domain::id::TenantId;
use shared::seal::{SealError, Sealer};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::OnceCell;

/// As for the table (docs/adr/0003).
const ATTEMPTS: u32 = 3;
const BACKOFF: Duration = Duration::from_millis(50);
const CONNECT: Duration = Duration::from_secs(1);
const ATTEMPT: Duration = Duration::from_secs(2);
const OPERATION: Duration = Duration::from_secs(5);

/// Seals by a KMS key; the tenant is the encryption context, which KMS authenticates and logs.
pub struct KmsSealer {
    /// Made when it is first needed: most cold starts need none.
    client: OnceCell<Client>,
    key: String,
}

impl KmsSealer {
    /// The KMS key `key`, as `client` reaches it.
    #[must_use]
    pub fn new(client: Client, key: String) -> Self {
        Self { client: OnceCell::new_with(Some(client)), key }
    }

    /// The KMS key `key` by the usual AWS environment: region, credentials, `AWS_ENDPOINT_URL_KMS`.
    #[must_use]
    pub fn from_env(key: String) -> Self {
        Self { client: OnceCell::new(), key }
    }

    async fn client(&self) -> &Client {
        self.client.get_or_init(connect).await
    }
}

async fn connect() -> Client {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https();
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest()).http_client(http).load().await;
    Client::from_conf(configure(Builder::from(&config)).build())
}

/// Limits and retries.
#[must_use]
fn configure(config: Builder) -> Builder {
    let retries = RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(BACKOFF);
    config.retry_config(retries).timeout_config(
        TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(ATTEMPT).operation_timeout(OPERATION).build(),
    )
}

fn about(tenant: TenantId) -> HashMap<String, String> {
    HashMap::from([("purpose".to_owned(), PURPOSE.to_owned()), ("tenant_id".to_owned(), tenant.to_string())])
}

fn failed<E>(error: SdkError<E>) -> SealError
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
    if later { SealError::Unavailable(error.into()) } else { SealError::Refused(error.into()) }
}

impl Sealer for KmsSealer {
    fn name(&self) -> &'static str {
        "kms"
    }

    fn seal<'a>(&'a self, tenant: TenantId, secret: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, SealError>> {
        async move {
            let request = self.client().await.encrypt().key_id(&self.key).set_encryption_context(Some(about(tenant)));
            let answer = request.plaintext(Blob::new(secret)).send().await.map_err(failed)?;
            let sealed = answer.ciphertext_blob.ok_or_else(|| SealError::Refused("KMS sealed nothing".into()))?;
            Ok(sealed.into_inner())
        }
        .boxed()
    }

    fn open<'a>(&'a self, tenant: TenantId, sealed: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, SealError>> {
        async move {
            let request = self.client().await.decrypt().key_id(&self.key).set_encryption_context(Some(about(tenant)));
            let answer = request.ciphertext_blob(Blob::new(sealed)).send().await.map_err(failed)?;
            let secret = answer.plaintext.ok_or_else(|| SealError::Refused("KMS opened nothing".into()))?;
            Ok(secret.into_inner())
        }
        .boxed()
    }
}
