//! Runs every target on its corpus, without the fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_corpus_input_passes_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders = fs::read_dir(&corpus).unwrap().map(|folder| folder.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders.collect::<BTreeSet<_>>(), names, "each target has a folder");
    for (name, target) in fuzz::TARGETS {
        let mut inputs = 0;
        for file in fs::read_dir(corpus.join(name)).unwrap() {
            let path = file.unwrap().path();
            eprintln!("{}", path.display());
            target(&fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs >= 5, "{name} has {inputs} inputs");
    }
}
