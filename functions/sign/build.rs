//! Builds one document from the signing page's files, which the function serves unchanged: one request, and nothing from other
//! origins. Its policy contains the hashes of the style sheet and the script (CSP 3 §2.3.1).

mod comments;

use base64_simd::STANDARD;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::path::Path;
use std::{env, fs};

const FOLDER: &str = "page";
const LANGUAGES: [&str; 4] = ["en", "de", "fr", "es"];
const STYLE: &str = r#"<link rel="stylesheet" href=""#;
const SCRIPT: &str = r#"<script src=""#;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed=comments.rs");
    let read = |file: &str| fs::read_to_string(Path::new(FOLDER).join(file));
    let mut texts = Vec::new();
    for language in LANGUAGES {
        texts.push(format!("{language:?}: {}", without_lines(&read(&format!("{language}.json"))?)));
    }
    let texts = texts.join(", ");
    let (mut style, mut page) = (String::new(), String::new());
    // JSON is a subset of JavaScript.
    let mut script = format!("(() => {{\n'use strict';\nconst TEXTS = {{{texts}}};\n");
    let html = read("sign.html")?;
    // Replaces the links with placeholders for the style sheet and, once, for the script.
    for line in html.lines() {
        if let Some(file) = named(line, STYLE) {
            style += &read(file)?;
            page += "<style>\0style</style>\n";
        } else if let Some(file) = named(line, SCRIPT) {
            if !page.contains("\0script") {
                page += "<script>\0script</script>\n";
            }
            script += &comments::without_comments(&read(file)?)?;
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

/// Removes line breaks and indentation from a JSON text, whose strings contain no line breaks.
fn without_lines(json: &str) -> String {
    json.lines().map(str::trim).collect()
}

/// Returns the file name after `beginning`.
fn named<'a>(line: &'a str, beginning: &str) -> Option<&'a str> {
    line.strip_prefix(beginning)?.split('"').next()
}
