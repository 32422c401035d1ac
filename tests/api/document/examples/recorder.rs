//! Records a scenario whose requests and responses become the examples in the OpenAPI document.

use crate::support::prelude::*;
use sha2::{Digest, Sha512};
use shared::domain::keys::api_key::{BearerToken, Credential};
use std::rc::Rc;

pub fn id(resource: &Value) -> String {
    resource["id"].as_str().unwrap().to_owned()
}

/// A body and its position in the scenario.
type Body = (usize, Value);

type Bodies = BTreeMap<String, Body>;

#[derive(Default)]
struct Recorded {
    request: Bodies,
    /// Responses by status.
    responses: BTreeMap<String, Bodies>,
}

#[derive(Default)]
struct Recording {
    bodies: usize,
    /// Examples by operation ID.
    operations: BTreeMap<String, Recorded>,
    /// Problem documents by code.
    problems: BTreeMap<String, Body>,
    /// Event bodies by kind, such as `asset.*`.
    webhooks: BTreeMap<String, Body>,
}

impl Recording {
    fn body(&mut self, media_type: &str, text: &str) -> Body {
        self.bodies += 1;
        let is_json = media_type == "application/json";
        (self.bodies, if is_json { serde_json::from_str(text).unwrap() } else { text.into() })
    }
}

/// Adds a body, unless there already is one of this media type. Returns whether the body was added.
fn add(bodies: &mut Bodies, media_type: &str, body: Body) -> bool {
    let is_new = !bodies.contains_key(media_type);
    bodies.entry(media_type.to_owned()).or_insert(body);
    is_new
}

/// A scenario, continued with one API key.
#[derive(Clone)]
pub struct Scenario {
    pub api: Rc<Api>,
    pub client: Client,
    document: Rc<Value>,
    recording: Rc<RefCell<Recording>>,
}

impl Scenario {
    /// Starts a company's scenario at 10:00.
    pub async fn begin() -> Self {
        let api = Api::start().await;
        api.stop_clock();
        let client = api.limited_tenant(600).await;
        let document = serde_json::to_value(dev_server::document::document(Default::default()).unwrap()).unwrap();
        Self { api: Rc::new(api), client, document: Rc::new(document), recording: Rc::default() }
    }

    pub fn by(&self, client: Client) -> Self {
        Self { client, ..self.clone() }
    }

    /// Sets the clock to a later time of the same day.
    pub fn at(&self, time: &str) {
        let (hours, minutes) = time.split_once(':').unwrap();
        let minute = hours.parse::<i64>().unwrap() * 60 + minutes.parse::<i64>().unwrap();
        let passed = self.api.now().millis().rem_euclid(24 * 3_600_000);
        assert!(passed <= minute * 60_000, "{time} has passed");
        self.api.advance_clock_millis(minute * 60_000 - passed);
    }

    /// Sends a request half a minute later, without recording it. Returns the resource.
    pub async fn prepare(&self, path: &str, body: Value) -> Value {
        self.api.advance_clock(30);
        self.client.post(path, body).await.data()
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.send("POST", path, "application/json", &body.to_string()).await.data()
    }

    pub async fn patch(&self, path: &str, body: Value) -> Value {
        self.send("PATCH", path, "application/json", &body.to_string()).await.data()
    }

    pub async fn put(&self, path: &str, body: Value) -> Value {
        self.send("PUT", path, "application/json", &body.to_string()).await.data()
    }

    pub async fn delete(&self, path: &str) {
        self.send("DELETE", path, "", "").await;
    }

    /// Sends a request half a minute later, and records bodies of new kinds.
    pub async fn send(&self, method: &str, path: &str, media_type: &str, body: &str) -> Reply {
        self.api.advance_clock(30);
        let content_type = Some(media_type).filter(|media_type| !media_type.is_empty());
        let reply = self.client.send(method, path, content_type, body.to_owned()).await;
        assert!(reply.status.is_success(), "{method} {path}: {}", reply.text());
        let id = operation_id(&self.document, method, path);
        let mut recording = self.recording.borrow_mut();
        let response_type = reply.header("content-type").split(';').next().unwrap();
        let (sent, received) = (recording.body(media_type, body), recording.body(response_type, reply.text()));
        let operation = recording.operations.entry(id).or_default();
        let of_status = operation.responses.entry(reply.status.as_str().to_owned()).or_default();
        let is_new_response = add(of_status, response_type, received);
        let is_new_request = !body.is_empty() && add(&mut operation.request, media_type, sent);
        assert!(is_new_request || is_new_response, "{method} {path} already has an example: send this request with `prepare`");
        drop(recording);
        reply
    }

