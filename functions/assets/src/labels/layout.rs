//! Layout of labels: positions of the code and the texts on a label, and of labels on sheets of paper.
//!
//! All formats use the same layout. Positions are whole dots, so that all modules of a code have the same size. The labels of a
//! sheet are centred on the paper, as manufacturers cut them.

use super::code::{Code, QUIET_ZONE};
use super::text::{self, Direction, cells, shorten, wrap};
use shared::domain::assets::asset::Asset;
use shared::domain::assets::label::{LabelSize, LabelUrlTemplate, Resolution, SheetLayout};

/// Minimum size of a module, in millimetres: two dots at 203 dpi.
const MIN_MODULE: f64 = 0.25;
/// Up to this size of a module, in millimetres, the code takes precedence over texts.
const GOOD_MODULE: f64 = 0.5;
/// Maximum size of a module, in millimetres.
const MAX_MODULE: f64 = 1.0;
/// Minimum font size, in millimetres: nearly 5 points.
const MIN_LETTERS: f64 = 1.7;
/// Maximum font size of a tag, in millimetres.
const MAX_LETTERS: f64 = 6.0;
/// Minimum width of texts beside a code, in millimetres.
const MIN_TEXT_WIDTH: f64 = 12.0;
/// Preferred share of a label's width for texts beside the code.
const TEXT_BESIDE: f64 = 0.45;
/// Preferred share of a label's height for texts below the code.
const TEXT_BELOW: f64 = 0.25;
/// Margin of a single label, in millimetres.
const MARGIN: f64 = 1.0;
/// Margin of a label on a sheet, in millimetres. Allows for paper fed slightly askew.
const SHEET_MARGIN: f64 = 1.25;
/// Width of the paper's edges that printers can't print on, in millimetres.
const UNPRINTABLE: f64 = 5.0;
const A4: (f64, f64, &str) = (210.0, 297.0, "210mm 297mm");
const LETTER: (f64, f64, &str) = (215.9, 279.4, "8.5in 11in");
/// Resolution of images. Scales to printers with 600 and 1200 dpi without loss.
const IMAGE_DPI: u32 = 300;

pub struct Label {
    pub code: Code,
    pub layout: Layout,
    /// Tag and name.
    pub title: String,
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

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blank {
    /// In millimetres.
    pub size: LabelSize,
    /// Horizontal and vertical margins, in millimetres.
    pub margins: (f64, f64),
    pub dpi: u32,
}

impl Blank {
    pub fn image(size: LabelSize) -> Self {
        Self { size, margins: (MARGIN, MARGIN), dpi: IMAGE_DPI }
    }

    pub fn printer(size: LabelSize, resolution: Resolution) -> Self {
        let dpi = match resolution {
            Resolution::Dpi203 => 203,
            Resolution::Dpi300 => 300,
        };
        Self { dpi, ..Self::image(size) }
    }

    pub fn dots(&self, millimetres: f64) -> u32 {
        (millimetres * f64::from(self.dpi) / 25.4).round() as u32
    }

    pub fn millimetres(&self, dots: u32) -> f64 {
        f64::from(dots) * 25.4 / f64::from(self.dpi)
    }
}

/// The code doesn't fit on the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooSmall {
    /// Side of the smallest square label that fits the code, in millimetres. `None` if even the largest label is too small.
    pub needed: Option<u32>,
}

struct Request<'a> {
    /// Per side of the code.
    modules: u32,
    tag: &'a str,
    name: &'a str,
}

/// Positions on a label, in dots from its top left corner.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    pub blank: Blank,
    /// Left edge of the code's first module.
    pub left: u32,
    /// Top edge of the code's first module.
    pub top: u32,
    pub module: u32,
    /// From top to bottom.
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    /// Start of the text: its left edge if written from left to right, otherwise its right edge. The middle of a centred text.
    pub x: u32,
    pub top: u32,
    pub size: u32,
    pub is_centred: bool,
    pub is_bold: bool,
    /// Direction of the whole paragraph.
    pub direction: Direction,
}

struct Area {
    left: u32,
    top: u32,
    width: u32,
    height: u32,
}

struct Paragraph {
    lines: Vec<String>,
    size: u32,
    direction: Direction,
}

fn line_height(size: u32) -> u32 {
    size + size.div_ceil(5)
}

/// Returns the number of cells that fit into `width`. A cell is 0.6 times as wide as the font size.
fn cells_in(width: u32, size: u32) -> usize {
    (width * 10 / (size * 6)) as usize
}

