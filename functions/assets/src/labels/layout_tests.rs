//! Tests of labels and sheets.

use super::*;
use proptest::prelude::*;

fn laid_out(size: &str, modules: u32, tag: &str, name: &str) -> Result<Layout, TooSmall> {
    Layout::new(Blank::image(size.parse().expect(size)), &Request { modules, tag, name })
}

fn texts_of(layout: &Layout) -> Vec<&str> {
    layout.lines.iter().map(|line| line.text.as_str()).collect()
}

/// Checks that the code has its quiet zone, and that texts are on the label, below each other and beside the quiet zone.
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
