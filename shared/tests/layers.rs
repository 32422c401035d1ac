//! Within the crate `shared`, dependencies go one way: auth → http → store. Between crates, the compiler enforces functions →
//! shared → domain.

mod source_files;

use source_files::files;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn each_layer_knows_only_what_lies_below() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let layers: [(&str, &[&str]); 2] = [
        ("src/http", &["crate::auth"]),
        ("src/store", &["axum", "lambda_", "crate::http", "crate::auth", "crate::app", ".scan()"]),
    ];
    for (layer, forbidden) in layers {
        let files = files(&source.join(layer));
        assert!(files.len() > 5, "{layer} has moved");
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            for word in forbidden {
                assert!(!text.contains(word), "{} mentions {word}", file.display());
            }
        }
    }
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
