//! Which part of a list is asked for: conditions, pages and cursors, as far as limits allow.

use crate::operation::{Condition, ListSlice};
use crate::plan::PlanLimits;
use trefoil_model::error::{Error, Result};

/// The conditions of one list, if they are not too many: a database takes only so many in one statement.
pub fn limited_conditions(limits: &PlanLimits, conditions: Vec<Condition>) -> Result<Vec<Condition>> {
    let (found, most) = (conditions.len(), limits.conditions);
    if found > most {
        return Err(Error::Limit(format!(
            "the number of conditions is {found}, more than the {most} that limits.conditions allows"
        )));
    }
    Ok(conditions)
}

/// Page `page` of pages of `size`; the first one, of the usual size, where nothing is said.
pub fn page_slice(limits: &PlanLimits, page: Option<i64>, size: Option<i64>) -> Result<ListSlice> {
    let page = require_positive("page", page.unwrap_or(1))?;
    Ok(ListSlice::Page { page, size: limited_size("size", size, limits)? })
}

/// So many after a cursor, or from the beginning; `name` is what the caller calls their number.
pub fn cursor_slice(
    limits: &PlanLimits,
    name: &str,
    count: Option<i64>,
    after: Option<String>,
) -> Result<ListSlice> {
    Ok(ListSlice::First { first: limited_size(name, count, limits)?, after })
}

/// Pages and cursors in one request.
pub fn mixed_paging_error(choices: &str) -> Error {
    Error::invalid("after", "PAGING", format!("use either {choices}, not both"))
}

fn limited_size(name: &str, given: Option<i64>, limits: &PlanLimits) -> Result<i64> {
    let size = require_positive(name, given.unwrap_or(limits.page_size))?;
    if size > limits.max_page_size {
        return Err(Error::Limit(format!(
            "`{name}` is {size}, more than the {} that limits.max-page-size allows",
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
