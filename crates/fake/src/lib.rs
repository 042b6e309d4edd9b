//! Records that nobody has typed: plausible, fitting the schema, and the same for the same seed.
//!
//! A record is made from the seed, its type, its number and the names of its fields alone, so that one can be made
//! again, or made first, without the others. Its references lead to records that are made before it.

mod pattern_text;
mod plausible_text;

use serde_json::{Value as Json, json};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use trefoil_engine::{Operation, Selection};
use trefoil_model::error::{Error, Result};
use trefoil_model::values::coerce;
use trefoil_model::{
    Field, FieldId, FieldKind, FieldRule, ListItem, Model, OnDelete, RecordType, RecordTypeId, Scalar, Value,
};

/// So deep values are made up that may be without end.
const MAX_DEPTH: usize = 3;
/// How often another value is tried where a rule does not allow the first.
const MAX_ATTEMPTS: u64 = 20;

/// A chance that is always the same in the same place.
#[derive(Debug, Clone, Copy)]
pub struct SeededRandom(u64);

impl SeededRandom {
    fn derive(&self, what: &str) -> SeededRandom {
        SeededRandom(xxh3_64_with_seed(what.as_bytes(), self.0))
    }

    fn derive_number(&self, number: u64) -> SeededRandom {
        SeededRandom(xxh3_64_with_seed(&number.to_le_bytes(), self.0))
    }

    /// Below `limit`, which is not 0.
    fn below(&self, limit: u64) -> u64 {
        xxh3_64_with_seed(b"below", self.0) % limit
    }

    fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// So many records of every type, behind those that are there.
#[derive(Debug)]
pub struct FakeRecords<'m> {
    model: &'m Model,
    seed: u64,
    count: i64,
    /// The last id of each type before, by its position.
    last_ids: Vec<i64>,
    /// A type before those that refer to it.
    pub creation_order: Vec<RecordTypeId>,
}

