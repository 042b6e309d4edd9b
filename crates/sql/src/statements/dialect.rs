//! Every textual difference between the SQL of SQLite and PostgreSQL, and nothing else.

use std::borrow::Cow;

use trefoil_engine::plan::MARK_RANGES;
use trefoil_model::{Field, KeyForm, RecordType, Scalar, ScalarGroup, StorageClass, TextPart, ValueType};

use crate::statements::access::key_columns::field_of_column;

/// The database that the SQL is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

/// How the values of a field compare, if not as the database compares their column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueComparison {
    Plain,
    Real,
    Decimal,
    /// Text in which the case of ASCII letters makes no difference, except to its order.
    IgnoreCase,
}

impl ValueComparison {
    pub fn for_field(field: &Field) -> ValueComparison {
        if field.ignores_case {
            return ValueComparison::IgnoreCase;
        }
        field.kind.value_type().map_or(ValueComparison::Plain, ValueComparison::for_type)
    }

    pub fn for_type(value_type: &ValueType) -> ValueComparison {
        let Some(scalar) = value_type.scalar() else { return ValueComparison::Plain };
        match scalar.storage_class() {
            StorageClass::Real => ValueComparison::Real,
            // A number stored as text is an exact decimal.
            StorageClass::Text if scalar.group() == ScalarGroup::Number => ValueComparison::Decimal,
            StorageClass::Integer | StorageClass::Text => ValueComparison::Plain,
        }
    }
}

/// How a value inside JSON compares.
enum JsonClass {
    Integer,
    Real,
    Decimal,
    Boolean,
    /// JSON has no zeros at the end of a time, its column has all six digits.
    Time,
    Text,
}

fn json_class(value_type: Option<&ValueType>) -> JsonClass {
    match value_type.and_then(ValueType::scalar) {
        Some(Scalar::Boolean) => JsonClass::Boolean,
        Some(Scalar::DateTime | Scalar::LocalDateTime) => JsonClass::Time,
        Some(scalar) => match (scalar.storage_class(), scalar.group()) {
            (StorageClass::Integer, _) => JsonClass::Integer,
            (StorageClass::Real, _) => JsonClass::Real,
            (StorageClass::Text, ScalarGroup::Number) => JsonClass::Decimal,
            (StorageClass::Text, _) => JsonClass::Text,
        },
        None => JsonClass::Text,
    }
}

/// A search pattern as a regular expression of PostgreSQL. `(?e)`: an extended one, in which a backslash between brackets
/// is literal.
fn regular_expression(pattern: &str, before: &str, after: &str) -> String {
    format!("('(?e){before}' || replace({pattern}, '^', E'\\\\^'){after})")
}

/// How a column is selected, so that its cell is as [`trefoil_model::StoredValue`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnReading {
    Plain,
    Text,
    DateTime,
}

impl ColumnReading {
    fn for_field(field: &Field) -> ColumnReading {
        if let Some(ValueType::Key(form)) = field.kind.value_type() {
            return ColumnReading::for_key(*form);
        }
        match field.kind.scalar() {
            Some(Scalar::DateTime | Scalar::LocalDateTime) => ColumnReading::DateTime,
            Some(Scalar::Decimal | Scalar::Date | Scalar::Uuid | Scalar::Json) => ColumnReading::Text,
            None if field.kind.value_type().is_some_and(ValueType::is_json) => ColumnReading::Text,
            Some(
                Scalar::String
                | Scalar::Int
                | Scalar::Float
                | Scalar::Boolean
                | Scalar::Id
                | Scalar::Long
                | Scalar::Url
                | Scalar::Email,
            )
            | None => ColumnReading::Plain,
        }
    }

    fn for_key(form: KeyForm) -> ColumnReading {
        match form {
            KeyForm::Uuid => ColumnReading::Text,
            KeyForm::Digits | KeyForm::Number | KeyForm::Text => ColumnReading::Plain,
        }
    }
}

impl Dialect {
    /// A name as a quoted identifier. Schema names hold no quotes; they are doubled anyway.
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

