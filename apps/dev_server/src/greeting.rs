//! The text that the dev server prints when it is ready.

use crate::server::ReadyFile;
use std::path::Path;
use terminal::style::{self, paint};

#[derive(Debug, Clone, Copy)]
pub struct Greeting<'a> {
    pub ready: ReadyFile<'a>,
    pub is_local: bool,
    /// `None` if the data is in memory.
    pub folder: Option<&'a Path>,
    pub has_jq: bool,
}

impl Greeting<'_> {
    #[must_use]
    pub fn text(&self, is_coloured: bool) -> String {
        let ReadyFile { base_url, api_key, dynamodb_endpoint, table, signing_url, .. } = self.ready;
        let address = |address: &str| paint(address, style::NEUTRAL, is_coloured);
        let title = |title: &str| paint(title, style::STRONG, is_coloured);
        let aside = |text: &str| paint(text, style::DIM, is_coloured);
        let data = match self.folder {
            Some(folder) => format!("{} {}", folder.display(), aside("(delete it to start over)")),
            None => "in memory, until the server stops".to_owned(),
        };
        let sign = signing_url.map(|url| {
            let elsewhere = if self.is_local {
                "(to sign; on a phone: restart with --addr 0.0.0.0:3000)"
            } else {
                "(a handover to sign, also on a phone in this network)"
            };
            format!("  {} {}\n                {}\n", title("Sign         "), address(url), aside(elsewhere))
        });
        // Without jq, curl must print the newline that responses lack.
        let end = if self.has_jq { " | jq" } else { " -w '\\n'" };
        format!(
            "{} {app}\n\n  \
             {} {docs}\n  \
             {} {api}\n  \
             {} {api_key}\n\
             {sign}  \
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
            title("Inventory    "),
            title("Documentation"),
            title("API          "),
            title("Key          "),
            title("Data         "),
            title("DynamoDB     "),
            sign = sign.unwrap_or_default(),
            app = address(&format!("{base_url}/app#key={api_key}")),
            docs = address(&format!("{base_url}/docs")),
            api = address(base_url),
            engine = address(dynamodb_endpoint),
            about_engine = aside(&format!("(table {table}, any credentials)")),
            paste = title("Paste this into another terminal:"),
            stop = aside("Ctrl-C stops the server. Requests appear below."),
        )
    }
}

#[must_use]
pub fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: ReadyFile<'static> = ReadyFile {
        base_url: "http://127.0.0.1:3000/v1",
        api_key: "apl_0351f4Sj",
        tenant_id: "",
        table: "asset-lifecycle",
        dynamodb_endpoint: "http://127.0.0.1:8000",
        signing_url: None,
    };
    const GREETING: Greeting<'static> = Greeting { ready: READY, is_local: true, folder: None, has_jq: true };

    #[test]
    fn the_page_of_the_inventory_comes_first_with_the_key() {
        let text = GREETING.text(false);
        let first =
            "Inventory     http://127.0.0.1:3000/v1/app#key=apl_0351f4Sj\n\n  Documentation http://127.0.0.1:3000/v1/docs\n";
        assert!(text.starts_with(first), "{text}");
        let lines = text.lines().filter(|line| !line.contains("apl_")).map(str::len);
        assert!(lines.max() <= Some(80), "{text}");
    }

    #[test]
    fn a_handover_can_be_signed_as_long_as_it_is_open() {
        assert!(!GREETING.text(false).contains("Sign"));
        let ready = ReadyFile { signing_url: Some("http://127.0.0.1:3000/v1/sign#sgn_0A"), ..READY };
        let line = "\n  Key           apl_0351f4Sj\n  Sign          http://127.0.0.1:3000/v1/sign#sgn_0A\n";
        for (is_local, aside) in
            [(true, "on a phone: restart with --addr 0.0.0.0:3000)"), (false, "also on a phone in this network)")]
        {
            let text = Greeting { ready, is_local, ..GREETING }.text(false);
            let (_, rest) = text.split_once(line).unwrap_or_else(|| panic!("{text}"));
            let (first, next) = rest.split_once('\n').unwrap();
            assert!(first.ends_with(aside) && first.len() <= 80 && next.starts_with("  Data "), "{text}");
        }
    }
}
