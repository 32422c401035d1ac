//! `assetctl labels`: prints sheets, or single labels as files or on standard output.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::Client;
use crate::output::{count, persist, print_json, temporary_beside};
use crate::selection::{Asset, Filters, matching, named};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::json;
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use terminal::print_note;

const SHEETS: &str = "labels.html";

pub async fn labels(options: &Labels, connection: &Connection, is_json: bool) -> Result<u8> {
    check(options, is_json)?;
    let client = Client::new(connection)?;
    let assets = match options.assets.as_slice() {
        [] => matching(&client, &options.filters).await?,
        tags => named(&client, tags).await?,
    };
    if assets.is_empty() {
        print_note("No asset matches.");
    }
    let files = match (options.format, &options.output) {
        (None, path) => sheets(&client, options, &assets, path.as_deref().unwrap_or(Path::new(SHEETS))).await?,
        (Some(format), Some(folder)) => to_folder(&client, options, format, &assets, folder).await?,
        (Some(format), None) => {
            to_standard_output(&client, options, format, &assets).await?;
            return Ok(EXIT_SUCCESS);
        }
    };
    if is_json {
        print_json(&json!({"labels": assets.len(), "files": files}))?;
        return Ok(EXIT_SUCCESS);
    }
    let (labels, number) = (count(assets.len() as u64, "label"), count(files.len() as u64, "file"));
    match files.as_slice() {
        [] => {}
        [file] => print_note(&format!("{labels} in {}", file.display())),
        [first, .., last] => print_note(&format!("{labels} in {number}: {} to {}", first.display(), last.display())),
    }
    Ok(EXIT_SUCCESS)
}

fn check(options: &Labels, is_json: bool) -> Result<()> {
    let (sheet, has_image) = (options.layout as usize, matches!(options.format, Some(LabelFormat::Svg | LabelFormat::Png)));
    Err(CliError::Usage(match (options.format, &options.output) {
        (None, _) if options.skip >= sheet => {
            format!("--skip {}: a sheet of {} has {sheet} labels", options.skip, name(&options.layout))
        }
        (None, Some(path)) if path.is_dir() => format!("{} is a folder; name a file in it", path.display()),
        _ if has_image && options.dpi.is_some() => "--dpi is only for --format zpl".into(),
        (Some(_), None) if has_image => "name a folder for the labels with -o".into(),
        (Some(_), None) if is_json => "--json needs -o FOLDER: the labels themselves go to standard output otherwise".into(),
        _ => return Ok(()),
    }))
}

/// Returns the name of the value in the service and on the command line.
fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Writes the sheets, and returns the paths of the files. Reads all pages before it writes the first file.
async fn sheets(client: &Client, options: &Labels, assets: &[Asset], path: &Path) -> Result<Vec<PathBuf>> {
    let pages = pages(assets, options.layout as usize, options.skip);
    let files = names(path, pages.len());
    let mut written = Vec::new();
    for ((labels, skip), file) in pages.into_iter().zip(&files) {
        let ids: Vec<&str> = labels.iter().map(|asset| asset.id.as_str()).collect();
        let query = [("ids", ids.join(",")), ("layout", name(&options.layout)), ("skip", skip.to_string())];
        let reply = client.get(client.url("assets/labels", &query)?, "text/html").await?;
        let mut temporary = temporary_beside(file)?;
        temporary.write_all(&reply.body)?;
        written.push(temporary);
    }
    for (temporary, file) in written.into_iter().zip(&files) {
        persist(temporary, file)?;
    }
    Ok(files)
}

#[derive(Debug, Args)]
pub struct Labels {
    /// Assets, by tag, ID or serial number
    #[arg(required_unless_present_any = ["all", "filters", "status", "q"], conflicts_with_all = ["all", "filters", "status", "q"])]
    pub assets: Vec<String>,
    /// Every asset
    #[arg(long, conflicts_with_all = ["filters", "status", "q"])]
    pub all: bool,
    #[command(flatten)]
    pub filters: Filters,
    /// Print sheets of labels: an HTML file, or several numbered files
    #[arg(long, default_value = "a4-24", help_heading = "Sheets")]
    pub layout: Layout,
    /// Number of labels already used on the first sheet
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Sheets")]
    pub skip: usize,
    /// Print single labels: a file for each asset, named after its tag
    #[arg(long, conflicts_with_all = ["layout", "skip"], help_heading = "Single labels")]
    pub format: Option<LabelFormat>,
    /// Width and height in millimetres, such as 62x29
    #[arg(long, value_name = "WxH", requires = "format", value_parser = size, help_heading = "Single labels")]
    pub size: Option<String>,
    /// Dots per inch of the label printer, for ZPL: 203 or 300 [default: 203]
    #[arg(long, value_name = "N", requires = "format", help_heading = "Single labels")]
    pub dpi: Option<u32>,
    /// File for sheets [default: labels.html], or folder for single labels; ZPL can also go to standard output
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
}

