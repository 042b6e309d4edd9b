//! A statement that selects rows, in parts.

/// The last parameters of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLimits {
    None,
    Limit,
    LimitAndOffset,
}

/// The parameters that limit the rows of a statement.
#[derive(Debug)]
pub struct LimitMarks {
    pub limit: String,
    /// With its keyword, or empty.
    pub offset: String,
}

impl LimitMarks {
    pub fn clause(&self) -> String {
        format!(" LIMIT {}{}", self.limit, self.offset)
    }
}

/// A statement in parts.
#[derive(Debug, Clone)]
pub struct SelectedRows {
    pub selected: String,
    pub from: String,
    pub terms: Vec<String>,
    pub order: Option<String>,
}

impl SelectedRows {
    /// The statement, with a term before the others.
    pub fn sql(&self, term: Option<&str>, limit_clause: &str) -> String {
        let terms: Vec<&str> = term.into_iter().chain(self.terms.iter().map(String::as_str)).collect();
        let clause = if terms.is_empty() { String::new() } else { format!(" WHERE {}", terms.join(" AND ")) };
        let order = self.order.as_ref().map(|order| format!(" ORDER BY {order}")).unwrap_or_default();
        format!("SELECT {} FROM {}{clause}{order}{limit_clause}", self.selected, self.from)
    }
}
