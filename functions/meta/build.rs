//! Compresses the script of the documentation page, so that none of its files has to be in the repository: the viewer,
//! which comes from a crate, and our own lines before and behind it.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::{env, fs};

/// Our own lines.
const FOLDER: &str = "viewer";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let own = |file: &str| fs::read(Path::new(FOLDER).join(file));
    let viewer = scalar_api_reference::get_asset("scalar.js").ok_or("scalar_api_reference has no scalar.js")?;
    let script = [own("before.js")?, viewer, b"\n".to_vec(), own("start.js")?].concat();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(&script)?;
    let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    fs::write(Path::new(&folder).join("viewer.js.gz"), compressed.finish()?)?;
    // The path of the script changes with its contents, so that browsers can keep it.
    let version: String = Sha256::digest(&script).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=VIEWER_VERSION={version}");
    Ok(())
}
