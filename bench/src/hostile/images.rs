//! Images for signature steps, as data URLs.

use anyhow::Result;
use base64_simd::STANDARD;
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

/// Returns the data URL of an image's bytes.
pub fn data_url(bytes: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode_to_string(bytes))
}
