//! Texts as pixels, in Noto Sans Mono. It has the letters of Latin alphabets; others are drawn as a box.

use super::text::cells_of;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, RasterizedChar, get_raster};

const RASTER_SIZE: f64 = 23.0;
/// The distance of the baseline from a raster's top.
const RASTER_BASELINE: f64 = 25.0;

/// A gray image, white at first.
pub struct Canvas {
    width: usize,
    pixels: Vec<u8>,
}

pub struct Style {
    /// In pixels.
    pub size: u32,
    pub is_bold: bool,
}

impl Canvas {
    pub fn new(width: u32, height: u32) -> Self {
        Self { width: width as usize, pixels: vec![u8::MAX; width as usize * height as usize] }
    }

    /// Row by row, from black, 0, to white, 255.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Makes a pixel at least this dark: 255 is black. Ignores pixels outside.
    fn darken(&mut self, x: i64, y: i64, ink: u8) {
        let place = usize::try_from(x).ok().filter(|x| *x < self.width).zip(usize::try_from(y).ok());
        if let Some(pixel) = place.and_then(|(x, y)| self.pixels.get_mut(y * self.width + x)) {
            *pixel = (*pixel).min(u8::MAX - ink);
        }
    }

    pub fn fill(&mut self, left: i64, top: i64, width: i64, height: i64) {
        for y in top..top + height {
            for x in left..left + width {
                self.darken(x, y, u8::MAX);
            }
        }
    }

    /// Draws a text whose first cell begins at `left`.
    pub fn text(&mut self, left: f64, baseline: f64, style: &Style, text: &str) {
        let cell = cell_width(style.size);
        let mut left = left;
        for c in text.chars().filter(|c| cells_of(*c) > 0) {
            let width = cell * cells_of(c) as f64;
            match raster(plain(c), style.is_bold) {
                Some(raster) => self.glyph(left, baseline, style.size, &raster),
                None => self.frame(left, baseline, style.size, width),
            }
            left += width;
        }
    }

    fn glyph(&mut self, left: f64, baseline: f64, size: u32, raster: &RasterizedChar) {
        let scale = f64::from(size) / RASTER_SIZE;
        let top = baseline - RASTER_BASELINE * scale;
        let (right, bottom) = (left + raster.width() as f64 * scale, top + raster.height() as f64 * scale);
        for y in top.floor() as i64..bottom.ceil() as i64 {
            for x in left.floor() as i64..right.ceil() as i64 {
                let at = ((x as f64 + 0.5 - left) / scale, (y as f64 + 0.5 - top) / scale);
                self.darken(x, y, sharpened(ink_at(raster, at), scale));
            }
        }
    }

    /// Draws a box in place of a letter that the font lacks.
    fn frame(&mut self, left: f64, baseline: f64, size: u32, width: f64) {
        let line = i64::from(size / 12).max(1);
        let height = i64::from(size * 7 / 10);
        let (left, width, top) = (left.round() as i64 + line, width.round() as i64 - 2 * line, baseline.round() as i64 - height);
        self.fill(left, top, width, line);
        self.fill(left, top + height - line, width, line);
        self.fill(left, top, line, height);
        self.fill(left + width - line, top, line, height);
    }
}

/// In pixels.
pub fn cell_width(size: u32) -> f64 {
    f64::from(size) * 0.6
}

fn raster(c: char, is_bold: bool) -> Option<RasterizedChar> {
    let weight = if is_bold { FontWeight::Bold } else { FontWeight::Regular };
    if c.is_whitespace() { get_raster(' ', weight, RasterHeight::Size32) } else { get_raster(c, weight, RasterHeight::Size32) }
}

fn plain(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        c => c,
    }
}

/// The darkness of a raster between its pixels, from 0 to 255.
fn ink_at(raster: &RasterizedChar, (x, y): (f64, f64)) -> f64 {
    let (x, y) = (x - 0.5, y - 0.5);
    let pixel = |x: f64, y: f64| {
        let is_outside = x < 0.0 || y < 0.0;
        let pixel = if is_outside { None } else { raster.pixel(x as usize, y as usize) };
        f64::from(pixel.unwrap_or_default())
    };
    let (left, top) = (x.floor(), y.floor());
    let (right_part, bottom_part) = (x - left, y - top);
    let row = |y: f64| pixel(left, y) * (1.0 - right_part) + pixel(left + 1.0, y) * right_part;
    row(top) * (1.0 - bottom_part) + row(top + 1.0) * bottom_part
}

/// Makes the edges of an enlarged letter as sharp as those of a small one.
fn sharpened(ink: f64, scale: f64) -> u8 {
    ((ink - 127.5) * scale.max(1.0) + 127.5).round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> Vec<u8> {
        let mut canvas = Canvas::new(400, 60);
        canvas.text(4.0, 40.0, &Style { size: 30, is_bold: false }, text);
        canvas.pixels().to_vec()
    }

    #[test]
    fn letters_differ_and_those_that_the_font_lacks_are_a_box() {
        assert_ne!(drawn("O"), drawn("0"));
        assert_ne!(drawn("ä"), drawn("a"));
        assert_eq!(drawn("ש"), drawn("ж"));
        assert_ne!(drawn("ש"), drawn(" "));
        assert_ne!(drawn("电"), drawn("ש"), "an ideograph is wider");
        assert_eq!(drawn("a\u{301}"), drawn("a"), "marks are left out");
        assert_eq!(drawn("’–”"), drawn("'-\""));
        assert!(drawn("\u{a0} ").iter().all(|pixel| *pixel == 255));
    }

    #[test]
    fn what_is_outside_is_ignored() {
        let mut canvas = Canvas::new(10, 10);
        canvas.text(-20.0, 5.0, &Style { size: 30, is_bold: true }, "WWWW");
        canvas.fill(8, 8, 10, 10);
        assert_eq!(canvas.pixels().len(), 100);
        assert_eq!(canvas.pixels()[99], 0);
    }
}
