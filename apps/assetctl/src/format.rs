//! The formats of files.

use clap::ValueEnum;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table with a header
    Csv,
    /// A JSON object on each line
    Ndjson,
}

impl Format {
    /// By the extension of the file's name.
    #[must_use]
    pub fn of(path: &std::path::Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        if matches!(extension.as_deref(), Some("ndjson" | "jsonl")) { Self::Ndjson } else { Self::Csv }
    }
}
