//! Signature images: data URLs and raw PNG bytes.

use super::text;
use shared::domain::values::signature_image::{SignatureImage, data_url, data_url_len};
use std::io::Cursor;

/// An accepted image keeps its bytes. Decoded and encoded again by another library, it is still accepted.
pub fn run(bytes: &[u8]) {
    if let Ok(image) = SignatureImage::from_data_url(text(bytes)) {
        assert_eq!(data_url(image.bytes()), text(bytes));
    }
    for png in [bytes.to_vec(), with_valid_checksums(bytes)] {
        let url = data_url(&png);
        assert_eq!(url.len(), data_url_len(png.len()));
        if let Ok(image) = SignatureImage::from_data_url(&url) {
            assert_eq!(image.bytes(), png);
            assert_eq!(image.hash().len(), 64);
            assert_accepted_after_encoding_again(&png);
        }
    }
}

/// Corrects the checksum of every chunk, because the parser rejects wrong ones before it looks further.
fn with_valid_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut image = bytes.to_vec();
    let mut at = 8;
    while let Some(length) = image.get(at..at + 4).and_then(|length| length.try_into().ok()).map(u32::from_be_bytes) {
        let end = at + 8 + length as usize;
        let Some(checksum) = image.get(at + 4..end).map(crc32fast::hash) else { break };
        let Some(stored) = image.get_mut(end..end + 4) else { break };
        stored.copy_from_slice(&checksum.to_be_bytes());
        at = end + 4;
    }
    image
}

/// Decodes and encodes an accepted image, unless it is large.
fn assert_accepted_after_encoding_again(image: &[u8]) {
    let mut reader = png::Decoder::new(Cursor::new(image)).read_info().expect("an accepted image has a header");
    let info = reader.info();
    let (width, height, color, depth) = (info.width, info.height, info.color_type, info.bit_depth);
    let (palette, transparent) = (info.palette.clone(), info.trns.clone());
    let Some(size) = reader.output_buffer_size().filter(|size| *size <= 1024 * 1024) else { return };
    let mut pixels = vec![0; size];
    reader.next_frame(&mut pixels).expect("an accepted image is decoded");
    let mut written = Vec::new();
    let mut encoder = png::Encoder::new(&mut written, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if let Some(palette) = palette {
        encoder.set_palette(palette);
    }
    if let Some(transparent) = transparent {
        encoder.set_trns(transparent);
    }
    let mut writer = encoder.write_header().expect("writing a header to memory succeeds");
    writer.write_image_data(&pixels).expect("writing pixels to memory succeeds");
    writer.finish().expect("ending the image succeeds");
    if written.len() <= 128 * 1024 {
        assert!(
            SignatureImage::from_data_url(&data_url(&written)).is_ok(),
            "an accepted image is rejected after encoding it again"
        );
    }
}
