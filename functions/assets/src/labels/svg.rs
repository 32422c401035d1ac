//! A label as a vector graphic. The template escapes every text.

use super::label::Label;
use super::layout::Line;
use super::text::Direction;
use askama::Template;
use std::fmt::Write;

/// A label as an `svg` element whose unit is the millimetre.
#[derive(Template)]
#[template(path = "label.svg")]
pub struct LabelSvg<'a> {
    title: &'a str,
    place: Option<(String, String)>,
    width: String,
    height: String,
    code: CodePath,
    texts: Vec<Text<'a>>,
}

/// The dark modules as a path whose unit is the module.
struct CodePath {
    left: String,
    top: String,
    module: String,
    path: String,
}

struct Text<'a> {
    x: String,
    baseline: String,
    size: String,
    anchor: &'static str,
    weight: &'static str,
    direction: &'static str,
    text: &'a str,
}

/// Rounded to a ten-thousandth.
pub fn length(millimetres: f64) -> String {
    let text = format!("{millimetres:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl<'a> LabelSvg<'a> {
    /// A graphic of its own; with a place, a part of another one whose unit is the millimetre.
    pub fn new(label: &'a Label, place: Option<(f64, f64)>) -> Self {
        let layout = &label.layout;
        let blank = layout.blank;
        let millimetres = |dots: u32| length(blank.millimetres(dots));
        let mut path = String::new();
        for run in label.code.runs() {
            // Writing to a String never fails.
            let _ = write!(path, "M{} {}h{}v1h-{}z", run.x, run.y, run.length, run.length);
        }
        let module = millimetres(layout.module);
        let code = CodePath { left: millimetres(layout.left), top: millimetres(layout.top), module, path };
        let text = |line: &'a Line| Text {
            x: millimetres(line.x),
            baseline: millimetres(line.baseline()),
            size: millimetres(line.size),
            anchor: if line.is_centred { "middle" } else { "start" },
            weight: if line.is_bold { "bold" } else { "normal" },
            direction: if line.direction == Direction::Rtl { "rtl" } else { "ltr" },
            text: &line.text,
        };
        Self {
            title: &label.title,
            place: place.map(|(x, y)| (length(x), length(y))),
            width: length(blank.size.width),
            height: length(blank.size.height),
            code,
            texts: layout.lines.iter().map(text).collect(),
        }
    }
}
