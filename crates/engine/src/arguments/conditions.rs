//! The conditions in `where`: members such as `price_gte`, `user`, `lines_some`, `or`.

use trefoil_model::error::{PathSegment, Violation};
use trefoil_model::naming::names;
use trefoil_model::{Argument, EmbeddedType, Field, FieldId, FilterOperator, Model, RecordType, Value};

use crate::arguments::argument_roles;
use crate::arguments::numeric_strings::number_for_field;
use crate::arguments::operator_members::OperatorMember;
use crate::operation::{Condition, FieldComparison, MAX_CONDITION_DEPTH, ValuePath};

/// Parses the value of the argument `argument`.
pub(super) fn parse_conditions<'m>(
    model: &'m Model,
    record: &'m RecordType,
    argument: &str,
    value: Value,
) -> Result<Vec<Condition>, Vec<Violation>> {
    let path = vec![PathSegment::Field(argument.to_owned())];
    ConditionParser { model, asked: record, path }.parse_object(&ConditionOwner::Record(record), value)
}

/// The type whose fields an object of conditions names.
pub(super) enum ConditionOwner<'m> {
    Record(&'m RecordType),
    /// An embedded value of a record and where it is.
    Embedded(&'m EmbeddedType, ValuePath),
}

/// What a member of an object of conditions is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionKey {
    And,
    Or,
    Not,
    Compare(FieldId, FilterOperator),
    /// The conditions of an embedded value.
    Embedded(FieldId),
    /// An object of operators for a list of values, which nothing equals.
    Operators(FieldId),
    Related(FieldId, RelationQuantifier),
}

/// What a member of an object of conditions is about.
pub(crate) enum ConditionMember {
    Field(FieldId),
    /// More conditions of the same records.
    Group,
}

/// What the name of a member means in conditions of records, or of related ones; `None` if it has no meaning.
pub(crate) fn condition_member(record: &RecordType, name: &str) -> Option<ConditionMember> {
    match ConditionOwner::Record(record).find_key(name) {
        Some(ConditionKey::And | ConditionKey::Or | ConditionKey::Not) => Some(ConditionMember::Group),
        Some(
            ConditionKey::Compare(field, _)
            | ConditionKey::Embedded(field)
            | ConditionKey::Operators(field)
            | ConditionKey::Related(field, _),
        ) => Some(ConditionMember::Field(field)),
        None => RelationQuantifier::from_word(name).map(|_| ConditionMember::Group),
    }
}

/// Which of the records of a relation meet the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelationQuantifier {
    Some,
    Every,
    None,
}

pub(super) struct ConditionParser<'m> {
    model: &'m Model,
    /// The type of the records that are asked for.
    asked: &'m RecordType,
    /// Where the current value is in the request.
    path: Vec<PathSegment>,
}

impl<'m> ConditionParser<'m> {
    fn parse_object(
        &mut self,
        owner: &ConditionOwner<'m>,
        value: Value,
    ) -> Result<Vec<Condition>, Vec<Violation>> {
        let members = value.into_fields().map_err(|noun| {
            let mut names = self.path.iter().rev().filter_map(|segment| match segment {
                PathSegment::Field(name) => Some(name.as_str()),
                PathSegment::Index(_) => None,
            });
            let name = names.next().unwrap_or_default();
            self.violation("TYPE", format!("`{name}` must be an object, not {noun}"))
        })?;
        let mut conditions = Vec::with_capacity(members.len());
        let mut violations = Vec::new();
        for (key, value) in members {
            match self.parse_member(owner, &key, value) {
                Ok(condition) => conditions.extend(condition),
                Err(found) => violations.extend(found),
            }
        }
        if violations.is_empty() { Ok(conditions) } else { Err(violations) }
    }

    /// `None` for a member that is null and so says nothing.
    fn parse_member(
        &mut self,
        owner: &ConditionOwner<'m>,
        name: &str,
        value: Value,
    ) -> Result<Option<Condition>, Vec<Violation>> {
        let Some(key) = owner.find_key(name) else {
            let may_offer = |field: &Field| match owner {
                ConditionOwner::Record(record) => self.model.may_offer(self.asked, record, field),
                ConditionOwner::Embedded(..) => true,
            };
            return Err(self.violation("UNKNOWN_FIELD", owner.unknown_key_message(name, may_offer)));
        };
        let value = match (key, value) {
            (
                ConditionKey::Compare(field, FilterOperator::EQUAL) | ConditionKey::Operators(field),
                Value::Object(members),
            ) if owner.takes_operators(self.model, field, name, &members) => {
                let parse = |parser: &mut Self| parser.parse_operators(owner, field, members, false);
                return self.parse_inside(name, parse);
            }
            (_, value) => value,
        };
        if let ConditionKey::Compare(field, operator) = key
            && !(operator == FilterOperator::EQUAL && owner.is_reference_object(field, &value))
        {
            let path = owner.value_path(field);
            let operand = number_for_field(owner.field(field), value);
            let place = self.place(name);
            return Ok(Some(Condition::Compare(FieldComparison { path, operator, operand, place })));
        }
        if value.is_null() {
            return Ok(owner.null_condition(key, self.place(name)));
        }
        self.parse_inside(name, |parser| parser.parse_nested(owner, key, value)).map(Some)
    }

