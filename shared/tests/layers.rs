//! Within the crate `shared`, dependencies go one way. Between crates, the compiler enforces functions → shared → domain.

mod source_files;

use source_files::files;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders and files of the crate, each of which may use only those below it.
const LAYERS: [&[&str]; 9] = [
    &["app"],
    &["request"],
    &["auth"],
    &["http"],
    &["services"],
    &["event_view"],
    &["store"],
    &["key_encryption", "queue"],
    &["log"],
];

#[test]
fn each_layer_knows_only_what_lies_below() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rank = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    let mut found = BTreeSet::new();
    for file in files(&source) {
        let relative = file.strip_prefix(&source).expect("a file of the crate");
        let layer = relative.iter().next().expect("a name").to_string_lossy().replace(".rs", "");
        if layer == "lib" || relative.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let own = rank(&layer).unwrap_or_else(|| panic!("{} is in no layer", file.display()));
        found.insert(layer.clone());
        let text = fs::read_to_string(&file).expect("a source file");
        for used in text.split("crate::").skip(1) {
            let used: String = used.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            assert!(!used.is_empty(), "{} groups several layers in one use", file.display());
            let is_below = rank(&used).is_none_or(|rank| rank > own) || used == layer;
            assert!(is_below, "{} uses {used}, which isn't below {layer}", file.display());
        }
        for word in ["axum", "lambda_", ".scan()"] {
            assert!(layer != "store" || !text.contains(word), "{} mentions {word}", file.display());
        }
    }
    assert_eq!(found.len(), LAYERS.iter().map(|layer| layer.len()).sum::<usize>(), "a layer has moved: {found:?}");
}

/// Checks that handlers get their writer from `Caller::verified`. Functions without callers make their own.
#[test]
fn only_a_verified_caller_writes() {
    let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
    let without_callers = ["deliver", "fanout", "snapshots"].map(|name| functions.join(name));
    let sources = files(&functions).into_iter().filter(|path| path.extension().is_some_and(|it| it == "rs"));
    for file in sources.filter(|path| !without_callers.iter().any(|folder| path.starts_with(folder))) {
        let text = fs::read_to_string(&file).expect("a source file");
        assert!(!text.contains(".writer("), "{} makes a writer", file.display());
    }
}

/// Checks that only `domain::values::json` deserializes a `Value`: serde_json gives some member names a special meaning, and this
/// module keeps them as data.
#[test]
fn values_are_read_as_data() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources: Vec<PathBuf> = [root.join("shared"), root.join("functions")].iter().flat_map(|folder| files(folder)).collect();
    let is_test = |path: &PathBuf| path.iter().any(|name| name == "tests");
    for file in sources.into_iter().filter(|path| path.extension().is_some_and(|it| it == "rs") && !is_test(path)) {
        let text = fs::read_to_string(&file).expect("a source file");
        let shipped = text.split("mod tests {").next().unwrap_or_default();
        for call in [" Value = serde_json::from_", "<Value> = serde_json::from_", "from_str::<Value>", "from_slice::<Value>"] {
            assert!(!shipped.contains(call), "{} has {call}", file.display());
        }
    }
}

#[test]
fn the_embedded_engine_ships_with_no_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifests = files(&root.join("functions")).into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let manifests: Vec<PathBuf> = manifests
        .chain([
            root.join("shared/Cargo.toml"),
            root.join("shared/aws/Cargo.toml"),
            root.join("apps/admin/Cargo.toml"),
            root.join("apps/assetctl/Cargo.toml"),
        ])
        .collect();
    assert!(manifests.len() >= 7);
    for manifest in manifests {
        let text = fs::read_to_string(&manifest).expect("a manifest");
        let shipped = text.split("[dev-dependencies]").next().unwrap_or_default();
        assert!(!shipped.contains("dynoxide") && !shipped.contains("dev_server.workspace"), "{}", manifest.display());
    }
}

/// The compiler finds texts that one language lacks, but no unused texts, because another crate defines the macro.
#[test]
fn every_text_of_a_page_is_used() {
    let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
    let read = |file: &PathBuf| fs::read_to_string(file).unwrap_or_default();
    let tables: Vec<PathBuf> = files(&functions).into_iter().filter(|file| read(file).contains("shared::texts! {")).collect();
    assert_eq!(tables.len(), 3);
    for table in tables {
        let function = table.strip_prefix(&functions).expect("below").iter().next().expect("a function");
        let sources: String = files(&functions.join(function)).iter().map(read).collect();
        let (_, rows) = sources.split_once("shared::texts! {").expect("a table");
        let rows =
            rows.lines().take_while(|line| *line != "}").filter(|line| line.starts_with("    ") && !line.starts_with("     "));
        let names: Vec<&str> = rows.filter_map(|line| line.trim().split_once(':')).map(|(name, _)| name).collect();
        let is_used = |name: &str| {
            let field = format!(".{name}");
            sources
                .match_indices(&field)
                .any(|(at, _)| !sources[at + field.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_'))
        };
        let unused: Vec<&&str> = names.iter().filter(|name| !name.starts_with("///") && !is_used(name)).collect();
        assert!(names.len() > 2 && unused.is_empty(), "{}: {unused:?}", table.display());
    }
}