impl Line {
    /// Returns the y of the baseline. Descenders, as in g, take about a fifth of the font size.
    pub fn baseline(&self) -> u32 {
        self.top + line_height(self.size) - self.size * 3 / 10
    }
}

impl Paragraph {
    fn new(text: &str, size: u32, width: u32) -> Self {
        Self { lines: wrap(text, cells_in(width, size)), size, direction: Direction::of(text) }
    }

    fn height(&self) -> u32 {
        self.lines.len() as u32 * line_height(self.size)
    }

    /// Uses the largest font size at which the text fits, or else the smallest, with a shortened text.
    fn fitted(text: &str, sizes: std::ops::RangeInclusive<u32>, width: u32, height: u32) -> Self {
        let smallest = *sizes.start();
        let fitting = sizes.rev().map(|size| Self::new(text, size, width)).find(|paragraph| paragraph.height() <= height);
        fitting.unwrap_or_else(|| {
            let paragraph = Self::new(text, smallest, width);
            let most = (height / line_height(smallest)) as usize;
            Self { lines: shorten(paragraph.lines, most, cells_in(width, smallest)), ..paragraph }
        })
    }
}

impl Layout {
    /// Places the texts beside the code or below it, whichever allows larger modules.
    fn new(blank: Blank, request: &Request) -> Result<Self, TooSmall> {
        Self::arrange(blank, request).ok_or_else(|| {
            let fits = |side: &u32| {
                let size = LabelSize { width: f64::from(*side), height: f64::from(*side) };
                Self::arrange(Blank { size, ..blank }, request).is_some()
            };
            TooSmall { needed: (12..=160).find(fits) }
        })
    }

    fn arrange(blank: Blank, request: &Request) -> Option<Self> {
        let (width, height) = (blank.dots(blank.size.width), blank.dots(blank.size.height));
        let (margin_x, margin_y) = (blank.dots(blank.margins.0), blank.dots(blank.margins.1));
        let min_letters = blank.dots(MIN_LETTERS).max(1);
        // Distance of the code from an edge with this margin: at least the quiet zone.
        let edge = |module: u32, margin: u32| margin.max(QUIET_ZONE * module);
        let inner = |module: u32| (request.modules + QUIET_ZONE) * module;
        let beside = |module: u32, text: u32| {
            edge(module, margin_y) * 2 + request.modules * module <= height
                && edge(module, margin_x) + inner(module) + text + margin_x <= width
        };
        let below = |module: u32, text: u32| {
            edge(module, margin_x) * 2 + request.modules * module <= width
                && edge(module, margin_y) + inner(module) + text + margin_y <= height
        };
        let (least_beside, line) = (blank.dots(MIN_TEXT_WIDTH), line_height(min_letters));
        let share = |length: u32, part: f64| (f64::from(length) * part) as u32;
        let in_beside = module(blank, beside, least_beside, least_beside.max(share(width, TEXT_BESIDE)));
        // Below a code, the tag and the name get a line each; on the smallest labels, only the tag.
        let in_below = [line * 2, line]
            .map(|least| module(blank, below, least, least.max(share(height, TEXT_BELOW))))
            .into_iter()
            .find(|module| blank.millimetres(*module) >= MIN_MODULE)
            .unwrap_or_default();
        let module = in_beside.max(in_below);
        if blank.millimetres(module) < MIN_MODULE {
            return None;
        }
        let is_beside = in_beside >= in_below;
        let side = request.modules * module;
        let (left, top, area) = if is_beside {
            let left = edge(module, margin_x);
            let text = left + inner(module);
            let area =
                Area { left: text, top: margin_y, width: width - text - margin_x, height: height.saturating_sub(2 * margin_y) };
            (left, (height - side) / 2, area)
        } else {
            let top = edge(module, margin_y);
            let text = top + inner(module);
            let area =
                Area { left: margin_x, top: text, width: width.saturating_sub(2 * margin_x), height: height - text - margin_y };
            ((width - side) / 2, top, area)
        };
        let (lines, unused) = texts(&area, request, min_letters, blank.dots(MAX_LETTERS), !is_beside);
        let shifted = |line: Line| Line { top: line.top + unused / 2, ..line };
        let lines = lines.into_iter().map(shifted).collect();
        // The code is centred together with the texts below it.
        let top = if is_beside { top } else { top + unused / 2 };
        Some(Self { blank, left, top, module, lines })
    }
}

