//! Every textual difference between the SQL of one database and another, and nothing else.

use std::borrow::Cow;

use trefoil_model::{Field, FieldKind, RecordType, Scalar};

/// Whose SQL is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

/// How the values of a field compare, where that is not how the database compares their column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueComparison {
    Plain,
    Real,
    Decimal,
}

impl ValueComparison {
    pub fn for_field(field: &Field) -> ValueComparison {
        match &field.kind {
            FieldKind::Scalar(Scalar::Decimal) => ValueComparison::Decimal,
            FieldKind::Scalar(Scalar::Float) => ValueComparison::Real,
            FieldKind::Scalar(
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
            | FieldKind::Id
            | FieldKind::Enum(_)
            | FieldKind::Embedded(_)
            | FieldKind::List(_)
            | FieldKind::Reference { .. }
            | FieldKind::Inverse { .. }
            | FieldKind::Link { .. }
            | FieldKind::Unstored => ValueComparison::Plain,
        }
    }
}

/// How a column is asked for, so that its cell is what [`trefoil_model::Stored`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnReading {
    Plain,
    Text,
    DateTime,
}

impl ColumnReading {
    fn for_field(field: &Field) -> ColumnReading {
        match &field.kind {
            FieldKind::Scalar(Scalar::DateTime) => ColumnReading::DateTime,
            FieldKind::Scalar(Scalar::Decimal | Scalar::Date | Scalar::Uuid | Scalar::Json)
            | FieldKind::Embedded(_)
            | FieldKind::List(_) => ColumnReading::Text,
            FieldKind::Scalar(
                Scalar::String
                | Scalar::Int
                | Scalar::Float
                | Scalar::Boolean
                | Scalar::Id
                | Scalar::Long
                | Scalar::Url
                | Scalar::Email,
            )
            | FieldKind::Id
            | FieldKind::Enum(_)
            | FieldKind::Reference { .. }
            | FieldKind::Inverse { .. }
            | FieldKind::Link { .. }
            | FieldKind::Unstored => ColumnReading::Plain,
        }
    }
}

impl Dialect {
    /// A name as an identifier. Schema names hold no quotes; doubled all the same.
    pub fn quote_name(self, name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    /// The parameter with this number, counting from 1.
    pub fn parameter_mark(self, number: usize) -> String {
        match self {
            Dialect::Sqlite => format!("?{number}"),
            Dialect::Postgres => format!("${number}"),
        }
    }

    /// A text whose parameters are written `?1`, `?2` …, and which has no other question mark.
    pub fn translate_parameters(self, sql: &str) -> Cow<'_, str> {
        match self {
            Dialect::Sqlite => Cow::Borrowed(sql),
            Dialect::Postgres => Cow::Owned(sql.replace('?', "$")),
        }
    }

    /// What a statement gives of a record's quoted column; `from` is what stands before its name.
    pub fn read_column(self, owner: &RecordType, from: &str, column: &str) -> String {
        let value = format!("{from}{column}");
        let field =
            owner.fields.iter().find(|field| field.is_stored() && self.quote_name(&field.column) == column);
        match (self, field.map_or(ColumnReading::Plain, ColumnReading::for_field)) {
            (Dialect::Sqlite, _) | (Dialect::Postgres, ColumnReading::Plain) => value,
            (Dialect::Postgres, ColumnReading::Text) => format!("{value}::text"),
            (Dialect::Postgres, ColumnReading::DateTime) => {
                format!("to_char({value} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
            }
        }
    }

    /// [`Dialect::read`] of several columns.
    pub fn read_columns(self, owner: &RecordType, from: &str, columns: &[String]) -> String {
        columns.iter().map(|column| self.read_column(owner, from, column)).collect::<Vec<_>>().join(", ")
    }

    /// What orders values: by code point for text, exactly for decimals.
    pub fn sort_key(self, comparison: ValueComparison, value: &str) -> String {
        match (self, comparison) {
            (Dialect::Sqlite, ValueComparison::Decimal) => format!("trefoil_decimal_key({value})"),
            (Dialect::Sqlite, ValueComparison::Plain | ValueComparison::Real)
            // Its text columns are COLLATE "C", its numeric is exact.
            | (Dialect::Postgres, ValueComparison::Plain | ValueComparison::Real | ValueComparison::Decimal) => value.to_owned(),
        }
    }

    /// What two equal values have in common; unique indexes are made of the same expression.
    pub fn equality_key(self, comparison: ValueComparison, value: &str) -> String {
        match (self, comparison) {
            (Dialect::Sqlite, ValueComparison::Decimal) => {
                format!("CASE WHEN instr({value},'.') THEN rtrim(rtrim({value},'0'),'.') ELSE {value} END")
            }
            (Dialect::Sqlite, ValueComparison::Plain | ValueComparison::Real)
            | (
                Dialect::Postgres,
                ValueComparison::Plain | ValueComparison::Real | ValueComparison::Decimal,
            ) => value.to_owned(),
        }
    }

    /// Equality in which null equals null.
    pub fn null_safe_equal(self, left: &str, right: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{left} IS {right}"),
            Dialect::Postgres => format!("{left} IS NOT DISTINCT FROM {right}"),
        }
    }