impl<'m> FakeRecords<'m> {
    pub fn new(model: &'m Model, seed: u64, count: i64, bases: Vec<i64>) -> Result<FakeRecords<'m>> {
        Ok(FakeRecords { model, seed, count, last_ids: bases, creation_order: creation_order(model)? })
    }

    pub fn last_id_before(&self, record: RecordTypeId) -> i64 {
        self.last_ids[record.0]
    }

    /// The record with this number of its type, from 1 on.
    pub fn create_operation(&self, record: RecordTypeId, number: i64) -> Result<Operation> {
        let ty = self.model.record(record);
        let chance = SeededRandom(self.seed).derive(&ty.name).derive_number(number.unsigned_abs());
        let id = self.last_ids[record.0] + number;
        let mut fields = Vec::new();
        for (at, field) in ty.fields.iter().enumerate().filter(|(_, field)| field.is_writable()) {
            let chance = chance.derive(&field.name);
            // Where no two may be alike, those of another run with the same seed differ too.
            let chance = if field.unique { chance.derive_number(id.unsigned_abs()) } else { chance };
            let value = match &field.kind {
                FieldKind::Reference { target, .. } => {
                    self.reference_value(record, *target, field, number, chance)
                }
                FieldKind::Link { target, .. } => self.link_values(record, *target, chance),
                FieldKind::Scalar(_) | FieldKind::Enum(_) | FieldKind::Embedded(_) | FieldKind::List(_) => {
                    self.optional_value(&ty.name, field, id, chance)?
                }
                FieldKind::Id | FieldKind::Inverse { .. } | FieldKind::Unstored => None,
            };
            fields.extend(value.map(|value| (FieldId(at), value)));
        }
        Ok(Operation::Create { record, id: Some(id), fields, selection: Selection::default().into() })
    }

    fn is_created_before(&self, one: RecordTypeId, other: RecordTypeId) -> bool {
        let place = |ty| self.creation_order.iter().position(|found| *found == ty);
        place(one) < place(other)
    }

    /// One of the records that are made before this one; of the same type, one with a smaller number.
    fn reference_value(
        &self,
        from: RecordTypeId,
        target: RecordTypeId,
        field: &Field,
        number: i64,
        chance: SeededRandom,
    ) -> Option<Value> {
        let most = match (target == from, self.is_created_before(target, from)) {
            (true, _) => number - 1,
            (false, true) => self.count,
            (false, false) => 0,
        };
        let picked = match (field.unique, u64::try_from(most)) {
            (_, Ok(0) | Err(_)) => return None,
            (true, Ok(_)) if number <= most => number,
            (true, Ok(_)) => return None,
            (false, Ok(most)) => 1 + chance.below(most) as i64,
        };
        Some(Value::Int(self.last_ids[target.0] + picked))
    }

    fn link_values(&self, from: RecordTypeId, target: RecordTypeId, chance: SeededRandom) -> Option<Value> {
        if !self.is_created_before(target, from) || self.count == 0 {
            return None;
        }
        let one = |number: u64| 1 + chance.derive_number(number).below(self.count.unsigned_abs()) as i64;
        let mut ids: Vec<i64> =
            (1..=chance.below(4)).map(|number| self.last_ids[target.0] + one(number)).collect();
        ids.sort_unstable();
        ids.dedup();
        Some(Value::List(ids.into_iter().map(Value::Int).collect()))
    }

    /// A value that every rule allows; now and then none where one need not be.
    fn optional_value(
        &self,
        owner: &str,
        field: &Field,
        id: i64,
        chance: SeededRandom,
    ) -> Result<Option<Value>> {
        let may_miss = !field.required || field.default.is_some();
        if may_miss && !field.unique && chance.derive("missing").below(12) == 0 {
            return Ok(None);
        }
        let found = self.valid_value(owner, field, id, chance);
        if found.is_some() || may_miss {
            return Ok(found);
        }
        let message = "no value could be made up that its rules allow";
        Err(Error::invalid(&format!("{owner}.{}", field.name), "FAKE", message))
    }

    fn valid_value(&self, owner: &str, field: &Field, id: i64, chance: SeededRandom) -> Option<Value> {
        let one = |number| {
            self.candidate_value(owner, field, &field.kind, id, chance.derive_number(number), 0)
                .map(Value::from)
        };
        let passes = |value: &Value| coerce::field(self.model, field, value).is_ok();
        (0..MAX_ATTEMPTS).map_while(one).find(passes)
    }

    fn candidate_value(
        &self,
        owner: &str,
        field: &Field,
        kind: &FieldKind,
        id: i64,
        chance: SeededRandom,
        depth: usize,
    ) -> Option<Json> {
        match kind {
            FieldKind::Scalar(scalar) => scalar_value(owner, field, *scalar, id, chance),
            FieldKind::Enum(name) => {
                let values = &self.model.enums.get(name)?.values;
                let turn = usize::try_from(id).ok().filter(|_| field.unique && !values.is_empty());
                match turn {
                    // Each has its turn.
                    Some(id) => Some(json!(values[id % values.len()])),
                    None => (!values.is_empty()).then(|| json!(chance.pick(values))),
                }
            }
            FieldKind::Embedded(name) => self.embedded_value(name, id, chance, depth + 1),
            FieldKind::List(item) => Some(self.list_value(owner, field, item, id, chance, depth)),
            FieldKind::Id
            | FieldKind::Reference { .. }
            | FieldKind::Inverse { .. }
            | FieldKind::Link { .. }
            | FieldKind::Unstored => None,
        }
    }

    /// `None` where there is no end to it.
    fn embedded_value(&self, name: &str, id: i64, chance: SeededRandom, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut object = serde_json::Map::new();
        for inner in &self.model.embedded.get(name)?.fields {
            // A type may be inside itself.
            let is_deep = matches!(inner.kind, FieldKind::Embedded(_) | FieldKind::List(_));
            if inner.kind == FieldKind::Unstored || (is_deep && !inner.required) {
                continue;
            }
            let made = self.candidate_value(name, inner, &inner.kind, id, chance.derive(&inner.name), depth);
            object.insert(inner.name.clone(), made?);
        }
        Some(Json::Object(object))
    }

    fn list_value(
        &self,
        owner: &str,
        field: &Field,
        item: &ListItem,
        id: i64,
        chance: SeededRandom,
        depth: usize,
    ) -> Json {
        let (least, most) = length_limits(field);
        let most = most.unwrap_or(least.max(1) + 2).min(least.max(1) + 2);
        let count = least + chance.derive("count").below(most.saturating_sub(least) + 1);
        let one = |at| {
            self.candidate_value(owner, field, &item.kind, id, chance.derive("item").derive_number(at), depth)
        };
        (0..count).filter_map(one).collect()
    }
}

/// A value for a field of a record with this number, if one can be made up that every rule allows. Where no two may be
/// alike, those of two numbers are not.
pub fn fake_value(model: &Model, record: &RecordType, field: &Field, number: i64) -> Option<Value> {
    let alone = FakeRecords {
        model,
        seed: number.unsigned_abs(),
        count: 0,
        last_ids: Vec::new(),
        creation_order: Vec::new(),
    };
    alone.valid_value(&record.name, field, number, SeededRandom(alone.seed).derive(&field.name))
}

/// Each type behind those that its records cannot be without, and, as far as that goes, behind all it refers to.
fn creation_order(model: &Model) -> Result<Vec<RecordTypeId>> {
    let mut waiting: Vec<RecordTypeId> = (0..model.records.len()).map(RecordTypeId).collect();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let waits = |one: RecordTypeId, required: bool| {
            model.record(one).fields.iter().any(|field| match &field.kind {
                FieldKind::Reference { target, on_delete } => {
                    let must = field.required && *on_delete != OnDelete::SetNull;
                    (must || !required) && *target != one && waiting.contains(target)
                }
                FieldKind::Id
                | FieldKind::Scalar(_)
                | FieldKind::Enum(_)
                | FieldKind::Embedded(_)
                | FieldKind::List(_)
                | FieldKind::Inverse { .. }
                | FieldKind::Link { .. }
                | FieldKind::Unstored => false,
            })
        };
        let free = |required| waiting.iter().position(|one| !waits(*one, required));
        let Some(next) = free(false).or_else(|| free(true)) else {
            let names: Vec<&str> = waiting.iter().map(|one| model.record(*one).name.as_str()).collect();
            let message = format!("{} need each other: no first record can be made up", names.join(", "));
            return Err(Error::invalid(names[0], "FAKE", &message));
        };
        order.push(waiting.remove(next));
    }
    Ok(order)
}

