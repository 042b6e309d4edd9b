//! Every textual difference between the SQL of one database and another, and nothing else.

use std::borrow::Cow;

use trefoil_model::{Field, Kind, RecordType, Scalar};

/// Whose SQL is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
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

/// How a column is asked for, so that its cell is what [`trefoil_model::Stored`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Plain,
    Text,
    DateTime,
}

impl Reading {
    fn of(field: &Field) -> Reading {
        match &field.kind {
            Kind::Scalar(Scalar::DateTime) => Reading::DateTime,
            Kind::Scalar(Scalar::Decimal | Scalar::Date | Scalar::Uuid | Scalar::Json)
            | Kind::Embedded(_)
            | Kind::List(_) => Reading::Text,
            Kind::Scalar(
                Scalar::String
                | Scalar::Int
                | Scalar::Float
                | Scalar::Boolean
                | Scalar::Id
                | Scalar::Long
                | Scalar::Url
                | Scalar::Email,
            )
            | Kind::Id
            | Kind::Enum(_)
            | Kind::Reference { .. }
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored => Reading::Plain,
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
            Dialect::Postgres => format!("${number}"),
        }
    }

    /// A text whose parameters are written `?1`, `?2` …, and which has no other question mark.
    pub fn text(self, sql: &str) -> Cow<'_, str> {
        match self {
            Dialect::Sqlite => Cow::Borrowed(sql),
            Dialect::Postgres => Cow::Owned(sql.replace('?', "$")),
        }
    }

    /// What a statement gives of a record's quoted column; `from` is what stands before its name.
    pub fn read(self, owner: &RecordType, from: &str, column: &str) -> String {
        let value = format!("{from}{column}");
        let field =
            owner.fields.iter().find(|field| field.is_stored() && self.quote(&field.column) == column);
        match (self, field.map_or(Reading::Plain, Reading::of)) {
            (Dialect::Sqlite, _) | (Dialect::Postgres, Reading::Plain) => value,
            (Dialect::Postgres, Reading::Text) => format!("{value}::text"),
            (Dialect::Postgres, Reading::DateTime) => {
                format!("to_char({value} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
            }
        }
    }

    /// [`Dialect::read`] of several columns.
    pub fn all(self, owner: &RecordType, from: &str, columns: &[String]) -> String {
        columns.iter().map(|column| self.read(owner, from, column)).collect::<Vec<_>>().join(", ")
    }

    /// What orders values: by code point for text, exactly for decimals.
    pub fn sort_key(self, comparison: Comparison, value: &str) -> String {
        match (self, comparison) {
            (Dialect::Sqlite, Comparison::Decimal) => format!("trefoil_decimal_key({value})"),
            (Dialect::Sqlite, Comparison::Plain | Comparison::Real)
            // Its text columns are COLLATE "C", its numeric is exact.
            | (Dialect::Postgres, Comparison::Plain | Comparison::Real | Comparison::Decimal) => value.to_owned(),
        }
    }

    /// What two equal values have in common; unique indexes are made of the same expression.
    pub fn identity(self, comparison: Comparison, value: &str) -> String {
        match (self, comparison) {
            (Dialect::Sqlite, Comparison::Decimal) => {
                format!("CASE WHEN instr({value},'.') THEN rtrim(rtrim({value},'0'),'.') ELSE {value} END")
            }
            (Dialect::Sqlite, Comparison::Plain | Comparison::Real)
            | (Dialect::Postgres, Comparison::Plain | Comparison::Real | Comparison::Decimal) => {
                value.to_owned()
            }
        }
    }

    /// Equality in which null equals null.
    pub fn same(self, left: &str, right: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{left} IS {right}"),
            Dialect::Postgres => format!("{left} IS NOT DISTINCT FROM {right}"),
        }
    }

    /// The opposite of [`Dialect::same`].
    pub fn differs(self, left: &str, right: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{left} IS NOT {right}"),
            Dialect::Postgres => format!("{left} IS DISTINCT FROM {right}"),
        }
    }

    /// Text within text, case as written.
    pub fn contains(self, text: &str, part: &str) -> String {
        match self {
            Dialect::Sqlite => format!("instr({text}, {part}) > 0"),
            Dialect::Postgres => format!("strpos({text}, {part}) > 0"),
        }
    }

    /// Text within text: ASCII letters of the one in either case, of the other small.
    pub fn contains_small(self, text: &str, part: &str) -> String {
        match self {
            // Both fold ASCII alone: SQLite always, PostgreSQL by this collation.
            Dialect::Sqlite => format!("instr(lower({text}), {part}) > 0"),
            Dialect::Postgres => format!("strpos(lower({text} COLLATE \"C\"), {part}) > 0"),
        }
    }

    /// Text of which some part fits a pattern of [`trefoil_engine`]'s search.
    pub fn fits(self, text: &str, pattern: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{text} GLOB '*' || {pattern} || '*'"),
            // An extended expression: in it a backslash between brackets is one.
            Dialect::Postgres => format!("{text} ~ ('(?e)' || replace({pattern}, '^', E'\\\\^'))"),
        }
    }

    /// Behind every text that anyone writes and that begins with this one: no character is greater than the last.
    pub fn last_beginning(self, text: &str) -> String {
        match self {
            Dialect::Sqlite => format!("({text} || char(1114111))"),
            Dialect::Postgres => format!("(CAST({text} AS text) || chr(1114111))"),
        }
    }

    /// Whether a value is in a list that is one parameter.
    pub fn one_of(self, comparison: Comparison, value: &str, list: &str) -> String {
        match self {
            Dialect::Sqlite => {
                let item = match comparison {
                    Comparison::Plain => "value".to_owned(),
                    // SQLite's own reading of a number's text may be off by the last bit.
                    Comparison::Real => "trefoil_real(value)".to_owned(),
                    Comparison::Decimal => self.identity(comparison, "value"),
                };
                format!("{} IN (SELECT {item} FROM json_each({list}))", self.identity(comparison, value))
            }
            // The parameter is then an array of the column's own type.
            Dialect::Postgres => format!("{value} = ANY ({list})"),
        }
    }

    /// Whether an integer is not in a list that is one parameter.
    pub fn none_of(self, value: &str, list: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{value} NOT IN (SELECT value FROM json_each({list}))"),
            Dialect::Postgres => format!("{value} <> ALL ({list})"),
        }
    }

    /// The integers of a list that is one parameter, as a table of the one column `value`.
    pub fn integers(self, list: &str, alias: &str) -> String {
        match self {
            Dialect::Sqlite => format!("json_each({list}) AS {alias}"),
            Dialect::Postgres => format!("unnest(CAST({list} AS bigint[])) AS {alias}(value)"),
        }
    }

    /// A FROM clause in which every parent `p` meets those records `o` of its own that a query of their ids
    /// chooses: a limit then ends each parent's search early, which numbering all of its records would not.
    pub fn first_of_each(self, keys: &str, table: &str, ids: &str) -> String {
        let (parents, table) = (self.integers(keys, "p"), self.quote(table));
        match self {
            Dialect::Sqlite => format!("{parents} CROSS JOIN {table} AS o ON o.\"id\" IN ({ids})"),
            Dialect::Postgres => {
                format!("{parents} CROSS JOIN LATERAL ({ids}) AS i JOIN {table} AS o ON o.\"id\" = i.\"id\"")
            }
        }
    }

    /// How many rows a table has, no more than `most`.
    pub fn count_up_to(self, table: &str, most: &str) -> String {
        let table = self.quote(table);
        match self {
            // A table is counted by its pages, ten times as fast as row by row; so a short one is, which its highest id
            // tells, and a long one is only looked into.
            Dialect::Sqlite => format!(
                "SELECT CASE WHEN (SELECT max(\"id\") FROM {table}) > 2 * {most} \
                 AND EXISTS (SELECT 1 FROM {table} LIMIT 1 OFFSET {most} - 1) \
                 THEN {most} ELSE min({most}, (SELECT count(*) FROM {table})) END"
            ),
            Dialect::Postgres => {
                format!("SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {most}) AS c")
            }
        }
    }
}
