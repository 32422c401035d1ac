//! `assetctl export`: reads the parts of an export, and merges CSV parts with different columns into one table.

use crate::config::Connection;
use crate::error::{CliError, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::http::Client;
use crate::import::args::{delimiter, one_of};
use crate::interrupt::Interrupt;
use crate::output::{Format, persist, print_json, temporary_beside};
use crate::selection::{Filters, in_options};
use clap::Args;
use csv::{ByteRecord, Reader, Terminator, WriterBuilder};
use domain::import::parameters::Delimiter;
use domain::import::{CUSTOM_FIELD, Kind};
use indicatif::ProgressBar;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::PathBuf;
use std::time::Instant;
use terminal::print_note;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[derive(Debug, Args)]
pub struct Export {
    /// What to export
    #[arg(default_value = "assets", value_parser = one_of::<Kind>(["assets", "users"]))]
    pub what: Kind,
    /// Write to this file instead of standard output; the file appears once it is complete
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format, if not clear from the file extension
    #[arg(long)]
    pub format: Option<Format>,
    /// The separator of the cells in CSV: comma, semicolon, tab or pipe [default: comma]
    #[arg(long, value_parser = delimiter)]
    pub delimiter: Option<Delimiter>,
    /// Begin CSV with a byte order mark, by which spreadsheets recognize UTF-8
    #[arg(long)]
    pub bom: bool,
    #[command(flatten)]
    pub filters: Filters,
    /// Seconds to wait for a service that is busy or can't be reached
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub give_up_after: u64,
}

/// Exports to a file or to standard output.
///
/// # Errors
///
/// Returns an error if the export isn't complete. Then no file is written.
pub async fn export(options: &Export, connection: &Connection, is_json: bool) -> Result<u8> {
    if is_json && options.output.is_none() {
        return Err(CliError::Usage("--json needs -o FILE: the export itself goes to standard output otherwise".into()));
    }
    if let Some(path) = options.output.as_deref().filter(|path| path.is_dir()) {
        return Err(CliError::Usage(format!("{} is a folder; name a file in it", path.display())));
    }
    let client = Client::new(connection)?.giving_up_after(options.give_up_after);
    let began = Instant::now();
    let format = options.format.or_else(|| options.output.as_deref().map(Format::of)).unwrap_or(Format::Csv);
    if options.delimiter.is_some() && format != Format::Csv {
        return Err(CliError::Usage("--delimiter is only for CSV".into()));
    }
    if options.bom && format != Format::Csv {
        return Err(CliError::Usage("--bom is only for CSV".into()));
    }
    let kind = options.what.path();
    let mut interrupt = Interrupt::listen();
    let Exported { rows, unreadable, .. } = tokio::select! {
        exported = write(options, &client, kind, format) => exported?,
        _ = interrupt.next() => return Err(CliError::Interrupted("Interrupted. Nothing was written; repeat the command.".into())),
    };
    match &options.output {
        Some(path) if is_json => print_json(&json!({
            "kind": kind, "file": path, "format": format.name(), "rows": rows, "unreadable": unreadable,
            "seconds": began.elapsed().as_secs_f64(),
        }))?,
        Some(path) => print_note(&format!("Exported {rows} {kind} to {}", path.display())),
        None => {}
    }
    if unreadable.is_empty() {
        return Ok(EXIT_SUCCESS);
    }
    let ids = unreadable.join(", ");
    print_note(&format!("warning: the export lacks {kind} that the service can't read; report this to its operator: {ids}"));
    Ok(EXIT_REFUSED)
}

async fn write(options: &Export, client: &Client, kind: &str, format: Format) -> Result<Exported> {
    let beside = options.output.clone().unwrap_or_else(|| std::env::temp_dir().join("export"));
    let mut parts = BufWriter::new(temporary_beside(&beside)?);
    let exported = fetch(options, client, kind, format, &mut parts).await?;
    let mut parts = parts.into_inner().map_err(io::IntoInnerError::into_error)?;
    parts.as_file_mut().rewind()?;
    let delimiter = options.delimiter.unwrap_or(Delimiter::Comma).byte();
    match (&options.output, format) {
        (Some(path), Format::Ndjson) => persist(parts, path)?,
        (Some(path), Format::Csv) => {
            let mut table = BufWriter::new(temporary_beside(path)?);
            exported.write_table(BufReader::new(parts.as_file()), &mut table, delimiter)?;
            persist(table.into_inner().map_err(io::IntoInnerError::into_error)?, path)?;
        }
        (None, format) => to_standard_output(parts.as_file(), format, &exported, delimiter)?,
    }
    Ok(exported)
}

/// Writes to standard output. Succeeds even if the reader closes the pipe early.
fn to_standard_output(mut file: &File, format: Format, exported: &Exported, delimiter: u8) -> Result<()> {
    let mut output = terminal::data();
    let written = match format {
        Format::Ndjson => io::copy(&mut file, &mut output).map(drop),
        Format::Csv => exported.write_table(BufReader::new(file), &mut output, delimiter),
    };
    terminal::is_read(written.and_then(|()| output.flush()))?;
    Ok(())
}

async fn fetch(options: &Export, client: &Client, kind: &str, format: Format, output: &mut impl Write) -> Result<Exported> {
    let mut exported = Exported::default();
    // indicatif draws on standard error, and only on a terminal.
    let bar = ProgressBar::new_spinner().with_message(format!("0 {kind}"));
    let path = format!("{kind}/export");
    let mut query = options.filters.query();
    query.extend(options.bom.then(|| ("bom".to_owned(), "true".to_owned())));
    let parts = client.parts(&path, query, format, |part| {
        match format {
            Format::Csv => {
                let added = exported.add(&part.body);
                added.map_err(|error| CliError::Failed(format!("can't read the service's response: {error}")))?;
            }
            Format::Ndjson => exported.rows += part.body.iter().filter(|byte| **byte == b'\n').count() as u64,
        }
        output.write_all(&part.body)?;
        exported.unreadable.extend(part.unreadable);
        bar.set_message(format!("{} {kind}", exported.rows));
        bar.tick();
        Ok(())
    });
    parts.await.map_err(|error| match in_options(error) {
        error @ CliError::Usage(_) => error,
        error => CliError::Failed(format!("{error}\nNothing was written; repeat the command.")),
    })?;
    output.flush()?;
    bar.finish_and_clear();
    Ok(exported)
}

/// Describes the parts read so far. Their rows are not kept in memory.
#[derive(Debug, Default)]
struct Exported {
    rows: u64,
    /// Whether the first part begins with a byte order mark.
    has_bom: bool,
    /// IDs of records that the service can't read.
    unreadable: Vec<String>,
    /// Length of each part, in bytes.
    lengths: Vec<u64>,
    /// Columns that every part has, in order.
    fields: Vec<String>,
    /// Columns that only appear in parts where a record has a value for them.
    custom_fields: BTreeSet<String>,
}

impl Exported {
    fn add(&mut self, part: &[u8]) -> csv::Result<()> {
        self.has_bom |= self.lengths.is_empty() && part.starts_with(BYTE_ORDER_MARK);
        let mut reader = Reader::from_reader(part);
        for name in reader.headers()? {
            if name.starts_with(CUSTOM_FIELD) {
                self.custom_fields.insert(name.to_owned());
            } else if !self.fields.iter().any(|field| field == name) {
                self.fields.push(name.to_owned());
            }
        }
        let mut record = ByteRecord::new();
        while reader.read_byte_record(&mut record)? {
            self.rows += 1;
        }
        self.lengths.push(part.len() as u64);
        Ok(())
    }

    /// Writes all parts of `input` as one table. Cells stay unchanged; cells in columns that a part lacks are empty.
    fn write_table(&self, mut input: impl Read, mut output: impl Write, delimiter: u8) -> io::Result<()> {
        let columns: Vec<&String> = self.fields.iter().chain(&self.custom_fields).collect();
        // The CSV reader drops the mark.
        if self.has_bom {
            output.write_all(BYTE_ORDER_MARK)?;
        }
        let mut writer = WriterBuilder::new().delimiter(delimiter).terminator(Terminator::CRLF).from_writer(output);
        writer.write_record(&columns)?;
        for length in &self.lengths {
            let mut reader = Reader::from_reader(input.by_ref().take(*length));
            let header = reader.headers()?;
            let place = |column: &&String| header.iter().position(|name| name == column.as_str());
            let places: Vec<Option<usize>> = columns.iter().map(place).collect();
            let mut record = ByteRecord::new();
            while reader.read_byte_record(&mut record)? {
                writer.write_record(places.iter().map(|place| place.and_then(|place| record.get(place)).unwrap_or_default()))?;
            }
        }
        writer.flush()
    }
}
