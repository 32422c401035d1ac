//! Documentation pages: links, tables of contents and length.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

const GUIDE_LINES: usize = 130;
/// Maximum number of lines between headings, in guides and in the reference.
const SECTION_LINES: usize = 90;

struct Heading {
    level: usize,
    text: String,
    anchor: String,
    line: usize,
}

struct Page {
    lines: usize,
    headings: Vec<Heading>,
    /// Text and target of each link, with the number of headings before it.
    links: Vec<(String, String, usize)>,
}

/// Returns all pages, by path relative to the repository's root.
fn pages() -> io::Result<BTreeMap<PathBuf, Page>> {
    let root = root();
    let mut folders = vec![PathBuf::from("docs")];
    let mut files: Vec<PathBuf> = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(PathBuf::from).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.into_iter().map(|path| Ok((path.clone(), read(&fs::read_to_string(root.join(path))?)))).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(text: &str) -> Page {
    let mut page = Page { lines: text.lines().count(), headings: Vec::new(), links: Vec::new() };
    let mut prose = String::new();
    let mut is_code = false;
    for (line, content) in text.lines().enumerate() {
        if content.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let level = content.bytes().take_while(|byte| *byte == b'#').count();
        if is_code {
            continue;
        } else if level > 0 && content[level..].starts_with(' ') {
            find_links(&std::mem::take(&mut prose), &mut page);
            let title = content[level..].trim();
            let anchor = anchor(title, &page.headings);
            page.headings.push(Heading { level, text: title.to_owned(), anchor, line });
        } else {
            prose.push_str(content);
            prose.push('\n');
        }
    }
    find_links(&prose, &mut page);
    page
}

/// Returns the anchor that GitHub generates for a heading.
fn anchor(title: &str, earlier: &[Heading]) -> String {
    let kept = title.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    let anchor: String = kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect();
    let same = earlier.iter().filter(|heading| heading.text == title).count();
    if same == 0 { anchor } else { format!("{anchor}-{same}") }
}

/// Adds the links in `prose` to `page`, ignoring code.
fn find_links(prose: &str, page: &mut Page) {
    let mut rest = prose;
    while let Some(at) = rest.find("](") {
        let is_code = rest[..at].matches('`').count() % 2 == 1;
        let text = rest[..at].rfind('[').map_or("", |open| &rest[open + 1..at]);
        let end = rest[at..].find(')').map_or(rest.len(), |length| at + length);
        if !is_code {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            page.links.push((text, rest[at + 2..end].to_owned(), page.headings.len()));
        }
        rest = &rest[at + 2..];
    }
    for image in prose.split(" src=\"").skip(1) {
        let target = image.split('"').next().unwrap_or_default();
        page.links.push((String::new(), target.to_owned(), page.headings.len()));
    }
}

/// Returns the file and anchor that a link points to; `None` for other hosts.
fn resolve(page: &Path, target: &str) -> Option<(PathBuf, Option<String>)> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor.to_owned())));
    if file.is_empty() {
        return Some((page.to_owned(), anchor));
    }
    let mut path = PathBuf::new();
    for component in page.parent().unwrap_or(Path::new("")).join(file).components() {
        match component {
            Component::ParentDir => assert!(path.pop(), "{target} on {} leads outside", page.display()),
            other => path.push(other),
        }
    }
    Some((path, anchor))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let pages = pages().expect("the pages");
    let (mut checked, mut broken) = (0, Vec::new());
    for (path, page) in &pages {
        for (_, target, _) in &page.links {
            let Some((file, anchor)) = resolve(path, target) else { continue };
            checked += 1;
            let is_anchor = |anchor: &String| pages[&file].headings.iter().any(|heading| heading.anchor == *anchor);
            if !root().join(&file).exists() || !anchor.as_ref().is_none_or(is_anchor) {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links: {broken:#?}");
    assert!(checked > 300, "only {checked} links were found");
}

#[test]
fn every_page_is_two_clicks_from_the_readme() {
    let pages = pages().expect("the pages");
    let mut reached = BTreeSet::from([PathBuf::from("README.md")]);
    for _ in 0..2 {
        for path in reached.clone() {
            let links = pages.get(&path).into_iter().flat_map(|page| &page.links);
            reached.extend(links.filter_map(|(_, target, _)| resolve(&path, target)).map(|(file, _)| file));
        }
    }
    let far: Vec<&PathBuf> = pages.keys().filter(|path| !reached.contains(*path)).collect();
    assert!(far.is_empty(), "too far from README.md: {far:?}");
}

#[test]
fn the_reference_has_a_table_of_contents_of_all_its_headings() {
    let pages = pages().expect("the pages");
    let page = &pages[Path::new("docs/api.md")];
    let in_contents = page.links.iter().filter(|(_, target, before)| *before == 1 && target.starts_with('#'));
    let contents: Vec<(String, &str)> = in_contents.map(|(text, target, _)| (text.to_lowercase(), &target[1..])).collect();
    let headings = page.headings.iter().filter(|heading| matches!(heading.level, 2 | 3));
    let expected: Vec<(String, &str)> = headings.map(|heading| (heading.text.to_lowercase(), heading.anchor.as_str())).collect();
    assert_eq!(contents, expected);
    assert!(expected.len() > 50, "{} headings", expected.len());
}

#[test]
fn tables_of_contents_are_complete() {
    let pages = pages().expect("the pages");
    for path in ["docs/deploy.md", "docs/runbook.md", "docs/admin.md", "docs/assetctl.md", "docs/scope.md"] {
        let page = &pages[Path::new(path)];
        let at_top: BTreeSet<&str> =
            page.links.iter().filter(|(_, _, before)| *before == 1).map(|link| link.1.as_str()).collect();
        for heading in page.headings.iter().filter(|heading| heading.level == 2) {
            assert!(at_top.contains(format!("#{}", heading.anchor).as_str()), "{path} omits {}", heading.text);
        }
    }
}

#[test]
fn guides_are_short_and_long_pages_have_headings() {
    let pages = pages().expect("the pages");
    let mut guides = 0;
    for (path, page) in &pages {
        let is_guide = path.starts_with("docs/guides");
        guides += usize::from(is_guide);
        assert!(!is_guide || page.lines <= GUIDE_LINES, "{} has {} lines", path.display(), page.lines);
        if !is_guide && path != Path::new("docs/api.md") {
            continue;
        }
        let starts = page.headings.iter().map(|heading| heading.line).chain([page.lines]);
        for (heading, end) in page.headings.iter().zip(starts.skip(1)) {
            let lines = end - heading.line;
            assert!(lines <= SECTION_LINES, "{}: {} has {lines} lines", path.display(), heading.text);
        }
    }
    assert!(guides >= 10, "only {guides} guides were found");
}
