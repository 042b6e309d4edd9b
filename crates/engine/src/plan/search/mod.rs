//! Search of texts: [`text_pattern`] without an index, [`indexed_words`] as full-text indexes have them.

pub(super) mod indexed_words;
mod letters;
pub(super) mod text_pattern;

pub use crate::plan::search::indexed_words::{MAX_INDEXED_LETTERS, MAX_TOKEN_LETTERS, word_count};
pub use crate::plan::search::letters::{IGNORED_MARKS, LETTERS, SEPARATORS};
pub use crate::plan::search::text_pattern::{
    MARK_RANGES, MAX_PATTERN_LETTERS, pattern_count, searched_texts, without_marks,
};
