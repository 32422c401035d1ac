//! Runs the target named by `FUZZ_TARGET` under libFuzzer. Accepts libFuzzer's flags and corpus folders.
#![no_main]

use std::sync::OnceLock;

static TARGET: OnceLock<fuzz::Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        fuzz::target(&name).unwrap_or_else(|| {
            let names: Vec<&str> = fuzz::TARGETS.iter().map(|(name, _)| *name).collect();
            eprintln!("error: set FUZZ_TARGET to one of {}", names.join(", "));
            std::process::exit(2)
        })
    });
    target(bytes);
});
