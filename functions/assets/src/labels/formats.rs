//! A label as a vector graphic, an image, and commands for a label printer (ZPL II). The SVG template escapes all text.

use super::layout::{Label, Line};
use super::text::{Canvas, Direction, Style, cell_width, cells};
use askama::Template;
use png::{BitDepth, ColorType, Encoder, EncodingError, PixelDimensions, Unit};
use shared::domain::values::hex;
use std::fmt::Write;

/// A label as an `svg` element, in millimetres.
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

/// The dark modules as a path, in modules.
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

/// Rounds to four decimals.
pub fn length(millimetres: f64) -> String {
    let text = format!("{millimetres:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl<'a> LabelSvg<'a> {
    /// Builds a standalone graphic or, with a `place` in millimetres, a part of a larger graphic.
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

impl Label {
    /// Renders the label as a PNG that contains its resolution.
    ///
    /// # Errors
    ///
    /// Returns the encoder's error, which writing to memory never causes.
    pub fn png(&self) -> Result<Vec<u8>, EncodingError> {
        let blank = self.layout.blank;
        let (width, height) = (blank.dots(blank.size.width), blank.dots(blank.size.height));
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, width, height);
        encoder.set_color(ColorType::Grayscale);
        encoder.set_depth(BitDepth::Eight);
        let per_metre = (f64::from(blank.dpi) / 0.0254).round() as u32;
        encoder.set_pixel_dims(Some(PixelDimensions { xppu: per_metre, yppu: per_metre, unit: Unit::Meter }));
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.canvas(width, height).pixels())?;
        writer.finish()?;
        Ok(bytes)
    }

    fn canvas(&self, width: u32, height: u32) -> Canvas {
        let mut canvas = Canvas::new(width, height);
        let (left, top, module) = (i64::from(self.layout.left), i64::from(self.layout.top), i64::from(self.layout.module));
        for run in self.code.runs() {
            let (x, y) = (left + i64::from(run.x) * module, top + i64::from(run.y) * module);
            canvas.fill(x, y, i64::from(run.length) * module, module);
        }
        for line in &self.layout.lines {
            let style = Style { size: line.size, is_bold: line.is_bold };
            canvas.text(left_of(line), f64::from(line.baseline()), &style, &line.text);
        }
        canvas
    }

    /// Draws the code as a bitmap, so that it looks the same on every printer.
    pub fn zpl(&self) -> String {
        let layout = &self.layout;
        let blank = layout.blank;
        let (width, height) = (blank.dots(blank.size.width), blank.dots(blank.size.height));
        // Sets UTF-8 and the label's size, and resets the offset, which an earlier format may have changed.
        let mut zpl = format!("^XA\n^CI28\n^PW{width}\n^LL{height}\n^LH0,0\n");
        let (total, row, bitmap) = self.bitmap();
        // Writing to a String never fails.
        let _ = writeln!(zpl, "^FO{},{}^GFA,{total},{total},{row},{bitmap}^FS", layout.left, layout.top);
        for line in &layout.lines {
            let (x, justification) = place(line);
            let size = line.size;
            let _ = writeln!(zpl, "^FO{x},{}{justification}^A0N,{size},{size}^FH_^FD{}^FS", line.top, escaped(&line.text));
        }
        zpl.push_str("^XZ\n");
        zpl
    }

    /// Returns the number of bytes in total and per row, and the code as hexadecimal digits.
    fn bitmap(&self) -> (usize, usize, String) {
        let module = self.layout.module as usize;
        let mut bitmap = String::new();
        let (mut total, mut bytes_per_row) = (0, 0);
        for row in self.code.rows() {
            let dots: Vec<bool> = row.iter().flat_map(|dark| std::iter::repeat_n(*dark, module)).collect();
            let bytes: Vec<u8> = dots.chunks(8).map(byte).collect();
            bytes_per_row = bytes.len();
            total += bytes.len() * module;
            bitmap.push_str(&hex::encode(&bytes).to_uppercase().repeat(module));
        }
        (total, bytes_per_row, bitmap)
    }
}

/// Returns the left edge of the line's first cell.
fn left_of(line: &Line) -> f64 {
    let width = cell_width(line.size) * cells(&line.text) as f64;
    let offset = match (line.is_centred, line.direction) {
        (true, _) => width / 2.0,
        (false, Direction::Ltr) => 0.0,
        (false, Direction::Rtl) => width,
    };
    f64::from(line.x) - offset
}

/// Packs up to eight dots, the first in the highest bit.
fn byte(dots: &[bool]) -> u8 {
    dots.iter().zip(0..).map(|(dark, place)| u8::from(*dark) << (7 - place)).sum()
}

/// Returns the line's x, and the `^FO` parameter for right alignment, which newer firmware supports.
fn place(line: &Line) -> (u32, &'static str) {
    match (line.is_centred, line.direction) {
        // Assumes a monospaced font: the printer's font is narrower, and its exact width is unknown.
        (true, _) => (line.x.saturating_sub(line.size * 3 * cells(&line.text) as u32 / 10), ""),
        (false, Direction::Ltr) => (line.x, ""),
        (false, Direction::Rtl) => (line.x, ",1"),
    }
}

/// Escapes the characters that start commands, and the escape character, for `^FH_`.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '^' | '~' | '_' => {
                // Writing to a String never fails.
                let _ = write!(escaped, "_{:02X}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_start_a_printer_command() {
        assert_eq!(escaped("^XZ~JA_5E"), "_5EXZ_7EJA_5F5E");
        assert_eq!(escaped("Gerät 点 \\&"), "Gerät 点 \\&");
    }

    #[test]
    fn dots_become_bytes_from_the_left() {
        assert_eq!(byte(&[true, false, false, false, false, false, false, true]), 0x81);
        assert_eq!(byte(&[true, true, true]), 0xe0);
    }
}