    fn parse_nested(
        &mut self,
        owner: &ConditionOwner<'m>,
        key: ConditionKey,
        value: Value,
    ) -> Result<Condition, Vec<Violation>> {
        match key {
            ConditionKey::And => Ok(Condition::All(self.parse_list(owner, value)?)),
            ConditionKey::Or => Ok(Condition::Any(self.parse_list(owner, value)?)),
            ConditionKey::Not => Ok(Condition::All(self.parse_object(owner, value)?).negated()),
            ConditionKey::Embedded(field) => {
                let embedded = owner.embedded_type(self.model, field);
                let embedded = embedded.ok_or_else(|| {
                    self.violation("UNKNOWN_FIELD", "the type of this value is not known".to_owned())
                })?;
                let owner = ConditionOwner::Embedded(embedded, owner.value_path(field));
                Ok(Condition::All(self.parse_object(&owner, value)?))
            }
            // Only an object of operators says something about a list.
            ConditionKey::Operators(field) => {
                let name = &owner.field(field).name;
                let message = format!("`{name}` must be an object, such as `{{ has: … }}`");
                Err(self.violation("TYPE", message))
            }
            ConditionKey::Compare(field, _) => {
                self.parse_related(owner, field, RelationQuantifier::Some, value)
            }
            ConditionKey::Related(field, quantifier) => self.parse_related(owner, field, quantifier, value),
        }
    }

    /// Parses what is inside the member `name`, unless that is too deep.
    pub(super) fn parse_inside<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&mut Self) -> Result<T, Vec<Violation>>,
    ) -> Result<T, Vec<Violation>> {
        self.path.push(PathSegment::Field(name.to_owned()));
        // The first name is that of the argument; positions in lists are not levels.
        let levels = self.path.iter().skip(1).filter(|segment| matches!(segment, PathSegment::Field(_)));
        let parsed = match levels.count() > MAX_CONDITION_DEPTH {
            true => Err(self.violation("DEPTH", depth_message(name))),
            false => parse(self),
        };
        self.path.pop();
        parsed
    }

    /// A list of objects, of which one alone may stand without brackets.
    fn parse_list(
        &mut self,
        owner: &ConditionOwner<'m>,
        value: Value,
    ) -> Result<Vec<Condition>, Vec<Violation>> {
        let Value::List(items) = value else {
            return Ok(vec![Condition::All(self.parse_object(owner, value)?)]);
        };
        let mut conditions = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            self.path.push(PathSegment::Index(index));
            let parsed = self.parse_object(owner, item);
            self.path.pop();
            conditions.push(Condition::All(parsed?));
        }
        Ok(conditions)
    }

    fn parse_related(
        &mut self,
        owner: &ConditionOwner<'m>,
        field: FieldId,
        quantifier: RelationQuantifier,
        value: Value,
    ) -> Result<Condition, Vec<Violation>> {
        let target = owner.field(field).kind.relation().map(|relation| self.model.record(relation.target()));
        let target = target.ok_or_else(|| {
            self.violation("UNKNOWN_FIELD", "this field does not lead to other records".to_owned())
        })?;
        let related = ConditionOwner::Record(target);
        let is_quantified = |members: &[(String, Value)]| {
            let is_quantifier = |name: &str| RelationQuantifier::from_word(name).is_some();
            let mut names = members.iter().map(|(name, _)| name.as_str());
            !members.is_empty() && names.all(|name| is_quantifier(name) && related.find_key(name).is_none())
        };
        if let Value::Object(members) = &value
            && is_quantified(members)
        {
            return self.parse_quantified(owner, field, &related, value);
        }
        Ok(quantifier.apply(field, self.parse_object(&related, value)?))
    }

    /// `lines: { some: {…} }` and `user: { is: {…} }`, as Prisma writes them.
    fn parse_quantified(
        &mut self,
        owner: &ConditionOwner<'m>,
        field: FieldId,
        related: &ConditionOwner<'m>,
        value: Value,
    ) -> Result<Condition, Vec<Violation>> {
        let members = value.into_fields().unwrap_or_default();
        let is_reference = owner.field(field).kind.is_reference();
        let mut conditions = Vec::with_capacity(members.len());
        for (name, value) in members {
            let quantifier = RelationQuantifier::from_word(&name).unwrap_or(RelationQuantifier::Some);
            if value.is_null() && is_reference {
                let operand = Value::Bool(quantifier == RelationQuantifier::Some);
                let (path, operator) = (owner.value_path(field), FilterOperator::IsNull);
                let place = self.place(&name);
                conditions.push(Condition::Compare(FieldComparison { path, operator, operand, place }));
                continue;
            }
            let parsed = self.parse_inside(&name, |parser| parser.parse_object(related, value))?;
            conditions.push(quantifier.apply(field, parsed));
        }
        Ok(Condition::All(conditions))
    }

    /// The place of a member of the current object.
    pub(super) fn place(&self, member: &str) -> Vec<PathSegment> {
        let mut place = Vec::with_capacity(self.path.len() + 1);
        place.extend_from_slice(&self.path);
        place.push(PathSegment::Field(member.to_owned()));
        place
    }

    pub(super) fn violation(&self, code: &'static str, message: String) -> Vec<Violation> {
        vec![Violation { path: self.path.clone(), code, message }]
    }
}