/// What `@length` allows.
fn length_limits(field: &Field) -> (u64, Option<u64>) {
    let found = field.rules.iter().find_map(|rule| match rule {
        FieldRule::Length { min, max } => Some((min.unwrap_or(0), *max)),
        FieldRule::NotBlank | FieldRule::Range { .. } | FieldRule::Pattern { .. } | FieldRule::Email => None,
    });
    found.unwrap_or((0, None))
}

/// What `@range` allows, as far as numbers go that are made up.
fn number_limits(field: &Field, usual: (i64, i64)) -> (i64, i64) {
    let found = field.rules.iter().find_map(|rule| match rule {
        FieldRule::Range { min, max } => Some((min.as_deref(), max.as_deref())),
        FieldRule::NotBlank | FieldRule::Length { .. } | FieldRule::Pattern { .. } | FieldRule::Email => None,
    });
    let whole =
        |text: &str, round: fn(f64) -> f64| text.parse::<f64>().ok().map(|number| round(number) as i64);
    let (min, max) = found.unwrap_or((None, None));
    match (min.and_then(|text| whole(text, f64::ceil)), max.and_then(|text| whole(text, f64::floor))) {
        (None, None) => usual,
        (Some(min), None) => (usual.0.max(min), usual.1.max(min.saturating_add(100))),
        (None, Some(max)) => (usual.0.min(max.saturating_sub(100)), usual.1.min(max)),
        // Between two whole numbers that follow each other: the lower one, and a part.
        (Some(min), Some(max)) if min > max => (max, max),
        (Some(min), Some(max)) => {
            let inside = (usual.0.clamp(min, max), usual.1.clamp(min, max));
            if inside.0 < inside.1 { inside } else { (min, max) }
        }
    }
}

