//! Runs every target on its corpus, without the fuzzer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Returns the inputs in a folder and, like libFuzzer, in its subfolders.
fn inputs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(inputs(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

#[test]
fn every_corpus_input_passes_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders = fs::read_dir(&corpus).unwrap().map(|folder| folder.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders.collect::<BTreeSet<_>>(), names, "each target has a folder");
    for (name, target) in fuzz::TARGETS {
        let inputs = inputs(&corpus.join(name)).unwrap();
        for path in &inputs {
            eprintln!("{}", path.display());
            target(&fs::read(path).unwrap());
        }
        assert!(inputs.len() >= 5, "{name} has {} inputs", inputs.len());
    }
}
