//! A page of label sheets to print. Each sheet is a graphic the size of the paper, with labels at fixed positions. The template
//! escapes all text.

use super::formats::{LabelSvg, length};
use super::layout::{Label, Sheet};
use askama::Template;
use shared::domain::tenants::tenant::Language;

#[derive(Template)]
#[template(path = "labels.html")]
struct LabelsPage<'a> {
    language: &'static str,
    t: &'static Texts,
    style: &'a str,
    layout: &'a str,
    width: String,
    height: String,
    sheets: Vec<Vec<LabelSvg<'a>>>,
}

shared::texts! {
    title: "Labels", "Etiketten", "Étiquettes", "Etiquetas";
    /// Followed by the layout's name.
    print_on:
        "Print this page at 100 %, without margins and without scaling (“Actual size”, not “Fit to page”), on sheets",
        "Drucken Sie diese Seite mit 100 %, ohne Ränder und ohne Skalierung („Tatsächliche Größe“, nicht „An Seite anpassen“), auf \
         Bögen",
        "Imprimez cette page à 100 %, sans marges et sans mise à l’échelle (« Taille réelle », non « Ajuster à la page »), sur des \
         planches",
        "Imprima esta página al 100 %, sin márgenes y sin escalar («Tamaño real», no «Ajustar a la página»), en hojas";
    not_printed:
        "This note and the outlines are not printed.",
        "Dieser Hinweis und die Umrisse werden nicht gedruckt.",
        "Cette note et les contours ne sont pas imprimés.",
        "Esta nota y los contornos no se imprimen.";
}

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

/// Returns the height of a sheet's graphic. It is a millimetre less than the paper's, because rounding up to whole pixels would
/// otherwise start a new page. Labels print nothing that close to the paper's edge.
fn printed_height(sheet: &Sheet) -> f64 {
    sheet.height - 1.0
}

/// Leaves the first `skip` positions of the first sheet empty.
///
/// # Errors
///
/// Returns the template's error, which writing to memory never causes.
pub fn render(labels: &[Label], sheet: &Sheet, layout: &str, skip: usize, language: Language) -> askama::Result<String> {
    let mut sheets: Vec<Vec<LabelSvg>> = Vec::new();
    for (label, position) in labels.iter().zip(skip..) {
        let (number, position) = (position / sheet.labels(), position % sheet.labels());
        sheets.resize_with(number + 1, Vec::new);
        if let Some(last) = sheets.last_mut() {
            last.push(LabelSvg::new(label, Some(sheet.place(position))));
        }
    }
    let (width, height) = (length(sheet.width), length(printed_height(sheet)));
    let (language, t) = (language.as_str(), Texts::of(language));
    LabelsPage { language, t, style: &style(sheet), layout, width, height, sheets }.render()
}
