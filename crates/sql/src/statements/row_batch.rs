//! Rows copied out of their statement, and the tree they form with their children.

use std::ops::Range;

use trefoil_engine::changes::image_cell;
use trefoil_engine::{RecordImage, Row};
use trefoil_model::CellValue;

use crate::statements::select::{ChildBranch, SelectLevel};

/// Maximum number of parents whose children one statement reads.
pub const MAX_PARENTS: usize = 1_000;
/// Bytes of text at which a batch of parents is full, even with fewer rows.
pub const MAX_BATCH_BYTES: usize = 4 << 20;

/// Rows of equal width in two allocations: the cells, and one buffer with all text.
#[derive(Debug, Default)]
pub struct RowBatch {
    width: usize,
    cells: Vec<PackedCell>,
    text: String,
}

/// A cell whose text is a range of the buffer.
#[derive(Debug, Clone, Copy)]
enum PackedCell {
    Null,
    Int(i64),
    Real(f64),
    Text { length: u32, start: u64 },
    Unreadable,
}

/// A key in a row; sorts as both databases do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RowKey<'b> {
    Number(i64),
    Text(&'b str),
}

impl<'b> RowKey<'b> {
    fn as_cell(self) -> CellValue<'b> {
        match self {
            RowKey::Number(number) => CellValue::Int(number),
            RowKey::Text(text) => CellValue::Text(text),
        }
    }
}

impl RowBatch {
    pub fn new(width: usize) -> RowBatch {
        RowBatch { width, ..RowBatch::default() }
    }

    /// One row for this level, from the image of a change.
    pub fn from_image(level: &SelectLevel, image: &RecordImage) -> RowBatch {
        let mut batch = RowBatch::new(level.width);
        batch.push_row(level.column_names.iter().map(|name| image_cell(image, name)));
        batch
    }

    /// Adds a row of `width` cells.
    pub fn push_row<'a>(&mut self, cells: impl Iterator<Item = CellValue<'a>>) {
        let before = self.cells.len();
        for cell in cells {
            let packed = match cell {
                CellValue::Null => PackedCell::Null,
                CellValue::Int(number) => PackedCell::Int(number),
                CellValue::Real(number) => PackedCell::Real(number),
                CellValue::Unreadable => PackedCell::Unreadable,
                CellValue::Text(text) => self.pack_text(text),
            };
            self.cells.push(packed);
        }
        debug_assert_eq!(self.cells.len() - before, self.width);
    }

    fn pack_text(&mut self, text: &str) -> PackedCell {
        // Neither database returns a text of 4 GiB.
        let Ok(length) = u32::try_from(text.len()) else { return PackedCell::Unreadable };
        let start = self.text.len() as u64;
        self.text.push_str(text);
        PackedCell::Text { length, start }
    }

    pub fn row_count(&self) -> usize {
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    /// Drops the rows beyond the limit; true if there were any.
    pub fn truncate_to(&mut self, limit: Option<i64>) -> bool {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let has_more = self.row_count() > limit;
        self.cells.truncate(limit.saturating_mul(self.width));
        has_more
    }

    /// Bytes of text in the buffer.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    pub fn cell(&self, row: usize, column: usize) -> CellValue<'_> {
        match self.cells[row * self.width + column] {
            PackedCell::Null => CellValue::Null,
            PackedCell::Int(number) => CellValue::Int(number),
            PackedCell::Real(number) => CellValue::Real(number),
            PackedCell::Unreadable => CellValue::Unreadable,
            PackedCell::Text { length, start } => {
                let start = start as usize;
                CellValue::Text(&self.text[start..start + length as usize])
            }
        }
    }

    /// The keys in a column, ascending, without duplicates. Other values, written by other programs, match no record.
    pub fn distinct_keys(&self, column: usize) -> Vec<CellValue<'_>> {
        let mut keys: Vec<RowKey<'_>> =
            (0..self.row_count()).filter_map(|row| self.key_at(row, column)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().map(RowKey::as_cell).collect()
    }

    fn key_at(&self, row: usize, column: usize) -> Option<RowKey<'_>> {
        match self.cell(row, column) {
            CellValue::Int(number) => Some(RowKey::Number(number)),
            CellValue::Text(text) => Some(RowKey::Text(text)),
            CellValue::Null | CellValue::Real(_) | CellValue::Unreadable => None,
        }
    }
}

