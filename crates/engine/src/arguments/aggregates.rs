//! Groups, measures, their conditions and their order, as requests spell them: `month(issuedOn)`, `sum(total)`.

use std::collections::HashSet;

use trefoil_model::error::{PathSegment, Violation};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{ComparisonOp, Field, FieldId, FilterOperator, Model, RecordTypeId, TimePeriod, Value};

use crate::arguments::sort_keys::list_or_single;
use crate::arguments::values::{expect_object, expect_text};
use crate::operation::{
    AggregateQuery, GroupCondition, GroupKey, GroupMeasure, GroupOrder, MeasureFunction, OrderTarget,
    ReferencePath, ValuePath, unknown_path_message,
};

/// A path goes through at most this many references.
const MAX_REFERENCES: usize = 5;

/// A list of texts has at most this many.
const MAX_TEXTS: usize = 100;

/// Reads the parts of an aggregate over the records of a type.
#[derive(Clone, Copy)]
pub struct AggregateParser<'m> {
    pub model: &'m Model,
    pub record: RecordTypeId,
}

impl AggregateParser<'_> {
    /// `status`, `patient.city`, `month(issuedOn)`.
    pub fn group_key(self, text: &str) -> Result<GroupKey, String> {
        let (period, path) = match split_call(text) {
            Some((name, path)) => {
                let period = TimePeriod::from_name(name).ok_or_else(|| unknown_period(text, name))?;
                (Some(period), path)
            }
            None => (None, text),
        };
        let path = self.field_path(path, "group by")?;
        let key = GroupKey { text: text.to_owned(), path, period };
        match key.misfit(self.model, self.record) {
            Some(message) => Err(message),
            None => Ok(key),
        }
    }

    /// `count`, `sum(total)`; also `sum.total`, as GraphQL names it.
    pub fn measure(self, text: &str) -> Result<GroupMeasure, String> {
        if text == "count" {
            return Ok(GroupMeasure::Count);
        }
        let by_dot = || text.split_once('.').filter(|(name, _)| MeasureFunction::from_name(name).is_some());
        let Some((name, path)) = split_call(text).or_else(by_dot) else {
            return Err(unknown_measure(text, text));
        };
        let function = MeasureFunction::from_name(name).ok_or_else(|| unknown_measure(text, name))?;
        let measure = GroupMeasure::OfField(function, self.field_path(path, "aggregate")?);
        match measure.misfit(self.model, self.record) {
            Some(message) => Err(format!("`{text}`: {message}")),
            None => Ok(measure),
        }
    }

    /// A group key or a measure, descending after `-`. A measure that is not there yet is added.
    pub fn order(self, query: &mut AggregateQuery, text: &str) -> Result<GroupOrder, String> {
        let (descending, name) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        if let Some(key) = query.group_keys.iter().position(|key| key.text == name) {
            return Ok(GroupOrder { target: OrderTarget::Key(key), descending });
        }
        let measure = self.measure(name).map_err(|message| {
            let is_measure = split_call(name).is_some() || name.contains('.');
            let keys = query.group_keys.iter().map(|key| key.text.as_str());
            let hint =
                nearest_name(name, keys.chain(["count"])).map(|near| format!("; did you mean `{near}`?"));
            match is_measure {
                true => message,
                false => format!(
                    "`{name}` is neither a group key nor a measure{}",
                    hint.unwrap_or_else(|| "; use a group key, `count` or `sum(field)`".to_owned())
                ),
            }
        })?;
        Ok(GroupOrder { target: OrderTarget::Measure(query.add_measure(measure)), descending })
    }

    fn field_path(self, text: &str, purpose: &str) -> Result<ReferencePath, String> {
        let (mut owner, mut references) = (self.record, Vec::new());
        let mut names = text.split('.');
        loop {
            let name = names.next().unwrap_or_default();
            let record = self.model.record(owner);
            let field = record.find_input_field(name).filter(|id| !record.field(*id).kind.is_unstored());
            let may_offer =
                |field: &Field| self.model.may_offer(self.model.record(self.record), record, field);
            let field = field.ok_or_else(|| unknown_path_message(record, name, purpose, may_offer))?;
            let kind = &record.field(field).kind;
            let is_last = names.clone().next().is_none();
            match kind.relation() {
                Some(_) if !kind.is_reference() => {
                    return Err(format!("`{text}`: `{name}` is a list of records; {purpose} a single value"));
                }
                Some(relation) if !is_last => {
                    references.push(field);
                    owner = relation.target();
                }
                Some(_) | None => {
                    let value = self.value_path(text, owner, field, names, purpose)?;
                    return match references.len() > MAX_REFERENCES {
                        true => Err(format!("`{text}` goes through more than {MAX_REFERENCES} references")),
                        false => Ok(ReferencePath { references, value }),
                    };
                }
            }
        }
    }

    /// The rest of a path: members of embedded values.
    fn value_path<'n>(
        self,
        text: &str,
        owner: RecordTypeId,
        field: FieldId,
        names: impl Iterator<Item = &'n str>,
        purpose: &str,
    ) -> Result<ValuePath, String> {
        let mut path = ValuePath::from(field);
        for name in names {
            let outer = path.target(self.model, self.model.record(owner));
            let embedded =
                outer.kind.value_type().and_then(|ty| self.model.embedded.get(ty.embedded_name()?));
            let Some(embedded) = embedded else {
                return Err(format!("`{text}`: `{}` has no field `{name}`", outer.name));
            };
            let known = || embedded.stored_fields().map(|(field, _)| field.name.as_str());
            let Some(member) = embedded.fields.iter().position(|field| field.name == name) else {
                let hint = nearest_name(name, known()).map(|near| format!("; did you mean `{near}`?"));
                let hint = hint.unwrap_or_default();
                return Err(format!("{} has no field `{name}` to {purpose}{hint}", embedded.name));
            };
            path.members.push(FieldId(member));
        }
        Ok(path)
    }

    /// The groups of the argument `argument`, a list of texts.
    pub(super) fn group_keys(self, argument: &str, value: Value) -> Result<Vec<GroupKey>, Vec<Violation>> {
        let mut keys: Vec<GroupKey> =
            self.each_text(argument, value, |reader, text| reader.group_key(text))?;
        // A key that is named twice is one member of the answer.
        let mut known = HashSet::new();
        keys.retain(|key| known.insert(key.text.clone()));
        Ok(keys)
    }

    pub(super) fn add_orders(
        self,
        query: &mut AggregateQuery,
        argument: &str,
        value: Value,
    ) -> Result<(), Vec<Violation>> {
        let orders = self.each_text(argument, value, |reader, text| reader.order(query, text))?;
        query.order.extend(orders);
        Ok(())
    }

    fn each_text<T>(
        self,
        argument: &str,
        value: Value,
        mut read: impl FnMut(Self, &str) -> Result<T, String>,
    ) -> Result<Vec<T>, Vec<Violation>> {
        let (mut items, mut violations) = (Vec::new(), Vec::new());
        let texts = list_or_single(value);
        if texts.len() > MAX_TEXTS {
            let message =
                format!("`{argument}` has {} texts, and at most {MAX_TEXTS} are allowed", texts.len());
            return Err(vec![Violation::new(argument, "AGGREGATE", message)]);
        }
        for (index, item) in texts.into_iter().enumerate() {
            let text = expect_text(argument, item)?;
            match read(self, &text) {
                Ok(item) => items.push(item),
                Err(message) => {
                    let path = vec![PathSegment::Field(argument.to_owned()), PathSegment::Index(index)];
                    violations.push(Violation { path, code: "AGGREGATE", message });
                }
            }
        }
        if violations.is_empty() { Ok(items) } else { Err(violations) }
    }

    /// `{ count_gte: 2, sum: { total_gte: 5 } }`.
    pub(super) fn add_conditions(
        self,
        query: &mut AggregateQuery,
        argument: &str,
        value: Value,
    ) -> Result<(), Vec<Violation>> {
        let mut violations = Vec::new();
        for (name, value) in expect_object(argument, value)? {
            let under = |found: Vec<Violation>| {
                let segment = PathSegment::Field(argument.to_owned());
                found.into_iter().map(move |violation| violation.nested_under(segment.clone()))
            };
            if let Err(found) = self.add_condition(query, &name, value) {
                violations.extend(under(found));
            }
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    fn add_condition(
        self,
        query: &mut AggregateQuery,
        name: &str,
        value: Value,
    ) -> Result<(), Vec<Violation>> {
        if value.is_null() {
            return Ok(());
        }
        if let Some(function) = MeasureFunction::from_name(name) {
            for (member, operand) in expect_object(name, value)? {
                let nested = |message: String| {
                    let path = [name, &member].map(|name| PathSegment::Field(name.to_owned())).to_vec();
                    vec![Violation { path, code: "AGGREGATE", message }]
                };
                let (path, op) = self.compared_field(&member).map_err(nested)?;
                let measure = GroupMeasure::OfField(function, path);
                if let Some(message) = measure.misfit(self.model, self.record) {
                    return Err(nested(message));
                }
                if !operand.is_null() {
                    let measure = query.add_measure(measure);
                    query.having.push(GroupCondition { measure, op, operand });
                }
            }
            return Ok(());
        }
        let op = name.strip_prefix("count").and_then(|rest| match rest.strip_prefix('_') {
            Some(suffix) => comparison_op(suffix),
            None => rest.is_empty().then_some(ComparisonOp::Eq),
        });
        let Some(op) = op else {
            let message =
                format!("`{name}` is not a condition on groups; use count_gte, or sum: {{ field_gte: … }}");
            return Err(vec![Violation::new(name, "AGGREGATE", message)]);
        };
        let measure = query.add_measure(GroupMeasure::Count);
        query.having.push(GroupCondition { measure, op, operand: value });
        Ok(())
    }

    /// `total`, `total_gte`. A field's name wins over a name with an operator.
    fn compared_field(self, name: &str) -> Result<(ReferencePath, ComparisonOp), String> {
        let record = self.model.record(self.record);
        if let Some(field) = record.find_input_field(name) {
            return Ok((field.into(), ComparisonOp::Eq));
        }
        let with_op = name.rsplit_once('_').and_then(|(field, suffix)| {
            Some((record.find_input_field(field)?.into(), comparison_op(suffix)?))
        });
        with_op.ok_or_else(|| {
            let field = name.rsplit_once('_').filter(|(_, suffix)| comparison_op(suffix).is_some());
            let may_offer = |field: &Field| self.model.may_offer(record, record, field);
            unknown_path_message(record, field.map_or(name, |(field, _)| field), "aggregate", may_offer)
        })
    }

    /// One condition as REST spells it: the name and the operator of `sum(total).gte`.
    pub fn compared_measure(self, text: &str) -> Result<(GroupMeasure, ComparisonOp), String> {
        let with_op = text.rsplit_once('.').and_then(|(measure, op)| Some((measure, comparison_op(op)?)));
        let (measure, op) = with_op.unwrap_or((text, ComparisonOp::Eq));
        Ok((self.measure(measure)?, op))
    }
}

/// `month` and `issuedOn` for `month(issuedOn)`.
fn split_call(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('(')?;
    Some((name.trim(), rest.strip_suffix(')')?.trim()))
}

fn comparison_op(name: &str) -> Option<ComparisonOp> {
    match FilterOperator::from_name(name)? {
        FilterOperator::Compare(op) => Some(op),
        FilterOperator::In
        | FilterOperator::NotIn
        | FilterOperator::Text(_)
        | FilterOperator::IsNull
        | FilterOperator::Has
        | FilterOperator::IsEmpty => None,
    }
}

fn unknown_period(text: &str, name: &str) -> String {
    let known = TimePeriod::ALL.map(TimePeriod::name);
    let hint = match nearest_name(name, known) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; use {}", known.join(", ")),
    };
    format!("`{text}`: `{name}` is not a part of a time{hint}")
}

fn unknown_measure(text: &str, name: &str) -> String {
    let names = || MeasureFunction::NAMES.into_iter().map(|(name, _)| name);
    match nearest_name(name, names().chain(["count"])) {
        Some(near) if near == "count" || text != name => {
            format!("`{text}` is not a measure; did you mean `{near}`?")
        }
        Some(near) => format!("`{text}` is not a measure; did you mean `{near}(field)`?"),
        None => {
            let names: Vec<String> = names().map(|name| format!("{name}(field)")).collect();
            format!("`{text}` is not a measure; use count, {}", names.join(", "))
        }
    }
}