fn scalar_value(owner: &str, field: &Field, scalar: Scalar, id: i64, chance: SeededRandom) -> Option<Json> {
    let within = |usual: (i64, i64)| {
        let (min, max) = number_limits(field, usual);
        let room = max.abs_diff(min).saturating_add(1);
        if field.unique {
            min.saturating_add(id - 1)
        } else {
            min.saturating_add((chance.below(room)) as i64)
        }
    };
    Some(match scalar {
        Scalar::String | Scalar::Id => json!(text_value(owner, field, id, chance)?),
        Scalar::Email => json!(crate::plausible_text::email(chance, id, field.unique)),
        Scalar::Url => json!(crate::plausible_text::url(chance, id)),
        Scalar::Int => json!(within(crate::plausible_text::typical_range(&field.name))),
        Scalar::Long => json!(within(crate::plausible_text::typical_range(&field.name)).to_string()),
        Scalar::Float => {
            json!(
                within(crate::plausible_text::typical_range(&field.name)) as f64
                    + chance.derive("part").below(8) as f64 / 8.0
            )
        }
        Scalar::Decimal => {
            let (whole, cents) = (
                within(crate::plausible_text::typical_range(&field.name)),
                chance.derive("cents").below(100),
            );
            json!(if whole < 0 { whole.to_string() } else { format!("{whole}.{cents:02}") })
        }
        Scalar::Boolean if field.unique => json!(id % 2 == 1),
        Scalar::Boolean => json!(chance.below(2) == 1),
        Scalar::Date => json!(crate::plausible_text::date(chance, id, field.unique)),
        Scalar::DateTime => json!(crate::plausible_text::date_time(chance, id, field.unique)),
        Scalar::Uuid => {
            let (high, low) = (chance.derive("high").0, chance.derive("low").0);
            json!(
                uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
                    .into_uuid()
                    .to_string()
            )
        }
        Scalar::Json => json!({ "note": crate::plausible_text::sentence(chance) }),
    })
}

/// A text that its name suggests, as long as `@length` wants it.
fn text_value(owner: &str, field: &Field, id: i64, chance: SeededRandom) -> Option<String> {
    let pattern = field.rules.iter().find_map(|rule| match rule {
        FieldRule::Pattern { pattern: source, .. } => Some(source),
        FieldRule::NotBlank | FieldRule::Length { .. } | FieldRule::Range { .. } | FieldRule::Email => None,
    });
    let is_email = field.rules.iter().any(|rule| matches!(rule, FieldRule::Email));
    let (least, most) = length_limits(field);
    if let Some(source) = pattern {
        return crate::pattern_text::text_matching(source, chance);
    }
    if is_email {
        return Some(crate::plausible_text::email(chance, id, field.unique));
    }
    let mut text = crate::plausible_text::text_for_field(owner, &field.name, chance, id, field.unique);
    while (text.chars().count() as u64) < least {
        text = format!("{text} {}", crate::plausible_text::word(chance.derive(&text)));
    }
    let Some(most) = most.filter(|most| (text.chars().count() as u64) > *most) else { return Some(text) };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if field.unique {
        // What makes it the only one stands at its end.
        return Some(text.chars().rev().take(most).collect::<Vec<_>>().into_iter().rev().collect());
    }
    let cut: String = text.chars().take(most).collect();
    Some(cut.trim_end().to_owned())
        .filter(|cut| cut.chars().count() as u64 >= least)
        .or(Some(text.chars().take(most).collect()))
}
