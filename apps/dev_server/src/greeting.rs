//! What the dev server does when it is ready: it prints four lines, and opens the inventory page.

use crate::server::ReadyFile;
use std::process::Stdio;
use terminal::style::{self, paint};

/// Returns the lines to print. The address of the page contains the key.
#[must_use]
pub fn text(ready: &ReadyFile<'_>, is_coloured: bool) -> String {
    let address = |address: &str| paint(address, style::NEUTRAL, is_coloured);
    let title = |title: &str| paint(title, style::STRONG, is_coloured);
    let sign = ready.signing_url.map(|url| format!("{} {}\n", title("Sign     "), address(url)));
    format!(
        "{} {}\n{}{} {}\n{}",
        title("Inventory"),
        address(&page(ready)),
        sign.unwrap_or_default(),
        title("Key      "),
        ready.api_key,
        paint("Ctrl-C stops the server; --help tells more. Requests appear below.", style::DIM, is_coloured),
    )
}

#[must_use]
pub fn page(ready: &ReadyFile<'_>) -> String {
    format!("{}/app#key={}", ready.base_url, ready.api_key)
}

/// Opens a page in the user's browser. Does nothing where there is none.
pub fn open_in_browser(url: &str) {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    // Without a display, xdg-open would start a text browser in this terminal.
    if cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") {
        let mut command = tokio::process::Command::new(program);
        // Dropping the child only detaches it.
        let _ = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_four_lines_and_three_without_an_open_handover() {
        let mut ready = ReadyFile {
            base_url: "http://127.0.0.1:3000/v1",
            api_key: "apl_0351f4Sj",
            tenant_id: "",
            table: "asset-lifecycle",
            dynamodb_endpoint: "http://127.0.0.1:8000",
            signing_url: None,
        };
        let page = "Inventory http://127.0.0.1:3000/v1/app#key=apl_0351f4Sj\n";
        let end = "Key       apl_0351f4Sj\nCtrl-C stops the server; --help tells more. Requests appear below.";
        assert_eq!(text(&ready, false), format!("{page}{end}"));
        ready.signing_url = Some("http://127.0.0.1:3000/v1/sign#sgn_0A");
        assert_eq!(text(&ready, false), format!("{page}Sign      http://127.0.0.1:3000/v1/sign#sgn_0A\n{end}"));
    }
}
