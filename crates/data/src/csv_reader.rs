//! A CSV reader (RFC 4180) that accepts any separator and line end and knows the line of each error.
//!
//! Hand-written, because it must report a quote that is never closed, as in a truncated file, instead of reading a cell.

use std::io::{self, BufRead};

/// The cells of one row.
#[derive(Debug, Default)]
pub struct CsvRow {
    /// The line where it begins, counting from 1.
    pub line: u64,
    text: Vec<u8>,
    cell_ends: Vec<usize>,
    /// A closing quote was followed by other text.
    pub has_text_after_quote: bool,
    /// Some cell is quoted, so the row is not blank even if the cell is empty.
    is_quoted: bool,
}

impl CsvRow {
    pub fn count(&self) -> usize {
        self.cell_ends.len()
    }

    /// The size in bytes, without quotes.
    pub fn byte_len(&self) -> usize {
        self.text.len() + self.cell_ends.len()
    }

    /// Whether the line is empty.
    fn is_blank(&self) -> bool {
        self.text.is_empty() && self.cell_ends.len() <= 1 && !self.is_quoted
    }

    pub fn cells(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.cell_ends.iter().copied());
        starts.zip(&self.cell_ends).map(|(start, end)| &self.text[start..*end])
    }

    fn clear(&mut self) {
        self.text.clear();
        self.cell_ends.clear();
        self.has_text_after_quote = false;
        self.is_quoted = false;
    }
}

/// Why nothing more can be read.
#[derive(Debug)]
pub enum CsvError {
    Io(io::Error),
    /// The quote on this line is never closed.
    UnclosedQuote(u64),
    /// The row that begins on this line is longer than allowed.
    RowTooLong(u64),
}

pub struct CsvReader<R> {
    input: R,
    separator: u8,
    line: u64,
    max_row_bytes: usize,
    /// The last byte was a CR that ended a row; an LF after it belongs to it.
    after_return: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CellState {
    CellStart,
    Unquoted,
    Quoted,
    /// After a quote within quotes: the end of the cell, or the first of two.
    AfterQuote,
}

impl<R: BufRead> CsvReader<R> {
    /// `line` is the number of the first line of `input`.
    pub fn new(input: R, separator: u8, line: u64, max_row_bytes: usize) -> CsvReader<R> {
        CsvReader { input, separator, line, max_row_bytes, after_return: false }
    }

    /// Reads the next row that is not blank; returns whether there was one.
    pub fn read_row(&mut self, row: &mut CsvRow) -> Result<bool, CsvError> {
        loop {
            row.clear();
            row.line = self.line;
            if !self.read_row_or_blank(row)? {
                return Ok(false);
            }
            if !row.is_blank() {
                return Ok(true);
            }
        }
    }

