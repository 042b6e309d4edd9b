//! Conditions of a listing as predicates: values coerced, operators reduced to those that stores know.

use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::values::coerce;
use trefoil_model::{
    ComparisonOp, Field, FieldId, FilterOperator, Model, RecordId, RecordType, RecordTypeId, StoredValue,
    TextMatch, TextPart, Value,
};

use crate::operation::{Condition, FieldComparison, ValuePath};
use crate::plan::search::indexed_words;
use crate::plan::search::text_pattern::{self, searched_texts};
use crate::plan::statement_shape::StatementShape;

/// A validated test of a record. It is true or false, never unknown: null equals no value and is neither less nor
/// greater than any.
#[derive(Debug, Clone)]
pub enum Predicate {
    /// The value is never null.
    Compare {
        path: ValuePath,
        op: ComparisonOp,
        value: StoredValue,
    },
    /// Matches any of the values, which are not null, or null as well. Bound as one parameter, so that the
    /// statement is the same for any number of values.
    OneOf {
        path: ValuePath,
        values: Vec<StoredValue>,
        or_null: bool,
    },
    IsNull {
        path: ValuePath,
    },
    NotNull {
        path: ValuePath,
    },
    /// True if the text contains another one in this part. The start of a text is planned as two comparisons, which
    /// can use an index.
    Text {
        path: ValuePath,
        part: TextPart,
        text: StoredValue,
    },
    /// The same for text in any case: the part matches the pattern.
    TextPattern {
        path: ValuePath,
        part: TextPart,
        text: String,
        pattern: StoredValue,
    },
    /// A list of values contains this one.
    HasItem {
        path: ValuePath,
        item: StoredValue,
    },
    /// A list of values is neither null nor empty.
    HasItems {
        path: ValuePath,
    },
    /// True if every pattern matches part of one of the [`searched_texts`], without their marks. Bound as one parameter.
    Words {
        patterns: Vec<StoredValue>,
    },
    /// True if the full-text index of the record type has, for each of these words, one that begins with it. Not empty;
    /// bound as one parameter.
    IndexedWords {
        words: Vec<StoredValue>,
    },
    /// The same in the texts as the actor sees them: the index has those that rules hide, too.
    ShownWords {
        words: Vec<StoredValue>,
    },
    All(Vec<Predicate>),
    /// Not empty.
    Any(Vec<Predicate>),
    Not(Box<Predicate>),
    /// True if all predicates are true of one record that the relation leads to.
    Related {
        relation: FieldId,
        predicates: Vec<Predicate>,
    },
    /// True if the list `field` of the record `id` of type `owner` leads to this record.
    LinkedFrom {
        owner: RecordTypeId,
        field: FieldId,
        id: RecordId,
    },
    /// Never true, such as `IN ()`.
    Never,
}

/// Validates conditions; the predicates are in the same order.
pub fn plan_predicates(
    model: &Model,
    record: &RecordType,
    conditions: &[Condition],
) -> Result<Vec<Predicate>> {
    plan_all(model, record, conditions).map_err(Error::Invalid)
}

fn plan_all(
    model: &Model,
    record: &RecordType,
    conditions: &[Condition],
) -> Result<Vec<Predicate>, Vec<Violation>> {
    let mut violations = Vec::new();
    let mut predicates = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match plan_predicate(model, record, condition) {
            Ok(predicate) => predicates.push(predicate),
            Err(found) => violations.extend(found),
        }
    }
    if violations.is_empty() { Ok(predicates) } else { Err(violations) }
}

