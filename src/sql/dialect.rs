//! Every textual difference between the SQL of one database and another, and nothing else.

use crate::model::{Field, Kind, Scalar};

/// Whose SQL is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
}

/// How the values of a field compare, where that is not how the database compares their column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Plain,
    Real,
    Decimal,
}

impl Comparison {
    pub fn of(field: &Field) -> Comparison {
        match &field.kind {
            Kind::Scalar(Scalar::Decimal) => Comparison::Decimal,
            Kind::Scalar(Scalar::Float) => Comparison::Real,
            Kind::Scalar(
                Scalar::String
                | Scalar::Int
                | Scalar::Boolean
                | Scalar::Id
                | Scalar::Long
                | Scalar::Date
                | Scalar::DateTime
                | Scalar::Uuid
                | Scalar::Url
                | Scalar::Email
                | Scalar::Json,
            )
            | Kind::Id
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Reference { .. }
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored => Comparison::Plain,
        }
    }
}

impl Dialect {
    /// A name as an identifier. Schema names hold no quotes; doubled all the same.
    pub fn quote(self, name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    /// The parameter with this number, counting from 1.
    pub fn parameter(self, number: usize) -> String {
        match self {
            Dialect::Sqlite => format!("?{number}"),
        }
    }

    /// What orders values: by code point for text, exactly for decimals.
    pub fn sort_key(self, comparison: Comparison, value: &str) -> String {
        match (self, comparison) {
            (Dialect::Sqlite, Comparison::Decimal) => format!("trefoil_decimal_key({value})"),
            (Dialect::Sqlite, Comparison::Plain | Comparison::Real) => value.to_owned(),
        }
    }

    /// What two equal values have in common; unique indexes are made of the same expression.
    pub fn identity(self, comparison: Comparison, value: &str) -> String {
        match (self, comparison) {
            (Dialect::Sqlite, Comparison::Decimal) => {
                format!("CASE WHEN instr({value},'.') THEN rtrim(rtrim({value},'0'),'.') ELSE {value} END")
            }
            (Dialect::Sqlite, Comparison::Plain | Comparison::Real) => value.to_owned(),
        }
    }

    /// Equality in which null equals null.
    pub fn same(self, left: &str, right: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{left} IS {right}"),
        }
    }

    /// The opposite of [`Dialect::same`].
    pub fn differs(self, left: &str, right: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{left} IS NOT {right}"),
        }
    }

    /// Text within text, case as written.
    pub fn contains(self, text: &str, part: &str) -> String {
        match self {
            Dialect::Sqlite => format!("instr({text}, {part}) > 0"),
        }
    }

    /// A subquery for the values of a list that is one parameter.
    pub fn each(self, comparison: Comparison, list: &str) -> String {
        match self {
            Dialect::Sqlite => {
                let value = match comparison {
                    Comparison::Plain => "value".to_owned(),
                    // SQLite's own reading of a number's text may be off by the last bit.
                    Comparison::Real => "trefoil_real(value)".to_owned(),
                    Comparison::Decimal => self.identity(comparison, "value"),
                };
                format!("(SELECT {value} FROM json_each({list}))")
            }
        }
    }
    /// A FROM clause in which every parent `p` meets those records `o` of its own that a query of their ids
    /// chooses: a limit then ends each parent's search early, which numbering all of its records would not.
    pub fn first_of_each(self, keys: &str, table: &str, ids: &str) -> String {
        let table = self.quote(table);
        match self {
            Dialect::Sqlite => {
                format!("json_each({keys}) AS p CROSS JOIN {table} AS o ON o.\"id\" IN ({ids})")
            }
        }
    }
}
