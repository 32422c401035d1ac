//! Knowledge goes one way: functions → auth → http → store → domain. This fails when it does not.
#![expect(clippy::expect_used, reason = "tests, and helpers that only tests call")]

mod source_files;

use source_files::files;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn each_layer_knows_only_what_lies_below() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The domain is a crate: the compiler keeps most of this.
    let layers: [(&str, &[&str]); 3] = [
        ("domain/src", &["tokio", "Utc::now"]),
        ("src/http", &["crate::auth"]),
        ("src/store", &["axum", "lambda_", "crate::http", "crate::auth", "crate::app", "Utc::now", ".scan()"]),
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

/// The modules in a folder, each with its files.
fn modules(folder: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut modules: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in entries {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if name != "lib" && name != "mod" {
            modules.entry(name).or_default().extend(if path.is_dir() { files(&path) } else { vec![path] });
        }
    }
    modules
}

/// The paths below `prefix` in a text: of `crate::http::error::ApiError`, `error` below `crate::http::`.
fn named_below<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let rests = text.match_indices(prefix).filter(move |(at, _)| !text[..*at].ends_with(is_word) && !text[..*at].ends_with(':'));
    rests.map(move |(at, _)| &text[at + prefix.len()..]).map(move |rest| rest.split(|c| !is_word(c)).next().unwrap_or_default())
}

/// Modules of a folder that use one another in a circle.
fn circle(source: &Path, folder: &Path) -> BTreeSet<String> {
    let own: Vec<_> = folder.strip_prefix(source).expect("below").iter().map(|part| part.to_string_lossy()).collect();
    let prefix = own.iter().fold("crate::".to_owned(), |prefix, part| format!("{prefix}{part}::"));
    let modules = modules(folder);
    let mut uses: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for (module, files) in &modules {
        for file in files {
            let text = fs::read_to_string(file).expect("a source file");
            let depth = file.strip_prefix(folder).expect("below").iter().count() - usize::from(file.ends_with("mod.rs"));
            for prefix in [prefix.clone(), "super::".repeat(depth)] {
                let named = named_below(&text, &prefix).filter_map(|name| modules.get_key_value(name)).map(|(name, _)| name);
                uses.entry(module).or_default().extend(named.filter(|name| *name != module));
            }
        }
    }
    while let Some(free) = uses.iter().find(|(_, used)| !used.iter().any(|name| uses.contains_key(name))) {
        let free = *free.0;
        uses.remove(free);
    }
    uses.into_keys().cloned().collect()
}

#[test]
fn modules_use_one_another_in_no_circle() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders: BTreeSet<PathBuf> = files(&source).iter().filter_map(|file| file.parent().map(Path::to_owned)).collect();
    // Parts of an index know its whole: columns are saved in snapshots, and snapshots are brought up to date.
    let is_checked = |folder: &PathBuf| !folder.ends_with("store/lists/list_index");
    let checked: Vec<PathBuf> = folders.into_iter().filter(is_checked).collect();
    assert!(checked.len() > 5, "{checked:?}");
    for folder in checked {
        let circle = circle(&source, &folder);
        assert!(circle.is_empty(), "{} has a circle among {circle:?}", folder.display());
    }
}

#[test]
fn the_embedded_engine_ships_with_no_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifests = files(&root.join("functions")).into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let manifests: Vec<PathBuf> = manifests
        .chain([root.join("shared/Cargo.toml"), root.join("shared/aws/Cargo.toml"), root.join("apps/admin/Cargo.toml")])
        .collect();
    assert!(manifests.len() >= 7);
    for manifest in manifests {
        let text = fs::read_to_string(&manifest).expect("a manifest");
        let shipped = text.split("[dev-dependencies]").next().unwrap_or_default();
        assert!(!shipped.contains("dynoxide") && !shipped.contains("dev_server.workspace"), "{}", manifest.display());
    }
}
