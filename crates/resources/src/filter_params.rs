//! Query parameters that filter a list: `price.gte=9`, `user.name=Ada`, `lines.some=(price.gte=5,quantity=2)`,
//! `or=(status=NEW,price.gte=9)`.

use trefoil_engine::{Condition, FieldComparison, MAX_CONDITION_DEPTH, ValuePath};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{
    ComparisonOp, EmbeddedType, Field, FieldId, FilterOperator, LocalTime, Model, RecordType, Scalar, Value,
    ZoneOffsets,
};

use crate::forms::typed_values;

/// Words that join conditions, if no field has the name.
const LOGICAL_WORDS: [&str; 3] = ["and", "or", "not"];

/// The names of the operators of a field, as parameters spell them: `contains.ci`.
pub fn operators_for(field: &Field) -> impl Iterator<Item = String> {
    let fitting = FilterOperator::NAMES.into_iter().filter(|(_, operator)| operator.fits(field));
    fitting.map(|(name, _)| name.replace('_', "."))
}

/// Reads filter parameters of one list.
#[derive(Clone, Copy)]
pub struct FilterParser<'m> {
    model: &'m Model,
    /// On a page times are those of the application's zone, and a date stands for the start or end of its day.
    is_page: bool,
    /// The number of relations, embedded values and parentheses around the current name.
    depth: usize,
}

/// Why a parameter is not a filter.
#[derive(Debug)]
pub enum FilterMistake {
    /// The name is not that of a filter; a hint, with the sign that separates it from the message.
    Name(String),
    /// What is wrong with the value.
    Value(String),
}

