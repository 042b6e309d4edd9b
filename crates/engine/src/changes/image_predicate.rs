//! Predicates that are tested on record images, with the results that the databases give.

use std::cmp::Ordering;

use regex::Regex;

use trefoil_model::error::Violation;
use trefoil_model::values::{date_times, decimal};
use trefoil_model::{
    CellValue, ComparisonOp, Field, Model, RecordType, Scalar, StorageClass, StoredValue, TextPart, Value,
    ValueType,
};

use crate::changes::record_image::{image_cell, stored_from_json};
use crate::operation::ValuePath;
use crate::plan::Predicate;

/// A test of a record image.
#[derive(Debug)]
pub enum ImagePredicate {
    Value {
        source: ImageValue,
        test: ValuePredicate,
    },
    /// The result of a test of related records, by its position.
    Related(usize),
    All(Vec<ImagePredicate>),
    Any(Vec<ImagePredicate>),
    Not(Box<ImagePredicate>),
    Never,
}

/// Where a value is in an image, and how it compares.
#[derive(Debug)]
pub struct ImageValue {
    column: String,
    /// The names of members inside an embedded value.
    members: Vec<String>,
    comparison: CellComparison,
}

/// How the values of a field compare.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CellComparison {
    is_decimal: bool,
    ignores_case: bool,
    /// Values inside JSON may be digits in a text.
    is_integer: bool,
    /// Times inside JSON may lack digits.
    is_time: bool,
}

#[derive(Debug)]
pub enum ValuePredicate {
    IsNull,
    NotNull,
    Compare(ComparisonOp, StoredValue),
    OneOf { values: Vec<StoredValue>, or_null: bool },
    Text(TextPart, String),
    Pattern(Regex),
    HasItem(StoredValue),
    HasItems,
}

impl ImagePredicate {
    /// The test of a predicate about the record's own columns.
    pub fn new(
        model: &Model,
        record: &RecordType,
        predicate: &Predicate,
    ) -> Result<ImagePredicate, Violation> {
        let all = |predicates: &[Predicate]| {
            predicates.iter().map(|inner| ImagePredicate::new(model, record, inner)).collect::<Result<_, _>>()
        };
        let value = |path: &ValuePath, test: ValuePredicate| ImagePredicate::Value {
            source: ImageValue::new(model, record, path),
            test,
        };
        Ok(match predicate {
            Predicate::IsNull { path } => value(path, ValuePredicate::IsNull),
            Predicate::NotNull { path } => value(path, ValuePredicate::NotNull),
            Predicate::Compare { path, op, value: operand } => {
                value(path, ValuePredicate::Compare(*op, operand.clone()))
            }
            Predicate::OneOf { path, values, or_null } => {
                value(path, ValuePredicate::OneOf { values: values.clone(), or_null: *or_null })
            }
            Predicate::Text { path, part, text } => match text {
                StoredValue::Text(text) => value(path, ValuePredicate::Text(*part, text.clone())),
                StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_) => ImagePredicate::Never,
            },
            Predicate::TextPattern { path, part, text, .. } => {
                value(path, ValuePredicate::Pattern(any_case_regex(*part, text)?))
            }
            Predicate::HasItem { path, item } => value(path, ValuePredicate::HasItem(item.clone())),
            Predicate::HasItems { path } => value(path, ValuePredicate::HasItems),
            Predicate::All(predicates) => ImagePredicate::All(all(predicates)?),
            Predicate::Any(predicates) => ImagePredicate::Any(all(predicates)?),
            Predicate::Not(inner) => {
                ImagePredicate::Not(Box::new(ImagePredicate::new(model, record, inner)?))
            }
            // Subscriptions have no search argument and no nested lists; related records are tested by the store.
            Predicate::Related { .. }
            | Predicate::Words { .. }
            | Predicate::IndexedWords { .. }
            | Predicate::ShownWords { .. }
            | Predicate::LinkedFrom { .. }
            | Predicate::Never => ImagePredicate::Never,
        })
    }

    /// Whether the image matches; `None` if that depends on a test of related records whose result is not known.
    pub fn matches(
        &self,
        image: &[(String, StoredValue)],
        related: &dyn Fn(usize) -> Option<bool>,
    ) -> Option<bool> {
        match self {
            ImagePredicate::Value { source, test } => Some(source.matches(image, test)),
            ImagePredicate::Related(position) => related(*position),
            ImagePredicate::All(tests) => decide(tests, image, related, false),
            ImagePredicate::Any(tests) => decide(tests, image, related, true),
            ImagePredicate::Not(inner) => inner.matches(image, related).map(|matches| !matches),
            ImagePredicate::Never => Some(false),
        }
    }
}