/// Rows with everything selected below them.
#[derive(Debug)]
pub struct RowTree<'p> {
    level: &'p SelectLevel,
    rows: RowBatch,
    /// In the order of the level's branches; `None` for [`ChildBranch::KeyOnly`].
    children: Vec<Option<ChildRows<'p>>>,
}

/// The children of all rows of a tree, under one of its branches.
#[derive(Debug)]
struct ChildRows<'p> {
    tree: RowTree<'p>,
    /// For each parent row, the rows of `tree` that belong to it.
    ranges: Vec<Range<usize>>,
}

impl<'p> RowTree<'p> {
    pub fn new(level: &'p SelectLevel, rows: RowBatch) -> RowTree<'p> {
        RowTree { level, rows, children: Vec::with_capacity(level.branches.len()) }
    }

    pub fn rows(&self) -> &RowBatch {
        &self.rows
    }

    /// Adds the next branch, a [`ChildBranch::KeyOnly`].
    pub fn attach_key_only(&mut self) {
        self.children.push(None);
    }

    /// Adds the next branch, with rows sorted by the key they share with their parent's `column`.
    pub fn attach_children(&mut self, column: usize, tree: RowTree<'p>) {
        let key_ranges = key_ranges(&tree);
        let ranges = (0..self.rows.row_count()).map(|row| {
            let key = self.rows.key_at(row, column)?;
            let index = key_ranges.binary_search_by_key(&key, |range| range.0).ok()?;
            Some(key_ranges[index].1.clone())
        });
        let ranges = ranges.map(Option::unwrap_or_default).collect();
        self.children.push(Some(ChildRows { tree, ranges }));
    }

    pub fn visit_rows(&self, visit: &mut dyn FnMut(&dyn Row)) {
        (0..self.rows.row_count()).for_each(|row| visit(&TreeRow { tree: self, row }));
    }

    /// Visits the last row first.
    pub fn visit_rows_reversed(&self, visit: &mut dyn FnMut(&dyn Row)) {
        (0..self.rows.row_count()).rev().for_each(|row| visit(&TreeRow { tree: self, row }));
    }
}

/// The rows of each key, by ascending key.
fn key_ranges<'t>(tree: &'t RowTree<'_>) -> Vec<(RowKey<'t>, Range<usize>)> {
    let mut ranges: Vec<(RowKey<'t>, Range<usize>)> = Vec::new();
    for row in 0..tree.rows.row_count() {
        let Some(key) = tree.rows.key_at(row, tree.level.parent_key) else { continue };
        match ranges.last_mut() {
            Some((last, range)) if *last == key => range.end = row + 1,
            _ => ranges.push((key, row..row + 1)),
        }
    }
    ranges
}

struct TreeRow<'t, 'p> {
    tree: &'t RowTree<'p>,
    row: usize,
}

impl Row for TreeRow<'_, '_> {
    fn cell(&self, column: usize) -> CellValue<'_> {
        self.tree.rows.cell(self.row, column)
    }

    fn each_child(&self, child: usize, visit: &mut dyn FnMut(&dyn Row)) {
        match (&self.tree.level.branches[child], &self.tree.children[child]) {
            (ChildBranch::KeyOnly { column }, _) => {
                visit_key_row(self.tree.rows.cell(self.row, *column), visit)
            }
            (ChildBranch::Rows { level, .. }, Some(children)) => {
                if children.ranges[self.row].is_empty()
                    && let Some(groups) = level.groups.as_ref().filter(|groups| groups.is_whole)
                {
                    return groups.visit_empty(visit);
                }
                children.ranges[self.row]
                    .clone()
                    .for_each(|row| visit(&TreeRow { tree: &children.tree, row }));
            }
            (ChildBranch::Rows { .. }, None) => {}
        }
    }
}

/// Visits a record of which only the id is selected, taken from its parent's column.
pub fn visit_key_row(key: CellValue<'_>, visit: &mut dyn FnMut(&dyn Row)) {
    match key {
        CellValue::Int(_) | CellValue::Text(_) => visit(&KeyRow(key)),
        CellValue::Null | CellValue::Real(_) | CellValue::Unreadable => {}
    }
}

struct KeyRow<'a>(CellValue<'a>);

impl Row for KeyRow<'_> {
    fn cell(&self, _column: usize) -> CellValue<'_> {
        self.0
    }

    fn each_child(&self, _child: usize, _visit: &mut dyn FnMut(&dyn Row)) {}
}
