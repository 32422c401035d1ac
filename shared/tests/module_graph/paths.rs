//! The paths that a file names: in `use` declarations, and elsewhere if they begin with `crate`, `super` or `self`.

pub struct Import {
    pub path: Vec<String>,
    pub is_export: bool,
}

pub fn imports(text: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    let mut declaration: Option<(bool, String)> = None;
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default().trim()) {
        if let Some((_, tree)) = &mut declaration {
            tree.push_str(line);
        } else if let Some((is_export, tree)) = begun(line) {
            declaration = Some((is_export, tree.to_owned()));
        } else {
            imports.extend(named(line).map(|path| Import { path, is_export: false }));
        }
        if let Some((is_export, tree)) = declaration.take_if(|(_, tree)| tree.ends_with(';')) {
            let paths = leaves(tree.trim_end_matches(';')).into_iter();
            imports.extend(paths.map(|leaf| Import { path: segments(&leaf), is_export }));
        }
    }
    imports
}

/// Whether a line that begins a `use` declaration re-exports, and the rest of the line.
fn begun(line: &str) -> Option<(bool, &str)> {
    if let Some(tree) = line.strip_prefix("use ") {
        return Some((false, tree));
    }
    let (visibility, tree) = line.split_once("use ")?;
    let is_visibility = visibility == "pub " || visibility.starts_with("pub(") && visibility.ends_with(") ");
    is_visibility.then_some((true, tree))
}

/// Of `a::{b, c::{d, e}}`: `a::b`, `a::c::d` and `a::c::e`.
fn leaves(tree: &str) -> Vec<String> {
    let Some((prefix, group)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| leaves(part)).map(|leaf| format!("{}{leaf}", prefix.trim())).collect()
}

/// Without `self` at the end, and without another name.
fn segments(leaf: &str) -> Vec<String> {
    let path = leaf.split(" as ").next().unwrap_or_default().trim();
    let path = path.strip_suffix("::self").unwrap_or(path);
    path.split("::").map(str::to_owned).collect()
}

fn named(line: &str) -> impl Iterator<Item = Vec<String>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = line.split(move |c| !is_part(c)).map(|word| word.trim_matches(':'));
    let paths = words.filter(|word| ["crate::", "super::", "self::"].iter().any(|start| word.starts_with(start)));
    paths.map(segments)
}
