//! `assetctl labels`.

pub mod args;
pub mod files;
pub mod pages;

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::get;
use crate::labels::args::{LabelFormat, Labels};
use crate::labels::files::{to_folder, to_standard_output};
use crate::labels::pages::{names, pages};
use crate::output::{count, persist, print_json, temporary_beside};
use crate::selection::{Asset, matching, named};
use serde_json::json;
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
    } else if let [first, .., last] = files.as_slice() {
        print_note(&format!(
            "{} in {}: {} to {}",
            count(assets.len() as u64, "label"),
            count(files.len() as u64, "file"),
            first.display(),
            last.display()
        ));
    } else if let [file] = files.as_slice() {
        print_note(&format!("{} in {}", count(assets.len() as u64, "label"), file.display()));
    }
    Ok(EXIT_SUCCESS)
}

/// Checks options that must fit one another.
fn check(options: &Labels, is_json: bool) -> Result<()> {
    let sheet = options.layout.labels();
    match (options.format, &options.output) {
        (None, _) if options.skip >= sheet => {
            Err(CliError::Usage(format!("--skip {}: a sheet of {} has {sheet} labels", options.skip, options.layout.name())))
        }
        (None, Some(path)) if path.is_dir() => Err(CliError::Usage(format!("{} is a folder; name a file in it", path.display()))),
        (Some(LabelFormat::Svg | LabelFormat::Png), _) if options.dpi.is_some() => {
            Err(CliError::Usage("--dpi is only for --format zpl".into()))
        }
        (Some(LabelFormat::Svg | LabelFormat::Png), None) => Err(CliError::Usage("name a folder for the labels with -o".into())),
        (Some(LabelFormat::Zpl), None) if is_json => {
            Err(CliError::Usage("--json needs -o FOLDER: the labels themselves go to standard output otherwise".into()))
        }
        _ => Ok(()),
    }
}

/// Returns the files. All pages are read before the first is written.
async fn sheets(client: &Client, options: &Labels, assets: &[Asset], path: &Path) -> Result<Vec<PathBuf>> {
    let pages = pages(assets, options.layout.labels(), options.skip);
    let files = names(path, pages.len());
    let mut written = Vec::new();
    for (page, file) in pages.iter().zip(&files) {
        let ids: Vec<&str> = page.labels.iter().map(|asset| asset.id.as_str()).collect();
        let skip = page.skip.to_string();
        let query = [("ids", ids.join(",")), ("layout", options.layout.name().to_owned()), ("skip", skip)];
        let reply = get(client, &client.url("assets/labels", &query)?, "text/html").await?;
        let mut temporary = temporary_beside(file)?;
        temporary.write_all(&reply.body)?;
        written.push(temporary);
    }
    for (temporary, file) in written.into_iter().zip(&files) {
        persist(temporary, file)?;
    }
    Ok(files)
}
