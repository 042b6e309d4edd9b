//! Conditions, orders and groups as parameters of REST.

use super::schema::{Content, PlainSchema};
use super::tree::{ConditionTree, Quantifier, TestOperator, TreeOwner};
use super::values::PlainValue;

/// The value of a parameter.
enum ParameterValue {
    Single(String),
    List(Vec<String>),
    Conditions(Vec<(String, ParameterValue)>),
}

/// The conditions as the parameters of a query, encoded.
pub fn parameters(schema: &PlainSchema, record: usize, conditions: &[ConditionTree]) -> Vec<String> {
    let pairs =
        conditions.iter().flat_map(|condition| pairs(schema, TreeOwner::Record(record), "", condition));
    let encode = |(name, value): (String, ParameterValue)| {
        let (name, text) = match whole_text(&value) {
            Some(text) => (name, text),
            // Only in parentheses a value is quoted.
            None => ("and".to_owned(), format!("({name}={})", item_text(&value))),
        };
        format!("{}={}", encoded(&name), encoded(&text))
    };
    pairs.map(encode).collect()
}

/// The names and values that all must be true, as the record around `prefix`, the path of an embedded value, names them.
fn pairs(
    schema: &PlainSchema,
    owner: TreeOwner,
    prefix: &str,
    condition: &ConditionTree,
) -> Vec<(String, ParameterValue)> {
    let group = |name: &str, conditions: &[ConditionTree]| {
        // Inside of an embedded value nothing is joined: the whole path is repeated.
        let inner = conditions.iter().map(|condition| joined(pairs(schema, owner, prefix, condition)));
        vec![(name.to_owned(), ParameterValue::Conditions(inner.collect()))]
    };
    match condition {
        ConditionTree::All(inner) => group("and", inner),
        ConditionTree::Any(inner) => group("or", inner),
        ConditionTree::Not(inner) => group("not", inner),
        ConditionTree::Test { field, operator, operand } => {
            vec![test(schema, owner, prefix, *field, *operator, operand)]
        }
        ConditionTree::Part { field, conditions } => {
            let name = &owner.fields(schema)[*field].name;
            let inner = owner.inside(schema, *field);
            let prefix = format!("{prefix}{name}.");
            conditions.iter().flat_map(|condition| pairs(schema, inner, &prefix, condition)).collect()
        }
        ConditionTree::Related { field, quantifier, conditions } => {
            let name = &owner.fields(schema)[*field].name;
            let inner = owner.inside(schema, *field);
            let mut inner: Vec<_> =
                conditions.iter().map(|condition| joined(pairs(schema, inner, "", condition))).collect();
            let word = match quantifier {
                Quantifier::One | Quantifier::Some if inner.len() == 1 => {
                    let (rest, value) = inner.remove(0);
                    return vec![(format!("{name}.{rest}"), value)];
                }
                Quantifier::One => "and",
                Quantifier::Some => "some",
                Quantifier::Every => "every",
                Quantifier::None => "none",
            };
            vec![(format!("{name}.{word}"), ParameterValue::Conditions(inner))]
        }
    }
}

/// One pair for all.
fn joined(mut pairs: Vec<(String, ParameterValue)>) -> (String, ParameterValue) {
    match pairs.len() {
        1 => pairs.remove(0),
        _ => ("and".to_owned(), ParameterValue::Conditions(pairs)),
    }
}

fn test(
    schema: &PlainSchema,
    owner: TreeOwner,
    prefix: &str,
    field: usize,
    operator: TestOperator,
    operand: &PlainValue,
) -> (String, ParameterValue) {
    let shape = &owner.fields(schema)[field];
    let name = match shape.content {
        Content::Reference { .. } => shape.input_name(),
        _ => shape.name.clone(),
    };
    let (word, operand) = match (operator, operand) {
        (TestOperator::Eq, PlainValue::Null) => {
            ("null".to_owned(), ParameterValue::Single("true".to_owned()))
        }
        (TestOperator::Ne, PlainValue::Null) => {
            ("null".to_owned(), ParameterValue::Single("false".to_owned()))
        }
        (_, PlainValue::List(items)) => {
            (operator.name().to_owned(), ParameterValue::List(items.iter().map(plain_text).collect()))
        }
        (_, value) => (operator.name().replace('_', "."), ParameterValue::Single(plain_text(value))),
    };
    let point = if word.is_empty() { "" } else { "." };
    (format!("{prefix}{name}{point}{word}"), operand)
}

pub fn plain_text(value: &PlainValue) -> String {
    match value {
        PlainValue::Flag(flag) => flag.to_string(),
        PlainValue::Whole(number) => number.to_string(),
        PlainValue::Real(number) => format!("{number:?}"),
        PlainValue::Exact(number) => number.to_string(),
        PlainValue::Text(text) => text.clone(),
        PlainValue::Day(day) => day.to_string(),
        PlainValue::Moment(moment) => moment.to_string(),
        PlainValue::Null | PlainValue::List(_) | PlainValue::Parts(_) => panic!("{value:?} has no text"),
    }
}

/// The value of a parameter, if it can be one: an empty parameter says nothing, and a comma ends an item.
fn whole_text(value: &ParameterValue) -> Option<String> {
    match value {
        ParameterValue::Single(text) => (!text.is_empty()).then(|| text.clone()),
        ParameterValue::List(items) => {
            let text = items.join(",");
            (!text.is_empty() && !items.iter().any(|item| item.contains(','))).then_some(text)
        }
        ParameterValue::Conditions(_) => Some(item_text(value)),
    }
}

/// The value within parentheses.
fn item_text(value: &ParameterValue) -> String {
    match value {
        ParameterValue::Single(text) => quoted(text),
        ParameterValue::List(items) => {
            format!("({})", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(","))
        }
        ParameterValue::Conditions(pairs) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{name}={}", item_text(value))).collect();
            format!("({})", pairs.join(","))
        }
    }
}

pub fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty() && text.trim() == text && !text.contains([',', '(', ')', '"']);
    match is_plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Percent-encoded.
pub fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