/// Returns the largest module size that leaves `preferred` room for the texts. Up to `GOOD_MODULE`, `least` room is enough.
fn module(blank: Blank, fits: impl Fn(u32, u32) -> bool, least: u32, preferred: u32) -> u32 {
    let largest = |text: u32| (1..=blank.dots(MAX_MODULE)).rev().find(|module| fits(*module, text)).unwrap_or_default();
    largest(least).min(largest(preferred).max(blank.dots(GOOD_MODULE)))
}

/// Returns the lines of the tag and the name, and the unused height.
fn texts(area: &Area, request: &Request, min: u32, max: u32, is_centred: bool) -> (Vec<Line>, u32) {
    let largest = (area.height / 3).clamp(min, max.max(min));
    // A smaller font is better than a wrapped or shortened tag.
    let in_one_line = (min * 4 / 5..=largest).rev().find(|size| cells(request.tag) <= cells_in(area.width, *size));
    let size = in_one_line.unwrap_or(min);
    let tag = Paragraph::fitted(request.tag, min.min(size)..=size, area.width, area.height);
    let rest = area.height - tag.height();
    let name = Paragraph::fitted(request.name, min..=(largest * 3 / 4).min(tag.size).max(min), area.width, rest);
    let gap = (tag.size / 3).min(rest - name.height());
    let mut lines = Vec::new();
    let mut top = area.top;
    for (paragraph, is_bold) in [(tag, true), (name, false)] {
        let Paragraph { lines: texts, size, direction } = paragraph;
        if texts.is_empty() {
            continue;
        }
        if !is_bold {
            top += gap;
        }
        let x = match (is_centred, direction) {
            (true, _) => area.left + area.width / 2,
            (false, Direction::Ltr) => area.left,
            (false, Direction::Rtl) => area.left + area.width,
        };
        for text in texts {
            lines.push(Line { text, x, top, size, is_centred, is_bold, direction });
            top += line_height(size);
        }
    }
    (lines, area.top + area.height - top)
}

/// A sheet of labels. Lengths are in millimetres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sheet {
    pub width: f64,
    pub height: f64,
    /// The CSS page size.
    pub paper: &'static str,
    label: LabelSize,
    columns: usize,
    rows: usize,
    /// Distance between the left edges of neighbouring labels. There is no space between rows.
    pitch: f64,
}

impl Sheet {
    pub fn new(layout: SheetLayout) -> Self {
        let (paper, label, columns, rows, pitch) = match layout {
            SheetLayout::A4x21 => (A4, (63.5, 38.1), 3, 7, 66.04),
            SheetLayout::A4x24 => (A4, (70.0, 37.0), 3, 8, 70.0),
            SheetLayout::A4x65 => (A4, (38.1, 21.2), 5, 13, 40.64),
            SheetLayout::Letter30 => (LETTER, (66.675, 25.4), 3, 10, 69.85),
            SheetLayout::Letter80 => (LETTER, (44.45, 12.7), 4, 20, 52.3875),
        };
        let (width, height, paper) = paper;
        Self { width, height, paper, label: LabelSize { width: label.0, height: label.1 }, columns, rows, pitch }
    }

    pub fn labels(&self) -> usize {
        self.columns * self.rows
    }

    /// Returns the left and top margins between the paper's edges and the labels.
    fn edges(&self) -> (f64, f64) {
        let width = self.pitch * (self.columns - 1) as f64 + self.label.width;
        ((self.width - width) / 2.0, (self.height - self.label.height * self.rows as f64) / 2.0)
    }

    /// Gives every label the margins that the outer labels need, because the paper's edges can't be printed on.
    pub fn blank(&self) -> Blank {
        let (left, top) = self.edges();
        let margin = |edge: f64| SHEET_MARGIN.max(UNPRINTABLE - edge);
        Blank { size: self.label, margins: (margin(left), margin(top)), dpi: IMAGE_DPI }
    }

