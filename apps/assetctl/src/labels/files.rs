//! Single labels: a file for each asset, or one after another on standard output.

use crate::error::{CliError, Result};
use crate::http::client::Client;
use crate::http::request::get;
use crate::labels::args::{LabelFormat, Labels};
use crate::labels::pages::file_name;
use crate::output::{persist, temporary_beside};
use crate::selection::Asset;
use indicatif::ProgressBar;
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Creates the folder if it is missing.
///
/// # Errors
///
/// Files that are complete stay.
pub async fn to_folder(
    client: &Client,
    options: &Labels,
    format: LabelFormat,
    assets: &[Asset],
    folder: &Path,
) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(|error| CliError::file(folder, &error))?;
    let bar = ProgressBar::new(assets.len() as u64);
    let (mut names, mut files) = (HashSet::new(), Vec::new());
    for asset in assets {
        let label = label(client, options, format, asset).await?;
        let mut name = file_name(&asset.asset_tag, format.name());
        // Tags that differ in case or in what no file name has.
        if !names.insert(name.to_lowercase()) {
            name = file_name(&format!("{}-{}", asset.asset_tag, asset.id), format.name());
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

/// One after another, as a printer takes them.
pub async fn to_standard_output(client: &Client, options: &Labels, format: LabelFormat, assets: &[Asset]) -> Result<()> {
    for asset in assets {
        let mut label = label(client, options, format, asset).await?;
        if label.last().is_some_and(|byte| *byte != b'\n') {
            label.push(b'\n');
        }
        let mut output = terminal::data();
        match output.write_all(&label).and_then(|()| output.flush()) {
            Err(error) if terminal::is_broken_pipe(&error) => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

async fn label(client: &Client, options: &Labels, format: LabelFormat, asset: &Asset) -> Result<Vec<u8>> {
    let mut query = vec![("format", format.name().to_owned())];
    query.extend(options.size.iter().map(|size| ("size", size.clone())));
    query.extend(options.dpi.iter().map(|dpi| ("dpi", dpi.to_string())));
    let url = client.url(&format!("assets/{}/label", asset.id), &query)?;
    Ok(get(client, &url, format.content_type()).await?.body)
}