fn plan_predicate(
    model: &Model,
    record: &RecordType,
    condition: &Condition,
) -> Result<Predicate, Vec<Violation>> {
    match condition {
        Condition::Compare(comparison) => plan_comparison(model, record, comparison),
        Condition::HasId(ids) => Ok(Predicate::OneOf {
            path: record.id_field().into(),
            values: ids.iter().cloned().map(RecordId::into_stored).collect(),
            or_null: false,
        }),
        Condition::All(conditions) => {
            let mut predicates = plan_all(model, record, conditions)?;
            match predicates.len() {
                1 => Ok(predicates.remove(0)),
                _ => Ok(Predicate::All(predicates)),
            }
        }
        Condition::Any(conditions) if conditions.is_empty() => Ok(Predicate::Never),
        Condition::Any(conditions) => Ok(Predicate::Any(plan_all(model, record, conditions)?)),
        Condition::Not(inner) => Ok(plan_predicate(model, record, inner)?.negated()),
        Condition::Related { relation, conditions } => {
            let field = record.field(*relation);
            let Some(target) = field.kind.relation().map(|relation| model.record(relation.target())) else {
                return Ok(Predicate::Never);
            };
            Ok(Predicate::Related { relation: *relation, predicates: plan_all(model, target, conditions)? })
        }
        Condition::LinkedFrom { owner, field, id } => {
            let list = model.record(*owner).field(*field);
            let may_be_hidden =
                |reference: FieldId| list.may_be_hidden || record.field(reference).may_be_hidden;
            Ok(match list.kind.inverse().filter(|inverse| !may_be_hidden(inverse.field)) {
                Some(inverse) => Predicate::Compare {
                    path: inverse.field.into(),
                    op: ComparisonOp::Eq,
                    value: id.clone().into_stored(),
                },
                None => Predicate::LinkedFrom { owner: *owner, field: *field, id: id.clone() },
            })
        }
    }
}

fn plan_comparison(
    model: &Model,
    record: &RecordType,
    comparison: &FieldComparison,
) -> Result<Predicate, Vec<Violation>> {
    let FieldComparison { path, operator, operand, place } = comparison;
    plan_value_test(model, path, path.target(model, record), *operator, operand).map_err(|violations| {
        let field_names =
            || path.fields(model, record).map(|field| PathSegment::Field(field.input_name.clone()));
        let place = if place.is_empty() { field_names().collect() } else { place.clone() };
        violations
            .into_iter()
            .map(|found| place.iter().rev().cloned().fold(found, Violation::nested_under))
            .collect()
    })
}

/// Paths of violations are relative to the value.
fn plan_value_test(
    model: &Model,
    path: &ValuePath,
    field: &Field,
    operator: FilterOperator,
    operand: &Value,
) -> Result<Predicate, Vec<Violation>> {
    if let Some(message) = misfit_message(field, operator) {
        return Err(vec![Violation { path: Vec::new(), code: "OPERATOR", message }]);
    }
    let path = || path.clone();
    Ok(match (operator, operand) {
        (FilterOperator::Compare(ComparisonOp::Eq), Value::Null) => Predicate::IsNull { path: path() },
        (FilterOperator::Compare(ComparisonOp::Ne), Value::Null) => Predicate::NotNull { path: path() },
        (
            FilterOperator::Compare(_)
            | FilterOperator::In
            | FilterOperator::NotIn
            | FilterOperator::Text(_)
            | FilterOperator::Has,
            Value::Null,
        ) => {
            let message = format!("`{}` cannot be compared with null by this operator", field.input_name);
            return Err(vec![Violation { path: Vec::new(), code: "NULL", message }]);
        }
        (FilterOperator::Compare(op), value) => {
            Predicate::Compare { path: path(), op, value: coerce::coerce_comparable(model, field, value)? }
        }
        (FilterOperator::In, values) => plan_one_of(model, path(), field, values)?,
        (FilterOperator::NotIn, values) => plan_one_of(model, path(), field, values)?.negated(),
        (FilterOperator::Text(text_match), value) => {
            plan_text_match(path(), text_match, coerce::coerce_text_part(field, value)?)
                .map_err(|message| vec![Violation { path: Vec::new(), code: "LENGTH", message }])?
        }
        (FilterOperator::IsNull, Value::Bool(true)) => Predicate::IsNull { path: path() },
        (FilterOperator::IsNull, Value::Bool(false)) => Predicate::NotNull { path: path() },
        (FilterOperator::IsEmpty, Value::Bool(true)) => Predicate::HasItems { path: path() }.negated(),
        (FilterOperator::IsEmpty, Value::Bool(false)) => Predicate::HasItems { path: path() },
        (FilterOperator::IsNull | FilterOperator::IsEmpty, other) => {
            let name = format!("{}_{}", field.input_name, operator.name());
            let message = format!("`{name}` must be true or false, not {}", other.type_noun());
            return Err(vec![Violation { path: Vec::new(), code: "TYPE", message }]);
        }
        (FilterOperator::Has, item) => {
            Predicate::HasItem { path: path(), item: coerce::coerce_item(model, field, item)? }
        }
    })
}

