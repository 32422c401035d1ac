//! The command line of `labels`.

use crate::selection::Filters;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `labels`.
#[derive(Debug, Args)]
pub struct Labels {
    /// Assets, by tag, id or serial number
    #[arg(required_unless_present_any = ["all", "filters", "status", "q"], conflicts_with_all = ["all", "filters", "status", "q"])]
    pub assets: Vec<String>,
    /// Every asset
    #[arg(long, conflicts_with_all = ["filters", "status", "q"])]
    pub all: bool,
    /// Those that match
    #[command(flatten)]
    pub filters: Filters,
    /// Print sheets of labels: an HTML file, or several numbered ones
    #[arg(long, default_value = "a4-24", help_heading = "Sheets")]
    pub layout: Layout,
    /// How many labels of the first sheet are used up
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Sheets")]
    pub skip: usize,
    /// Print single labels: a file for each asset, named by its tag
    #[arg(long, conflicts_with_all = ["layout", "skip"], help_heading = "Single labels")]
    pub format: Option<LabelFormat>,
    /// Width and height in millimetres, such as 62x29
    #[arg(long, value_name = "WxH", requires = "format", value_parser = size, help_heading = "Single labels")]
    pub size: Option<String>,
    /// Dots per inch of the label printer, for ZPL: 203 or 300 [default: 203]
    #[arg(long, value_name = "N", requires = "format", help_heading = "Single labels")]
    pub dpi: Option<u32>,
    /// The file of sheets [default: labels.html], or the folder of single labels. ZPL goes to standard output without
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
}

/// The arrangement of labels on a sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// A4, 3 by 7 of 63.5 by 38.1 mm
    #[value(name = "a4-21")]
    A4x21,
    /// A4, 3 by 8 of 70 by 37 mm
    #[value(name = "a4-24")]
    A4x24,
    /// A4, 5 by 13 of 38.1 by 21.2 mm
    #[value(name = "a4-65")]
    A4x65,
    /// Letter, 3 by 10 of 66.7 by 25.4 mm
    #[value(name = "letter-30")]
    Letterx30,
    /// Letter, 4 by 20 of 44.5 by 12.7 mm
    #[value(name = "letter-80")]
    Letterx80,
}

impl Layout {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A4x21 => "a4-21",
            Self::A4x24 => "a4-24",
            Self::A4x65 => "a4-65",
            Self::Letterx30 => "letter-30",
            Self::Letterx80 => "letter-80",
        }
    }

    #[must_use]
    pub fn labels(self) -> usize {
        match self {
            Self::A4x21 => 21,
            Self::A4x24 => 24,
            Self::A4x65 => 65,
            Self::Letterx30 => 30,
            Self::Letterx80 => 80,
        }
    }
}

/// The format of a single label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabelFormat {
    /// A vector graphic
    Svg,
    /// An image
    Png,
    /// Commands of a label printer
    Zpl,
}

impl LabelFormat {
    /// The service's name of the format, and the ending of its files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Zpl => "zpl",
        }
    }

    /// The beginning of the body's type.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
            // The service may say application/zpl or text/plain.
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
