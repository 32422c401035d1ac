//! A label as commands for a label printer (ZPL II).

use super::label::Label;
use super::layout::Line;
use super::text::{Direction, cells};
use shared::domain::values::hex;
use std::fmt::Write;

impl Label {
    /// The code is a bitmap, so that every printer prints the same one.
    pub fn zpl(&self) -> String {
        let layout = &self.layout;
        let blank = layout.blank;
        let (width, height) = (blank.dots(blank.size.width), blank.dots(blank.size.height));
        // UTF-8, the size of the label, and no offset that an earlier format may have left.
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

    /// The code as hexadecimal digits, with the numbers of bytes of the whole and of a row.
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

/// Up to eight dots, the first in the highest bit.
fn byte(dots: &[bool]) -> u8 {
    dots.iter().zip(0..).map(|(dark, place)| u8::from(*dark) << (7 - place)).sum()
}

/// The line's x, and the parameter of `^FO` for a text that ends there, which newer firmware knows.
fn place(line: &Line) -> (u32, &'static str) {
    match (line.is_centred, line.direction) {
        // The width is that of a monospaced font: the printer's font is narrower, and its true width is not known.
        (true, _) => (line.x.saturating_sub(line.size * 3 * cells(&line.text) as u32 / 10), ""),
        (false, Direction::Ltr) => (line.x, ""),
        (false, Direction::Rtl) => (line.x, ",1"),
    }
}

/// Escapes the characters that begin commands, and the escape itself, for `^FH_`.
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
    fn nothing_in_a_text_begins_a_command() {
        assert_eq!(escaped("^XZ~JA_5E"), "_5EXZ_7EJA_5F5E");
        assert_eq!(escaped("Gerät 点 \\&"), "Gerät 点 \\&");
    }

    #[test]
    fn dots_become_bytes_from_the_left() {
        assert_eq!(byte(&[true, false, false, false, false, false, false, true]), 0x81);
        assert_eq!(byte(&[true, true, true]), 0xe0);
    }
}
