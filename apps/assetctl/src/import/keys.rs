//! The idempotency keys of an import's requests. They depend only on the command, so running the command again resumes the
//! import: for 24 hours, the service remembers each imported row by its request's key and its position in the request.

use crate::config::Connection;
use crate::error::Result;
use crate::import::args::Import;
use crate::import::chunks::Chunk;
use crate::import::rows::RowError;
use crate::import::source::Source;
use crate::output::hex;
use crate::stocktake::state_folder;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// For this long, in seconds, the service remembers the rows of a request.
const REMEMBERED: i64 = 24 * 60 * 60;

#[derive(Debug, Clone)]
pub struct Keys {
    by_place: Sha256,
    by_content: Sha256,
    create_unmatched: bool,
    /// What earlier runs of the command did.
    before: State,
    /// What this run has done so far.
    state: Arc<Mutex<State>>,
    path: Option<PathBuf>,
}

/// What an import remembers of its requests, by their number.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct State {
    /// How often all rows of a request were refused. Such a request created nothing, so other rows can be sent in its place.
    attempts: BTreeMap<u64, u32>,
    left_out: BTreeMap<u64, LeftOut>,
}

/// The cells that were left out of a request. Sending it again without other cells could create rows twice.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LeftOut {
    /// Unix time in seconds.
    at: i64,
    /// Hash of the request with these cells, and of the columns of `--skip-bad`.
    request: String,
    /// Each with the position of its row in the request.
    cells: Vec<(usize, RowError)>,
}

impl Keys {
    /// `parameters` is the query of the URL. A different `again` changes the keys of an otherwise equal command.
    pub fn new(
        options: &Import,
        source: &Source,
        connection: &Connection,
        path: &str,
        parameters: &str,
        again: &str,
    ) -> Result<Self> {
        let hash = |parts: &[&[u8]]| parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part).chain_update([0]));
        let file = options.file.canonicalize().unwrap_or_else(|_| options.file.clone());
        let name = source.memory().unwrap_or_else(|| file.as_os_str().as_encoded_bytes());
        let by_place = hash(&[path.as_bytes(), again.as_bytes(), b"place", name]);
        let create_unmatched = options.match_by.column().is_none() || options.create_unmatched;
        let name = |folder: PathBuf| folder.join("import").join(hex(&by_place.clone().finalize()));
        let path_of_state = state_folder().ok().map(name).filter(|_| create_unmatched);
        let before: State =
            path_of_state.as_ref().and_then(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).unwrap_or_default();
        Ok(Self {
            by_place,
            by_content: hash(&[
                path.as_bytes(),
                again.as_bytes(),
                b"content",
                parameters.as_bytes(),
                // The service rejects an idempotency key that was used with another API key, for example before a rotation.
                connection.api_key.authorization()?.as_bytes(),
            ]),
            create_unmatched,
            state: Arc::new(Mutex::new(before.clone())),
            before,
            path: path_of_state,
        })
    }

    /// Returns the key of the request with this number. If sending the rows again would create records twice (`protects`), the key
    /// depends on their position in the file, not on their content. The service then refuses corrected rows, instead of creating
    /// the others twice.
    pub fn of(&self, number: u64, body: &[u8], protects: bool) -> String {
        let hash = if protects { self.by_place.clone() } else { self.by_content.clone().chain_update(body) };
        let attempts = self.before.attempts.get(&number).copied().filter(|_| protects).unwrap_or_default();
        hex(&hash.chain_update(number.to_be_bytes()).chain_update(attempts.to_be_bytes()).finalize())
    }

    /// Counts an attempt for requests whose rows were all refused.
    pub fn note_refused(&self, chunks: &[u64]) {
        if chunks.is_empty() {
            return;
        }
        self.change(|state| {
            for number in chunks {
                *state.attempts.entry(*number).or_default() += 1;
                state.left_out.remove(number);
            }
        });
    }

    /// Returns the cells that an earlier run left out of the same request, if the service can still remember its rows.
    pub fn left_out(&self, number: u64, body: &[u8], columns: &[String], now: i64) -> Option<Vec<(usize, RowError)>> {
        let left_out = self.before.left_out.get(&number)?;
        let is_same = left_out.at > now - REMEMBERED && left_out.request == hash_of(body, columns);
        is_same.then(|| left_out.cells.clone())
    }

    /// Notes, before the request is sent, which cells are left out of it.
    pub fn note_left_out(&self, number: u64, body: &[u8], columns: &[String], now: i64, cells: &[(usize, RowError)]) {
        let left_out = LeftOut { at: now, request: hash_of(body, columns), cells: cells.to_vec() };
        self.change(|state| drop(state.left_out.insert(number, left_out)));
    }

    /// Changes and saves the state. Best effort: if the file can't be written, the next run sends the same keys, and the service
    /// refuses changed rows rather than risk creating them twice.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let Some((path, folder)) = self.path.as_ref().and_then(|path| Some((path, path.parent()?))) else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let _ = fs::create_dir_all(folder).and_then(|()| fs::write(path, json!(*state).to_string()));
    }

    /// Whether the key must prevent changed rows from being created twice.
    pub fn protects(&self, chunk: &Chunk) -> bool {
        self.create_unmatched && chunk.has_unmatched
    }
}