    /// The opposite of [`Dialect::same`].
    pub fn null_safe_different(self, left: &str, right: &str) -> String {
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
    pub fn contains_lowercase(self, text: &str, part: &str) -> String {
        match self {
            // Both fold ASCII alone: SQLite always, PostgreSQL by this collation.
            Dialect::Sqlite => format!("instr(lower({text}), {part}) > 0"),
            Dialect::Postgres => format!("strpos(lower({text} COLLATE \"C\"), {part}) > 0"),
        }
    }

    /// Text of which some part fits a pattern of [`trefoil_engine`]'s search.
    pub fn matches_pattern(self, text: &str, pattern: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{text} GLOB '*' || {pattern} || '*'"),
            // An extended expression: in it a backslash between brackets is one.
            Dialect::Postgres => format!("{text} ~ ('(?e)' || replace({pattern}, '^', E'\\\\^'))"),
        }
    }

    /// Behind every text that anyone writes and that begins with this one: no character is greater than the last.
    pub fn prefix_upper_bound(self, text: &str) -> String {
        match self {
            Dialect::Sqlite => format!("({text} || char(1114111))"),
            Dialect::Postgres => format!("(CAST({text} AS text) || chr(1114111))"),
        }
    }

    /// Whether a value is in a list that is one parameter.
    pub fn is_in_list(self, comparison: ValueComparison, value: &str, list: &str) -> String {
        match self {
            Dialect::Sqlite => {
                let item = match comparison {
                    ValueComparison::Plain => "value".to_owned(),
                    // SQLite's own reading of a number's text may be off by the last bit.
                    ValueComparison::Real => "trefoil_real(value)".to_owned(),
                    ValueComparison::Decimal => self.equality_key(comparison, "value"),
                };
                format!("{} IN (SELECT {item} FROM json_each({list}))", self.equality_key(comparison, value))
            }
            // The parameter is then an array of the column's own type.
            Dialect::Postgres => format!("{value} = ANY ({list})"),
        }
    }

    /// Whether an integer is not in a list that is one parameter.
    pub fn is_not_in_list(self, value: &str, list: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{value} NOT IN (SELECT value FROM json_each({list}))"),
            Dialect::Postgres => format!("{value} <> ALL ({list})"),
        }
    }

    /// The integers of a list that is one parameter, as a table of the one column `value`.
    pub fn integer_table(self, list: &str, alias: &str) -> String {
        match self {
            Dialect::Sqlite => format!("json_each({list}) AS {alias}"),
            Dialect::Postgres => format!("unnest(CAST({list} AS bigint[])) AS {alias}(value)"),
        }
    }

    /// A FROM clause in which every parent `p` meets those records `o` of its own that a query of their ids
    /// chooses: a limit then ends each parent's search early, which numbering all of its records would not.
    pub fn first_rows_per_parent(self, keys: &str, table: &str, ids: &str) -> String {
        let (parents, table) = (self.integer_table(keys, "p"), self.quote_name(table));
        match self {
            Dialect::Sqlite => format!("{parents} CROSS JOIN {table} AS o ON o.\"id\" IN ({ids})"),
            Dialect::Postgres => {
                format!("{parents} CROSS JOIN LATERAL ({ids}) AS i JOIN {table} AS o ON o.\"id\" = i.\"id\"")
            }
        }
    }

    /// How many rows a table has, no more than `most`.
    pub fn count_up_to(self, table: &str, most: &str) -> String {
        let table = self.quote_name(table);
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
