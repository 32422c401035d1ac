//! Builds one document from the signing page's files, which the function serves unchanged: one request, and nothing from other
//! origins. Its policy contains the hashes of the style sheet and the script (CSP 3 §2.3.1).

mod comments;

use base64_simd::STANDARD;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// Folders with the page's files, and with the modules that all pages share.
const FOLDERS: [&str; 2] = ["page", "../../shared/page"];
const STYLE: &str = r#"<link rel="stylesheet" href=""#;
const SCRIPT: &str = r#"<script src=""#;

fn main() -> Result<(), Box<dyn Error>> {
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
    }
    println!("cargo::rerun-if-changed=comments.rs");
    let texts = read("texts.txt")?;
    let (mut style, mut page) = (String::new(), String::new());
    let mut script = format!("(() => {{\n'use strict';\nconst TEXTS = {};\n", quoted(texts.trim_end()));
    let html = read("sign.html")?;
    // Replaces the links with placeholders for the style sheet and the script.
    for line in html.lines() {
        if let Some(file) = named(line, STYLE) {
            style += &read(file)?;
            page += "<style>\0style</style>\n";
        } else if let Some(file) = named(line, SCRIPT) {
            add_module(file, &mut Vec::new(), &mut script)?;
            page += "<script>\0script</script>\n";
        } else {
            page += line;
            page += "\n";
        }
    }
    script += "})();\n";
    if script.contains("</script") {
        return Err("a script can't contain its own end tag: write <\\/script>".into());
    }
    let hash = |text: &str| STANDARD.encode_to_string(Sha256::digest(text));
    println!("cargo::rustc-env=STYLE_HASH={}", hash(&style));
    println!("cargo::rustc-env=SCRIPT_HASH={}", hash(&script));
    let page = page.replace("\0style", &style).replace("\0script", &script);
    let tag: String = Sha256::digest(&page).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=PAGE_TAG={tag}");
    fs::write(Path::new(&env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("sign.html"), page)?;
    Ok(())
}

fn read(file: &str) -> Result<String, Box<dyn Error>> {
    let path = FOLDERS.iter().map(|folder| Path::new(folder).join(file)).find(|path| path.exists());
    Ok(fs::read_to_string(path.ok_or_else(|| format!("there is no {file}"))?)?)
}

/// Adds a module after the modules that it imports, without its comments, imports and exports: all modules share one scope. An
/// import is one line, and what it names keeps its name.
fn add_module(file: &str, added: &mut Vec<String>, script: &mut String) -> Result<(), Box<dyn Error>> {
    if added.iter().any(|other| other == file) {
        return Ok(());
    }
    added.push(file.to_owned());
    let module = comments::without_comments(&read(file)?)?;
    for line in module.lines().filter(|line| line.starts_with("import ")) {
        let (_, imported) = line.split_once("'./").ok_or_else(|| format!("{file} has an unknown import: {line}"))?;
        add_module(imported.trim_end_matches('\''), added, script)?;
    }
    for line in module.lines().filter(|line| !line.starts_with("import ")) {
        *script += line.strip_prefix("export ").unwrap_or(line);
        *script += "\n";
    }
    Ok(())
}

/// Returns a text as a string of JavaScript.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'").replace('\n', r"\n"))
}

/// Returns the file name after `beginning`.
fn named<'a>(line: &'a str, beginning: &str) -> Option<&'a str> {
    line.strip_prefix(beginning)?.split('"').next()
}
