//! docs/architecture.md is a map: every file and folder that it names must exist, and it stays short enough to be read.

mod source_files;

use source_files::files;
use std::fs;
use std::path::Path;

/// Folders whose files the page names by path.
const ROOTS: [&str; 6] = ["shared/", "functions/", "apps/", "tests/", "docs/", "events/"];
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
    assert!(checked > 120, "only {checked} paths were found");
    let words = page.split_whitespace().count();
    assert!(words <= 1800, "docs/architecture.md has {words} words");
}

/// The files that hold a field of an asset, by one that every list, import and export has.
#[test]
fn the_checklist_of_a_new_field_names_every_file() {
    const FIELD: &str = "warranty_until";
    /// Only this field is counted by when it ends.
    const STATISTICS: &str = "stats.rs";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    let checklist = page.split("## Checklist: a new field of an asset").nth(1).and_then(|rest| rest.split("\n## ").next());
    let checklist = checklist.expect("the checklist");
    let folders = ["functions", "shared/src", "shared/domain/src", "apps/assetctl/src"];
    let mut holders = vec!["template.yaml".to_owned()];
    for file in folders.iter().flat_map(|folder| files(&root.join(folder))).filter(|file| !is_test(file)) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if code.contains(FIELD) && !file.ends_with(STATISTICS) {
            holders.push(file.strip_prefix(&root).expect("below").to_string_lossy().into_owned());
        }
    }
    holders.retain(|file| !checklist.contains(&format!("`{file}`")));
    assert!(holders.is_empty(), "the checklist lacks {holders:?}");
}

fn is_test(file: &Path) -> bool {
    file.extension().is_none_or(|extension| extension != "rs") || file.ends_with("tests.rs") || file.ends_with("properties.rs")
}