/// Layout of a sheet, with its number of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// A4, 3 by 7 labels of 63.5 by 38.1 mm
    #[value(name = "a4-21")]
    A4x21 = 21,
    /// A4, 3 by 8 labels of 70 by 37 mm
    #[value(name = "a4-24")]
    A4x24 = 24,
    /// A4, 5 by 13 labels of 38.1 by 21.2 mm
    #[value(name = "a4-65")]
    A4x65 = 65,
    /// Letter, 3 by 10 labels of 66.7 by 25.4 mm
    #[value(name = "letter-30")]
    Letterx30 = 30,
    /// Letter, 4 by 20 labels of 44.5 by 12.7 mm
    #[value(name = "letter-80")]
    Letterx80 = 80,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabelFormat {
    /// A vector graphic
    Svg,
    /// An image
    Png,
    /// Commands for a label printer
    Zpl,
}

impl LabelFormat {
    /// Returns the prefix of the body's media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
            // The service can send application/zpl or text/plain.
            Self::Zpl => "",
        }
    }
}

fn size(text: &str) -> Result<String, String> {
    let is_length = |length: &str| length.parse::<f64>().is_ok_and(|length| length > 0.0 && length.is_finite());
    match text.split_once('x') {
        Some((width, height)) if is_length(width) && is_length(height) => Ok(text.to_owned()),
        _ => Err("must be width and height in millimetres, such as 62x29".into()),
    }
}

/// Writes each label to a file in the folder, which is created if missing. If a label can't be read or written, complete files
/// remain.
async fn to_folder(
    client: &Client,
    options: &Labels,
    format: LabelFormat,
    assets: &[Asset],
    folder: &Path,
) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(|error| CliError::file(folder, &error))?;
    let (bar, ending) = (ProgressBar::new(assets.len() as u64), name(&format));
    let (mut names, mut files) = (HashSet::new(), Vec::new());
    for asset in assets {
        let label = label(client, options, format, asset).await?;
        let mut name = file_name(&asset.asset_tag, &ending);
        // Two tags can get the same file name if they differ only in case or in replaced characters.
        if !names.insert(name.to_lowercase()) {
            name = file_name(&format!("{}-{}", asset.asset_tag, asset.id), &ending);
        }
        let path = folder.join(name);
        let mut file = temporary_beside(&path)?;
        file.write_all(&label)?;
        persist(file, &path)?;
        files.push(path);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(files)
}

async fn to_standard_output(client: &Client, options: &Labels, format: LabelFormat, assets: &[Asset]) -> Result<()> {
    for asset in assets {
        let mut label = label(client, options, format, asset).await?;
        if label.last().is_some_and(|byte| *byte != b'\n') {
            label.push(b'\n');
        }
        let mut output = terminal::data();
        if !terminal::is_read(output.write_all(&label).and_then(|()| output.flush()))? {
            break;
        }
    }
    Ok(())
}

async fn label(client: &Client, options: &Labels, format: LabelFormat, asset: &Asset) -> Result<Vec<u8>> {
    let mut query = vec![("format", name(&format))];
    query.extend(options.size.iter().map(|size| ("size", size.clone())));
    query.extend(options.dpi.iter().map(|dpi| ("dpi", dpi.to_string())));
    let url = client.url(&format!("assets/{}/label", asset.id), &query)?;
    Ok(client.get(url, format.content_type()).await?.body)
}

const MAX_LABELS: usize = 100;

/// Divides labels into pages of whole sheets, as many as the service makes per request, so that only the last sheet can be partly
/// empty. `sheet` is the number of labels per sheet; `skip` labels of the first sheet are used up. Returns each page with the
/// number of labels to skip on it.
fn pages<T>(labels: &[T], sheet: usize, skip: usize) -> Vec<(&[T], usize)> {
    let whole = MAX_LABELS / sheet * sheet;
    let (mut rest, mut skip, mut pages) = (labels, skip, Vec::new());
    while !rest.is_empty() {
        let (labels, others) = rest.split_at(rest.len().min(whole - skip));
        pages.push((labels, skip));
        (rest, skip) = (others, 0);
    }
    pages
}

/// Returns the file names of the pages: the given name, or numbered names for several pages.
fn names(path: &Path, pages: usize) -> Vec<PathBuf> {
    if pages <= 1 {
        return vec![path.to_owned(); pages];
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    // Leading zeros keep the files in order when sorted by name.
    let digits = pages.to_string().len();
    (1..=pages).map(|number| path.with_file_name(format!("{stem}-{number:0digits$}{ending}"))).collect()
}

/// Replaces characters of a tag that are unsafe in file names.
fn file_name(tag: &str, ending: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_.".contains(character);
    let plain: String = tag.chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    let plain = plain.trim_start_matches('.');
    format!("{}.{ending}", if plain.is_empty() { "_" } else { plain })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(count: usize, sheet: usize, skip: usize) -> Vec<(usize, usize)> {
        pages(&vec![(); count], sheet, skip).iter().map(|(labels, skip)| (labels.len(), *skip)).collect()
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
    fn a_tag_is_not_a_path() {
        assert_eq!(file_name("AST-000001", "svg"), "AST-000001.svg");
        assert_eq!(file_name("../Büro/1", "zpl"), "_Büro_1.zpl");
        assert_eq!(file_name("..", "png"), "_.png");
    }
}
