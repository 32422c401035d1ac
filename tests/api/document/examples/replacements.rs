//! Replacements for random texts in requests and responses: the same in every run.

use serde_json::Value;
use sha2::{Digest, Sha512};
use shared::domain::keys::token::{BearerToken, Credential, LinkToken, Secret, Token};
use shared::domain::values::hex;
use shared::domain::values::id::{ApiKeyId, Id, TenantId};
use std::collections::HashMap;
use uuid::Uuid;

/// The prefix of the secrets of webhooks. Standard base64 follows, which is more than one word.
const WEBHOOK_SECRET: &str = "whsec_";

/// What stands before the random end of a pseudonym.
const PSEUDONYM: &str = "Erased user ";

/// Replaces each random token by another one of the same form: the same token always by the same. Times need no
/// replacement, since the clock of the scenario stands still during a request.
#[derive(Default)]
pub struct Replacements {
    known: HashMap<String, String>,
    counts: HashMap<String, u32>,
}

impl Replacements {
    /// Replaces random words in all texts of a JSON value.
    pub fn replace(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(members) => {
                *members = std::mem::take(members).into_iter().map(|(name, member)| (self.text(&name), member)).collect();
                members.values_mut().for_each(|member| self.replace(member));
            }
            _ => {}
        }
    }

    /// Replaces random words: they have the characters of base64url.
    fn text(&mut self, text: &str) -> String {
        if text.starts_with(WEBHOOK_SECRET) {
            return self.webhook_secret(text);
        }
        if let Some(end) = text.strip_prefix(PSEUDONYM) {
            let end = self.known.get(end).cloned().unwrap_or_else(|| hex::encode(&self.noise("pseudonym")[..4]));
            return format!("{PSEUDONYM}{end}");
        }
        let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let mut replaced = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(is_inside) {
            let (between, word) = rest.split_at(start);
            let (word, after) = word.split_at(word.find(|c| !is_inside(c)).unwrap_or(word.len()));
            replaced += between;
            replaced += &self.word(word);
            rest = after;
        }
        replaced + rest
    }

    /// A readable text of the same length.
    fn webhook_secret(&mut self, text: &str) -> String {
        let number = self.counts.entry("webhook secret".to_owned()).or_default();
        let known = self.known.entry(text.to_owned()).or_insert_with(|| {
            *number += 1;
            let bytes = format!("example secret number {number:010}");
            format!("{WEBHOOK_SECRET}{}", base64_simd::STANDARD.encode_to_string(bytes))
        });
        known.clone()
    }

    fn word(&mut self, word: &str) -> String {
        if let Some(known) = self.known.get(word) {
            return known.clone();
        }
        let replacement = self.replacement(word);
        self.known.insert(word.to_owned(), replacement.clone());
        replacement
    }

    /// The word itself if it isn't random.
    fn replacement(&mut self, word: &str) -> String {
        if let Some(token) = Token::parse(word) {
            return self.credential(&token);
        }
        if let Some(token) = LinkToken::parse(word) {
            return self.credential(&token);
        }
        if let Some(id) = Uuid::try_parse(word).ok().filter(|_| word.len() == 36) {
            return self.id(id).to_string();
        }
        match (word.len(), word.split_once('-')) {
            (64, _) if is_hex(word) => hex::encode(&self.noise("hash")[..32]),
            // A salt.
            (22, _) if base64_simd::URL_SAFE_NO_PAD.decode_to_vec(word).is_ok_and(|bytes| bytes.len() == 16) => {
                base64_simd::URL_SAFE_NO_PAD.encode_to_string(&self.noise("salt")[..16])
            }
            // The thumbprint and the coordinate of a public key, and a signature.
            (43, _) => base64_simd::URL_SAFE_NO_PAD.encode_to_string(&self.noise("public key")[..32]),
            (86, _) => base64_simd::URL_SAFE_NO_PAD.encode_to_string(self.noise("signature")),
            // An entity tag.
            (_, Some((version, hash))) if hash.len() == 16 && is_hex(hash) && version.parse::<u64>().is_ok() => {
                format!("{version}-{}", hex::encode(&self.noise("entity tag")[..8]))
            }
            _ => word.to_owned(),
        }
    }

    /// Replaces the random bits of an ID, but not its time.
    fn id(&mut self, id: Uuid) -> Uuid {
        let millis = u64::try_from(id.as_u128() >> 80).unwrap();
        let noise = self.noise(&format!("id {millis}"));
        uuid::Builder::from_unix_timestamp_millis(millis, noise[..10].try_into().unwrap()).into_uuid()
    }

    /// With the same IDs, replaced, and an invalid checksum, so that nobody takes it for a leaked one.
    fn credential<C: Credential>(&mut self, token: &BearerToken<C>) -> String {
        let mut id = |id: Uuid| self.word(&id.to_string()).parse().unwrap();
        let (own, tenant) = (C::from_uuid(id(token.id.uuid())), TenantId::from_uuid(id(token.tenant.uuid())));
        let secret = Secret::new(self.noise("secret")[..32].try_into().unwrap());
        let mut text = BearerToken::new(tenant, own, secret).expose();
        let last = if text.pop() == Some('0') { '1' } else { '0' };
        text.push(last);
        text
    }

    /// Bytes that depend only on the kind and its count.
    fn noise(&mut self, kind: &str) -> [u8; 64] {
        let count = self.counts.entry(kind.to_owned()).or_default();
        *count += 1;
        Sha512::digest(format!("{kind} {count}")).into()
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[test]
fn random_words_become_others_of_the_same_form_and_the_rest_stays() {
    let id = |last: u8| format!("019cbd98-9a00-7abc-8def-0123456789{last:02x}");
    let key = |last: u8| {
        let id = id(last).parse().unwrap();
        Token::new(TenantId::from_uuid(id), ApiKeyId::from_uuid(id), Secret::new([last; 32])).expose()
    };
    let mut replacements = Replacements::default();
    let text = format!("/v1/assets/{}?q=MacBook-Pro_14 \"3-0123456789abcdef\" {} {}", id(1), key(1), "ab".repeat(32));
    let replaced = replacements.text(&text);
    assert_eq!(replacements.text(&text), replaced, "the same words become the same");
    let words: Vec<&str> = replaced.split([' ', '/', '?', '"']).collect();
    assert_eq!((words[1], words[2], words[4]), ("v1", "assets", "q=MacBook-Pro_14"));
    let replaced_id: Uuid = words[3].parse().unwrap();
    assert!(words[3].starts_with("019cbd98-9a00-7") && words[3] != id(1), "{replaced_id}");
    assert_eq!(replaced_id.get_version_num(), 7);
    assert!(words[6].starts_with("3-") && words[6].len() == 18 && !text.contains(words[6]), "{}", words[6]);
    assert!(words[8].starts_with("apl_") && words[8].len() == 98 && Token::parse(words[8]).is_none());
    assert_eq!(words[8][..26], format!("apl_{}", ApiKeyId::from_uuid(replaced_id).short()));
    assert!(words[9].len() == 64 && is_hex(words[9]) && !text.contains(words[9]));
    assert_ne!(replacements.text(&id(2)), replacements.text(&id(1)));
}