impl RelationQuantifier {
    const NAMES: [(&'static str, RelationQuantifier); 3] = [
        ("some", RelationQuantifier::Some),
        ("every", RelationQuantifier::Every),
        ("none", RelationQuantifier::None),
    ];

    fn from_word(word: &str) -> Option<RelationQuantifier> {
        match word {
            "is" => Some(RelationQuantifier::Some),
            "isNot" | "is_not" => Some(RelationQuantifier::None),
            _ => {
                RelationQuantifier::NAMES.into_iter().find(|(name, _)| *name == word).map(|(_, found)| found)
            }
        }
    }

    fn apply(self, relation: FieldId, conditions: Vec<Condition>) -> Condition {
        match self {
            RelationQuantifier::Some => Condition::some_related(relation, conditions),
            RelationQuantifier::None => Condition::none_related(relation, conditions),
            RelationQuantifier::Every => Condition::every_related(relation, conditions),
        }
    }
}

impl<'m> ConditionOwner<'m> {
    pub(super) fn field(&self, id: FieldId) -> &'m Field {
        match self {
            ConditionOwner::Record(record) => record.field(id),
            ConditionOwner::Embedded(embedded, _) => &embedded.fields[id.0],
        }
    }

    fn find_field(&self, name: &str) -> Option<FieldId> {
        match self {
            ConditionOwner::Record(record) => record.find_input_field(name),
            ConditionOwner::Embedded(embedded, _) => {
                embedded.fields.iter().position(|field| field.name == name).map(FieldId)
            }
        }
    }

    /// A field's name wins over a name with an operator, and both over `and`, `or` and `not`.
    fn find_key(&self, name: &str) -> Option<ConditionKey> {
        let by_name = self.find_field(name).and_then(|id| plain_key(id, self.field(id)));
        by_name
            .or_else(|| self.find_operator_key(name))
            .or_else(|| match self {
                ConditionOwner::Record(record) => argument_roles::comparison(record, name)
                    .map(|(field, operator)| ConditionKey::Compare(field, operator)),
                ConditionOwner::Embedded(..) => None,
            })
            .or(match name {
                "and" | "AND" | "_and" => Some(ConditionKey::And),
                "or" | "OR" | "_or" => Some(ConditionKey::Or),
                "not" | "NOT" | "_not" => Some(ConditionKey::Not),
                _ => None,
            })
    }

    fn find_operator_key(&self, name: &str) -> Option<ConditionKey> {
        let find = |suffix: &str| {
            let id = self.find_field(name.strip_suffix(suffix)?.strip_suffix('_')?)?;
            Some((id, self.field(id)))
        };
        let operators = FilterOperator::NAMES.into_iter().filter_map(|(suffix, operator)| {
            let (id, field) = find(suffix)?;
            field.kind.value_type().map(|_| ConditionKey::Compare(id, operator))
        });
        let quantifiers = RelationQuantifier::NAMES.into_iter().filter_map(|(suffix, quantifier)| {
            let (id, field) = find(suffix)?;
            let is_list = field.kind.relation().is_some() && !field.kind.is_reference();
            is_list.then_some(ConditionKey::Related(id, quantifier))
        });
        operators.chain(quantifiers).next()
    }

