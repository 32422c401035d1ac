//! The contents and the size of a label.

use super::code::Code;
use super::layout::{Layout, Request};
use super::text;
use shared::domain::assets::asset::Asset;
use shared::domain::assets::label::{LabelSize, Resolution};
use shared::domain::assets::label_url::LabelUrlTemplate;

/// The contents of a label.
pub struct Label {
    pub(super) code: Code,
    pub(super) layout: Layout,
    /// Tag and name.
    pub(super) title: String,
}

/// The content of a label's code doesn't fit its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooSmall {
    /// The side in millimetres of the smallest square label that has room for the code, if a label can be that large.
    pub needed: Option<u32>,
}

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

impl Label {
    /// # Errors
    ///
    /// Returns [`TooSmall`] if the modules of the code would be too small to scan.
    pub fn new(asset: &Asset, url: Option<&LabelUrlTemplate>, blank: Blank) -> Result<Self, TooSmall> {
        let content = url.map_or_else(|| asset.asset_tag.to_string(), |url| url.url(&asset.asset_tag, asset.id));
        let code = Code::new(&content).ok_or(TooSmall { needed: None })?;
        let (tag, name) = (text::printable(&asset.asset_tag), text::printable(&asset.name));
        let request = Request { modules: code.modules(), tag: &tag, name: &name };
        let layout = Layout::new(blank, &request)?;
        Ok(Self { code, layout, title: format!("{tag} {name}") })
    }
}
