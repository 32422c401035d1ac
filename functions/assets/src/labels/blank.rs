//! A label before anything is on it.

use shared::domain::assets::label::{LabelSize, Resolution};

/// A label without contents, with its margins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blank {
    /// In millimetres.
    pub size: LabelSize,
    /// The margins at the left and the right, and at the top and the bottom, in millimetres.
    pub margins: (f64, f64),
    /// The resolution in dots per inch, whose multiples all positions are.
    pub dpi: u32,
}

/// Of a single label, in millimetres.
const MARGIN: f64 = 1.0;
/// The resolution of images. Printers with 600 and 1200 dots per inch print them without loss as well.
pub(super) const IMAGE_DPI: u32 = 300;

impl Blank {
    #[must_use]
    pub fn image(size: LabelSize) -> Self {
        Self { size, margins: (MARGIN, MARGIN), dpi: IMAGE_DPI }
    }

    #[must_use]
    pub fn printer(size: LabelSize, resolution: Resolution) -> Self {
        let dpi = match resolution {
            Resolution::Dpi203 => 203,
            Resolution::Dpi300 => 300,
        };
        Self { dpi, ..Self::image(size) }
    }

    pub(super) fn dots(&self, millimetres: f64) -> u32 {
        (millimetres * f64::from(self.dpi) / 25.4).round() as u32
    }

    pub(super) fn millimetres(&self, dots: u32) -> f64 {
        f64::from(dots) * 25.4 / f64::from(self.dpi)
    }
}
