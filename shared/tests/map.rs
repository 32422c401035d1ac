//! docs/architecture.md is a map, and CONTRIBUTING.md has checklists: every file and folder that they name must exist.

mod source_files;

use source_files::files;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders whose files the pages name by path.
const ROOTS: [&str; 6] = ["shared/", "functions/", "apps/", "tests/", "docs/", "events/"];
/// Files at the root that the pages name.
const FILES: [&str; 4] = ["template.yaml", "Cargo.toml", "README.md", "CHANGELOG.md"];

fn is_path(code: &&str) -> bool {
    let is_known = ROOTS.iter().any(|folder| code.starts_with(folder)) || FILES.contains(code);
    is_known && !code.contains(['*', '<', ' ', '\n'])
}

#[test]
fn every_path_that_the_pages_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = |file| fs::read_to_string(root.join(file)).expect("the page");
    let map = page("docs/architecture.md");
    let pages = [map.as_str(), &page("CONTRIBUTING.md")].join("\n");
    let paths: Vec<&str> = pages.split('`').skip(1).step_by(2).filter(is_path).collect();
    let missing: Vec<_> = paths.iter().filter(|path| !root.join(path).exists()).collect();
    assert!(missing.is_empty(), "the pages name {missing:?}");
    assert!(paths.len() > 140, "only {} paths were found", paths.len());
}

/// Checks that the checklist names every file that contains all `FIELDS`, because such a file probably enumerates the fields of
/// assets.
#[test]
fn the_checklist_of_a_new_field_names_every_file() {
    const FIELDS: [&str; 4] = ["serial_number", "purchase_date", "purchase_price", "warranty_until"];
    /// This test, examples, formats of other systems, and the page's files, which the checklist names without their folder.
    const EXAMPLES: [&str; 16] = [
        "apps/assetctl/tests/cli/field_files.rs",
        "apps/assetctl/tests/cli/support/inventory_files.rs",
        "apps/dev_server/src/demo.rs",
        "bench/src/lists/fill.rs",
        "functions/meta/app/asset.js",
        "functions/meta/app/create.js",
        "functions/meta/app/editor.js",
        "functions/meta/app/proposal.js",
        "functions/meta/app/texts.txt",
        "shared/domain/src/import/columns.rs",
        "shared/domain/src/import/suggestion/headings.rs",
        "shared/tests/map.rs",
        "tests/api/assets/places.rs",
        "tests/api/document/examples/day.rs",
        "tests/api/history/as_of.rs",
        "tests/api/lists/index_model.rs",
    ];
    const MAX_FILES: usize = 10;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let page = read("CONTRIBUTING.md");
    let checklist = page.split("### A new field of an asset").nth(1).and_then(|rest| rest.split("\n### ").next());
    let named: BTreeSet<&str> = checklist.expect("the checklist").split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(named.len() <= MAX_FILES, "the checklist has {} files: {named:?}", named.len());
    let folders = ROOTS.iter().chain(&["bench/", ".ci/"]).flat_map(|folder| files(&root.join(folder)));
    let holds_all = |file: &String| {
        let text = read(file);
        FIELDS.iter().all(|field| text.contains(field))
    };
    let holders: BTreeSet<String> = folders
        .map(|file| file.strip_prefix(&root).expect("below").to_string_lossy().into_owned())
        .chain(FILES.map(str::to_owned))
        .filter(|file| !file.contains("node_modules") && holds_all(file))
        .collect();
    let missing: Vec<_> = holders.iter().filter(|file| !named.contains(file.as_str())).collect();
    assert_eq!(missing, EXAMPLES.iter().collect::<Vec<_>>(), "the checklist lacks other files");
}
