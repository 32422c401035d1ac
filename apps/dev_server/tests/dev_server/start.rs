//! The start as users see it: on a terminal, with a log for programs, with invalid options, and with a data folder that nobody
//! else can read.

use super::server::Client;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use terminal::pty::Session;

const END: &str = "Requests appear below.";

fn server(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asset-lifecycle-dev"));
    command.args(["--addr", "127.0.0.1:0"]).args(options).env("TERM", "xterm");
    for variable in ["NO_COLOR", "RUST_LOG", "CLICOLOR", "CLICOLOR_FORCE", "DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(variable);
    }
    command
}

fn value<'a>(shown: &'a str, title: &str) -> &'a str {
    let line = shown.lines().find(|line| line.contains(title)).unwrap();
    line.split_whitespace().find(|word| word.contains("://") || word.starts_with("apl_")).unwrap()
}

fn interrupt(session: &Session) {
    assert!(Command::new("kill").args(["-INT", &session.id().to_string()]).status().unwrap().success());
}

#[test]
fn people_see_addresses_a_key_and_then_their_requests() {
    let mut command = server(&["--memory"]);
    command.env("NO_COLOR", "1");
    let mut session = Session::start(command, 80).unwrap();
    let shown = session.wait_for(END).unwrap();
    // The note about creating data is erased when the server is ready.
    let (notice, start) = shown.split_once("Inventory").unwrap();
    assert!(notice.starts_with("Creating assets and users") && notice.ends_with("\u{1b}[2K"), "{notice:?}");
    assert!(!start.contains('\u{1b}'), "{start}");
    let (page, key) = (value(&shown, "Inventory "), value(start, "Key "));
    let base_url = page.strip_suffix(&format!("/app#key={key}")).unwrap();
    assert!(key.len() > 90 && value(start, "Sign ").starts_with(&format!("{base_url}/sign#sgn_")), "{shown}");
    assert!(start.trim_end().ends_with(END), "something is logged before the first request: {start}");
    Client::new(base_url, "").try_send("GET", "/assets?limit=3&api_key=apl_secret", &Value::Null).unwrap();
    Client::new(base_url, key).try_send("GET", "/assets?limit=3", &Value::Null).unwrap();
    let lines = session.wait_for(" 0 WU\n").unwrap() + &session.wait_for(" 0 WU\n").unwrap();
    let refused = lines.lines().find(|line| line.contains("  401 ")).unwrap();
    assert!(refused.contains("  GET     /v1/assets  ") && refused.ends_with("  0 calls, 0 RU, 0 WU"), "{lines}");
    assert!(!lines.contains("apl_secret"), "{lines}");
    interrupt(&session);
    assert!(session.wait().unwrap().success());
    assert!(session.shown().ends_with("\nThe server has stopped.\n"), "{}", session.shown());
}

