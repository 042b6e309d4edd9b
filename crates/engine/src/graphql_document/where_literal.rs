//! Conditions as the literal of a `where` argument, as far as its input types have members for them.

use trefoil_model::{ComparisonOp, Field, FilterOperator, Model, RecordType};

use crate::arguments::operator_members::OperatorMember;
use crate::graphql_document::literals::graphql_literal;
use crate::operation::{Condition, FieldComparison};

/// Writes conditions as members of input objects.
pub(super) struct WhereWriter<'m> {
    pub model: &'m Model,
}

/// The name of a member and its value.
type Member = (String, String);

impl WhereWriter<'_> {
    /// An object of the input type that says all conditions; `None` if it has no members for one of them.
    pub fn object(&self, record: &RecordType, input: &str, conditions: &[Condition]) -> Option<String> {
        let mut members: Vec<Member> = Vec::new();
        let mut repeated: Vec<String> = Vec::new();
        for condition in conditions {
            let (name, value) = self.member(record, input, condition)?;
            // An object has each member once; the others go into `and`.
            match members.iter().any(|(known, _)| *known == name) {
                true => repeated.push(format!("{{ {name}: {value} }}")),
                false => members.push((name, value)),
            }
        }
        if !repeated.is_empty() {
            self.member_type(input, "and")?;
            members.push(("and".to_owned(), format!("[{}]", repeated.join(", "))));
        }
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        Some(format!("{{ {} }}", members.join(", ")))
    }

    /// The member that says a condition; `None` if the input type has none for it.
    pub fn member(&self, record: &RecordType, input: &str, condition: &Condition) -> Option<Member> {
        match condition {
            Condition::Compare(comparison) => self.comparison(record, input, comparison),
            Condition::All(conditions) => self.list(record, input, "and", conditions),
            Condition::Any(conditions) => self.list(record, input, "or", conditions),
            Condition::Not(inner) => {
                let ty = self.member_type(input, "not")?;
                Some(("not".to_owned(), self.object(record, ty, std::slice::from_ref(inner))?))
            }
            Condition::Related { relation, conditions } => {
                let field = record.field(*relation);
                let target = self.model.record(field.kind.relation()?.target());
                let is_single = field.kind.is_reference();
                let name = if is_single { field.name.clone() } else { format!("{}_some", field.name) };
                let ty = self.member_type(input, &name)?;
                Some((name, self.object(target, ty, conditions)?))
            }
            Condition::HasId(_) | Condition::LinkedFrom { .. } => None,
        }
    }

    fn list(&self, record: &RecordType, input: &str, name: &str, conditions: &[Condition]) -> Option<Member> {
        let ty = self.member_type(input, name)?;
        let objects =
            conditions.iter().map(|condition| self.object(record, ty, std::slice::from_ref(condition)));
        Some((name.to_owned(), format!("[{}]", objects.collect::<Option<Vec<_>>>()?.join(", "))))
    }

    fn comparison(&self, record: &RecordType, input: &str, comparison: &FieldComparison) -> Option<Member> {
        let fields: Vec<&Field> = comparison.path.fields(self.model, record).collect();
        let (target, outer) = fields.split_last()?;
        let mut types = vec![input];
        for field in outer {
            types.push(self.member_type(types.last()?, &field.name)?);
        }
        let ty = types.last()?;
        let value_type = target.kind.list_item().map(|item| &item.value_type).or(target.kind.value_type());
        let literal =
            |declared: &str| graphql_literal(self.model, declared, value_type, &comparison.operand.to_json());
        let is_value = |declared: &&str| self.model.schema.get_input_object(declared).is_none();
        let by_name = || {
            let mut names = member_names(target, comparison.operator).into_iter();
            names.find_map(|name| {
                let value = self.member_type(ty, &name).filter(is_value).map(literal)?;
                Some((name, value))
            })
        };
        let by_operator = || {
            [&target.name, &target.input_name].into_iter().find_map(|name| {
                let operators = self.model.schema.get_input_object(self.member_type(ty, name)?)?;
                let wanted = Some(OperatorMember::Compare(comparison.operator));
                let mut members = operators.fields.iter();
                let (word, member) = members.find(|(word, _)| {
                    OperatorMember::for_field(word, target, &comparison.operand) == wanted
                })?;
                let value = literal(member.ty.inner_named_type());
                Some((name.clone(), format!("{{ {word}: {value} }}")))
            })
        };
        let (name, value) = by_name().or_else(by_operator)?;
        let nested =
            |(name, value): Member, field: &&Field| (field.name.clone(), format!("{{ {name}: {value} }}"));
        Some(outer.iter().rev().fold((name, value), nested))
    }

    /// The name of the type of a member of an input object.
    fn member_type(&self, input: &str, member: &str) -> Option<&str> {
        let input = self.model.schema.get_input_object(input)?;
        Some(input.fields.get(member)?.ty.inner_named_type().as_str())
    }
}

/// The members that may say a comparison: `price_gte`; `user_ne` or `userId_ne` for a reference.
fn member_names(field: &Field, operator: FilterOperator) -> [String; 2] {
    [&field.name, &field.input_name].map(|name| match operator {
        FilterOperator::Compare(ComparisonOp::Eq) => name.clone(),
        FilterOperator::Compare(_)
        | FilterOperator::In
        | FilterOperator::NotIn
        | FilterOperator::Text(_)
        | FilterOperator::IsNull
        | FilterOperator::Has
        | FilterOperator::IsEmpty => format!("{name}_{}", operator.name()),
    })
}
