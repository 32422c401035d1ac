//! Makes one document of the signing page's files, which the function sends as it is: one request, and nothing from elsewhere.
//! Its policy names the style sheet and the script by their hashes (CSP 3 §2.3.1).

use base64_simd::STANDARD;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::path::Path;
use std::{env, fs};

const FOLDER: &str = "page";
const STYLE: &str = r#"<link rel="stylesheet" href=""#;
const SCRIPT: &str = r#"<script src=""#;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let read = |file: &str| fs::read_to_string(Path::new(FOLDER).join(file));
    let (mut style, mut script, mut page) = (String::new(), String::from("(() => {\n'use strict';\n"), String::new());
    let html = read("sign.html")?;
    // Places for the style sheet and the script: where the first of each is named.
    for line in html.lines() {
        if let Some(file) = named(line, STYLE) {
            style += &read(file)?;
            page += "<style>\0style</style>\n";
        } else if let Some(file) = named(line, SCRIPT) {
            if !page.contains("\0script") {
                page += "<script>\0script</script>\n";
            }
            script += &without_comments(&read(file)?)?;
        } else {
            page += line;
            page += "\n";
        }
    }
    script += "})();\n";
    let hash = |text: &str| STANDARD.encode_to_string(Sha256::digest(text));
    println!("cargo::rustc-env=STYLE_HASH={}", hash(&style));
    println!("cargo::rustc-env=SCRIPT_HASH={}", hash(&script));
    let page = page.replace("\0style", &style).replace("\0script", &script);
    let tag: String = Sha256::digest(&page).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=PAGE_TAG={tag}");
    fs::write(Path::new(&env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("sign.html"), page)?;
    Ok(())
}

/// The file name after `beginning`.
fn named<'a>(line: &'a str, beginning: &str) -> Option<&'a str> {
    line.strip_prefix(beginning)?.split('"').next()
}

/// Removes the lines of a script that are only comments: a sixth of it, for those who write it and not for those who sign.
///
/// # Errors
///
/// Returns an error for a line that only looks like one.
fn without_comments(script: &str) -> Result<String, String> {
    let (mut kept, mut is_in_comment) = (String::new(), false);
    for line in script.split_inclusive('\n') {
        let text = line.trim();
        is_in_comment |= text.starts_with("/*");
        if text.starts_with('*') && !is_in_comment {
            return Err(format!("a line that begins with * is taken for a comment: {text}"));
        }
        if !is_in_comment && !text.starts_with("//") {
            kept += line;
        }
        if is_in_comment && text.contains("*/") {
            if !text.ends_with("*/") {
                return Err(format!("a comment must be a line of its own: {text}"));
            }
            is_in_comment = false;
        }
    }
    Ok(kept)
}
