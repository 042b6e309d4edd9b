//! Validates conditions, pages and cursors of a list against the limits.

use trefoil_model::error::{Error, Result};

use crate::operation::{Condition, ListSearch, ListSlice};
use crate::plan::PlanLimits;

/// Databases limit the size of a pattern.
const MAX_WORD_LETTERS: usize = 1_000;

/// The conditions of a list, refused if there are too many: databases limit the size of a statement.
pub fn limited_conditions(limits: &PlanLimits, conditions: Vec<Condition>) -> Result<Vec<Condition>> {
    let count: usize = conditions.iter().map(Condition::count).sum();
    let max = limits.conditions;
    if count > max {
        return Err(Error::Limit(format!(
            "too many conditions: {count}, but limits.conditions allows at most {max}"
        )));
    }
    Ok(conditions)
}

/// A search; `name` is the name of its argument. Refused if it has too many words.
pub fn limited_search(limits: &PlanLimits, name: &str, text: String) -> Result<ListSearch> {
    if text.contains('\0') {
        let message = format!("`{name}` must not contain the character U+0000");
        return Err(Error::invalid(name, "NUL", message));
    }
    let count = text.split_whitespace().count();
    let max = limits.conditions;
    if count > max {
        return Err(Error::Limit(format!(
            "`{name}` has too many words: {count}, but limits.conditions allows at most {max}"
        )));
    }
    if text.split_whitespace().any(|word| word.chars().nth(MAX_WORD_LETTERS).is_some()) {
        return Err(Error::Limit(format!(
            "`{name}` has a word that is too long; at most {MAX_WORD_LETTERS} letters are allowed"
        )));
    }
    Ok(ListSearch { text, max_rows: Some(limits.search_rows) })
}

/// Page `page` of size `size`; by default the first one of the default size.
pub fn page_slice(limits: &PlanLimits, page: Option<i64>, size: Option<i64>) -> Result<ListSlice> {
    let page = require_positive("page", page.unwrap_or(1))?;
    Ok(ListSlice::Page { page, size: limited_size("size", size, limits)? })
}

/// `count` records after a cursor, or from the beginning; `name` is the name of the count in messages.
pub fn cursor_slice(
    limits: &PlanLimits,
    name: &str,
    count: Option<i64>,
    after: Option<String>,
) -> Result<ListSlice> {
    Ok(ListSlice::First { first: limited_size(name, count, limits)?, after })
}

/// Records between two cursors: the first `first` of them or, without it, the last `last`.
pub fn between_slice(
    limits: &PlanLimits,
    (after, first): (Option<String>, Option<i64>),
    (before, last): (Option<String>, Option<i64>),
) -> Result<ListSlice> {
    let (name, count) = match (first, last) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid("last", "PAGING", "use either `first` or `last`, not both"));
        }
        (Some(_), None) => ("first", first),
        (None, _) => ("last", last),
    };
    let (count, from_end) = (limited_size(name, count, limits)?, first.is_none());
    Ok(ListSlice::Between { after, before, count, from_end })
}

/// `limit` records after the first `offset` ones; without a limit, all of them.
pub fn range_slice(limits: &PlanLimits, offset: Option<i64>, limit: Option<i64>) -> Result<ListSlice> {
    let offset = offset.unwrap_or(0);
    if offset < 0 {
        return Err(Error::invalid("offset", "RANGE", format!("`offset` must be at least 0, not {offset}")));
    }
    let limit = limit.map(|limit| limited_size("limit", Some(limit), limits)).transpose()?;
    Ok(ListSlice::Range { offset, limit })
}

/// The error for pages and cursors in one request.
pub fn mixed_paging_error(choices: &str) -> Error {
    Error::invalid("after", "PAGING", format!("use either {choices}, not both"))
}

/// A size between 1 and the maximum; by default that of a page. `name` is its name in messages.
pub fn limited_size(name: &str, size: Option<i64>, limits: &PlanLimits) -> Result<i64> {
    let size = require_positive(name, size.unwrap_or(limits.page_size))?;
    if size > limits.max_page_size {
        return Err(Error::Limit(format!(
            "`{name}` is {size}, but limits.max-page-size allows at most {}",
            limits.max_page_size
        )));
    }
    Ok(size)
}

fn require_positive(name: &str, number: i64) -> Result<i64> {
    if number >= 1 {
        return Ok(number);
    }
    Err(Error::invalid(name, "RANGE", format!("`{name}` must be at least 1, not {number}")))
}
