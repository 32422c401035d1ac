//! Signatures as they come: a PNG image in a data URL (contract 7).

use super::field_error::ValueError;
use super::hex;

/// The largest image, decoded from base64, in bytes.
const LARGEST: usize = 128 * 1024;
/// The longest side, in pixels.
const LONGEST_SIDE: u32 = 4096;
/// What a decoder may allocate: it needs a few rows of at most 32 KiB, and what it would inflate of other chunks is
/// not read.
const DECODED: usize = 1024 * 1024;

/// What every signature begins with.
pub const DATA_URL: &str = "data:image/png;base64,";

/// A checked image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureImage(Vec<u8>);

impl SignatureImage {
    /// Reads a data URL and checks that a PNG decoder can read it to the end.
    ///
    /// # Errors
    ///
    /// Says what an acceptable image is.
    pub fn from_data_url(text: &str) -> Result<Self, ValueError> {
        let encoded = text.strip_prefix(DATA_URL).ok_or_else(|| ValueError::new(format!("must be a PNG image, {DATA_URL}…")))?;
        if encoded.len() > LARGEST.div_ceil(3) * 4 {
            return Err(ValueError::new(format!("must have at most {LARGEST} bytes as an image")));
        }
        let bytes =
            base64_simd::STANDARD.decode_to_vec(encoded).map_err(|_| ValueError::new("must be base64 after the comma"))?;
        if bytes.len() > LARGEST {
            return Err(ValueError::new(format!("must have at most {LARGEST} bytes as an image")));
        }
        check(&bytes)?;
        Ok(Self(bytes))
    }

    /// The image's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// SHA-256 of the image, in lower-case hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        hex::sha256(&self.0)
    }
}

/// The data URL of an image.
#[must_use]
pub fn data_url(bytes: &[u8]) -> String {
    format!("{DATA_URL}{}", base64_simd::STANDARD.encode_to_string(bytes))
}

/// How long the data URL of so many bytes is.
#[must_use]
pub fn data_url_length(bytes: usize) -> usize {
    DATA_URL.len() + bytes.div_ceil(3) * 4
}

fn check(bytes: &[u8]) -> Result<(), ValueError> {
    let broken = |_| ValueError::new("must be a PNG image that can be decoded");
    let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(bytes), png::Limits { bytes: DECODED });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(broken)?;
    // The header comes first: a bomb's size is known before anything is inflated.
    let info = reader.info();
    if info.width > LONGEST_SIDE || info.height > LONGEST_SIDE {
        return Err(ValueError::new(format!("must have at most {LONGEST_SIDE} pixels a side")));
    }
    // The decoder hands out indices without asking what they stand for.
    if info.color_type == png::ColorType::Indexed && info.palette.is_none() {
        return Err(ValueError::new("must have a palette for its colours"));
    }
    // Row by row, so that even the largest image needs memory for a row only.
    while reader.next_row().map_err(broken)?.is_some() {}
    reader.finish().map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A PNG of this size.
    fn image(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::One);
        let row = width.div_ceil(8) as usize;
        let mut writer = encoder.write_header().expect("a header");
        writer.write_image_data(&vec![0; row * height as usize]).expect("data");
        writer.finish().expect("an end");
        bytes
    }

    #[test]
    fn an_image_reads_back() {
        let bytes = image(3, 2);
        let signature = SignatureImage::from_data_url(&data_url(&bytes)).expect("an image");
        assert_eq!(signature.bytes(), bytes);
        assert_eq!(data_url(&bytes).len(), data_url_length(bytes.len()));
        assert!(SignatureImage::from_data_url(&data_url(&image(4096, 4096))).is_ok());
        let mut wide = Vec::new();
        let mut encoder = png::Encoder::new(&mut wide, 4096, 64);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Sixteen);
        encoder.write_header().expect("a header").write_image_data(&vec![0; 4096 * 64 * 8]).expect("data");
        assert!(SignatureImage::from_data_url(&data_url(&wide)).is_ok(), "the widest rows there are");
    }

    #[test]
    fn what_is_no_such_image_is_refused() {
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
            data_url(&vec![0; LARGEST + 1]),
        ] {
            assert!(SignatureImage::from_data_url(&wrong).is_err(), "{}", &wrong[..wrong.len().min(60)]);
        }
    }

    #[test]
    fn colours_without_a_palette_are_refused() {
        let with = |palette: &'static [u8]| {
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, 1, 1);
            encoder.set_color(png::ColorType::Indexed);
            encoder.set_palette(palette);
            encoder.write_header().expect("a header").write_image_data(&[0]).expect("data");
            bytes
        };
        let good = with(&[1, 2, 3]);
        assert!(SignatureImage::from_data_url(&data_url(&good)).is_ok());
        // The chunk PLTE: length, name, one colour, checksum.
        let place = good.windows(4).position(|name| name == b"PLTE").expect("a palette") - 4;
        let without = [&good[..place], &good[place + 15..]].concat();
        assert!(SignatureImage::from_data_url(&data_url(&without)).is_err());
    }

    proptest! {
        #[test]
        fn damage_is_refused_or_harmless_but_never_a_panic(place in 0usize..60, byte: u8) {
            let mut bytes = image(8, 8);
            let place = place % bytes.len();
            bytes[place] = byte;
            let _ = SignatureImage::from_data_url(&data_url(&bytes));
        }
    }
}
