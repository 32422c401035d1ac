//! Signatures: a data URL, or the bytes of an image.

use super::text;
use shared::domain::signature_image::{SignatureImage, data_url, data_url_len};
use std::io::Cursor;

/// An image that is accepted keeps its bytes, and another decoder and encoder make of it one that is accepted too.
pub fn run(bytes: &[u8]) {
    if let Ok(signature) = SignatureImage::from_data_url(text(bytes)) {
        assert_eq!(data_url(signature.bytes()), text(bytes));
    }
    for image in [bytes.to_vec(), with_checksums(bytes)] {
        let url = data_url(&image);
        assert_eq!(url.len(), data_url_len(image.len()));
        if let Ok(signature) = SignatureImage::from_data_url(&url) {
            assert_eq!(signature.bytes(), image);
            assert_eq!(signature.hash().len(), 64);
            again(&image);
        }
    }
}

/// Makes the checksum of every chunk right: else hardly any damage would get further than that.
fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut image = bytes.to_vec();
    let mut at = 8;
    while let Some(length) = image.get(at..at + 4).and_then(|length| length.try_into().ok()).map(u32::from_be_bytes) {
        let end = at + 8 + length as usize;
        let Some(checksum) = image.get(at + 4..end).map(crc32fast::hash) else { break };
        let Some(place) = image.get_mut(end..end + 4) else { break };
        place.copy_from_slice(&checksum.to_be_bytes());
        at = end + 4;
    }
    image
}

/// Decodes and encodes an image that was accepted, unless it is a large one.
fn again(image: &[u8]) {
    let mut reader = png::Decoder::new(Cursor::new(image)).read_info().expect("an accepted image has a header");
    let info = reader.info();
    let (width, height, color, depth) = (info.width, info.height, info.color_type, info.bit_depth);
    let palette = info.palette.clone();
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
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(&pixels).expect("pixels");
    writer.finish().expect("an end");
    if written.len() <= 128 * 1024 {
        assert!(SignatureImage::from_data_url(&data_url(&written)).is_ok(), "an accepted image, encoded again, is refused");
    }
}
