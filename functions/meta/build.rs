//! Prepares the files that the function sends: the OpenAPI document without blanks, and the script of the documentation page. The
//! script consists of the viewer, which comes from a crate and isn't in the repository, and our own lines before and behind it.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::{env, fs};

/// Our own lines.
const FOLDER: &str = "viewer";
/// The document with line breaks, so that its changes can be read.
const DOCUMENT: &str = "../../docs/openapi.json";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed={DOCUMENT}");
    let own = |file: &str| fs::read(Path::new(FOLDER).join(file));
    let viewer = scalar_api_reference::get_asset("scalar.js").ok_or("scalar_api_reference has no scalar.js")?;
    let script = [own("before.js")?, viewer, b"\n".to_vec(), own("start.js")?].concat();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(&script)?;
    let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    fs::write(Path::new(&folder).join("viewer.js.gz"), compressed.finish()?)?;
    fs::write(Path::new(&folder).join("openapi.json"), without_blanks(&fs::read_to_string(DOCUMENT)?))?;
    // The path of the script changes with its contents, so that browsers can keep it.
    let version: String = Sha256::digest(&script).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=VIEWER_VERSION={version}");
    Ok(())
}

/// Removes the blanks between the values of a JSON text, and leaves everything else as it is, also the order of members.
fn without_blanks(json: &str) -> String {
    let (mut is_in_string, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        let is_blank = !is_in_string && character.is_ascii_whitespace();
        is_in_string ^= *character == '"' && !is_escaped;
        is_escaped = *character == '\\' && !is_escaped;
        !is_blank
    };
    json.chars().filter(is_kept).collect()
}
