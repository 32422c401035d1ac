//! Takes an inventory out, with the real binary.

use crate::support::server::{Misbehaviour, Options, Server};
use crate::support::{Folder, run};
use serde_json::json;

fn server(pages: [&str; 3]) -> Server {
    let mischief = Box::new(|request: usize| (request == 1).then_some(Misbehaviour::Status(503, Some(0))));
    Server::with(Options { pages: pages.map(str::to_owned).to_vec(), mischief, ..Options::default() })
}

#[test]
fn parts_become_one_table() {
    let pages = [
        "id,name,custom_fields.RAM\r\n1,'=A,\"\"\"16\"\"\"\r\n",
        "id,name\r\n",
        "id,name,custom_fields.Farbe,custom_fields.RAM\r\n2,\"B\n\",grün,16\r\n",
    ];
    let (server, folder) = (server(pages), Folder::new());
    let path = folder.path("assets.csv");
    let run = run(&server.url, &["export", "-o", path.to_str().unwrap(), "--filter", "status=in_use", "--json"]);
    assert_eq!((run.code, &run.json()["rows"]), (0, &json!(2)), "{}", run.stderr);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "id,name,custom_fields.Farbe,custom_fields.RAM\r\n1,'=A,,\"\"\"16\"\"\"\r\n2,\"B\n\",grün,16\r\n");
    assert_eq!(server.seen().queries[0]["status"], "in_use");
    assert_eq!(folder.names(), ["assets.csv"]);
}

#[test]
fn cells_are_separated_as_it_is_asked_for() {
    let part = "id,name,notes\r\n1,\"A, B\",c;d\r\n";
    let server = Server::with(Options { pages: vec![part.to_owned()], ..Options::default() });
    let export = |options: &[&str]| run(&server.url, &[&["export"], options].concat());
    assert_eq!(export(&["--delimiter", ";"]).stdout, "id;name;notes\r\n1;A, B;\"c;d\"\r\n");
    assert_eq!(export(&["--delimiter", "tab"]).stdout, "id\tname\tnotes\r\n1\tA, B\tc;d\r\n");
    let refused = export(&["--delimiter", "semicolon", "--format", "ndjson"]);
    assert!(refused.code == 2 && refused.stderr.contains("--delimiter is only for CSV"), "{}", refused.stderr);
}

#[test]
fn standard_output_has_the_export_and_nothing_else() {
    let server = server(["{\"id\":\"1\"}\n", "", "{\"id\":\"2\"}\n"]);
    let run = run(&server.url, &["export", "--format", "ndjson"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "{\"id\":\"1\"}\n{\"id\":\"2\"}\n"), "{}", run.stderr);
    assert_eq!(crate::support::run(&server.url, &["export", "--json"]).code, 2);
}

#[test]
fn records_that_the_service_cannot_read_are_named() {
    let server = Server::with(Options {
        pages: vec!["id,name\r\n1,A\r\n".into()],
        unreadable: Some("0197-x".into()),
        ..Options::default()
    });
    let run = run(&server.url, &["export"]);
    assert_eq!((run.code, run.stdout.as_str()), (3, "id,name\r\n1,A\r\n"));
    assert!(run.stderr.contains("can't read; tell its operator: 0197-x"), "{}", run.stderr);
}

#[test]
fn an_incomplete_export_leaves_no_file() {
    let mischief = Box::new(|request: usize| (request >= 1).then_some(Misbehaviour::Status(403, None)));
    let server = Server::with(Options { pages: vec!["{}\n".into(), "{}\n".into()], mischief, ..Options::default() });
    let folder = Folder::new();
    let path = folder.path("assets.csv");
    assert_eq!(run(&server.url, &["export", "-o", path.to_str().unwrap()]).code, 1);
    assert!(folder.names().is_empty());
}

#[test]
fn completions_and_versions_need_no_service() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = run("", &["completions", shell]);
        assert_eq!((run.code, run.stdout.contains("assetctl")), (0, true), "{shell}");
    }
}