    #[track_caller]
    pub fn problem(&self, reply: &Reply, status: u16, code: &str) {
        let problem = reply.problem(status, code);
        let mut recording = self.recording.borrow_mut();
        let body = recording.body("application/json", &problem.to_string());
        assert!(recording.problems.insert(code.to_owned(), body).is_none(), "{code} already has an example");
    }

    /// Records the shortest of these bodies for each kind of event.
    pub fn deliveries(&self, mut bodies: Vec<String>) {
        // Among bodies of equal length, picks the first by resource name, because IDs are in random order.
        bodies.sort_by_cached_key(|body| (body.len(), body.split_once("\"entity_name\"").map(|(_, end)| end.to_owned())));
        let mut recording = self.recording.borrow_mut();
        for text in bodies {
            let body = recording.body("application/json", &text);
            let event_type = body.1["type"].as_str().unwrap();
            let kind = format!("{}.*", event_type.split_once('.').unwrap().0);
            recording.webhooks.entry(kind).or_insert(body);
        }
    }

    /// Returns all recorded examples, with the same IDs and hashes in each run.
    pub fn end(self) -> Value {
        let mut recording = self.recording.borrow_mut();
        let Recording { operations, problems, webhooks, .. } = &mut *recording;
        let of_operations = operations.values_mut().flat_map(|operation| {
            let responses = operation.responses.values_mut().flat_map(BTreeMap::values_mut);
            operation.request.values_mut().chain(responses)
        });
        let mut bodies: Vec<&mut Body> = of_operations.chain(problems.values_mut()).chain(webhooks.values_mut()).collect();
        bodies.sort_by_key(|(number, _)| *number);
        let mut replacements = Replacements::default();
        bodies.into_iter().for_each(|(_, body)| replacements.replace(body));
        let values = |bodies: &Bodies| -> Value { bodies.iter().map(|(name, (_, body))| (name.clone(), body.clone())).collect() };
        let examples = |(id, operation): (&String, &Recorded)| {
            let responses = operation.responses.iter().map(|(status, bodies)| (status.clone(), values(bodies)));
            let mut examples = json!({"request": values(&operation.request), "responses": responses.collect::<Value>()});
            if operation.request.is_empty() {
                examples.as_object_mut().unwrap().remove("request");
            }
            (id.clone(), examples)
        };
        json!({"operations": operations.iter().map(examples).collect::<Value>(), "problems": values(problems), "webhooks": values(webhooks)})
    }
}

/// Returns the ID of the matching operation with the fewest path parameters.
fn operation_id(document: &Value, method: &str, path: &str) -> String {
    let method = method.to_lowercase();
    let path = path.split('?').next().unwrap();
    let matches = |template: &str| {
        let is_same = |(part, of_path): (&str, &str)| part == of_path || part.starts_with('{');
        template.split('/').count() == path.split('/').count() && template.split('/').zip(path.split('/')).all(is_same)
    };
    let paths = document["paths"].as_object().unwrap().iter();
    let found = paths.filter(|(template, item)| matches(template) && item.get(&method).is_some());
    let (_, item) = found.min_by_key(|(template, _)| template.matches('{').count()).unwrap_or_else(|| panic!("no {path}"));
    item[&method]["operationId"].as_str().unwrap().to_owned()
}

/// Prefix of webhook secrets, which are replaced as a whole: they are standard base64, which contains characters that separate
/// words.
const WEBHOOK_SECRET: &str = "whsec_";

/// Text before the random end of a pseudonym.
const PSEUDONYM: &str = "Erased user ";

/// Replaces each random token with a token of the same form, and equal tokens with equal ones. Times need no replacement, because
/// the scenario's clock is stopped during a request.
#[derive(Default)]
struct Replacements {
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

