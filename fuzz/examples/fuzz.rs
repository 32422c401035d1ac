//! One target under libFuzzer, the one that `FUZZ_TARGET` names. Takes libFuzzer's own flags and folders.
#![no_main]

use std::sync::OnceLock;

static TARGET: OnceLock<fuzz::Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let run = TARGET.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        fuzz::target(&name).unwrap_or_else(|| {
            let names: Vec<&str> = fuzz::TARGETS.iter().map(|(name, _)| *name).collect();
            eprintln!("FUZZ_TARGET must be one of {}", names.join(", "));
            std::process::exit(2)
        })
    });
    run(bytes);
});
