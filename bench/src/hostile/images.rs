//! Images for signature steps.

use anyhow::Result;
use png::{BitDepth, ColorType, Encoder};

/// Returns a black image of this size. It compresses well: millions of pixels take a few kilobytes.
pub fn black(width: u32, height: u32) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&vec![0; width as usize * height as usize])?;
    writer.finish()?;
    Ok(bytes)
}

/// Returns a transparent image of this size that takes eight bytes for each pixel decoded. `mark` is in its first pixel, so
/// that images differ.
pub fn deep(width: u32, height: u32, mark: u8) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height);
    encoder.set_color(ColorType::Rgba);
    encoder.set_depth(BitDepth::Sixteen);
    let mut data = vec![0; width as usize * height as usize * 8];
    data.iter_mut().take(1).for_each(|first| *first = mark);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&data)?;
    writer.finish()?;
    Ok(bytes)
}
