//! The contents and the size of a label.

use super::blank::Blank;
use super::code::Code;
use super::layout::{Layout, Request, TooSmall};
use super::text;
use shared::domain::assets::asset::Asset;
use shared::domain::assets::label_url::LabelUrlTemplate;

pub struct Label {
    pub(super) code: Code,
    pub(super) layout: Layout,
    /// Tag and name.
    pub(super) title: String,
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