    /// Replaces random words of base64url characters.
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

    /// Returns a readable text of the same length.
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

    /// Returns the replacement, or the word itself if it isn't random.
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
        match (word.len(), entity_tag(word)) {
            (64, _) if is_hex(word) => hex::encode(&self.noise("hash")[..32]),
            // A salt of a commitment.
            (22, _) if base64_simd::URL_SAFE_NO_PAD.decode_to_vec(word).is_ok_and(|bytes| bytes.len() == 16) => {
                base64_simd::URL_SAFE_NO_PAD.encode_to_string(&self.noise("salt")[..16])
            }
            // The thumbprint and the coordinate of a public key, or a signature.
            (43, _) => base64_simd::URL_SAFE_NO_PAD.encode_to_string(&self.noise("public key")[..32]),
            (86, _) => base64_simd::URL_SAFE_NO_PAD.encode_to_string(self.noise("signature")),
            // The tags of a record's versions have the same hash of the record.
            (_, Some((version, record))) => {
                let known = format!("record {record}");
                if !self.known.contains_key(&known) {
                    let hash = hex::encode(&self.noise("record")[..6]);
                    self.known.insert(known.clone(), hash);
                }
                let body = hex::encode(&self.noise("entity tag")[..8]);
                format!("{version}-{}-{body}", self.known[&known])
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

    /// Replaces a credential's IDs and secret. The checksum becomes invalid, so that nobody mistakes the example for a leaked
    /// credential.
    fn credential<C: Credential>(&mut self, token: &BearerToken<C>) -> String {
        let mut id = |id: Uuid| self.word(&id.to_string()).parse().unwrap();
        let (own, tenant) = (C::from_uuid(id(token.id.uuid())), TenantId::from_uuid(id(token.tenant.uuid())));
        let secret = Secret::new(self.noise("secret")[..32].try_into().unwrap());
        let mut text = BearerToken::new(tenant, own, secret).expose();
        let last = if text.pop() == Some('0') { '1' } else { '0' };
        text.push(last);
        text
    }

    /// Bytes that depend only on the kind and the number of earlier values.
    fn noise(&mut self, kind: &str) -> [u8; 64] {
        let count = self.counts.entry(kind.to_owned()).or_default();
        *count += 1;
        Sha512::digest(format!("{kind} {count}")).into()
    }
}

/// Returns the version and the hash of the record in an entity tag such as `3-0123456789ab-0123456789abcdef`.
fn entity_tag(word: &str) -> Option<(&str, &str)> {
    let (version, hashes) = word.split_once('-')?;
    let (record, body) = hashes.split_once('-')?;
    let is_tag = version.parse::<u64>().is_ok() && (record.len(), body.len()) == (12, 16) && is_hex(record) && is_hex(body);
    is_tag.then_some((version, record))
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
    let text =
        format!("/v1/assets/{}?q=MacBook-Pro_14 \"3-0123456789ab-0123456789abcdef\" {} {}", id(1), key(1), "ab".repeat(32));
    let replaced = replacements.text(&text);
    assert_eq!(replacements.text(&text), replaced, "equal words get equal replacements");
    let words: Vec<&str> = replaced.split([' ', '/', '?', '"']).collect();
    assert_eq!((words[1], words[2], words[4]), ("v1", "assets", "q=MacBook-Pro_14"));
    let replaced_id: Uuid = words[3].parse().unwrap();
    assert!(words[3].starts_with("019cbd98-9a00-7") && words[3] != id(1), "{replaced_id}");
    assert_eq!(replaced_id.get_version_num(), 7);
    assert!(words[6].starts_with("3-") && words[6].len() == 31 && !text.contains(words[6]), "{}", words[6]);
    assert!(words[8].starts_with("apl_") && words[8].len() == 98 && Token::parse(words[8]).is_none());
    assert_eq!(words[8][..26], format!("apl_{}", ApiKeyId::from_uuid(replaced_id).short()));
    assert!(words[9].len() == 64 && is_hex(words[9]) && !text.contains(words[9]));
    assert_ne!(replacements.text(&id(2)), replacements.text(&id(1)));
}
