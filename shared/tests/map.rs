//! docs/architecture.md is a map: every file and folder that it names must exist.

use std::fs;
use std::path::Path;

/// Folders whose files the page names by path.
const ROOTS: [&str; 9] = ["shared/", "functions/", "local/", "docs/", "admin/", "bench/", "events/", "key_encryption/", "queue/"];
/// Files at the root that the page names.
const FILES: [&str; 4] = ["template.yaml", "Cargo.toml", "README.md", "CHANGELOG.md"];

#[test]
fn every_path_that_the_architecture_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    let (mut checked, mut missing) = (0, Vec::new());
    for code in page.split('`').skip(1).step_by(2) {
        let is_path = ROOTS.iter().any(|folder| code.starts_with(folder)) || FILES.contains(&code);
        if !is_path || code.contains(['*', '<', ' ', '\n']) {
            continue;
        }
        checked += 1;
        if !root.join(code).exists() {
            missing.push(code);
        }
    }
    assert!(missing.is_empty(), "docs/architecture.md names {missing:?}");
    assert!(checked > 50, "only {checked} paths were found");
}

#[test]
fn every_file_of_the_list_index_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    let section = page.split("## The list index").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the section");
    let names: Vec<&str> = section.split('`').skip(1).step_by(2).filter(|code| code.ends_with(".rs")).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        assert!(root.join("shared/src/store/lists/list_index").join(name).exists(), "{name} does not exist");
    }
}