/// The value of a parameter, or of an item in parentheses.
#[derive(Debug, Clone, Copy)]
enum FilterText<'t> {
    /// The whole value of a parameter: nothing is quoted.
    Whole(&'t str),
    /// Part of a value: text with `,`, `(`, `)` or `"` is quoted.
    Item(&'t str),
}

impl<'m> FilterParser<'m> {
    pub fn new(model: &'m Model, is_page: bool) -> FilterParser<'m> {
        FilterParser { model, is_page, depth: 0 }
    }

    /// For what is inside.
    fn deeper(self) -> Result<FilterParser<'m>, FilterMistake> {
        match self.depth < MAX_CONDITION_DEPTH {
            true => Ok(FilterParser { depth: self.depth + 1, ..self }),
            false => {
                let message = format!("is nested more than {MAX_CONDITION_DEPTH} levels deep");
                Err(FilterMistake::Value(message))
            }
        }
    }

    pub fn parse(self, record: &'m RecordType, name: &str, text: &str) -> Result<Condition, FilterMistake> {
        let (first, rest) = split_name(name);
        let is_known = LOGICAL_WORDS.contains(&name) || find_field(record, first).is_some();
        if !is_known {
            let filters = record.fields.iter().filter(|field| self.model.is_shown_to_all(field));
            let near = nearest_name(first, filters.flat_map(filter_names));
            let near_field = near.and_then(|near| record.find_input_field(near)).map(|id| record.field(id));
            let leads_on = near_field.is_some_and(|field| field.kind.relation().is_some());
            let is_kept = !rest.is_empty() && (leads_on || find_operator(rest).is_some());
            let rest = if is_kept { format!(".{rest}") } else { String::new() };
            let hint = near.map(|near| format!("; did you mean `{near}{rest}`?"));
            return Err(FilterMistake::Name(hint.unwrap_or_default()));
        }
        Ok(self.record_condition(record, name, FilterText::Whole(text))?.from_place(name))
    }

    /// True if the name is that of a filter, whatever its value.
    pub fn is_filter(self, record: &'m RecordType, name: &str) -> bool {
        !matches!(self.parse(record, name, "()"), Err(FilterMistake::Name(_)))
    }

    fn is_read_by_all(self, record: &RecordType) -> bool {
        self.model.find_record(&record.name).is_some_and(|record| self.model.is_read_by_all(record))
    }

    fn record_condition(
        self,
        record: &'m RecordType,
        name: &str,
        text: FilterText<'_>,
    ) -> Result<Condition, FilterMistake> {
        let (first, rest) = split_name(name);
        let Some(id) = find_field(record, first) else {
            let parse =
                |parser: Self, name: &str, text: FilterText<'_>| parser.record_condition(record, name, text);
            return match self.joined(name, text, parse) {
                Some(joined) => joined,
                // Also of the type that is asked for: this parser does not know which one that is.
                None => Err(unknown_field(&record.name, &record.fields, first, |field| {
                    self.model.is_shown_to_all(field) && self.is_read_by_all(record)
                })),
            };
        };
        let field = record.field(id);
        let Some(relation) = field.kind.relation() else {
            return self.value_condition(id.into(), field, rest, text);
        };
        let target = self.model.record(relation.target());
        if field.kind.is_reference() {
            if find_operator(rest).is_some() {
                return self.value_condition(id.into(), field, rest, text);
            }
            let conditions = vec![self.deeper()?.record_condition(target, rest, text)?];
            return Ok(Condition::some_related(id, conditions));
        }
        match rest {
            "" | "in" => {
                let key = target.id_field();
                let condition = self.value_condition(key.into(), target.field(key), rest, text)?;
                Ok(Condition::some_related(id, vec![condition]))
            }
            "some" => Ok(Condition::some_related(id, self.group(target, text)?)),
            "none" => Ok(Condition::none_related(id, self.group(target, text)?)),
            "every" => Ok(Condition::every_related(id, self.group(target, text)?)),
            _ => {
                let condition = self.deeper()?.record_condition(target, rest, text)?;
                Ok(Condition::some_related(id, vec![condition]))
            }
        }
    }

    /// A condition on a value, or on one inside an embedded value.
    fn value_condition(
        self,
        path: ValuePath,
        field: &'m Field,
        rest: &str,
        text: FilterText<'_>,
    ) -> Result<Condition, FilterMistake> {
        let embedded = field.kind.value_type().and_then(|ty| self.model.embedded.get(ty.embedded_name()?));
        // The engine refuses operators for values of another type.
        let operator =
            find_operator(rest).filter(|operator| field.kind.is_comparable() || operator.fits(field));
        match (operator, embedded) {
            (Some(operator), _) => self.comparison(path, field, operator, text),
            (None, Some(embedded)) => self.deeper()?.member_condition(path, embedded, rest, text),
            (None, None) => Err(unknown_operator(field, rest)),
        }
    }

    fn member_condition(
        self,
        mut path: ValuePath,
        embedded: &'m EmbeddedType,
        name: &str,
        text: FilterText<'_>,
    ) -> Result<Condition, FilterMistake> {
        let (first, rest) = split_name(name);
        let position = embedded.fields.iter().position(|field| field.name == first);
        let Some(position) = position else {
            let parse = |parser: Self, name: &str, text: FilterText<'_>| {
                parser.member_condition(path.clone(), embedded, name, text)
            };
            return match self.joined(name, text, parse) {
                Some(joined) => joined,
                None => Err(unknown_field(&embedded.name, &embedded.fields, first, |_| true)),
            };
        };
        path.members.push(FieldId(position));
        self.value_condition(path, &embedded.fields[position], rest, text)
    }

    fn comparison(
        self,
        path: ValuePath,
        field: &Field,
        operator: FilterOperator,
        text: FilterText<'_>,
    ) -> Result<Condition, FilterMistake> {
        let item_scalar = field.kind.list_item().and_then(|item| item.value_type.scalar());
        let scalar = field.kind.scalar().or(item_scalar);
        let typed = |text: &str| match (self.is_page, scalar) {
            (true, Some(Scalar::DateTime)) => {
                Value::String(page_time(self.model.time_zone(), operator, text))
            }
            (true, Some(Scalar::LocalDateTime)) => {
                let day = day_boundary(&ZoneOffsets::utc(), operator, text);
                Value::String(day.unwrap_or_else(|| typed_values::utc_datetime(text)))
            }
            _ => typed_values::typed_value(scalar, text),
        };
        let operand = match operator {
            FilterOperator::In | FilterOperator::NotIn => {
                Value::List(text.list()?.iter().map(|item| typed(item)).collect())
            }
            FilterOperator::IsNull | FilterOperator::IsEmpty => Value::Bool(parse_flag(&text.single()?)?),
            FilterOperator::Compare(_) | FilterOperator::Text(_) | FilterOperator::Has => {
                typed(&text.single()?)
            }
        };
        Ok(Condition::Compare(FieldComparison { path, operator, operand, place: Vec::new() }))
    }

    /// The conditions that `and`, `or` and `not` join; `None` for any other name.
    fn joined(
        self,
        name: &str,
        text: FilterText<'_>,
        parse: impl Fn(FilterParser<'m>, &str, FilterText<'_>) -> Result<Condition, FilterMistake>,
    ) -> Option<Result<Condition, FilterMistake>> {
        if !LOGICAL_WORDS.contains(&name) {
            return None;
        }
        Some(self.items(text, parse).map(|conditions| match name {
            "or" => Condition::Any(conditions),
            "not" => Condition::All(conditions).negated(),
            _ => Condition::All(conditions),
        }))
    }

    /// The conditions of records in parentheses.
    fn group(self, record: &'m RecordType, text: FilterText<'_>) -> Result<Vec<Condition>, FilterMistake> {
        self.items(text, |parser, name, text| parser.record_condition(record, name, text))
    }

    fn items(
        self,
        text: FilterText<'_>,
        parse: impl Fn(FilterParser<'m>, &str, FilterText<'_>) -> Result<Condition, FilterMistake>,
    ) -> Result<Vec<Condition>, FilterMistake> {
        let items = text.parenthesised().ok_or_else(|| {
            FilterMistake::Value(format!(
                "must be conditions in parentheses, such as (name=value), not {text}"
            ))
        })?;
        let parser = self.deeper()?;
        let condition = |item: &str| {
            let Some((name, value)) = item.split_once('=') else {
                return Err(FilterMistake::Value(format!(
                    "must have a condition `name=value`, not {item:?}"
                )));
            };
            let name = name.trim();
            parse(parser, name, FilterText::Item(value.trim())).map_err(|mistake| match mistake {
                FilterMistake::Name(hint) => {
                    FilterMistake::Value(format!("has the unknown name `{name}`{hint}"))
                }
                FilterMistake::Value(message) => FilterMistake::Value(message),
            })
        };
        split_items(items)?.into_iter().map(condition).collect()
    }
}

