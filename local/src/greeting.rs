//! What the dev server prints when it is ready.

use std::path::Path;
use terminal::style::{self, paint};

/// What there is to tell.
#[derive(Debug, Clone, Copy)]
pub struct Greeting<'a> {
    /// The base URL of the API.
    pub base_url: &'a str,
    /// The key of the demo tenant.
    pub api_key: &'a str,
    /// The data folder; `None` when the data is in memory.
    pub folder: Option<&'a Path>,
    /// The URL of the engine.
    pub dynamodb_endpoint: &'a str,
    /// The table in it.
    pub table: &'a str,
    /// Whether `jq`, which formats JSON, is installed.
    pub has_jq: bool,
}

impl Greeting<'_> {
    /// Returns the text: addresses, the key, where the data is, and commands to paste.
    #[must_use]
    pub fn text(&self, is_coloured: bool) -> String {
        let Self { base_url, api_key, dynamodb_endpoint, table, .. } = self;
        let address = |address: &str| paint(address, style::NEUTRAL, is_coloured);
        let title = |title: &str| paint(title, style::STRONG, is_coloured);
        let aside = |text: &str| paint(text, style::DIM, is_coloured);
        let data = match self.folder {
            Some(folder) => format!("{} {}", folder.display(), aside("(delete it to start over)")),
            None => "in memory, until the server stops".to_owned(),
        };
        // Without jq, an answer would not end its line.
        let end = if self.has_jq { " | jq" } else { " -w '\\n'" };
        format!(
            "{} {docs}\n\n  \
             {} {api}\n  \
             {} {api_key}\n  \
             {} {data}\n  \
             {} {engine} {about_engine}\n\n\
             {paste}\n\n  \
             export BASE={base_url}\n  \
             export KEY={api_key}\n  \
             curl -sS \"$BASE/assets?limit=3\" -H \"Authorization: Bearer $KEY\"{end}\n  \
             curl -sS \"$BASE/stats\" -H \"Authorization: Bearer $KEY\"{end}\n  \
             curl -sS \"$BASE/assets\" -H \"Authorization: Bearer $KEY\" \\\n    \
             -H 'Content-Type: application/json' -d '{{\"name\": \"My laptop\"}}'{end}\n\n\
             {stop}",
            title("Documentation"),
            title("API          "),
            title("Key          "),
            title("Data         "),
            title("DynamoDB     "),
            docs = address(&format!("{base_url}/docs")),
            api = address(base_url),
            engine = address(dynamodb_endpoint),
            about_engine = aside(&format!("(table {table}, any credentials)")),
            paste = title("Paste this into another terminal:"),
            stop = aside("Ctrl-C stops the server. Requests appear below."),
        )
    }
}

/// Returns whether a program of this name is in one of the folders of `PATH`.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREETING: Greeting<'static> = Greeting {
        base_url: "http://127.0.0.1:3000/v1",
        api_key: "apl_0351f4Sj",
        folder: None,
        dynamodb_endpoint: "http://127.0.0.1:8000",
        table: "asset-lifecycle",
        has_jq: true,
    };

    #[test]
    fn the_documentation_comes_first() {
        let text = GREETING.text(false);
        assert!(text.starts_with("Documentation http://127.0.0.1:3000/v1/docs\n"), "{text}");
        let lines = text.lines().filter(|line| !line.contains("apl_")).map(str::len);
        assert!(lines.max() <= Some(80), "{text}");
    }
}
