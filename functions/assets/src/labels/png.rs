//! A label as an image.

use super::glyphs::{Canvas, Style, cell_width};
use super::label::Label;
use super::layout::Line;
use super::text::{Direction, cells};
use png::{BitDepth, ColorType, Encoder, EncodingError, PixelDimensions, Unit};

impl Label {
    /// The PNG names its resolution.
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
}

/// The left edge of the line's first cell.
fn left_of(line: &Line) -> f64 {
    let width = cell_width(line.size) * cells(&line.text) as f64;
    let offset = match (line.is_centred, line.direction) {
        (true, _) => width / 2.0,
        (false, Direction::Ltr) => 0.0,
        (false, Direction::Rtl) => width,
    };
    f64::from(line.x) - offset
}
