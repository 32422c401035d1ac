//! The idempotency keys of an import's requests. They follow from the command, so running it again is what resumes it: for 24
//! hours, the service remembers each imported row by the key of its request and its place in it.

use crate::config::Connection;
use crate::error::Result;
use crate::import::args::Import;
use crate::import::chunks::Chunk;
use sha2::{Digest, Sha256};

#[derive(Debug, Clone)]
pub struct Keys {
    by_place: Sha256,
    by_content: Sha256,
    create_unmatched: bool,
}

impl Keys {
    /// `parameters`: everything in the URL that decides about rows. `again`: makes other keys of the same command.
    pub fn new(options: &Import, connection: &Connection, path: &str, parameters: &str, again: &str) -> Result<Self> {
        let hash = |parts: &[&[u8]]| parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part).chain_update([0]));
        let file = options.file.canonicalize().unwrap_or_else(|_| options.file.clone());
        Ok(Self {
            by_place: hash(&[path.as_bytes(), again.as_bytes(), b"place", file.as_os_str().as_encoded_bytes()]),
            by_content: hash(&[
                path.as_bytes(),
                again.as_bytes(),
                b"content",
                parameters.as_bytes(),
                // A key that was rotated is refused with the idempotency keys from before.
                connection.api_key.authorization()?.as_bytes(),
            ]),
            create_unmatched: options.match_by.column().is_none() || options.create_unmatched,
        })
    }

    /// If each sending of a row would create something, the key says where the file has the rows, not what they are: after a
    /// correction, the service then refuses the request, instead of creating its other rows twice.
    #[must_use]
    pub fn of(&self, chunk: &Chunk) -> String {
        let hash = if self.protects(chunk) { self.by_place.clone() } else { self.by_content.clone().chain_update(&chunk.body) };
        let hash = hash.chain_update(chunk.number.to_be_bytes()).finalize();
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The key protects from creating rows twice that have changed in the file.
    #[must_use]
    pub fn protects(&self, chunk: &Chunk) -> bool {
        self.create_unmatched && chunk.has_unmatched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::config::{KeySources, api_key, base_url};
    use clap::Parser;

    /// For a chunk by number, body and whether a row names nothing to update.
    fn key(options: &[&str], api_key_text: &str, again: &str, (number, body, has_unmatched): (u64, &str, bool)) -> String {
        let command = Cli::try_parse_from([&["assetctl", "import"], options].concat()).unwrap().command;
        let Command::Import(options) = command else { panic!("not an import") };
        let api_key = api_key(KeySources { option: Some(api_key_text.into()), ..KeySources::default() }).unwrap();
        let connection = Connection { base_url: base_url(Some("https://a.example"), false).unwrap(), api_key };
        let keys = Keys::new(&options, &connection, "assets/import", "match=x", again).unwrap();
        keys.of(&Chunk { number, body: body.into(), has_unmatched, ..Chunk::default() })
    }

    #[test]
    fn a_request_that_creates_is_known_by_its_place() {
        let none = |file, body| key(&[file], "k", "", (1, body, true));
        assert_eq!(none("a.csv", "row"), none("a.csv", "other"));
        assert_ne!(none("a.csv", "row"), none("b.csv", "row"));
        let with =
            |options: &[&str], body| key(&[&["a.csv", "--match", "asset_tag"], options].concat(), "k", "", (1, body, true));
        assert_eq!(with(&["--create-unmatched"], "row"), with(&["--create-unmatched"], "other"));
        // Without that option, the service refuses rows that name nothing.
        assert_ne!(with(&[], "row"), with(&[], "other"));
    }

    #[test]
    fn a_request_that_updates_is_known_by_its_content() {
        let of = |file, api_key, chunk| key(&[file, "--match", "asset_tag"], api_key, "", chunk);
        let first = of("a.csv", "k", (1, "row", false));
        assert_eq!((first.len(), &first), (64, &of("b.csv", "k", (1, "row", false))));
        for (file, api_key, chunk) in
            [("a.csv", "k", (1, "other", false)), ("a.csv", "k", (2, "row", false)), ("a.csv", "rotated", (1, "row", false))]
        {
            assert_ne!(of(file, api_key, chunk), first, "{file} {api_key} {chunk:?}");
        }
    }

    #[test]
    fn other_keys_are_made_for_importing_again() {
        for options in [&["a.csv"][..], &["a.csv", "--match", "asset_tag"]] {
            let of = |again| key(options, "k", again, (1, "row", options.len() == 1));
            assert!(of("") != of("x") && of("x") == of("x") && of("x") != of("y"));
        }
    }
}
