//! Tests of the authors of signatures.

use super::*;

/// A PNG with a white pixel next to one of the given colour.
fn image(colour: u8) -> Value {
    let mut bytes = Vec::new();
    let encoder = png::Encoder::new(&mut bytes, 2, 1);
    encoder.write_header().expect("a header").write_image_data(&[255, colour]).expect("data");
    json!(crate::values::signature_image::data_url(&bytes))
}

fn by(name: &str) -> Signed {
    Signed { by: name.to_owned(), at: time(7) }
}

fn signed(before: &Instance, data: Value, name: &str) -> Instance {
    advance(before, data).expect("acceptable").signed(before, &by(name)).instance
}

#[test]
fn a_signature_has_the_author_of_its_image() {
    let ahead = signed(&instance(1), json!({"signature": image(1)}), "Ada");
    assert_eq!(ahead.signed, [("signature".to_owned(), by("Ada"))].into());
    let again = signed(&ahead, json!({"signature": image(1)}), "Grace");
    assert_eq!(again.signed, ahead.signed, "the same image is not another signature");
    let replaced = signed(&ahead, json!({"signature": image(2)}), "Grace");
    assert_eq!(replaced.signed, [("signature".to_owned(), by("Grace"))].into());
    let removed = signed(&ahead, json!({"signature": null}), "Grace");
    assert!(removed.signed.is_empty());
    assert!(signed(&instance(2), json!({"remark": "x"}), "Ada").signed.is_empty(), "only a signature is signed");
}
