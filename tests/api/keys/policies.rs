//! The permissions to encrypt and decrypt signing keys and secrets.

use crate::deployment::policies::{statements, texts};
use crate::support::functions::{resource, resources};
use shared::key_encryption::Purpose;

/// The engine has no KMS. Other tests show the requests to it; this one shows that the roles allow it. No function can decrypt
/// keys for another purpose: the API can't read the secrets of webhooks, and `deliver` can't sign receipts.
#[test]
fn each_function_may_use_the_kms_key_for_its_own_purpose_only() {
    for function in resources() {
        let statements = statements(function);
        let found: Vec<_> = statements
            .iter()
            .filter(|statement| texts(&statement["Action"]).iter().any(|action| action.starts_with("kms:")))
            .collect();
        let variables = &resource(&format!("{function}Function"))["Properties"]["Environment"]["Variables"];
        let variable = variables.get(key_encryption::KMS_KEY);
        let (actions, purpose): (&[&str], Purpose) = match function {
            "Processes" | "Sign" => (&["kms:Encrypt", "kms:Decrypt"], Purpose::ReceiptKey),
            "Webhooks" => (&["kms:Encrypt"], Purpose::WebhookSecret),
            "Deliver" => (&["kms:Decrypt"], Purpose::WebhookSecret),
            _ => {
                assert!(found.is_empty() && variable.is_none(), "{function}");
                continue;
            }
        };
        let [statement] = found.as_slice() else { panic!("{function}: {found:?}") };
        assert_eq!(texts(variable.unwrap()), ["ReceiptKey.Arn"], "{function}");
        assert_eq!(texts(&statement["Resource"]), ["ReceiptKey.Arn"], "{function}");
        assert_eq!(texts(&statement["Action"]), actions, "{function}");
        let condition = statement["Condition"].as_mapping().unwrap();
        assert_eq!((condition.len(), condition["StringEquals"].as_mapping().unwrap().len()), (1, 1), "{function}");
        assert_eq!(condition["StringEquals"]["kms:EncryptionContext:purpose"], purpose.as_str(), "{function}");
    }
}