/// `decisive` if one of the tests has that result, its opposite if none can have it.
fn decide(
    tests: &[ImagePredicate],
    image: &[(String, StoredValue)],
    related: &dyn Fn(usize) -> Option<bool>,
    decisive: bool,
) -> Option<bool> {
    let mut result = Some(!decisive);
    for test in tests {
        match test.matches(image, related) {
            Some(matches) if matches == decisive => return Some(decisive),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

impl ImageValue {
    fn new(model: &Model, record: &RecordType, path: &ValuePath) -> ImageValue {
        let mut fields = path.fields(model, record);
        let column = fields.next().map(|field| field.column.clone()).unwrap_or_default();
        let members = fields.map(|field| field.name.clone()).collect();
        ImageValue { column, members, comparison: CellComparison::new(path.target(model, record)) }
    }

    fn matches(&self, image: &[(String, StoredValue)], test: &ValuePredicate) -> bool {
        let cell = image_cell(image, &self.column);
        if self.members.is_empty() {
            return self.comparison.test(test, cell);
        }
        let inner = self.members.iter().try_fold(parse_json(cell), |value, name| value.get(name).cloned());
        let stored = inner.map_or(StoredValue::Null, |value| self.comparison.read_json(value));
        self.comparison.test(test, stored.as_cell())
    }
}

impl CellComparison {
    pub(super) fn new(field: &Field) -> CellComparison {
        let value_type = field.kind.list_item().map(|item| &item.value_type).or(field.kind.value_type());
        CellComparison {
            is_decimal: value_type.and_then(ValueType::scalar) == Some(Scalar::Decimal),
            ignores_case: field.ignores_case,
            is_integer: value_type.is_some_and(|ty| ty.storage_class() == StorageClass::Integer),
            is_time: value_type.and_then(ValueType::scalar).is_some_and(Scalar::has_clock),
        }
    }

    fn test(self, test: &ValuePredicate, cell: CellValue<'_>) -> bool {
        match (test, cell) {
            (ValuePredicate::IsNull, _) => cell == CellValue::Null,
            (ValuePredicate::NotNull, _) => cell != CellValue::Null,
            (ValuePredicate::Compare(op, value), _) => self.compare(*op, cell, value.as_cell()),
            (ValuePredicate::OneOf { values, or_null }, _) => {
                (*or_null && cell == CellValue::Null)
                    || values.iter().any(|value| self.compare(ComparisonOp::Eq, cell, value.as_cell()))
            }
            (ValuePredicate::Text(part, other), CellValue::Text(text)) => match part {
                TextPart::Whole => text == other,
                TextPart::Anywhere => text.contains(other),
                TextPart::Start => text.starts_with(other),
                TextPart::End => text.ends_with(other),
            },
            (ValuePredicate::Pattern(regex), CellValue::Text(text)) => regex.is_match(text),
            (ValuePredicate::Text(..) | ValuePredicate::Pattern(_), _) => false,
            (ValuePredicate::HasItem(item), _) => self.has_item(cell, item.as_cell()),
            (ValuePredicate::HasItems, _) => !self.items(cell).is_empty(),
        }
    }

    /// Whether a list has an item.
    pub(super) fn has_item(self, list: CellValue<'_>, item: CellValue<'_>) -> bool {
        let is_item = |value| self.compare(ComparisonOp::Eq, self.read_json(value).as_cell(), item);
        self.items(list).into_iter().any(is_item)
    }

    fn items(self, cell: CellValue<'_>) -> Vec<Value> {
        if let Value::List(items) = parse_json(cell) { items } else { Vec::new() }
    }

    fn read_json(self, value: Value) -> StoredValue {
        let is_single = !matches!(value, Value::List(_) | Value::Object(_));
        match stored_from_json(value) {
            StoredValue::Text(digits) if self.is_integer && is_single => {
                digits.parse().map_or(StoredValue::Null, StoredValue::Int)
            }
            StoredValue::Text(time) if self.is_time && is_single => {
                date_times::stored_form(&time).map_or(StoredValue::Null, StoredValue::Text)
            }
            stored @ (StoredValue::Null
            | StoredValue::Int(_)
            | StoredValue::Real(_)
            | StoredValue::Text(_)) => stored,
        }
    }

    pub(super) fn compare(self, op: ComparisonOp, cell: CellValue<'_>, value: CellValue<'_>) -> bool {
        let order = match (op, cell, value) {
            (ComparisonOp::Eq | ComparisonOp::Ne, CellValue::Text(text), CellValue::Text(other))
                if self.ignores_case && text.eq_ignore_ascii_case(other) =>
            {
                Some(Ordering::Equal)
            }
            _ => compare_cells(self.is_decimal, cell, value),
        };
        match op {
            ComparisonOp::Eq => order == Some(Ordering::Equal),
            // Null differs from every value, as in lists.
            ComparisonOp::Ne => order != Some(Ordering::Equal),
            ComparisonOp::Lt => order.is_some_and(Ordering::is_lt),
            ComparisonOp::Lte => order.is_some_and(Ordering::is_le),
            ComparisonOp::Gt => order.is_some_and(Ordering::is_gt),
            ComparisonOp::Gte => order.is_some_and(Ordering::is_ge),
        }
    }
}

/// What is not JSON is null.
fn parse_json(cell: CellValue<'_>) -> Value {
    if let CellValue::Text(text) = cell {
        serde_json::from_str(text).unwrap_or(Value::Null)
    } else {
        Value::Null
    }
}

/// Matches texts whose part is this text in any case, by the simple folding of Unicode.
fn any_case_regex(part: TextPart, text: &str) -> Result<Regex, Violation> {
    let text = regex::escape(text);
    let pattern = match part {
        TextPart::Whole => format!("(?is)^{text}$"),
        TextPart::Anywhere => format!("(?is){text}"),
        TextPart::Start => format!("(?is)^{text}"),
        TextPart::End => format!("(?is){text}$"),
    };
    Regex::new(&pattern).map_err(|error| Violation::new("where", "LENGTH", error.to_string()))
}

/// The order of two values as in the databases: decimals by value, text by code point, numbers as numbers. `None` if
/// they cannot be compared, such as null with anything.
fn compare_cells(is_decimal: bool, left: CellValue<'_>, right: CellValue<'_>) -> Option<Ordering> {
    match (left, right) {
        (CellValue::Text(left), CellValue::Text(right))
            if is_decimal && decimal::is_canonical(left) && decimal::is_canonical(right) =>
        {
            Some(decimal::compare(left, right))
        }
        (CellValue::Text(left), CellValue::Text(right)) => Some(left.cmp(right)),
        (CellValue::Int(left), CellValue::Int(right)) => Some(left.cmp(&right)),
        (CellValue::Real(left), CellValue::Real(right)) => left.partial_cmp(&right),
        // Stores differ in writing a whole Float as `1` or `1.0`.
        (CellValue::Int(whole), CellValue::Real(real)) => (whole as f64).partial_cmp(&real),
        (CellValue::Real(real), CellValue::Int(whole)) => real.partial_cmp(&(whole as f64)),
        (
            CellValue::Null
            | CellValue::Int(_)
            | CellValue::Real(_)
            | CellValue::Text(_)
            | CellValue::Unreadable,
            _,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_matches_queries() {
        let text = CellValue::Text;
        for (is_decimal, left, right, expected) in [
            (true, text("1.5"), text("1.50"), true),
            (true, text("-1.5"), text("1.5"), false),
            (true, text("0"), text("0.00"), true),
            (true, text("1.5"), text("1.500000000000000000000001"), false),
            (true, text("foreign"), text("1"), false),
            (false, text("1.5"), text("1.50"), false),
            (false, text("é"), text("e\u{301}"), false),
            (false, text("A"), text("a"), false),
            (false, CellValue::Int(1), CellValue::Real(1.0), true),
            (false, CellValue::Real(0.1), CellValue::Real(0.1), true),
            (false, CellValue::Real(-0.0), CellValue::Real(0.0), true),
            (false, CellValue::Int(i64::MAX), CellValue::Int(i64::MAX - 1), false),
            (false, CellValue::Int(1), text("1"), false),
            (false, CellValue::Null, CellValue::Null, false),
        ] {
            let found = compare_cells(is_decimal, left, right) == Some(Ordering::Equal);
            assert_eq!(found, expected, "{left:?} and {right:?}");
        }
    }

    #[test]
    fn operators_match_queries() {
        let text = CellValue::Text;
        for (op, left, right, expected) in [
            (ComparisonOp::Eq, text("1.5"), text("1.50"), true),
            (ComparisonOp::Ne, text("1.5"), text("1.50"), false),
            (ComparisonOp::Ne, CellValue::Null, text("1"), true),
            (ComparisonOp::Lt, text("9"), text("10"), true),
            (ComparisonOp::Lt, text("10"), text("10.0"), false),
            (ComparisonOp::Lte, text("10"), text("10.0"), true),
            (ComparisonOp::Gt, text("10"), text("9"), true),
            (ComparisonOp::Gte, text("9"), text("10"), false),
            (ComparisonOp::Gte, CellValue::Null, text("10"), false),
            (ComparisonOp::Gt, CellValue::Int(2), CellValue::Real(1.5), true),
        ] {
            let comparison = CellComparison { is_decimal: true, ..CellComparison::default() };
            assert_eq!(comparison.compare(op, left, right), expected, "{left:?} {op:?} {right:?}");
        }
    }

    #[test]
    fn values_inside_json_are_read_like_columns() {
        let times = CellComparison { is_time: true, ..CellComparison::default() };
        let integers = CellComparison { is_integer: true, ..CellComparison::default() };
        for (comparison, value, expected) in [
            (times, r#""2026-01-02T03:04:05Z""#, StoredValue::Text("2026-01-02T03:04:05.000000Z".to_owned())),
            (times, r#""yesterday""#, StoredValue::Null),
            (integers, r#""9007199254740993""#, StoredValue::Int(9_007_199_254_740_993)),
            (integers, r#"[1,2]"#, StoredValue::Text("[1,2]".to_owned())),
        ] {
            let value: Value = serde_json::from_str(value).unwrap();
            assert_eq!(comparison.read_json(value), expected);
        }
        let listed = CellValue::Text(r#"["2026-01-02T03:04:05.5Z"]"#);
        let item = StoredValue::Text("2026-01-02T03:04:05.500000Z".to_owned());
        assert!(times.test(&ValuePredicate::HasItem(item), listed));
    }
}
