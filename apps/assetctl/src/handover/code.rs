//! A QR code on a terminal.

use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use terminal::style;

/// A line of half blocks for every two rows of modules, with the quiet zone; `None` for a text that no code has room for. Light
/// modules are drawn, and dark ones left out, because most terminals are dark; with colours, any terminal shows it so.
#[must_use]
pub fn code(text: &str, is_coloured: bool) -> Option<String> {
    // On a screen nothing is smudged: the smallest code is the best.
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let drawn = code.render().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).module_dimensions(1, 1).build();
    Some(drawn.lines().map(|line| style::paint(line, style::CODE, is_coloured)).collect::<Vec<_>>().join("\n"))
}
