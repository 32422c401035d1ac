//! QR codes.

use qrcode::bits::Bits;
use qrcode::{Color, EcLevel, QrCode, QrResult, Version};

/// The quiet zone around a code, in modules (ISO/IEC 18004).
pub const QUIET_ZONE: u32 = 4;
/// The largest permitted version. It has 97 modules per side and room for 858 bytes: a page of 100 such codes takes 4 MB, and
/// responses are limited to 6 MB.
const MAX_VERSION: i16 = 20;

/// A QR code without its quiet zone.
pub struct Code {
    modules: u32,
    /// Whether each module is dark, row by row.
    dark: Vec<bool>,
}

/// A horizontal run of dark modules.
pub struct Run {
    pub x: u32,
    pub y: u32,
    pub length: u32,
}

impl Code {
    /// Encodes a string as the smallest QR code, with the highest error correction that fits. Returns `None` if it is too long.
    pub fn new(text: &str) -> Option<Self> {
        let levels = [EcLevel::H, EcLevel::Q, EcLevel::M, EcLevel::L];
        let code = (1..=MAX_VERSION).find_map(|version| levels.iter().find_map(|level| encode(text, version, *level).ok()))?;
        let modules = u32::try_from(code.width()).ok()?;
        let dark = code.into_colors().into_iter().map(|color| color == Color::Dark).collect();
        Some(Self { modules, dark })
    }

    /// Returns the number of modules per side.
    pub fn modules(&self) -> u32 {
        self.modules
    }

    pub fn rows(&self) -> impl Iterator<Item = &[bool]> {
        self.dark.chunks(self.modules.max(1) as usize)
    }

    pub fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for (row, y) in self.rows().zip(0..) {
            let mut x = 0;
            for run in row.chunk_by(|a, b| a == b) {
                let length = run.len() as u32;
                if run.first() == Some(&true) {
                    runs.push(Run { x, y, length });
                }
                x += length;
            }
        }
        runs
    }
}

fn encode(text: &str, version: i16, level: EcLevel) -> QrResult<QrCode> {
    let mut bits = Bits::new(Version::Normal(version));
    if text.is_ascii() {
        bits.push_optimal_data(text.as_bytes())?;
    } else {
        // The crate would mistake pairs of UTF-8 bytes for Shift JIS characters.
        bits.push_byte_data(text.as_bytes())?;
    }
    bits.push_terminator(level)?;
    QrCode::with_bits(bits, level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (u32, String, u16) {
        let code = Code::new(text).expect("a code");
        let rows: Vec<&[bool]> = code.rows().collect();
        let side = (code.modules() + 2 * QUIET_ZONE) as usize * 3;
        let is_dark = |x: usize, y: usize| {
            let (x, y) = ((x / 3).checked_sub(4), (y / 3).checked_sub(4));
            x.zip(y).and_then(|(x, y)| rows.get(y)?.get(x)).copied().unwrap_or_default()
        };
        let mut image = rqrr::PreparedImage::prepare_from_bitmap(side, side, is_dark);
        let grids = image.detect_grids();
        assert_eq!(grids.len(), 1, "{text}");
        let (meta, content) = grids[0].decode().expect("a readable code");
        (code.modules(), content, meta.ecc_level)
    }

    #[test]
    fn a_code_holds_its_text_with_all_the_error_correction_that_fits() {
        // Format bits: 2 is H, 3 is Q, 0 is M, 1 is L.
        assert_eq!(read("AST-000001"), (21, "AST-000001".to_owned(), 2));
        assert_eq!(read("AST-2026-000001"), (21, "AST-2026-000001".to_owned(), 3));
        assert_eq!(read("INVENTORY-2026-000001"), (21, "INVENTORY-2026-000001".to_owned(), 1));
        let address = "https://example.com/a/AST-000001";
        assert_eq!(read(address), (25, address.to_owned(), 1));
    }

    #[test]
    fn other_letters_than_ascii_are_utf_8() {
        for text in ["点茗-0001", "Gerät-001", "ﾃｽﾄ 001", "🙂-001"] {
            assert_eq!(read(text).1, text);
        }
    }

    #[test]
    fn text_too_long_for_a_qr_code_is_refused() {
        assert!(Code::new(&"x".repeat(858)).is_some());
        assert!(Code::new(&"x".repeat(859)).is_none());
    }

    #[test]
    fn runs_cover_the_dark_modules() {
        let code = Code::new("AST-000001").expect("a code");
        let dark: u32 = code.rows().flatten().map(|dark| u32::from(*dark)).sum();
        assert_eq!(code.runs().iter().map(|run| run.length).sum::<u32>(), dark);
        let first = &code.runs()[0];
        assert_eq!((first.x, first.y, first.length), (0, 0, 7), "the finder pattern at the top left");
    }
}