    fn read_row_or_blank(&mut self, row: &mut CsvRow) -> Result<bool, CsvError> {
        let (mut state, mut quote_line, mut has_bytes) = (CellState::CellStart, self.line, false);
        loop {
            let bytes = self.input.fill_buf().map_err(CsvError::Io)?;
            if bytes.is_empty() {
                if state == CellState::Quoted {
                    return Err(CsvError::UnclosedQuote(quote_line));
                }
                if has_bytes {
                    row.cell_ends.push(row.text.len());
                }
                return Ok(has_bytes);
            }
            let (mut used, mut is_complete) = (0, false);
            for byte in bytes {
                used += 1;
                if std::mem::take(&mut self.after_return) && *byte == b'\n' {
                    row.line = self.line;
                    continue;
                }
                has_bytes = true;
                self.line += u64::from(*byte == b'\n');
                match (state, *byte) {
                    (CellState::CellStart, b'"') => {
                        (state, quote_line) = (CellState::Quoted, self.line);
                        row.is_quoted = true;
                    }
                    (CellState::Quoted, b'"') => state = CellState::AfterQuote,
                    (CellState::AfterQuote, b'"') => {
                        row.text.push(b'"');
                        state = CellState::Quoted;
                    }
                    (CellState::Quoted, byte) => row.text.push(byte),
                    (CellState::CellStart | CellState::Unquoted | CellState::AfterQuote, b'\n' | b'\r') => {
                        if *byte == b'\r' {
                            self.after_return = true;
                            self.line += 1;
                        }
                        is_complete = true;
                        break;
                    }
                    (CellState::CellStart | CellState::Unquoted | CellState::AfterQuote, byte)
                        if byte == self.separator =>
                    {
                        row.cell_ends.push(row.text.len());
                        state = CellState::CellStart;
                    }
                    (CellState::CellStart | CellState::Unquoted | CellState::AfterQuote, byte) => {
                        row.has_text_after_quote |= state == CellState::AfterQuote;
                        row.text.push(byte);
                        state = CellState::Unquoted;
                    }
                }
            }
            self.input.consume(used);
            if row.byte_len() > self.max_row_bytes {
                return Err(CsvError::RowTooLong(row.line));
            }
            if is_complete {
                row.cell_ends.push(row.text.len());
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, separator: u8) -> Vec<(u64, Vec<String>)> {
        // Two bytes at a time, so that every pair is split once.
        let mut reader = CsvReader::new(io::BufReader::with_capacity(2, text.as_bytes()), separator, 1, 1000);
        let (mut row, mut rows) = (CsvRow::default(), Vec::new());
        while reader.read_row(&mut row).unwrap() {
            let cells = row.cells().map(|cell| String::from_utf8(cell.to_vec()).unwrap()).collect();
            rows.push((row.line, cells));
        }
        rows
    }

    #[test]
    fn rows_are_read_with_any_line_end() {
        let check = |text: &str, expected: &[(u64, &[&str])]| {
            let found = read(text, b',');
            let expected: Vec<(u64, Vec<String>)> = expected
                .iter()
                .map(|(line, cells)| (*line, cells.iter().map(|cell| (*cell).to_owned()).collect()))
                .collect();
            assert_eq!(found, expected, "{text:?}");
        };
        check("a,b\n1,2\n", &[(1, &["a", "b"]), (2, &["1", "2"])]);
        check("a,b\r\n1,2", &[(1, &["a", "b"]), (2, &["1", "2"])]);
        check("a\rb\rc\r", &[(1, &["a"]), (2, &["b"]), (3, &["c"])]);
        check("a,\n\n\r\n,b\n", &[(1, &["a", ""]), (4, &["", "b"])]);
        check("\"a\r\nb\",\"c\"\"d\"\nx,y\n", &[(1, &["a\r\nb", "c\"d"]), (3, &["x", "y"])]);
        check("5\" pipe,\"\"\n", &[(1, &["5\" pipe", ""])]);
        check("a\n\"\"\n\nb\n", &[(1, &["a"]), (2, &[""]), (4, &["b"])]);
        check("", &[]);
    }

    #[test]
    fn unclosed_quote_is_reported_with_its_line() {
        let mut reader = CsvReader::new("a,b\n1,\"x\n2,y\n".as_bytes(), b',', 1, 1000);
        let mut row = CsvRow::default();
        assert!(reader.read_row(&mut row).unwrap());
        assert!(matches!(reader.read_row(&mut row), Err(CsvError::UnclosedQuote(2))));
    }

    #[test]
    fn endless_row_is_refused() {
        let mut reader = CsvReader::new(io::BufReader::new(io::repeat(b',')), b',', 1, 1000);
        assert!(matches!(reader.read_row(&mut CsvRow::default()), Err(CsvError::RowTooLong(1))));
    }

    #[test]
    fn quoted_cells_read_back() {
        for cell in ["a", "", " a", "a,b", "a;b", "a\"b", "a\nb", "a\r\nb", "\"", "ä"] {
            let mut line = Vec::new();
            trefoil_model::values::csv_cell::push_quoted(&mut line, cell.as_bytes());
            line.extend_from_slice(b",x\n");
            let text = String::from_utf8(line).unwrap();
            assert_eq!(read(&text, b','), [(1, vec![cell.to_owned(), "x".to_owned()])]);
        }
    }
}