impl std::fmt::Display for FilterText<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (FilterText::Whole(text) | FilterText::Item(text)) = self;
        write!(formatter, "{text:?}")
    }
}

impl<'t> FilterText<'t> {
    /// What is between the parentheses of the text.
    fn parenthesised(self) -> Option<&'t str> {
        let (FilterText::Whole(text) | FilterText::Item(text)) = self;
        text.trim().strip_prefix('(')?.strip_suffix(')')
    }

    fn single(self) -> Result<String, FilterMistake> {
        match self {
            FilterText::Whole(text) => Ok(text.to_owned()),
            FilterText::Item(text) => unquote(text),
        }
    }

    fn list(self) -> Result<Vec<String>, FilterMistake> {
        match (self, self.parenthesised()) {
            (FilterText::Whole(text), _) => Ok(text.split(',').map(str::to_owned).collect()),
            (FilterText::Item(_), Some(items)) => split_items(items)?.into_iter().map(unquote).collect(),
            (FilterText::Item(text), None) => Ok(vec![unquote(text)?]),
        }
    }
}

fn find_field(record: &RecordType, name: &str) -> Option<FieldId> {
    record.find_input_field(name).filter(|id| !record.field(*id).kind.is_unstored())
}

/// The first name of a path and the rest, which may be empty.
fn split_name(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, ""))
}

/// The operator that the end of a name is: `gte`, `contains.ci`; nothing means equality.
fn find_operator(rest: &str) -> Option<FilterOperator> {
    if rest.is_empty() {
        return Some(FilterOperator::EQUAL);
    }
    let known = FilterOperator::NAMES.into_iter().find(|(name, _)| {
        let (mut letters, mut known) = (rest.bytes(), name.bytes());
        letters.len() == known.len()
            && letters.all(|letter| known.next() == Some(if letter == b'.' { b'_' } else { letter }))
    });
    known.map(|(_, operator)| operator)
}

