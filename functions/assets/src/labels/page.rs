//! Labels on sheets, as a page to print. Each sheet is a graphic with the size of the paper, in which every label has its place,
//! so no label moves another one. The template escapes every text.

use super::label::Label;
use super::sheet::Sheet;
use super::svg::{LabelSvg, length};
use askama::Template;

#[derive(Template)]
#[template(path = "labels.html")]
struct LabelsPage<'a> {
    style: &'a str,
    layout: &'a str,
    width: String,
    height: String,
    sheets: Vec<Vec<LabelSvg<'a>>>,
}

/// A graphic as high as the paper would begin another page when its height is rounded up to whole pixels, so it ends a millimetre
/// earlier, where no sheet has labels.
pub fn style(sheet: &Sheet) -> String {
    let (paper, width, height) = (sheet.paper, length(sheet.width), length(printed_height(sheet)));
    format!(
        "@page{{size:{paper};margin:0}}body{{margin:0}}\
         .sheet{{display:block;width:{width}mm;height:{height}mm;break-inside:avoid}}.sheet+.sheet{{break-before:page}}\
         @media print{{.note,.edge{{display:none}}}}\
         @media screen{{body{{background:#ddd;padding:1em}}.sheet{{background:#fff;margin:0 auto 1em}}\
         .note{{font:11pt/1.4 sans-serif;color:#111;background:#ffd;max-width:46em;margin:0 auto 1em;padding:.5em 1em}}\
         .edge{{fill:none;stroke:#bbb;stroke-width:.2}}}}"
    )
}

/// The part of the paper's height that a page takes.
fn printed_height(sheet: &Sheet) -> f64 {
    sheet.height - 1.0
}

/// The first `skip` places of the first sheet stay empty.
///
/// # Errors
///
/// Returns the template's error, which writing to memory never causes.
pub fn render(labels: &[Label], sheet: &Sheet, layout: &str, skip: usize) -> askama::Result<String> {
    let mut sheets: Vec<Vec<LabelSvg>> = Vec::new();
    for (label, position) in labels.iter().zip(skip..) {
        let (number, position) = (position / sheet.labels(), position % sheet.labels());
        sheets.resize_with(number + 1, Vec::new);
        if let Some(last) = sheets.last_mut() {
            last.push(LabelSvg::new(label, Some(sheet.place(position))));
        }
    }
    let (width, height) = (length(sheet.width), length(printed_height(sheet)));
    LabelsPage { style: &style(sheet), layout, width, height, sheets }.render()
}