    pub(super) fn value_path(&self, field: FieldId) -> ValuePath {
        match self {
            ConditionOwner::Record(_) => field.into(),
            ConditionOwner::Embedded(_, outer) => {
                let mut path = outer.clone();
                path.members.push(field);
                path
            }
        }
    }

    /// True if an object says how the value of the field is compared. That of a reference, unless it has the name of its
    /// id, may also be conditions of the referenced record, whose fields win.
    fn takes_operators(
        &self,
        model: &Model,
        field: FieldId,
        name: &str,
        members: &[(String, Value)],
    ) -> bool {
        let definition = self.field(field);
        let relation = definition.kind.relation().filter(|_| name != definition.input_name);
        let Some(target) = relation.map(|relation| model.record(relation.target())) else { return true };
        let is_operator = |(name, value): &(String, Value)| {
            let is_object = matches!(value, Value::Object(_));
            match OperatorMember::from_name(name) {
                Some(OperatorMember::Not) => !is_object,
                Some(_) => !is_object && ConditionOwner::Record(target).find_key(name).is_none(),
                None => false,
            }
        };
        !members.is_empty() && members.iter().all(is_operator)
    }

    /// True for the conditions of a referenced record, not its id.
    fn is_reference_object(&self, field: FieldId, value: &Value) -> bool {
        matches!(value, Value::Object(_)) && self.field(field).kind.is_reference()
    }

    /// `address: null` asks for records without one; `or: null` says nothing.
    fn null_condition(&self, key: ConditionKey, place: Vec<PathSegment>) -> Option<Condition> {
        let ConditionKey::Embedded(field) = key else { return None };
        let (path, operand) = (self.value_path(field), Value::Bool(true));
        Some(Condition::Compare(FieldComparison { path, operator: FilterOperator::IsNull, operand, place }))
    }

    fn embedded_type(&self, model: &'m Model, field: FieldId) -> Option<&'m EmbeddedType> {
        model.embedded.get(self.field(field).kind.value_type()?.embedded_name()?)
    }

    fn unknown_key_message(&self, key: &str, may_offer: impl Fn(&Field) -> bool) -> String {
        let (name, fields) = match self {
            ConditionOwner::Record(record) => (&record.name, &record.fields),
            ConditionOwner::Embedded(embedded, _) => (&embedded.name, &embedded.fields),
        };
        let known = fields.iter().filter(|field| !field.kind.is_unstored() && may_offer(field));
        let hint = names::nearest_name(key, known.map(|field| field.name.as_str()))
            .map(|name| format!("; did you mean `{name}`?"));
        format!("{name} has no field `{key}` to filter by{}", hint.unwrap_or_default())
    }
}

fn depth_message(name: &str) -> String {
    format!("the conditions in `{name}` are nested more than {MAX_CONDITION_DEPTH} levels deep")
}

/// What the name of a field alone means.
fn plain_key(id: FieldId, field: &Field) -> Option<ConditionKey> {
    if field.kind.is_comparable() {
        return Some(ConditionKey::Compare(id, FilterOperator::EQUAL));
    }
    let is_embedded = field.kind.value_type().is_some_and(|ty| ty.embedded_name().is_some());
    match is_embedded {
        true => Some(ConditionKey::Embedded(id)),
        false if field.kind.list_item().is_some() => Some(ConditionKey::Operators(id)),
        false => field.kind.relation().map(|_| ConditionKey::Related(id, RelationQuantifier::Some)),
    }
}

/// The message for an unknown member of `where`, `None` if it is known.
pub(crate) fn unknown_condition_message(
    model: &Model,
    record: &RecordType,
    member: &Argument,
) -> Option<String> {
    let owner = ConditionOwner::Record(record);
    match owner.find_key(&member.name) {
        None => Some(owner.unknown_key_message(&member.name, |_| true)),
        Some(ConditionKey::Compare(field, FilterOperator::EQUAL) | ConditionKey::Operators(field)) => {
            let definition = owner.field(field);
            if definition.kind.is_reference() && member.name != definition.input_name {
                return None;
            }
            let operators = model.schema.get_input_object(member.ty.inner_name())?.fields.iter();
            let mut unknown = operators.filter(|(name, operator)| {
                let value = match model.schema.get_input_object(operator.ty.inner_named_type()) {
                    Some(_) => Value::Object(Vec::new()),
                    None => Value::Null,
                };
                OperatorMember::for_field(name, definition, &value).is_none()
            });
            unknown.next().map(|(name, _)| format!("`{}` cannot be compared by `{name}`", definition.name))
        }
        Some(_) => None,
    }
}
