//! Signature images, which clients submit as PNG data URLs.

use crate::values::field_error::ValueError;
use crate::values::hex;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of an image, decoded from base64.
const MAX_IMAGE_BYTES: usize = 128 * 1024;
const MAX_SIDE_PIXELS: u32 = 4096;
/// Maximum number of pixels of an image, to limit its decoding time.
const MAX_PIXELS: u64 = 4_000_000;
/// Maximum decoded size of all images in a request, to limit their decoding time.
const MAX_DECODED_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum memory of the decoder. The decoder needs a few rows of at most 32 KiB; other compressed chunks are skipped.
const MAX_DECODER_BYTES: usize = 1024 * 1024;

pub const DATA_URL_PREFIX: &str = "data:image/png;base64,";

/// A checked PNG image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureImage {
    bytes: Arc<[u8]>,
    hash: String,
}

impl SignatureImage {
    /// Decodes the whole image to check it.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] when the image is invalid, too large or blank.
    pub fn from_data_url(text: &str) -> Result<Self, ValueError> {
        Self::decode(text, &mut 0)
    }

    /// Decodes an image. `decoded` is the total decoded size of the request's images in bytes, and grows by this image's size.
    fn decode(text: &str, decoded: &mut u64) -> Result<Self, ValueError> {
        let encoded = text
            .strip_prefix(DATA_URL_PREFIX)
            .ok_or_else(|| ValueError::new(format!("must be a PNG image, {DATA_URL_PREFIX}…")))?;
        if encoded.len() > MAX_IMAGE_BYTES.div_ceil(3) * 4 {
            return Err(ValueError::new(format!("must be an image of at most {MAX_IMAGE_BYTES} bytes")));
        }
        let bytes =
            base64_simd::STANDARD.decode_to_vec(encoded).map_err(|_| ValueError::new("must be base64 after the comma"))?;
        if bytes.len() > MAX_IMAGE_BYTES {
            return Err(ValueError::new(format!("must be an image of at most {MAX_IMAGE_BYTES} bytes")));
        }
        check(&bytes, decoded)?;
        Ok(Self { hash: hex::sha256(&bytes), bytes: bytes.into() })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the SHA-256 of the PNG file in lower-case hexadecimal.
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

/// The images submitted by a request. Each image is decoded only once, even if many instances share it.
#[derive(Debug, Default)]
pub struct DecodedImages {
    decoded: Mutex<Decoded>,
    /// Keys of the steps whose image shows a typed name, as listed in the request.
    typed: Vec<String>,
}

#[derive(Debug, Default)]
struct Decoded {
    images: HashMap<String, Result<SignatureImage, ValueError>>,
    /// Total decoded size of the images, in bytes.
    bytes: u64,
}

impl DecodedImages {
    /// Creates an empty set of images. `keys` are the steps whose images show a typed name instead of a drawn one.
    pub fn with_typed(keys: Vec<String>) -> Self {
        Self { typed: keys, ..Self::default() }
    }

    pub(crate) fn typed(&self) -> &[String] {
        &self.typed
    }

    pub(crate) fn is_typed(&self, key: &str) -> bool {
        self.typed.iter().any(|typed| typed == key)
    }

    /// Decodes an image, or returns it if it was decoded before. The error can also be about the total size of the request's
    /// images.
    pub(crate) fn image(&self, data_url: &str) -> Result<SignatureImage, ValueError> {
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = decoded.images.get(data_url) {
            return known.clone();
        }
        let image = SignatureImage::decode(data_url, &mut decoded.bytes);
        decoded.images.insert(data_url.to_owned(), image.clone());
        image
    }
}

pub fn data_url(bytes: &[u8]) -> String {
    format!("{DATA_URL_PREFIX}{}", base64_simd::STANDARD.encode_to_string(bytes))
}

pub fn data_url_len(bytes: usize) -> usize {
    DATA_URL_PREFIX.len() + bytes.div_ceil(3) * 4
}

fn check(bytes: &[u8], decoded: &mut u64) -> Result<(), ValueError> {
    let broken = |_| ValueError::new("must be a PNG image that can be decoded");
    let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(bytes), png::Limits { bytes: MAX_DECODER_BYTES });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(broken)?;
    // The header comes first, so the size is checked before anything is inflated.
    let info = reader.info();
    if info.width > MAX_SIDE_PIXELS || info.height > MAX_SIDE_PIXELS {
        return Err(ValueError::new(format!("must have at most {MAX_SIDE_PIXELS} pixels per side")));
    }
    if u64::from(info.width) * u64::from(info.height) > MAX_PIXELS {
        return Err(ValueError::new(format!("must have at most {MAX_PIXELS} pixels")));
    }
    // The decoder returns palette indices without checking that there is a palette.
    if info.color_type == png::ColorType::Indexed && info.palette.is_none() {
        return Err(ValueError::new("is an indexed-color PNG without a palette"));
    }
    // Samples of fewer than 8 bits are expanded to a byte each.
    let samples = reader.output_color_type().0.samples();
    let row = (info.raw_row_length() as u64).max(u64::from(info.width) * samples as u64);
    let size = row.saturating_mul(info.height.into());
    *decoded = decoded.saturating_add(size);
    if *decoded > MAX_DECODED_BYTES {
        let megabytes = MAX_DECODED_BYTES / 1024 / 1024;
        let text = format!("must take at most {megabytes} MiB decoded, together with the other images of the request");
        return Err(ValueError::new(text));
    }
    // Reading row by row needs memory for only a few rows, even for the largest image.
    let mut paper = Paper::default();
    while let Some(row) = reader.next_row().map_err(broken)? {
        paper.add(row.data(), samples);
    }
    reader.finish().map_err(broken)?;
    if !paper.has_ink {
        return Err(ValueError::new("is blank: every pixel has the same color on white paper"));
    }
    match bytes_after_end(bytes) {
        0 => Ok(()),
        more => Err(ValueError::new(format!("must end with the IEND chunk; {more} bytes follow it"))),
    }
}

/// An image on white paper, read row by row.
#[derive(Default)]
struct Paper {
    /// The colour of the first pixel.
    colour: Option<[u8; 3]>,
    /// Whether another pixel has a different colour.
    has_ink: bool,
}

impl Paper {
    /// Adds a row with `samples` bytes per pixel.
    fn add(&mut self, row: &[u8], samples: usize) {
        if self.has_ink {
            return;
        }
        for pixel in row.chunks_exact(samples) {
            let colour = on_white(pixel);
            self.has_ink |= *self.colour.get_or_insert(colour) != colour;
        }
    }
}

fn on_white(pixel: &[u8]) -> [u8; 3] {
    let (colour, alpha) = match *pixel {
        [grey] => ([grey; 3], u8::MAX),
        [grey, alpha] => ([grey; 3], alpha),
        [red, green, blue] => ([red, green, blue], u8::MAX),
        [red, green, blue, alpha] => ([red, green, blue], alpha),
        _ => ([u8::MAX; 3], u8::MAX),
    };
    let darkness = |sample: u8| u16::from(u8::MAX - sample) * u16::from(alpha) / u16::from(u8::MAX);
    colour.map(|sample| u8::MAX - u8::try_from(darkness(sample)).unwrap_or(u8::MAX))
}

/// Returns the number of bytes after the IEND chunk of a valid PNG file.
fn bytes_after_end(bytes: &[u8]) -> usize {
    // After the file signature: chunks of length, name, data and checksum.
    let mut rest = bytes.get(8..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let is_end = after.starts_with(b"IEND");
        let chunk = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX).saturating_add(8);
        rest = after.get(chunk..).unwrap_or_default();
        if is_end {
            break;
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use png::BitDepth::{Eight, One, Sixteen};
    use png::ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
    use proptest::prelude::*;

    #[test]
    fn the_images_of_a_request_are_bounded_together() {
        let url = data_url(&image(8, 1));
        // Each pixel takes one byte when decoded.
        let mut decoded = MAX_DECODED_BYTES - 8;
        assert!(SignatureImage::decode(&url, &mut decoded).is_ok());
        let error = SignatureImage::decode(&url, &mut decoded).expect_err("too much");
        assert_eq!(error.to_string(), "must take at most 64 MiB decoded, together with the other images of the request");
    }

    type Format = (png::ColorType, png::BitDepth);

    fn png_file(
        size: (u32, u32),
        (color, depth): Format,
        palette: &'static [u8],
        transparent: &'static [u8],
        pixels: &[u8],
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, size.0, size.1);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if !palette.is_empty() {
            encoder.set_palette(palette);
        }
        if !transparent.is_empty() {
            encoder.set_trns(transparent);
        }
        encoder.write_header().expect("a header").write_image_data(pixels).expect("data");
        bytes
    }

    fn read(bytes: &[u8]) -> Result<SignatureImage, String> {
        SignatureImage::from_data_url(&data_url(bytes)).map_err(|error| error.to_string())
    }

    /// Returns a black image with a white pixel.
    fn image(width: u32, height: u32) -> Vec<u8> {
        let mut pixels = vec![0; (width.div_ceil(8) * height) as usize];
        pixels[0] = 0x80;
        png_file((width, height), (Grayscale, One), &[], &[], &pixels)
    }

    #[test]
    fn an_accepted_image_keeps_its_bytes() {
        let bytes = image(3, 2);
        let signature = read(&bytes).expect("an image");
        assert_eq!(signature.bytes(), bytes);
        assert_eq!(data_url(&bytes).len(), data_url_len(bytes.len()));
        assert_eq!(signature.hash(), hex::sha256(&bytes));
        for (width, height) in [(4096, 976), (2000, 2000)] {
            assert!(read(&image(width, height)).is_ok());
        }
        let mut pixels = vec![0; 4096 * 64 * 8];
        pixels[6] = 0xff;
        assert!(read(&png_file((4096, 64), (Rgba, Sixteen), &[], &[], &pixels)).is_ok(), "the largest possible rows");
    }

    #[test]
    fn anything_but_a_complete_small_png_is_refused() {
        let good = image(8, 8);
        let mut bad_crc = good.clone();
        let middle = bad_crc.len() / 2;
        bad_crc[middle] ^= 1;
        let cut = &good[..good.len() - 20];
        for wrong in [
            String::new(),
            "data:image/png;base64,".into(),
            "data:image/png;base64,%%%".into(),
            data_url(&good).replace("png", "jpeg"),
            data_url(b"GIF89a"),
            data_url(&bad_crc),
            data_url(cut),
            data_url(&image(4097, 1)),
            data_url(&image(4096, 977)),
            data_url(&vec![0; MAX_IMAGE_BYTES + 1]),
        ] {
            assert!(SignatureImage::from_data_url(&wrong).is_err(), "{}", &wrong[..wrong.len().min(60)]);
        }
    }

    #[test]
    fn nothing_may_follow_the_end_of_an_image() {
        let followed = [image(8, 8), b"<script>".to_vec()].concat();
        assert_eq!(read(&followed), Err("must end with the IEND chunk; 8 bytes follow it".to_owned()));
    }

    #[test]
    fn an_image_of_one_colour_is_blank() {
        let encoded = |width, color, depth, palette, transparent, pixels: &[u8]| {
            read(&png_file((width, 2), (color, depth), palette, transparent, pixels))
        };
        for blank in [
            encoded(1, Grayscale, Eight, &[], &[], &[255, 255]),
            encoded(1, Grayscale, Eight, &[], &[], &[0, 0]),
            encoded(9, Grayscale, One, &[], &[], &[255, 128, 255, 128]),
            encoded(1, Rgb, Eight, &[], &[], &[1, 2, 3, 1, 2, 3]),
            // Different colours, but transparent.
            encoded(1, Rgba, Eight, &[], &[], &[1, 2, 3, 0, 9, 9, 9, 0]),
            encoded(1, GrayscaleAlpha, Eight, &[], &[], &[0, 0, 255, 255]),
            encoded(1, Rgba, Sixteen, &[], &[], &[0; 16]),
            encoded(1, Indexed, Eight, &[0, 0, 0, 255, 255, 255], &[0, 255], &[0, 1]),
            encoded(1, Grayscale, Eight, &[], &[0, 7], &[7, 255]),
        ] {
            assert!(blank.as_ref().is_err_and(|error| error.starts_with("is blank")), "{blank:?}");
        }
        for signed in [
            encoded(1, Grayscale, Eight, &[], &[], &[255, 0]),
            encoded(9, Grayscale, One, &[], &[], &[255, 128, 255, 0]),
            encoded(1, Rgba, Eight, &[], &[], &[0, 0, 0, 0, 0, 0, 0, 255]),
            encoded(1, GrayscaleAlpha, Eight, &[], &[], &[0, 10, 0, 200]),
            encoded(1, Indexed, Eight, &[0, 0, 0, 255, 255, 255], &[], &[0, 1]),
            encoded(3, Rgb, Eight, &[], &[], &[9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 8]),
        ] {
            assert!(signed.is_ok(), "{signed:?}");
        }
    }

    #[test]
    fn an_image_is_decoded_once() {
        let (images, url) = (DecodedImages::default(), data_url(&image(8, 8)));
        let [first, second] = [(); 2].map(|()| images.image(&url).expect("an image"));
        assert!(Arc::ptr_eq(&first.bytes, &second.bytes));
        assert_eq!(images.image("data:image/png;base64,"), images.image("data:image/png;base64,"));
    }

    #[test]
    fn an_indexed_image_without_a_palette_is_refused() {
        let good = png_file((2, 1), (Indexed, Eight), &[1, 2, 3, 4, 5, 6], &[], &[0, 1]);
        assert!(read(&good).is_ok());
        // The PLTE chunk: length, name, two colours, checksum.
        let start = good.windows(4).position(|name| name == b"PLTE").expect("a palette") - 4;
        let without = [&good[..start], &good[start + 18..]].concat();
        assert!(read(&without).is_err());
    }

    proptest! {
        #[test]
        fn a_damaged_image_never_causes_a_panic(index in 0usize..60, byte: u8) {
            let mut bytes = image(8, 8);
            let index = index % bytes.len();
            bytes[index] = byte;
            let _ = read(&bytes);
        }
    }
}