fn hash_of(body: &[u8], columns: &[String]) -> String {
    hex(&Sha256::new().chain_update(json!(columns).to_string()).chain_update(body).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{api_key, base_url};
    use crate::import::args::tests::parsed;

    /// Returns the key of a chunk, given its number, body, and whether some rows identify no record.
    fn key(options: &[&str], api_key_text: &str, (number, body, has_unmatched): (u64, &str, bool)) -> String {
        let api_key = api_key([(Some(api_key_text.into()), None), (None, None)]).unwrap();
        let connection = Connection { base_url: base_url(Some("https://a.example"), false).unwrap(), api_key };
        let folder = tempfile::tempdir().unwrap();
        let options = parsed(options);
        let source = {
            let path = folder.path().join("any.csv");
            std::fs::write(&path, "name\n").unwrap();
            Source::open(&Import { file: path, ..(*options).clone() }).unwrap()
        };
        let keys = Keys::new(&options, &source, &connection, "assets/import", "match=x", "").unwrap();
        let chunk = Chunk { number, body: body.into(), has_unmatched, ..Chunk::default() };
        keys.of(number, &chunk.body, keys.protects(&chunk))
    }

    #[test]
    fn a_request_that_creates_is_known_by_its_place() {
        let none = |file, body| key(&[file], "k", (1, body, true));
        assert_eq!(none("a.csv", "row"), none("a.csv", "other"));
        assert_ne!(none("a.csv", "row"), none("b.csv", "row"));
        let with = |options: &[&str], body| key(&[&["a.csv", "--match", "asset_tag"], options].concat(), "k", (1, body, true));
        assert_eq!(with(&["--create-unmatched"], "row"), with(&["--create-unmatched"], "other"));
        // Without `--create-unmatched`, the service refuses rows that identify no record, so they can't be created twice.
        assert_ne!(with(&[], "row"), with(&[], "other"));
    }

    #[test]
    fn a_request_that_updates_is_known_by_its_content() {
        let of = |file, api_key, chunk| key(&[file, "--match", "asset_tag"], api_key, chunk);
        let first = of("a.csv", "k", (1, "row", false));
        assert_eq!((first.len(), &first), (64, &of("b.csv", "k", (1, "row", false))));
        for (file, api_key, chunk) in
            [("a.csv", "k", (1, "other", false)), ("a.csv", "k", (2, "row", false)), ("a.csv", "rotated", (1, "row", false))]
        {
            assert_ne!(of(file, api_key, chunk), first, "{file} {api_key} {chunk:?}");
        }
    }

    fn keys(path: &std::path::Path, before: State) -> Keys {
        Keys {
            by_place: Sha256::new(),
            by_content: Sha256::new(),
            create_unmatched: true,
            state: Arc::new(Mutex::new(before.clone())),
            before,
            path: Some(path.to_owned()),
        }
    }

    /// Returns the keys of the next run.
    fn next(path: &std::path::Path) -> Keys {
        keys(path, serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
    }

    #[test]
    fn a_request_that_had_no_effect_is_sent_with_another_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("import").join("x");
        let key = |keys: &Keys, number| keys.of(number, b"", true);
        let first = keys(&path, State::default());
        first.note_refused(&[1, 4]);
        let second = next(&path);
        assert_eq!(second.before.attempts, BTreeMap::from([(1, 1), (4, 1)]));
        assert!(key(&second, 1) != key(&first, 1) && key(&second, 2) == key(&first, 2));
    }

    #[test]
    fn cells_stay_left_out_of_the_same_request_for_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("import").join("x");
        let email = ["email".to_owned()];
        let cells = vec![(2, RowError::of_column("email", "is unknown"))];
        let first = keys(&path, State::default());
        first.note_left_out(7, b"rows", &email, 1_000, &cells);
        first.note_left_out(8, b"other", &email, 1_000, &[]);
        let second = next(&path);
        assert_eq!(second.left_out(7, b"rows", &email, 1_000 + REMEMBERED - 1), Some(cells));
        assert_eq!(second.left_out(8, b"other", &email, 1_000), Some(Vec::new()));
        for (number, body, now) in [(7, "rows", 1_000 + REMEMBERED), (7, "corrected", 1_000), (9, "rows", 1_000)] {
            assert_eq!(second.left_out(number, body.as_bytes(), &email, now), None);
        }
        assert_eq!(second.left_out(7, b"rows", &["email".to_owned(), "role".to_owned()], 1_000), None);
        second.note_refused(&[7]);
        assert_eq!(next(&path).left_out(7, b"rows", &email, 1_000), None);
    }
}
