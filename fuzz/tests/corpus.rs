//! The kept corpus goes through its targets with every `cargo test`, without a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_kept_input_is_handled() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders = fs::read_dir(&corpus).unwrap().map(|folder| folder.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders.collect::<BTreeSet<_>>(), names, "each target has its folder");
    for (name, run) in fuzz::TARGETS {
        let mut inputs = 0;
        for file in fs::read_dir(corpus.join(name)).unwrap() {
            let path = file.unwrap().path();
            eprintln!("{}", path.display());
            run(&fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs >= 5, "{name} has {inputs} inputs");
    }
}
