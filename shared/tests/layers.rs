//! Knowledge goes one way: functions → http, auth → store → domain. This fails when it does not.
#![expect(clippy::expect_used, reason = "tests, and helpers that only tests call")]

use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn each_layer_knows_only_what_lies_below() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let layers: [(&str, &[&str]); 2] = [
        (
            "domain",
            &[
                "axum",
                "aws_",
                "lambda_",
                "tokio",
                "serde_dynamo",
                "crate::store",
                "crate::http",
                "crate::auth",
                "crate::app",
                "Utc::now",
            ],
        ),
        ("store", &["axum", "lambda_", "crate::http", "crate::auth", "crate::app", "Utc::now", ".scan()"]),
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

#[test]
fn the_embedded_engine_ships_with_no_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifests = files(&root.join("functions")).into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let manifests: Vec<PathBuf> = manifests.chain([root.join("shared/Cargo.toml"), root.join("admin/Cargo.toml")]).collect();
    assert!(manifests.len() >= 7);
    for manifest in manifests {
        let text = fs::read_to_string(&manifest).expect("a manifest");
        let shipped = text.split("[dev-dependencies]").next().unwrap_or_default();
        assert!(!shipped.contains("dynoxide") && !shipped.contains("local.workspace"), "{}", manifest.display());
    }
}