/// Starts the server with a browser that writes its arguments to a file, and returns the server's output and the file.
fn start_with_browser(options: &[&str], display: &str) -> (Session, String, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (opened, program) = (folder.path().join("opened"), folder.path().join("xdg-open"));
    fs::write(&program, format!("#!/bin/sh\necho \"$@\" > '{0}.new' && mv '{0}.new' '{0}'\n", opened.display())).unwrap();
    set_mode(&program, 0o755);
    let mut command = server(&["--memory", "--empty"]);
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    command.args(options).env("PATH", path).env("DISPLAY", display).env("NO_COLOR", "1");
    let session = Session::start(command, 200).unwrap();
    let shown = session.wait_for(END).unwrap();
    (session, shown, opened, folder)
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_opens_in_the_browser_of_someone_with_a_display() {
    let (_session, shown, opened, _folder) = start_with_browser(&[], ":0");
    let end = Instant::now() + Duration::from_secs(60);
    while !opened.exists() {
        assert!(Instant::now() < end, "no page was opened");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(fs::read_to_string(opened).unwrap().trim_end(), value(&shown, "Inventory "));
    for (options, display) in [(&["--no-open"][..], ":0"), (&[], "")] {
        let (mut session, _, opened, _folder) = start_with_browser(options, display);
        interrupt(&session);
        session.wait().unwrap();
        assert!(!opened.exists(), "a page was opened: {options:?}, {display:?}");
    }
}

fn client_of(ready: &Value) -> Client {
    Client::new(ready["base_url"].as_str().unwrap(), ready["api_key"].as_str().unwrap())
}

fn start_on(folder: &Path, options: &[&str]) -> (Session, Value) {
    let (data, ready) = (folder.join("data"), folder.join("ready.json"));
    let mut command = server(&["--data", data.to_str().unwrap(), "--ready-file", ready.to_str().unwrap()]);
    command.args(options).env("NO_COLOR", "1");
    let session = Session::start(command, 200).unwrap();
    session.wait_for(END).unwrap();
    let ready = serde_json::from_slice(&fs::read(ready).unwrap()).unwrap();
    (session, ready)
}

#[test]
fn each_start_prints_a_new_signing_link_as_long_as_the_handover_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut links = Vec::new();
    for _ in 0..2 {
        let (mut session, ready) = start_on(folder.path(), &[]);
        let (url, base_url) = (ready["signing_url"].as_str().unwrap(), ready["base_url"].as_str().unwrap());
        assert!(url.starts_with(&format!("{base_url}/sign#sgn_")), "{url}");
        assert_eq!(value(&session.shown(), "Sign "), url);
        links.push(url.split_once('#').unwrap().1.to_owned());
        if links.len() == 2 {
            let tenant = fs::read(folder.path().join("data/demo.json")).unwrap();
            let tenant: Value = serde_json::from_slice(&tenant).unwrap();
            let instance = tenant["handover"]["instance_id"].as_str().unwrap();
            let path = format!("/processes/instances/{instance}/cancel");
            let (status, response) = client_of(&ready).try_send("POST", &path, &Value::Null).unwrap();
            assert_eq!(status, 200, "{response}");
        }
        interrupt(&session);
        session.wait().unwrap();
    }
    assert_ne!(links[0], links[1]);
    let (session, ready) = start_on(folder.path(), &[]);
    assert!(ready.get("signing_url").is_none(), "{ready}");
    assert!(!session.shown().contains("Sign "), "{}", session.shown());
}

#[test]
fn a_request_must_have_one_host() {
    let folder = tempfile::tempdir().unwrap();
    let (_session, ready) = start_on(folder.path(), &["--empty"]);
    for (request, status) in [
        ("GET /v1/health HTTP/1.1\r\n", 400),
        ("GET /v1/health HTTP/1.1\r\nhost: a\r\nhost: a\r\n", 400),
        ("GET /v1/health HTTP/1.0\r\nhost: a\r\nhost: b\r\n", 400),
        ("GET /v1/health HTTP/1.0\r\n", 200),
        ("GET /v1/health HTTP/1.1\r\nhost: a\r\n", 200),
    ] {
        let response = client_of(&ready).send_text(&format!("{request}connection: close\r\n\r\n")).unwrap();
        assert_eq!(response.split(' ').nth(1), Some(&*status.to_string()), "{request}: {response}");
    }
}

#[test]
fn statuses_have_colours_on_a_terminal_and_json_can_be_had_there() {
    let session = Session::start(server(&["--memory", "--empty"]), 100).unwrap();
    let shown = session.wait_for(END).unwrap();
    get_health(&shown);
    session.wait_for("\u{1b}[32m200\u{1b}[0m").unwrap();
    let session = Session::start(server(&["--memory", "--empty", "--log", "json"]), 100).unwrap();
    let shown = session.wait_for(END).unwrap();
    get_health(&shown);
    let shown = session.wait_for("}\n").unwrap();
    let line: Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    assert_eq!(line["route"], "/v1/health");
}

/// Sends a request to the address of the API, which the terminal shows in colour.
fn get_health(shown: &str) {
    let (_, rest) = shown.split_once("Inventory\u{1b}[0m \u{1b}[36mhttp://").unwrap();
    let (address, _) = rest.split_once("/v1/app#").unwrap();
    Client::new(address, "").try_send("GET", "/health", &Value::Null).unwrap();
}

/// Runs the server in this folder, with options that keep it from starting.
fn fail(folder: &Path, options: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, stdout } = server(options).current_dir(folder).output().unwrap();
    assert!(stdout.is_empty());
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn invalid_options_are_refused_with_a_valid_example() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (options, hint) in [
        (&["--memory", "--dynamodb-addr", &address][..], "the port is in use, perhaps by another dev server"),
        (&["--data", "file/data"], "choose another folder with --data, or keep the data in memory with --memory"),
        (&["--data", "file"], "choose another folder with --data"),
    ] {
        let (code, error) = fail(folder.path(), options);
        assert_eq!((code, error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.starts_with("error: ") && error.contains(hint), "{error}");
    }
    for (options, hint) in [
        (&["--dynamodb-addr", "8000"][..], "must be an IP address and a port, such as 127.0.0.1:3001"),
        (&["--memori"], "a similar argument exists: '--memory'"),
        (&["--log", "xml"], "[possible values: text, json]"),
        (&["--log", "\u{1b}]0;owned\u{7}\u{9b}\u{202e}"], "'\u{fffd}]0;owned\u{fffd}\u{fffd}\u{fffd}'"),
        (&["--\u{1b}[2J\u{200f}"], "'--\u{fffd}[2J\u{fffd}'"),
    ] {
        let (code, error) = fail(folder.path(), options);
        assert!(code == Some(2) && error.contains(hint) && !error.contains('\u{1b}'), "{error:?}");
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Starts and stops a server in this folder, and checks that other users can't read the files in `data`.
fn start_and_stop(folder: &Path) {
    let (mut session, _) = start_on(folder, &["--empty"]);
    let files: Vec<PathBuf> = fs::read_dir(folder.join("data")).unwrap().map(|entry| entry.unwrap().path()).collect();
    for name in ["table.db", "table.db-wal", "demo.json"] {
        assert!(files.iter().any(|file| file.ends_with(name)), "{name}: {files:?}");
    }
    let open: Vec<&PathBuf> = files.iter().filter(|file| mode(file) & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
    interrupt(&session);
    assert!(session.wait().unwrap().success());
}

#[test]
fn nobody_else_reads_the_data() {
    let parent = tempfile::tempdir().unwrap();
    set_mode(parent.path(), 0o755);
    let data = parent.path().join("data");
    start_and_stop(parent.path());
    assert_eq!((mode(&data), mode(parent.path())), (0o700, 0o755));
}