    /// Returns a label's left and top edges. Positions are counted row by row, from 0.
    pub fn place(&self, position: usize) -> (f64, f64) {
        let (left, top) = self.edges();
        let (row, column) = (position / self.columns, position % self.columns);
        (left + self.pitch * column as f64, top + self.label.height * row as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn laid_out(size: &str, modules: u32, tag: &str, name: &str) -> Result<Layout, TooSmall> {
        Layout::new(Blank::image(size.parse().expect(size)), &Request { modules, tag, name })
    }

    fn texts_of(layout: &Layout) -> Vec<&str> {
        layout.lines.iter().map(|line| line.text.as_str()).collect()
    }

    /// Checks that the code has its quiet zone, and that texts are on the label, below each other and outside the quiet zone.
    fn check(layout: &Layout, modules: u32) {
        let blank = layout.blank;
        let (width, height) = (blank.dots(blank.size.width), blank.dots(blank.size.height));
        let (side, quiet) = (modules * layout.module, QUIET_ZONE * layout.module);
        assert!(layout.left >= quiet && layout.top >= quiet, "{layout:?}");
        assert!(layout.left + side + quiet <= width && layout.top + side + quiet <= height, "{layout:?}");
        assert!(blank.millimetres(layout.module) >= MIN_MODULE, "{layout:?}");
        let is_beside = layout.lines.iter().all(|line| !line.is_centred);
        for line in &layout.lines {
            assert!(line.top + line_height(line.size) <= height, "{layout:?}");
            let length = (cells(&line.text) as u32 * line.size * 6).div_ceil(10);
            let (left, right) = match (line.is_centred, line.direction) {
                (true, _) => (line.x.saturating_sub(length / 2), line.x + length / 2),
                (false, Direction::Ltr) => (line.x, line.x + length),
                (false, Direction::Rtl) => (line.x.saturating_sub(length), line.x),
            };
            assert!(right <= width, "{line:?} of {layout:?}");
            let is_clear = if is_beside { left >= layout.left + side + quiet } else { line.top >= layout.top + side + quiet };
            assert!(is_clear, "{line:?} of {layout:?}");
        }
        for pair in layout.lines.windows(2) {
            assert!(pair[0].top + line_height(pair[0].size) <= pair[1].top, "{layout:?}");
        }
    }

    #[test]
    fn a_wide_label_has_its_texts_beside_the_code() {
        let layout = laid_out("50x20", 21, "AST-000001", "Dell XPS 15").expect("a layout");
        check(&layout, 21);
        // 8 dots at 300 dpi are 0.68 mm: the code with its quiet zone is as high as the label.
        assert_eq!((layout.module, layout.left, layout.top), (8, 32, 34));
        assert_eq!(texts_of(&layout), ["AST-000001", "Dell XPS 15"]);
        assert!(layout.lines.iter().all(|line| !line.is_centred && line.x == 232));
        assert!(layout.lines[0].is_bold && !layout.lines[1].is_bold);
    }

    #[test]
    fn a_square_label_has_its_texts_below_the_code() {
        let layout = laid_out("20x20", 21, "AST-000001", "Dell XPS 15 of Ada").expect("a layout");
        check(&layout, 21);
        assert_eq!(layout.module, 6, "0.5 mm");
        assert_eq!(texts_of(&layout), ["AST-000001", "Dell XPS 15 of..."]);
        assert!(layout.lines.iter().all(|line| line.is_centred && line.x == 118));
    }

    #[test]
    fn the_smallest_label_shows_the_whole_tag() {
        let layout = laid_out("12x12", 21, "AST-000001", "Dell XPS 15").expect("a layout");
        check(&layout, 21);
        assert_eq!(texts_of(&layout), ["AST-000001"]);
    }

    #[test]
    fn a_code_grows_no_further_than_a_millimetre_for_each_module() {
        let layout = laid_out("100x150", 21, "AST-000001", "Dell XPS 15").expect("a layout");
        check(&layout, 21);
        assert_eq!(layout.module, 12);
    }

    #[test]
    fn a_code_that_could_not_be_scanned_is_refused_with_the_size_that_it_needs() {
        assert_eq!(laid_out("20x20", 81, "AST-000001", "x").map(|_| ()), Err(TooSmall { needed: Some(26) }));
        assert!(laid_out("26x26", 81, "AST-000001", "x").is_ok());
        assert_eq!(laid_out("20x20", 1000, "AST-000001", "x").map(|_| ()), Err(TooSmall { needed: None }));
    }

    #[test]
    fn a_long_tag_takes_several_lines_and_stays_whole() {
        let tag = "INVENTORY/2026/11/BERLIN-MITTE-000001";
        let layout = laid_out("50x20", 25, tag, "Dell XPS 15").expect("a layout");
        check(&layout, 25);
        let lines = texts_of(&layout);
        assert_eq!(lines.iter().take(lines.len() - 1).copied().collect::<String>(), tag);
        assert_eq!(lines.last(), Some(&"Dell XPS 15"));
    }

    #[test]
    fn a_long_name_is_shortened_and_a_right_to_left_one_begins_at_the_right() {
        let layout = laid_out("50x20", 21, "AST-000001", &"name ".repeat(51)).expect("a layout");
        check(&layout, 21);
        assert!(texts_of(&layout).last().is_some_and(|line| line.ends_with("...")), "{layout:?}");
        let layout = laid_out("50x20", 21, "AST-000001", "מחשב נייד של דנה").expect("a layout");
        check(&layout, 21);
        let name = layout.lines.last().expect("a name");
        assert_eq!((name.direction, name.x), (Direction::Rtl, 591 - 12));
        assert_eq!(layout.lines[0].direction, Direction::Ltr);
    }

    #[test]
    fn every_sheet_has_room_for_a_tag_and_an_address() {
        for layout in SheetLayout::ALL {
            for modules in [21, 29] {
                let blank = Sheet::new(*layout).blank();
                let request = Request { modules, tag: "AST-000001", name: "Dell XPS 15" };
                let laid_out = Layout::new(blank, &request).expect("a layout");
                check(&laid_out, modules);
                assert!(blank.millimetres(laid_out.module) >= 0.33, "{layout}: {}", laid_out.module);
                assert_eq!(texts_of(&laid_out).join(" "), "AST-000001 Dell XPS 15", "{layout}");
            }
        }
    }

    #[test]
    fn dots_of_a_label_printer_are_larger() {
        let size = "50x20".parse().expect("a size");
        let blank = Blank::printer(size, Resolution::Dpi203);
        let layout = Layout::new(blank, &Request { modules: 21, tag: "AST-000001", name: "x" }).expect("a layout");
        check(&layout, 21);
        assert_eq!(layout.module, 5);
        assert_eq!(Blank::printer(size, Resolution::Dpi300), Blank::image(size));
    }

    #[test]
    fn the_sheets_are_those_that_are_sold() {
        // The margins from the manufacturers' data sheets, to a tenth of a millimetre.
        let expected = [
            (SheetLayout::A4x21, 21, (7.21, 15.15), (139.29, 243.75)),
            (SheetLayout::A4x24, 24, (0.0, 0.5), (140.0, 259.5)),
            (SheetLayout::A4x65, 65, (4.67, 10.7), (167.23, 265.1)),
            (SheetLayout::Letter30, 30, (4.7625, 12.7), (144.4625, 241.3)),
            (SheetLayout::Letter80, 80, (7.14375, 12.7), (164.30625, 254.0)),
        ];
        for (layout, labels, first, last) in expected {
            let sheet = Sheet::new(layout);
            assert_eq!(sheet.labels(), labels, "{layout}");
            for (place, (left, top)) in [(sheet.place(0), first), (sheet.place(labels - 1), last)] {
                assert!((place.0 - left).abs() < 0.001 && (place.1 - top).abs() < 0.001, "{layout}: {place:?}");
            }
        }
    }

    #[test]
    fn labels_overlap_neither_each_other_nor_the_edge() {
        for layout in SheetLayout::ALL {
            let sheet = Sheet::new(*layout);
            assert!(sheet.pitch >= sheet.label.width, "{layout}");
            let (left, top) = sheet.place(sheet.labels() - 1);
            assert!(left + sheet.label.width <= sheet.width && top + sheet.label.height <= sheet.height, "{layout}");
            let (first_left, first_top) = sheet.place(0);
            assert!(first_left + sheet.blank().margins.0 >= UNPRINTABLE - 0.001, "{layout}");
            assert!(first_top + sheet.blank().margins.1 >= UNPRINTABLE - 0.001, "{layout}");
        }
    }

    proptest! {
        #[test]
        fn every_label_is_laid_out_within_its_bounds(
            (width, height) in (12.0..=160.0f64, 12.0..=160.0f64),
            version in 0..15u32,
            tag in "[A-Z0-9/-]{3,90}",
            name in "[a-zא-ת点e\u{301} ]{1,255}",
            is_coarse in any::<bool>(),
        ) {
            let modules = 21 + 4 * version;
            let resolution = if is_coarse { Resolution::Dpi203 } else { Resolution::Dpi300 };
            let blank = Blank::printer(LabelSize { width, height }, resolution);
            match Layout::new(blank, &Request { modules, tag: &tag, name: &name }) {
                Ok(layout) => check(&layout, modules),
                Err(TooSmall { needed }) => prop_assert!(needed.is_some()),
            }
        }
    }
}
