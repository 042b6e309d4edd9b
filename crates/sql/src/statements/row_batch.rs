//! Rows that must outlive the statement that read them, and the tree they make with their children.

use std::ops::Range;

use crate::statements::select::{Branch, Level};
use trefoil_engine::changes::cell_of;
use trefoil_engine::{Image, Row};
use trefoil_model::Cell;

/// How many parents one statement finds the children of …
pub const PARENTS: usize = 1_000;
/// … unless their own texts already weigh this much.
pub const WEIGHT: usize = 4 << 20;

/// Rows of equal width in two allocations: their cells, and one arena of text.
#[derive(Debug, Default)]
pub struct Batch {
    width: usize,
    cells: Vec<Packed>,
    text: String,
}

/// A cell whose text is a place in the arena.
#[derive(Debug, Clone, Copy)]
enum Packed {
    Null,
    Int(i64),
    Real(f64),
    Text { length: u32, start: u64 },
    Unreadable,
}

impl Batch {
    pub fn new(width: usize) -> Batch {
        Batch { width, ..Batch::default() }
    }

    /// The one row that a change's image tells for this level.
    pub fn of_image(level: &Level, image: &Image) -> Batch {
        let mut batch = Batch::new(level.width);
        batch.push(level.names.iter().map(|name| cell_of(image, name)));
        batch
    }

    /// Adds a row of `width` cells.
    pub fn push<'a>(&mut self, cells: impl Iterator<Item = Cell<'a>>) {
        let before = self.cells.len();
        for cell in cells {
            let packed = match cell {
                Cell::Null => Packed::Null,
                Cell::Int(number) => Packed::Int(number),
                Cell::Real(number) => Packed::Real(number),
                Cell::Unreadable => Packed::Unreadable,
                Cell::Text(text) => self.pack(text),
            };
            self.cells.push(packed);
        }
        debug_assert_eq!(self.cells.len() - before, self.width);
    }

    fn pack(&mut self, text: &str) -> Packed {
        // No database we speak to hands out a text of 4 GiB.
        let Ok(length) = u32::try_from(text.len()) else { return Packed::Unreadable };
        let start = self.text.len() as u64;
        self.text.push_str(text);
        Packed::Text { length, start }
    }

    pub fn rows(&self) -> usize {
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    /// Bytes of text kept.
    pub fn weight(&self) -> usize {
        self.text.len()
    }

    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match self.cells[row * self.width + column] {
            Packed::Null => Cell::Null,
            Packed::Int(number) => Cell::Int(number),
            Packed::Real(number) => Cell::Real(number),
            Packed::Unreadable => Cell::Unreadable,
            Packed::Text { length, start } => {
                let start = start as usize;
                Cell::Text(&self.text[start..start + length as usize])
            }
        }
    }

    /// The integers in a column, ascending, each once. What else another program put there leads nowhere.
    pub fn keys(&self, column: usize) -> Vec<i64> {
        let mut keys: Vec<i64> = (0..self.rows()).filter_map(|row| self.key(row, column)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn key(&self, row: usize, column: usize) -> Option<i64> {
        match self.cell(row, column) {
            Cell::Int(key) => Some(key),
            Cell::Null | Cell::Real(_) | Cell::Text(_) | Cell::Unreadable => None,
        }
    }
}

/// Rows with everything selected below them.
#[derive(Debug)]
pub struct Tree<'p> {
    level: &'p Level,
    rows: Batch,
    /// In the order of the level's branches; `None` for those that the row itself answers.
    below: Vec<Option<Below<'p>>>,
}

/// The children of all rows of a tree, under one of its branches.
#[derive(Debug)]
struct Below<'p> {
    tree: Tree<'p>,
    /// For each parent row, which rows of `tree` are its own.
    of: Vec<Range<usize>>,
}

impl<'p> Tree<'p> {
    pub fn new(level: &'p Level, rows: Batch) -> Tree<'p> {
        Tree { level, rows, below: Vec::with_capacity(level.branches.len()) }
    }

    pub fn rows(&self) -> &Batch {
        &self.rows
    }

    /// Adds the next branch: one that needs no rows …
    pub fn attach_nothing(&mut self) {
        self.below.push(None);
    }

    /// … or one with rows, which come in the order of the key they share with their parent.
    pub fn attach(&mut self, column: usize, tree: Tree<'p>) {
        let runs = runs(&tree);
        let of = (0..self.rows.rows()).map(|row| {
            let key = self.rows.key(row, column)?;
            let at = runs.binary_search_by_key(&key, |run| run.0).ok()?;
            Some(runs[at].1.clone())
        });
        let of = of.map(Option::unwrap_or_default).collect();
        self.below.push(Some(Below { tree, of }));
    }

    pub fn each(&self, visit: &mut dyn FnMut(&dyn Row)) {
        (0..self.rows.rows()).for_each(|row| visit(&Node { tree: self, row }));
    }
}

/// Which rows belong to which key, by ascending key.
fn runs(tree: &Tree<'_>) -> Vec<(i64, Range<usize>)> {
    let mut runs: Vec<(i64, Range<usize>)> = Vec::new();
    for row in 0..tree.rows.rows() {
        let Some(key) = tree.rows.key(row, tree.level.key) else { continue };
        match runs.last_mut() {
            Some((last, range)) if *last == key => range.end = row + 1,
            _ => runs.push((key, row..row + 1)),
        }
    }
    runs
}

struct Node<'t, 'p> {
    tree: &'t Tree<'p>,
    row: usize,
}

impl Row for Node<'_, '_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        self.tree.rows.cell(self.row, column)
    }

    fn each_child(&self, child: usize, visit: &mut dyn FnMut(&dyn Row)) {
        match (&self.tree.level.branches[child], &self.tree.below[child]) {
            (Branch::Key { column }, _) => visit_key(self.tree.rows.cell(self.row, *column), visit),
            (Branch::Rows { .. }, Some(below)) => {
                below.of[self.row].clone().for_each(|row| visit(&Node { tree: &below.tree, row }));
            }
            (Branch::Rows { .. }, None) => {}
        }
    }
}

/// Visits the record of which nothing but the id is asked, which its parent's column already tells.
pub fn visit_key(key: Cell<'_>, visit: &mut dyn FnMut(&dyn Row)) {
    match key {
        Cell::Int(_) => visit(&KeyRow(key)),
        Cell::Null | Cell::Real(_) | Cell::Text(_) | Cell::Unreadable => {}
    }
}

struct KeyRow<'a>(Cell<'a>);

impl Row for KeyRow<'_> {
    fn cell(&self, _column: usize) -> Cell<'_> {
        self.0
    }

    fn each_child(&self, _child: usize, _visit: &mut dyn FnMut(&dyn Row)) {}
}