    /// Translates SQL whose parameters are written `?1`, `?2` … and which has no other question mark.
    pub fn translate_parameters(self, sql: &str) -> Cow<'_, str> {
        match self {
            Dialect::Sqlite => Cow::Borrowed(sql),
            Dialect::Postgres => Cow::Owned(sql.replace('?', "$")),
        }
    }

    /// The expression that selects a quoted column of a record; `from` is its prefix, such as `t.`.
    pub fn read_column(self, owner: &RecordType, from: &str, column: &str) -> String {
        let reading = field_of_column(owner, column).map_or(ColumnReading::Plain, ColumnReading::for_field);
        self.read_value(reading, format!("{from}{column}"))
    }

    /// The expression that selects a value of a field, wherever it comes from.
    pub fn read_field_value(self, field: &Field, value: String) -> String {
        self.read_value(ColumnReading::for_field(field), value)
    }

    /// The expression that selects the id of a record.
    pub fn read_key(self, form: KeyForm, value: &str) -> String {
        self.read_value(ColumnReading::for_key(form), value.to_owned())
    }

    fn read_value(self, reading: ColumnReading, value: String) -> String {
        match (self, reading) {
            (Dialect::Sqlite, _) | (Dialect::Postgres, ColumnReading::Plain) => value,
            (Dialect::Postgres, ColumnReading::Text) => format!("{value}::text"),
            (Dialect::Postgres, ColumnReading::DateTime) => {
                format!("to_char({value} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
            }
        }
    }

    /// [`Dialect::read_column`] of several columns.
    pub fn read_columns(self, owner: &RecordType, from: &str, columns: &[String]) -> String {
        columns.iter().map(|column| self.read_column(owner, from, column)).collect::<Vec<_>>().join(", ")
    }

    /// The expression to sort by: text by code point, decimals exactly.
    pub fn sort_key(self, comparison: ValueComparison, value: &str) -> String {
        match (self, comparison) {
            (Dialect::Sqlite, ValueComparison::Decimal) => format!("trefoil_decimal_key({value})"),
            (Dialect::Sqlite, ValueComparison::Plain | ValueComparison::Real | ValueComparison::IgnoreCase)
            // PostgreSQL: text columns are COLLATE "C", and numeric is exact.
            | (Dialect::Postgres, _) => value.to_owned(),
        }
    }

    /// An expression that is the same for equal values; unique indexes use it too.
    pub fn equality_key(self, comparison: ValueComparison, value: &str) -> String {
        match (self, comparison) {
            (Dialect::Sqlite, ValueComparison::Decimal) => {
                format!("CASE WHEN instr({value},'.') THEN rtrim(rtrim({value},'0'),'.') ELSE {value} END")
            }
            // Both fold ASCII only: SQLite always, PostgreSQL with this collation.
            (Dialect::Sqlite, ValueComparison::IgnoreCase) => format!("lower({value})"),
            (Dialect::Postgres, ValueComparison::IgnoreCase) => {
                format!("lower(CAST({value} AS text) COLLATE \"C\")")
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

    /// The opposite of [`Dialect::null_safe_equal`].
    pub fn null_safe_different(self, left: &str, right: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{left} IS NOT {right}"),
            Dialect::Postgres => format!("{left} IS DISTINCT FROM {right}"),
        }
    }

    /// Case-sensitive substring search.
    pub fn contains(self, text: &str, part: &str) -> String {
        match self {
            Dialect::Sqlite => format!("instr({text}, {part}) > 0"),
            Dialect::Postgres => format!("strpos({text}, {part}) > 0"),
        }
    }

    /// True if each pattern of a list that is one parameter matches part of these texts without their marks.
    pub fn has_words(self, texts: &[String], patterns: &str) -> String {
        let line_end = match self {
            Dialect::Sqlite => "char(10)",
            Dialect::Postgres => "chr(10)",
        };
        let texts: Vec<String> = texts.iter().map(|text| format!("COALESCE({text}, '')")).collect();
        let text = self.text_without_marks(&texts.join(&format!(" || {line_end} || ")));
        let matches = self.matches_pattern("x.value", "w.value", TextPart::Anywhere);
        let words = self.text_table(patterns, "w");
        format!("NOT EXISTS (SELECT 1 FROM {text}, {words} WHERE NOT ({matches}))")
    }

    /// The number of times that patterns of a list match a text without its marks.
    pub fn pattern_count(self, text: &str, patterns: &str) -> String {
        match self {
            Dialect::Sqlite => format!("trefoil_pattern_count({text}, {patterns})"),
            Dialect::Postgres => format!(
                "(SELECT count(*) FROM {}, {}, regexp_matches(x.value, {}, 'g'))",
                self.text_without_marks(text),
                self.text_table(patterns, "w"),
                regular_expression("w.value", "", "")
            ),
        }
    }

    /// A text without its marks, as a table `x` with one column, `value`.
    fn text_without_marks(self, text: &str) -> String {
        match self {
            Dialect::Sqlite => format!("(SELECT trefoil_without_marks({text}) AS value) AS x"),
            Dialect::Postgres => {
                let marks: String =
                    MARK_RANGES.iter().map(|(first, last)| format!("{first}-{last}")).collect();
                let plain = format!("regexp_replace(normalize(y.value, NFD), '[{marks}]+', '', 'g')");
                // OFFSET 0: the text is made once, not for each word.
                format!(
                    "(SELECT CASE octet_length(y.value) WHEN length(y.value) THEN y.value ELSE {plain} END AS value \
                     FROM (SELECT {text} AS value OFFSET 0) AS y OFFSET 0) AS x"
                )
            }
        }
    }

    /// The texts of a list that is one parameter, as a table with one column, `value`.
    pub fn text_table(self, list: &str, alias: &str) -> String {
        match self {
            Dialect::Sqlite => format!("json_each({list}) AS {alias}"),
            Dialect::Postgres => format!("unnest(CAST({list} AS text[])) AS {alias}(value)"),
        }
    }

    /// True if this part of the text matches a search pattern of [`trefoil_engine`].
    pub fn matches_pattern(self, text: &str, pattern: &str, part: TextPart) -> String {
        let is_at_start = matches!(part, TextPart::Whole | TextPart::Start);
        let is_at_end = matches!(part, TextPart::Whole | TextPart::End);
        match self {
            Dialect::Sqlite => {
                let before = if is_at_start { "" } else { "'*' || " };
                let after = if is_at_end { "" } else { " || '*'" };
                format!("{text} GLOB {before}{pattern}{after}")
            }
            Dialect::Postgres => {
                let before = if is_at_start { "^" } else { "" };
                let after = if is_at_end { " || '$'" } else { "" };
                format!("{text} ~ {}", regular_expression(pattern, before, after))
            }
        }
    }

    pub fn ends_with(self, text: &str, end: &str) -> String {
        match self {
            Dialect::Sqlite => format!("substr({text}, -length({end})) = {end}"),
            Dialect::Postgres => format!("right({text}, length({end})) = {end}"),
        }
    }

    /// A value inside the JSON of a column, as its own column would hold it; null if there is none. Others may have
    /// written what is not JSON, or not of this type.
    pub fn json_member(self, column: &str, members: &[&str], value_type: Option<&ValueType>) -> String {
        match self {
            Dialect::Sqlite => {
                let path: String = members.iter().map(|name| format!(".\"{name}\"")).collect();
                let json = self.valid_json(column);
                match json_class(value_type) {
                    JsonClass::Integer => {
                        format!("CAST(json_extract({json}, '${path}') AS INTEGER)")
                    }
                    JsonClass::Real => format!("trefoil_real({json} -> '${path}')"),
                    JsonClass::Time => format!("trefoil_time(json_extract({json}, '${path}'))"),
                    JsonClass::Boolean | JsonClass::Decimal | JsonClass::Text => {
                        format!("json_extract({json}, '${path}')")
                    }
                }
            }
            // A list stays JSON.
            Dialect::Postgres if matches!(value_type, Some(ValueType::List(_))) => {
                self.json_array(&format!("({column} #> '{{{}}}')", members.join(",")))
            }
            Dialect::Postgres => {
                self.json_text_value(&format!("{column} #>> '{{{}}}'", members.join(",")), value_type)
            }
        }
    }

    /// The expression that selects a [`Dialect::json_member`]; like the column of such a value, which is text beside
    /// numbers of exact digits.
    pub fn read_member(self, value: &str, value_type: Option<&ValueType>) -> String {
        match (self, json_class(value_type)) {
            (Dialect::Sqlite, JsonClass::Decimal) => format!("CAST({value} AS TEXT)"),
            (Dialect::Postgres, JsonClass::Decimal) => format!("({value})::text"),
            (
                _,
                JsonClass::Integer | JsonClass::Real | JsonClass::Boolean | JsonClass::Time | JsonClass::Text,
            ) => value.to_owned(),
        }
    }

    /// True if a list, stored as JSON, contains a value.
    pub fn list_has_item(self, column: &str, item_type: Option<&ValueType>, item: &str) -> String {
        let comparison = item_type.map_or(ValueComparison::Plain, ValueComparison::for_type);
        let array = self.json_array(column);
        let (source, value) = match self {
            Dialect::Sqlite => {
                let value = match json_class(item_type) {
                    JsonClass::Integer => "CAST(j.value AS INTEGER)".to_owned(),
                    JsonClass::Real => format!("trefoil_real({column} -> j.fullkey)"),
                    JsonClass::Time => "trefoil_time(j.value)".to_owned(),
                    JsonClass::Boolean | JsonClass::Decimal | JsonClass::Text => "j.value".to_owned(),
                };
                (format!("json_each({array}) AS j"), value)
            }
            Dialect::Postgres => (
                format!("json_array_elements_text({array}) AS j(value)"),
                self.json_text_value("j.value", item_type),
            ),
        };
        let [value, item] = [value.as_str(), item].map(|value| self.equality_key(comparison, value));
        format!("EXISTS (SELECT 1 FROM {source} WHERE {value} = {item})")
    }

    /// True if a list, stored as JSON, is neither null nor empty.
    pub fn list_has_items(self, column: &str) -> String {
        format!("json_array_length({}) > 0", self.json_array(column))
    }

    fn valid_json(self, column: &str) -> String {
        format!("CASE WHEN json_valid({column}) THEN {column} END")
    }

    fn json_array(self, column: &str) -> String {
        match self {
            Dialect::Sqlite => self.valid_json(column),
            Dialect::Postgres => format!("(CASE json_typeof({column}) WHEN 'array' THEN {column} END)"),
        }
    }

    /// PostgreSQL: a value that JSON operators gave as text, in the type to compare it in. Dates, times and UUIDs
    /// are in the one form that sorts as text.
    fn json_text_value(self, text: &str, value_type: Option<&ValueType>) -> String {
        match json_class(value_type) {
            JsonClass::Integer => format!("CAST(substring({text} FROM '^-?[0-9]{{1,19}}$') AS bigint)"),
            JsonClass::Decimal => {
                format!("CAST(substring({text} FROM '^-?[0-9]+(?:[.][0-9]+)?$') AS numeric)")
            }
            JsonClass::Real => format!(
                "CAST(substring({text} FROM '^-?[0-9]+(?:[.][0-9]+)?(?:[eE][-+]?[0-9]+)?$') AS double precision)"
            ),
            JsonClass::Boolean => format!("CASE {text} WHEN 'true' THEN true WHEN 'false' THEN false END"),
            JsonClass::Time => {
                let known = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]{1,6})?Z?$";
                let digits = format!("rtrim(substring({text} FROM '{known}'), 'Z') || '.000000'");
                // A time that has a fraction now has a second point.
                let joined = format!("regexp_replace({digits}, '^(.{{20}}[0-9]*)[.]', '\\1')");
                format!("((left({joined}, 26) || 'Z') COLLATE \"C\")")
            }
            JsonClass::Text => format!("({text} COLLATE \"C\")"),
        }
    }

    /// Sorts after every text with this prefix: the prefix and the greatest code point.
    pub fn prefix_upper_bound(self, text: &str) -> String {
        match self {
            Dialect::Sqlite => format!("({text} || char(1114111))"),
            Dialect::Postgres => format!("(CAST({text} AS text) || chr(1114111))"),
        }
    }

    /// True if the value is in a list that is one parameter.
    pub fn is_in_list(self, comparison: ValueComparison, value: &str, list: &str) -> String {
        match self {
            Dialect::Sqlite => {
                let item = match comparison {
                    ValueComparison::Plain => "value".to_owned(),
                    // SQLite's own conversion of text to a number may be off by the last bit.
                    ValueComparison::Real => "trefoil_real(value)".to_owned(),
                    ValueComparison::Decimal | ValueComparison::IgnoreCase => {
                        self.equality_key(comparison, "value")
                    }
                };
                format!("{} IN (SELECT {item} FROM json_each({list}))", self.equality_key(comparison, value))
            }
            Dialect::Postgres if comparison == ValueComparison::IgnoreCase => format!(
                "{} IN (SELECT {} FROM unnest(CAST({list} AS text[])) AS item)",
                self.equality_key(comparison, value),
                self.equality_key(comparison, "item")
            ),
            // The parameter then is an array of the column's type.
            Dialect::Postgres => format!("{value} = ANY ({list})"),
        }
    }

    /// True if a key is not in a list that is one parameter.
    pub fn is_not_in_list(self, value: &str, list: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{value} NOT IN (SELECT value FROM json_each({list}))"),
            Dialect::Postgres => format!("{value} <> ALL ({list})"),
        }
    }

    /// The keys of a list that is one parameter, as a table with one column, `value`.
    pub fn key_table(self, form: KeyForm, list: &str, alias: &str) -> String {
        match self {
            Dialect::Sqlite => format!("json_each({list}) AS {alias}"),
            Dialect::Postgres => {
                format!("unnest(CAST({list} AS {}[])) AS {alias}(value)", self.key_type(form))
            }
        }
    }

    /// The expression that sorts keys of a parameter as columns do: a parameter has the collation of the database.
    pub fn key_order(self, form: KeyForm, value: &str) -> String {
        match (self, form) {
            (Dialect::Postgres, KeyForm::Text) => format!("{value} COLLATE \"C\""),
            (Dialect::Sqlite, _) | (Dialect::Postgres, KeyForm::Digits | KeyForm::Number | KeyForm::Uuid) => {
                value.to_owned()
            }
        }
    }

    /// The type of a column with keys of this form.
    pub fn key_type(self, form: KeyForm) -> &'static str {
        match (self, form) {
            (Dialect::Sqlite, KeyForm::Digits | KeyForm::Number) => "INTEGER",
            (Dialect::Sqlite, KeyForm::Uuid | KeyForm::Text) => "TEXT",
            (Dialect::Postgres, KeyForm::Digits | KeyForm::Number) => "bigint",
            (Dialect::Postgres, KeyForm::Uuid) => "uuid",
            (Dialect::Postgres, KeyForm::Text) => "text",
        }
    }

    /// A FROM clause that joins every parent `p` with the records `o` whose ids the query `ids` selects for it. A limit
    /// in `ids` ends the search of each parent early, which a window function over all its records would not.
    pub fn first_rows_per_parent(self, parents: &str, table: &str, ids: &str) -> String {
        let table = self.quote_name(table);
        match self {
            Dialect::Sqlite => format!("{parents} CROSS JOIN {table} AS o ON o.\"id\" IN ({ids})"),
            Dialect::Postgres => {
                format!("{parents} CROSS JOIN LATERAL ({ids}) AS i JOIN {table} AS o ON o.\"id\" = i.\"id\"")
            }
        }
    }

    /// Counts the rows of a table, up to `most`.
    pub fn count_up_to(self, table: &str, most: &str) -> String {
        let table = self.quote_name(table);
        match self {
            // count(*) of a whole table goes by pages, ten times as fast as row by row. It is used for short tables,
            // recognised by their highest id; in a long one only the row at the limit is looked up.
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
