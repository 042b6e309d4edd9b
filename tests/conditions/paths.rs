//! Values that are reached through references and embedded values: found at random, and named.

use super::interpreter::FieldPath;
use super::schema::{Content, PlainField, PlainSchema};
use crate::power::chance::Chance;

/// The field at the end of a path.
pub fn field_at<'s>(schema: &'s PlainSchema, record: usize, path: &FieldPath) -> &'s PlainField {
    walk(schema, record, path).pop().unwrap()
}

/// `one0.place.city`.
pub fn name(schema: &PlainSchema, record: usize, path: &FieldPath) -> String {
    walk(schema, record, path).iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(".")
}

fn walk<'s>(schema: &'s PlainSchema, mut record: usize, path: &FieldPath) -> Vec<&'s PlainField> {
    let mut fields = Vec::new();
    for reference in &path.references {
        let field = &schema.records[record].fields[*reference];
        fields.push(field);
        record = field.content.referred().unwrap();
    }
    let mut field = &schema.records[record].fields[path.field];
    fields.push(field);
    for member in &path.members {
        let Content::Part(part) = field.content else { panic!("{} is no embedded value", field.name) };
        field = &schema.parts[part].fields[*member];
        fields.push(field);
    }
    fields
}

/// A path to a field that fits, through at most `depth` references and embedded values.
pub fn random(
    chance: &mut Chance,
    schema: &PlainSchema,
    record: usize,
    depth: usize,
    fits: &dyn Fn(&PlainField) -> bool,
) -> Option<FieldPath> {
    let (mut owner, mut references) = (record, Vec::new());
    while references.len() < depth && chance.percent(35) {
        let fields = schema.records[owner].fields.iter().enumerate();
        let onward: Vec<(usize, usize)> =
            fields.filter_map(|(at, field)| Some((at, field.content.referred()?))).collect();
        let Some((at, target)) = chance.pick(&onward) else { break };
        references.push(*at);
        owner = *target;
    }
    let mut fields = &schema.records[owner].fields;
    let (mut first, mut members) = (None, Vec::new());
    let mut room = depth - references.len();
    loop {
        let choice: Vec<usize> = (0..fields.len())
            .filter(|at| fits(&fields[*at]) || (room > 0 && matches!(fields[*at].content, Content::Part(_))))
            .collect();
        let at = *chance.pick(&choice)?;
        match first {
            None => first = Some(at),
            Some(_) => members.push(at),
        }
        match fields[at].content {
            Content::Part(part) => {
                fields = &schema.parts[part].fields;
                room -= 1;
            }
            _ => return Some(FieldPath { references, field: first?, members }),
        }
    }
}