/// Why the operator cannot be used on the field, if so.
fn misfit_message(field: &Field, operator: FilterOperator) -> Option<String> {
    let (name, operator_name) = (&field.input_name, operator.name());
    let expected = match operator {
        _ if operator.fits(field) => return None,
        FilterOperator::Compare(_) | FilterOperator::In | FilterOperator::NotIn | FilterOperator::IsNull => {
            return Some(format!("`{name}` cannot be compared"));
        }
        FilterOperator::Text(_) => "a text field",
        FilterOperator::Has => "a list of single values",
        FilterOperator::IsEmpty => "a list",
    };
    Some(format!("`{name}` is not {expected}, so `{operator_name}` cannot be used"))
}

fn plan_text_match(path: ValuePath, text_match: TextMatch, text: StoredValue) -> Result<Predicate, String> {
    let TextMatch { part, any_case } = text_match;
    let StoredValue::Text(text) = text else { return Ok(Predicate::Never) };
    if any_case {
        let pattern = StoredValue::Text(text_pattern::folded_pattern(&text)?);
        return Ok(Predicate::TextPattern { path, part, text, pattern });
    }
    if text.is_empty() && part != TextPart::Whole {
        return Ok(Predicate::NotNull { path });
    }
    let compare =
        |op, text: String| Predicate::Compare { path: path.clone(), op, value: StoredValue::Text(text) };
    Ok(match part {
        TextPart::Whole => compare(ComparisonOp::Eq, text),
        TextPart::Start => {
            let end = text_after_prefix(&text).map(|end| compare(ComparisonOp::Lt, end));
            Predicate::All([compare(ComparisonOp::Gte, text)].into_iter().chain(end).collect())
        }
        TextPart::Anywhere | TextPart::End => Predicate::Text { path, part, text: StoredValue::Text(text) },
    })
}

/// The first text that sorts after every text with this prefix.
fn text_after_prefix(prefix: &str) -> Option<String> {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        // A range of characters has no surrogates.
        if let Some(next) = (last..=char::MAX).nth(1) {
            letters.push(next);
            return Some(letters.into_iter().collect());
        }
    }
    None
}

/// A value that is no list is a list of one.
fn plan_one_of(
    model: &Model,
    path: ValuePath,
    field: &Field,
    operand: &Value,
) -> Result<Predicate, Vec<Violation>> {
    let items = if let Value::List(items) = operand { items } else { std::slice::from_ref(operand) };
    if items.is_empty() {
        return Ok(Predicate::Never);
    }
    let is_list = matches!(operand, Value::List(_));
    let coerced = |(index, item): (usize, &Value)| {
        let under_index =
            |found: Violation| if is_list { found.nested_under(PathSegment::Index(index)) } else { found };
        let value = coerce::coerce_comparable(model, field, item);
        value.map_err(|found| found.into_iter().map(under_index).collect::<Vec<_>>())
    };
    let non_null = items.iter().enumerate().filter(|(_, item)| !item.is_null());
    let values = non_null.map(coerced).collect::<Result<Vec<_>, _>>()?;
    Ok(Predicate::OneOf { path, or_null: values.len() < items.len(), values })
}

/// The predicate that every word of this text occurs in a record.
pub fn search_predicate(model: &Model, record: &RecordType, text: &str) -> Predicate {
    if record.search_fields().next().is_some() {
        let words: Vec<StoredValue> =
            indexed_words::index_words(text).into_iter().map(StoredValue::Text).collect();
        return match words.is_empty() {
            // An index has no signs: nothing is found by them alone.
            true if !text.trim().is_empty() => Predicate::Never,
            true => Predicate::All(Vec::new()),
            false if record.has_open_index() => Predicate::IndexedWords { words },
            false => Predicate::ShownWords { words },
        };
    }
    let patterns: Vec<StoredValue> =
        text_pattern::word_patterns(text).into_iter().map(StoredValue::Text).collect();
    match searched_texts(model, record).is_empty() {
        true => Predicate::Never,
        false => Predicate::Words { patterns },
    }
}