/// Splits at the commas that are neither quoted nor in parentheses.
pub(crate) fn split_items(text: &str) -> Result<Vec<&str>, FilterMistake> {
    let (mut items, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let mut letters = text.char_indices();
    while let Some((position, letter)) = letters.next() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or_else(unbalanced)?,
            ',' if depth == 0 => {
                items.push(text[start..position].trim());
                start = position + 1;
            }
            '"' => loop {
                match letters.next() {
                    Some((_, '\\')) => drop(letters.next()),
                    Some((_, '"')) => break,
                    Some(_) => {}
                    None => {
                        return Err(FilterMistake::Value("has a quotation mark without its end".to_owned()));
                    }
                }
            },
            _ => {}
        }
    }
    if depth > 0 {
        return Err(unbalanced());
    }
    let last = text[start..].trim();
    if !(items.is_empty() && last.is_empty()) {
        items.push(last);
    }
    Ok(items)
}

fn unbalanced() -> FilterMistake {
    FilterMistake::Value("has parentheses that do not match; quote a value that contains them".to_owned())
}

/// `"a, b"` without the quotation marks; `\"` and `\\` stand for themselves.
pub(crate) fn unquote(text: &str) -> Result<String, FilterMistake> {
    let Some(quoted) = text.strip_prefix('"') else { return Ok(text.to_owned()) };
    let mut value = String::with_capacity(quoted.len());
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next()),
            '"' if letters.as_str().is_empty() => return Ok(value),
            '"' => break,
            _ => value.push(letter),
        }
    }
    Err(FilterMistake::Value(format!("has a quotation mark that does not end the value {text:?}")))
}

fn parse_flag(text: &str) -> Result<bool, FilterMistake> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(FilterMistake::Value(format!("must be true or false, not {text:?}"))),
    }
}

/// The names by which a field is filtered: a reference has that of its id, too.
fn filter_names(field: &Field) -> impl Iterator<Item = &str> {
    let relation = field.kind.relation().map(|_| field.name.as_str());
    let own = (!field.kind.is_unstored()).then_some(field.input_name.as_str());
    own.into_iter().chain(relation)
}

/// For a name after the first one of a path.
fn unknown_field(
    type_name: &str,
    fields: &[Field],
    name: &str,
    may_offer: impl Fn(&Field) -> bool,
) -> FilterMistake {
    let filters = fields.iter().filter(|field| may_offer(field));
    let near = nearest_name(name, filters.flat_map(filter_names));
    let hint = near.map(|near| format!("; did you mean `{near}`?"));
    FilterMistake::Name(format!("; {type_name} has no field `{name}`{}", hint.unwrap_or_default()))
}

fn unknown_operator(field: &Field, rest: &str) -> FilterMistake {
    let (name, known) = (&field.input_name, operators_for(field).collect::<Vec<_>>());
    FilterMistake::Name(match nearest_name(rest, known.iter().map(String::as_str)) {
        _ if known.is_empty() => format!("; filtering by `{name}` is not supported"),
        Some(near) if !rest.is_empty() => format!("; did you mean `{name}.{near}`?"),
        Some(_) | None => format!("; `{name}` supports .{}", known.join(", .")),
    })
}

/// A time on a page as the API has it. One that is missing or double stays as it is: `time_mistake` says so.
fn page_time(zone: &ZoneOffsets, operator: FilterOperator, text: &str) -> String {
    let local = || match typed_values::local_time(zone, text)? {
        LocalTime::Exact(time) => Some(time),
        LocalTime::Missing { .. } | LocalTime::Double { .. } => None,
    };
    day_boundary(zone, operator, text).or_else(local).unwrap_or_else(|| text.to_owned())
}

/// The boundary of a day that is compared with times: its end for `lte` and `gt`, otherwise its start, in the zone of
/// the application. `None` if the text is no day.
fn day_boundary(zone: &ZoneOffsets, operator: FilterOperator, text: &str) -> Option<String> {
    let FilterOperator::Compare(op) = operator else { return None };
    let is_day = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_end = matches!(op, ComparisonOp::Lte | ComparisonOp::Gt);
    // The 30th of February is refused as any other wrong time.
    is_day.then(|| zone.day_bound(text, is_end).unwrap_or_else(|| format!("{text}T00:00:00Z")))
}
