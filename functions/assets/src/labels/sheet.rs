//! Sheets of labels: the paper, and the places of the labels. All are centred on their paper, as their makers cut them.

use super::layout::{Blank, IMAGE_DPI};
use shared::domain::assets::label::{LabelSize, SheetLayout};

/// The width of the edges that printers can't print on, in millimetres.
const UNPRINTABLE: f64 = 5.0;
/// The margin within a label in millimetres, for paper that is fed a little askew.
const MARGIN: f64 = 1.25;

/// A sheet of labels. Lengths are in millimetres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sheet {
    pub width: f64,
    pub height: f64,
    /// As style sheets name it.
    pub paper: &'static str,
    label: LabelSize,
    columns: usize,
    rows: usize,
    /// From a label's left edge to the next one's. Rows touch each other.
    pitch: f64,
}

const A4: (f64, f64, &str) = (210.0, 297.0, "210mm 297mm");
const LETTER: (f64, f64, &str) = (215.9, 279.4, "8.5in 11in");

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

    /// The margin of the paper around all labels: at the left, and at the top.
    fn edges(&self) -> (f64, f64) {
        let width = self.pitch * (self.columns - 1) as f64 + self.label.width;
        ((self.width - width) / 2.0, (self.height - self.label.height * self.rows as f64) / 2.0)
    }

    /// Any of the labels: all keep the same margins as those at the edges of the paper, which can't be printed on.
    pub fn blank(&self) -> Blank {
        let (left, top) = self.edges();
        let margin = |edge: f64| MARGIN.max(UNPRINTABLE - edge);
        Blank { size: self.label, margins: (margin(left), margin(top)), dpi: IMAGE_DPI }
    }

    /// The left and the top edge. Positions count row by row from 0.
    pub fn place(&self, position: usize) -> (f64, f64) {
        let (left, top) = self.edges();
        let (row, column) = (position / self.columns, position % self.columns);
        (left + self.pitch * column as f64, top + self.label.height * row as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sheets_are_those_that_are_sold() {
        // The margins that the makers' data sheets give, to a tenth of a millimetre.
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
}
