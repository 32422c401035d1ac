//! The division of labels into pages of sheets.

use std::path::{Path, PathBuf};

const MAX_LABELS: usize = 100;

/// A page: as many whole sheets as the service makes at once.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<'a, T> {
    pub labels: &'a [T],
    /// Labels of the first sheet that are left out.
    pub skip: usize,
}

/// Divides labels into pages, so that no sheet but the last one stays partly empty. `sheet` is the number of labels on a sheet.
/// The first sheet has `skip` used up.
pub fn pages<T>(labels: &[T], sheet: usize, skip: usize) -> Vec<Page<'_, T>> {
    let whole = MAX_LABELS / sheet * sheet;
    let (mut rest, mut skip, mut pages) = (labels, skip, Vec::new());
    while !rest.is_empty() {
        let (labels, others) = rest.split_at(rest.len().min(whole - skip));
        pages.push(Page { labels, skip });
        (rest, skip) = (others, 0);
    }
    pages
}

/// The names of the pages' files: the given one, or numbered ones if there are several.
pub fn names(path: &Path, pages: usize) -> Vec<PathBuf> {
    if pages <= 1 {
        return vec![path.to_owned(); pages];
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    // Listed by name, they are in their order.
    let digits = pages.to_string().len();
    (1..=pages).map(|number| path.with_file_name(format!("{stem}-{number:0digits$}{ending}"))).collect()
}

/// Tags can have characters that no file name has.
pub fn file_name(tag: &str, ending: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_.".contains(character);
    let plain: String = tag.chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    let plain = plain.trim_start_matches('.');
    format!("{}.{ending}", if plain.is_empty() { "_" } else { plain })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(count: usize, sheet: usize, skip: usize) -> Vec<(usize, usize)> {
        pages(&vec![(); count], sheet, skip).iter().map(|page| (page.labels.len(), page.skip)).collect()
    }

    #[test]
    fn a_page_is_whole_sheets() {
        assert_eq!(sizes(0, 24, 0), []);
        assert_eq!(sizes(5, 24, 3), [(5, 3)]);
        assert_eq!(sizes(200, 24, 10), [(86, 10), (96, 0), (18, 0)]);
        assert_eq!(sizes(130, 65, 64), [(1, 64), (65, 0), (64, 0)]);
        assert_eq!(sizes(161, 80, 0), [(80, 0), (80, 0), (1, 0)]);
    }

    #[test]
    fn several_files_are_numbered() {
        let text = |names: Vec<PathBuf>| names.iter().map(|name| name.display().to_string()).collect::<Vec<_>>();
        assert_eq!(text(names(Path::new("a/labels.html"), 1)), ["a/labels.html"]);
        assert_eq!(text(names(Path::new("a/labels.html"), 2)), ["a/labels-1.html", "a/labels-2.html"]);
        assert_eq!(text(names(Path::new("l"), 10))[0], "l-01");
    }

    #[test]
    fn a_tag_is_no_path() {
        assert_eq!(file_name("AST-000001", "svg"), "AST-000001.svg");
        assert_eq!(file_name("../Büro/1", "zpl"), "_Büro_1.zpl");
        assert_eq!(file_name("..", "png"), "_.png");
    }
}