/// Prefixes the paths of violations, which are relative to the value, with the field.
pub(crate) fn under_field(field: &Field, violations: Vec<Violation>) -> Vec<Violation> {
    let segment = || PathSegment::Field(field.input_name.clone());
    violations.into_iter().map(|violation| violation.nested_under(segment())).collect()
}

impl ValuePath {
    pub(super) fn push_shape(&self, shape: &mut StatementShape) {
        shape.push_number(self.field.0);
        shape.push_fields(self.members.iter().copied());
    }
}

impl Predicate {
    /// True if a record must have related ones to meet the predicate.
    pub fn needs_related(&self) -> bool {
        match self {
            Predicate::Related { .. } => true,
            Predicate::All(predicates) => predicates.iter().any(Predicate::needs_related),
            Predicate::Compare { .. }
            | Predicate::OneOf { .. }
            | Predicate::IsNull { .. }
            | Predicate::NotNull { .. }
            | Predicate::Text { .. }
            | Predicate::TextPattern { .. }
            | Predicate::HasItem { .. }
            | Predicate::HasItems { .. }
            | Predicate::Words { .. }
            | Predicate::IndexedWords { .. }
            | Predicate::ShownWords { .. }
            | Predicate::Any(_)
            | Predicate::Not(_)
            | Predicate::LinkedFrom { .. }
            | Predicate::Never => false,
        }
    }

    fn negated(self) -> Predicate {
        if let Predicate::Not(inner) = self { *inner } else { Predicate::Not(Box::new(self)) }
    }

    /// Adds what changes the SQL text: the kind of predicate and the fields.
    pub fn push_shape(&self, shape: &mut StatementShape) {
        let kind = match self {
            Predicate::Never => 0,
            Predicate::OneOf { or_null: false, .. } => 1,
            Predicate::OneOf { or_null: true, .. } => 2,
            Predicate::IsNull { .. } => 3,
            Predicate::NotNull { .. } => 4,
            Predicate::HasItem { .. } => 5,
            Predicate::HasItems { .. } => 6,
            Predicate::Words { .. } => 7,
            Predicate::IndexedWords { .. } => 8,
            Predicate::All(_) => 9,
            Predicate::Any(_) => 10,
            Predicate::Not(_) => 11,
            Predicate::Related { .. } => 12,
            Predicate::LinkedFrom { .. } => 13,
            Predicate::ShownWords { .. } => 14,
            Predicate::Compare { op, .. } => 20 + *op as usize,
            Predicate::Text { part, .. } => 30 + *part as usize,
            Predicate::TextPattern { part, .. } => 40 + *part as usize,
        };
        shape.push_number(kind);
        match self {
            Predicate::Compare { path, .. }
            | Predicate::OneOf { path, .. }
            | Predicate::IsNull { path }
            | Predicate::NotNull { path }
            | Predicate::Text { path, .. }
            | Predicate::TextPattern { path, .. }
            | Predicate::HasItem { path, .. }
            | Predicate::HasItems { path } => path.push_shape(shape),
            Predicate::All(predicates) | Predicate::Any(predicates) => push_shapes(predicates, shape),
            Predicate::Not(inner) => inner.push_shape(shape),
            Predicate::Related { relation, predicates } => {
                shape.push_number(relation.0);
                push_shapes(predicates, shape);
            }
            Predicate::LinkedFrom { owner, field, .. } => {
                shape.push_number(owner.0);
                shape.push_number(field.0);
            }
            Predicate::Words { .. }
            | Predicate::IndexedWords { .. }
            | Predicate::ShownWords { .. }
            | Predicate::Never => {}
        }
    }
}

/// Adds the shapes of predicates that must all be true.
pub(super) fn push_shapes(predicates: &[Predicate], shape: &mut StatementShape) {
    shape.push_number(predicates.len());
    predicates.iter().for_each(|predicate| predicate.push_shape(shape));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_before_the_next_text() {
        for (prefix, expected) in [
            ("ab", Some("ac")),
            ("a\u{10FFFF}", Some("b")),
            ("\u{D7FF}", Some("\u{E000}")),
            ("\u{10FFFF}\u{10FFFF}", None),
        ] {
            assert_eq!(text_after_prefix(prefix).as_deref(), expected, "{prefix}");
        }
    }
}
