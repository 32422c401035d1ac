//! `assetctl labels`.

use crate::support::scripted::{Answer, Request, Scripted};
use crate::support::{Folder, command, end, run, spawn};
use serde_json::{Value, json};
use std::io::Read;

fn id(number: usize) -> String {
    format!("0190163d-8694-739b-aea5-{number:012}")
}

fn asset(number: usize, tag: &str) -> Value {
    json!({"id": id(number), "asset_tag": tag, "name": "Laptop"})
}

fn service(count: usize) -> Scripted {
    Scripted::start(move |request, _| answer(request, count))
}

fn answer(request: &Request, count: usize) -> Answer {
    match request.route.as_str() {
        "GET /assets/export" => {
            let rows = (0..count).map(|number| format!("{}\n", asset(number, &format!("AST-{number}"))));
            Answer::new("application/x-ndjson", rows.collect())
        }
        "GET /assets/labels" => {
            let (skip, ids) = (request.parameter("skip"), request.parameter("ids").split(',').count());
            Answer::new("text/html; charset=utf-8", format!("{} {skip} {ids}", request.parameter("layout")))
        }
        "GET /assets" => Answer::data(&match request.parameter("code") {
            "A/1" => json!([asset(1, "A/1")]),
            "a 1" => json!([asset(2, "a 1")]),
            code if code == id(3) => json!([asset(3, "C-3")]),
            _ => json!([]),
        }),
        route if route.ends_with("/label") => {
            let (format, size, dpi) = (request.parameter("format"), request.parameter("size"), request.parameter("dpi"));
            let content_type = match format {
                "svg" => "image/svg+xml",
                "png" => "image/png",
                _ => "text/plain; charset=utf-8",
            };
            Answer::new(content_type, format!("^XA{format} {size} {dpi}^XZ"))
        }
        route => panic!("{route}"),
    }
}

#[test]
fn sheets_are_filled_and_files_numbered() {
    let (service, folder) = (service(200), Folder::new());
    let path = folder.path("labels.html");
    let run = run(&service.url, &["labels", "--all", "--skip", "10", "-o", path.to_str().unwrap(), "--json"]);
    assert_eq!((run.code, &run.json()["labels"]), (0, &json!(200)), "{}", run.stderr);
    assert_eq!(folder.names(), ["labels-1.html", "labels-2.html", "labels-3.html"]);
    let text = |name| std::fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(["labels-1.html", "labels-2.html", "labels-3.html"].map(text), ["a4-24 10 86", "a4-24 0 96", "a4-24 0 18"]);
    let ids: String = service.requests().iter().map(|request| request.parameter("ids").to_owned() + ",").collect();
    assert!((0..200).all(|number| ids.matches(&id(number)).count() == 1), "an asset has no label, or two");
}

#[test]
fn labels_are_in_the_order_of_the_tags() {
    let service = Scripted::start(|request, _| match request.route.as_str() {
        "GET /assets/export" => {
            let tags = ["AST-1000", "AST-0999", "B-1", "AST-7"];
            let rows = tags.iter().zip(0..).map(|(tag, number)| format!("{}\n", asset(number, tag)));
            Answer::new("application/x-ndjson", rows.collect())
        }
        "GET /assets" => {
            let tag = request.parameter("code");
            Answer::data(&json!([asset(tag["AST-".len()..].parse().unwrap(), tag)]))
        }
        _ => Answer::new("text/html; charset=utf-8", String::new()),
    });
    let folder = Folder::new();
    let path = folder.path("labels.html");
    for (words, numbers) in [(&["--all"][..], [3, 1, 0, 2]), (&["AST-9", "AST-12", "AST-3", "AST-10"], [9, 12, 3, 10])] {
        run(&service.url, &[&["labels", "-o", path.to_str().unwrap()], words].concat()).ok();
        let asked = service.requests().pop().unwrap();
        assert_eq!(asked.parameter("ids"), numbers.map(id).join(","), "{words:?}");
    }
}

#[test]
fn filters_become_parameters() {
    let (service, folder) = (service(2), Folder::new());
    let path = folder.path("labels.html");
    let options = ["--status", "in_use", "--q", "T14", "--filter", "kind=physical", "--layout", "letter-30"];
    let run = run(&service.url, &[&["labels", "-o", path.to_str().unwrap()], &options[..]].concat());
    assert_eq!((run.code, folder.names()), (0, vec!["labels.html".to_owned()]), "{}", run.stderr);
    assert!(run.stderr.starts_with("2 labels in ") && run.stdout.is_empty(), "{}", run.stderr);
    let query = &service.requests()[0].query;
    let expected = [("format", "ndjson"), ("kind", "physical"), ("q", "T14"), ("status", "in_use")];
    assert!(query.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(expected), "{query:?}");
}

#[test]
fn single_labels_are_files_named_by_their_tags() {
    let (service, folder) = (service(0), Folder::new());
    let path = folder.path("new");
    let assets = ["labels", "A/1", "a 1", "A/1", &id(3), "--format", "svg", "--size", "62x29", "-o", path.to_str().unwrap()];
    run(&service.url, &assets).ok();
    let mut names: Vec<String> =
        std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["A_1.svg", "C-3.svg", &format!("a_1-{}.svg", id(2))]);
    assert_eq!(std::fs::read_to_string(path.join("C-3.svg")).unwrap(), "^XAsvg 62x29 ^XZ");
}

#[test]
fn zpl_goes_to_the_printer() {
    let printed = run(&service(2).url, &["labels", "--all", "--format", "zpl", "--dpi", "203"]);
    assert_eq!((printed.code, printed.stdout.as_str()), (0, "^XAzpl  203^XZ\n^XAzpl  203^XZ\n"), "{}", printed.stderr);
    // A reader can close the pipe early.
    let service = service(5_000);
    let mut child = spawn(command(&service.url, &["labels", "--all", "--format", "zpl"]));
    let mut start = [0; 3];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = end(child);
    assert_eq!((&start, output.code), (b"^XA", 0), "{}", output.stderr);
    assert!(service.requests().len() < 1_000);
}

#[test]
fn wrong_options_are_refused_before_anything_is_sent() {
    let service = service(0);
    for arguments in [
        &["labels"][..],
        &["labels", "A-1", "--all"],
        &["labels", "--all", "--format", "svg"],
        &["labels", "--all", "--size", "62x29"],
        &["labels", "--all", "--format", "svg", "--size", "62"],
        &["labels", "--all", "--layout", "a4-9"],
        &["labels", "--all", "--skip", "24"],
        &["labels", "--all", "--skip", "3", "--format", "zpl"],
        &["labels", "--all", "--format", "png", "--dpi", "203", "-o", "labels"],
        &["labels", "--all", "--format", "zpl", "--json"],
    ] {
        assert_eq!(run(&service.url, arguments).code, 2, "{arguments:?}");
    }
    assert!(service.requests().is_empty());
    run(&service.url, &["labels", "B-1", "B-2"]).tells(1, "no asset has the tag or the serial number B-1");
    run(&service.url, &["labels", "--status", "scrapped"]).tells(0, "No asset matches.");
    assert!(!std::path::Path::new("labels.html").exists());
}
