//! Monospaced text, with one cell per letter and two per ideograph, and text as pixels in Noto Sans Mono. The font covers
//! letters up to U+017F; most other characters are drawn as boxes.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, RasterizedChar, get_raster};
use unicode_width::UnicodeWidthChar;

/// Every printer supports these characters.
const ELLIPSIS: &str = "...";
const ZERO_WIDTH_JOINER: char = '\u{200d}';
const RASTER_SIZE: f64 = 23.0;
/// Distance of the baseline from a raster's top, in pixels.
const RASTER_BASELINE: f64 = 25.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ltr,
    Rtl,
}

impl Direction {
    /// Returns the direction of the first letter, as HTML's `dir="auto"` does.
    pub fn of(text: &str) -> Self {
        let first = text.chars().find(|c| c.is_alphabetic());
        if first.is_some_and(is_right_to_left) { Self::Rtl } else { Self::Ltr }
    }
}

/// Returns whether the letter is in a Unicode block whose scripts are all written from right to left.
fn is_right_to_left(letter: char) -> bool {
    matches!(letter, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

/// Replaces control characters with spaces, and other characters that XML forbids with U+FFFD. Names stored under older rules can
/// contain such characters.
pub fn printable(text: &str) -> String {
    let printable = |c: char| match c {
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        c if c.is_control() => ' ',
        c => c,
    };
    text.chars().map(printable).collect()
}

/// Returns 0 for a combining character, 2 for an ideograph, 1 for most others.
fn cells_of(c: char) -> usize {
    c.width().unwrap_or_default()
}

pub fn cells(text: &str) -> usize {
    text.chars().map(cells_of).sum()
}

/// Splits a string after at most `most` cells, but never inside a grapheme or before the first character.
fn split_at_cells(text: &str, most: usize) -> (&str, &str) {
    let (mut used, mut before) = (0, None);
    for (index, c) in text.char_indices() {
        let joins = cells_of(c) == 0 || before == Some(ZERO_WIDTH_JOINER);
        used += cells_of(c);
        if used > most && !joins && index > 0 {
            return text.split_at(index);
        }
        before = Some(c);
    }
    (text, "")
}

/// Wraps at spaces into lines of at most `width` cells. Words longer than a line are broken.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if cells(line) + 1 + cells(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => {
                let mut rest = word;
                while !rest.is_empty() {
                    let (line, after) = split_at_cells(rest, width);
                    lines.push(line.to_owned());
                    rest = after;
                }
            }
        }
    }
    lines
}

/// Keeps at most `most` lines. An ellipsis replaces the rest.
pub fn shorten(mut lines: Vec<String>, most: usize, width: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            let room = width.saturating_sub(ELLIPSIS.len());
            let kept = if cells(last) > room { split_at_cells(last, room).0 } else { last.as_str() };
            *last = format!("{}{ELLIPSIS}", kept.trim_end());
        }
    }
    lines
}

/// A grayscale image, initially white.
pub struct Canvas {
    width: usize,
    pixels: Vec<u8>,
}

pub struct Style {
    /// Font size in pixels.
    pub size: u32,
    pub is_bold: bool,
}

impl Canvas {
    pub fn new(width: u32, height: u32) -> Self {
        Self { width: width as usize, pixels: vec![u8::MAX; width as usize * height as usize] }
    }

    /// Returns the pixels row by row, each from 0 (black) to 255 (white).
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Makes a pixel at least as dark as `ink`, where 255 is black. Ignores pixels outside the canvas.
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

    /// Draws a box in place of a letter missing in the font.
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

/// Returns the width of a cell, in the unit of `size`.
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

/// Interpolates the darkness of a raster at a point between pixels, from 0 to 255.
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

/// Sharpens the edges of an enlarged letter, which would otherwise be blurred.
fn sharpened(ink: f64, scale: f64) -> u8 {
    ((ink - 127.5) * scale.max(1.0) + 127.5).round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_decides_the_direction() {
        assert_eq!(Direction::of("12 \"Laptop\" של דנה"), Direction::Ltr);
        assert_eq!(Direction::of("(15) מחשב Dell"), Direction::Rtl);
        assert_eq!(Direction::of("حاسوب"), Direction::Rtl);
        assert_eq!(Direction::of("电脑"), Direction::Ltr);
        assert_eq!(Direction::of("2026"), Direction::Ltr);
    }

    #[test]
    fn cells_are_those_of_a_monospaced_font() {
        assert_eq!((cells("AST-1"), cells("电脑"), cells("e\u{301}"), cells("")), (5, 4, 1, 0));
    }

    #[test]
    fn texts_break_at_spaces_and_long_words_anywhere() {
        assert_eq!(wrap("Dell XPS 15 of Ada", 8), ["Dell XPS", "15 of", "Ada"]);
        assert_eq!(wrap("a  ThinkPadCarbonGen12 b", 8), ["a", "ThinkPad", "CarbonGe", "n12 b"]);
        assert_eq!(wrap("电脑电脑", 3), ["电", "脑", "电", "脑"]);
        assert_eq!(wrap("电", 1), ["电"], "no line stays empty");
        assert!(wrap("", 8).is_empty());
    }

    #[test]
    fn grapheme_clusters_are_not_split() {
        assert_eq!(wrap("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(wrap(&format!("{family}{family}"), 6), [family, family]);
    }

    #[test]
    fn what_does_not_fit_is_replaced_by_an_ellipsis() {
        let lines = |text: &str, most| shorten(wrap(text, 8), most, 8);
        assert_eq!(lines("Dell XPS 15 of Ada", 3), ["Dell XPS", "15 of", "Ada"]);
        assert_eq!(lines("Dell XPS 15 of Ada", 2), ["Dell XPS", "15 of..."]);
        assert_eq!(lines("Dell XPS 15 of Ada", 1), ["Dell..."]);
        assert!(lines("Dell XPS", 0).is_empty());
        assert_eq!(lines("电脑电脑电脑", 1), ["电脑..."]);
    }

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(printable("a\u{1}b\nc\u{ffff}"), "a b c\u{fffd}");
    }

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
    fn pixels_outside_the_image_are_ignored() {
        let mut canvas = Canvas::new(10, 10);
        canvas.text(-20.0, 5.0, &Style { size: 30, is_bold: true }, "WWWW");
        canvas.fill(8, 8, 10, 10);
        assert_eq!(canvas.pixels().len(), 100);
        assert_eq!(canvas.pixels()[99], 0);
    }
}
