//! Prepares the files that the function serves: the OpenAPI document without whitespace, the script of the documentation page,
//! and the files of the inventory page. The script is the viewer, which comes from a crate and isn't in the repository, with
//! our own lines before and after it.

#[path = "../sign/comments.rs"]
mod comments;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::{env, fs};

/// Folder with our own lines of the script.
const FOLDER: &str = "viewer";
/// The document in its readable form, with line breaks.
const DOCUMENT: &str = "../../docs/openapi.json";
/// Folders with the files of the inventory page, and with the modules that all pages share.
const APP: [&str; 2] = ["app", "../../shared/page"];
const APP_PAGE: &str = "index.html";
/// The page's first script.
const START: &str = "start.js";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed={DOCUMENT}");
    let own = |file: &str| fs::read(Path::new(FOLDER).join(file));
    let viewer = scalar_api_reference::get_asset("scalar.js").ok_or("scalar_api_reference has no scalar.js")?;
    let script = [own("before.js")?, viewer, b"\n".to_vec(), own("start.js")?].concat();
    let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    let folder = Path::new(&folder);
    fs::write(folder.join("viewer.js.gz"), compressed(&script)?)?;
    fs::write(folder.join("openapi.json"), without_blanks(&fs::read_to_string(DOCUMENT)?))?;
    println!("cargo::rustc-env=VIEWER_VERSION={}", version(&script));
    pack_app(folder)
}

fn compressed(content: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}

/// Returns a part of a path that changes with the contents, so that browsers can cache the files.
fn version(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Writes `app_files.rs`, a list of file names and compressed contents, and the page that loads the files.
fn pack_app(folder: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../sign/comments.rs");
    let mut files = BTreeMap::new();
    let mut entries = Vec::new();
    for folder in APP {
        println!("cargo::rerun-if-changed={folder}");
        entries.extend(fs::read_dir(folder)?);
    }
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| format!("{} is not UTF-8", name.display()))?;
        let content = fs::read_to_string(entry.path())?;
        let content = if name == APP_PAGE { content } else { small(&name, &content)? };
        if files.insert(name.clone(), content).is_some() {
            return Err(format!("two files are named {name}").into());
        }
    }
    let page = files.remove(APP_PAGE).ok_or("the page is missing")?;
    let all: String = files.iter().flat_map(|(name, content)| [name.as_str(), content]).collect();
    // Short, since the page repeats it for each file.
    let version: String = version(all.as_bytes()).chars().take(8).collect();
    let (mut list, mut preloads) = (String::from("&["), String::new());
    let mut first = BTreeSet::new();
    add_imports(&files, START, &mut first);
    for (name, content) in &files {
        let packed = folder.join(format!("app-{name}.gz"));
        fs::write(&packed, compressed(content.as_bytes())?)?;
        write!(list, "({name:?}, include_bytes!({packed:?})),")?;
        // The page itself loads the first script.
        if first.contains(name.as_str()) && name != START {
            writeln!(preloads, "<link rel=\"modulepreload\" href=\"/v1/app/{version}/{name}\">")?;
        }
    }
    fs::write(folder.join("app_files.rs"), list + "]")?;
    let page = page.replace("VERSION", &version).replace("PRELOADS\n", &preloads);
    println!("cargo::rustc-env=APP_VERSION={version}");
    println!("cargo::rustc-env=APP_PAGE_VERSION={}", self::version(page.as_bytes()));
    fs::write(folder.join("app.html"), page)?;
    Ok(())
}

/// Adds a script and those that it imports, also indirectly. Scripts that it loads later, with `import()`, are not among them. An
/// import is a line of its own.
fn add_imports<'a>(files: &'a BTreeMap<String, String>, name: &str, found: &mut BTreeSet<&'a str>) {
    let Some((name, script)) = files.get_key_value(name) else { return };
    if !found.insert(name.as_str()) {
        return;
    }
    let imports = script.lines().filter(|line| line.starts_with("import"));
    for imported in imports.filter_map(|line| line.split_once("'./")?.1.split('\'').next()) {
        add_imports(files, imported, found);
    }
}

/// Whitespace in a style sheet, and its replacement. None of it occurs in the style sheet's strings.
const BLANKS: [(&str, &str); 5] = [(" {", "{"), ("{ ", "{"), ("; }", "}"), (": ", ":"), (", ", ",")];

/// Removes what browsers don't need: comments, indentation, and blanks beside punctuation. The scripts contain no multi-line
/// strings.
fn small(name: &str, content: &str) -> Result<String, Box<dyn Error>> {
    let content = match name.rsplit_once('.') {
        Some((_, "js")) => {
            let script = comments::without_comments(content)?;
            script.lines().flat_map(|line| [without_script_blanks(line.trim()), "\n".to_owned()]).collect()
        }
        Some((_, "css")) => {
            let css = comments::without_comments(content)?;
            BLANKS.iter().fold(css, |css, (blank, short)| css.replace(blank, short))
        }
        _ => content.to_owned(),
    };
    Ok(content.lines().map(str::trim_start).filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]).collect())
}

/// Removes blanks beside punctuation from a line of a script, but not from strings, templates and regular expressions.
fn without_script_blanks(line: &str) -> String {
    const PUNCTUATION: &str = ",;:?=(){}[]<>!&|*%";
    let (mut kept, mut rest) = (String::new(), line);
    while let Some(next) = rest.chars().next() {
        // After a value, a slash is a division.
        let before = kept.trim_end();
        let is_regex = next == '/'
            && (before.is_empty() || before.ends_with("return") || before.ends_with(|last| "(,=:[!&|?{;>".contains(last)));
        let length = if is_regex || "'\"`".contains(next) { literal_length(rest) } else { next.len_utf8() };
        let (piece, after) = rest.split_at(length);
        if piece != " "
            || !(kept.ends_with(|last| PUNCTUATION.contains(last)) || after.starts_with(|next| PUNCTUATION.contains(next)))
        {
            kept += piece;
        }
        rest = after;
    }
    kept
}

/// Returns the length of the string, template or regular expression at the start of `text`.
fn literal_length(text: &str) -> usize {
    let mut characters = text.char_indices();
    let quote = characters.next().map_or('"', |(_, quote)| quote);
    let mut is_in_class = false;
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            '[' if quote == '/' => is_in_class = true,
            ']' => is_in_class = false,
            '$' if quote == '`' && text.get(at + 1..).is_some_and(|rest| rest.starts_with('{')) => {
                let end = at + 2 + code_length(text.get(at + 2..).unwrap_or_default());
                characters = text.char_indices();
                characters.by_ref().take_while(|(at, _)| at + 1 < end).for_each(drop);
            }
            other if other == quote && !is_in_class => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the code in a template, up to its closing brace.
fn code_length(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) {
        match next {
            '}' if depth == 0 => return at + 1,
            '}' => depth -= 1,
            '{' => depth += 1,
            _ => {}
        }
        at += if "'\"`".contains(next) { literal_length(text.get(at..).unwrap_or_default()) } else { next.len_utf8() };
    }
    text.len()
}

/// Removes the whitespace between the values of a JSON text. Keeps everything else, including the order of members.
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
