//! Generates records with plausible values that satisfy the schema.
//!
//! A record depends only on the seed, its type, its number and the names of its fields, so that the same seed gives
//! the same records and each can be generated without the others. References point to records that are created before.
//! `trefoil seed` fills a store with them; the forms of the pages show single values.

// Random numbers, and what the values of one record have in common.
mod fake_owner;
mod seeded_random;

// Names, places, sentences, dates, numbers, and texts that match a regular expression.
mod pattern_text;
mod plausible_text;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use trefoil_engine::Operation;
use trefoil_model::error::{Error, Result};
use trefoil_model::values::coerce;
use trefoil_model::{
    Field, FieldId, FieldRule, KeyForm, ListItem, Model, OnDelete, RecordId, RecordType, RecordTypeId,
    Reference, Relation, Scalar, Value, ValueType,
};

use crate::fake_owner::FakeOwner;
use crate::plausible_text::typical_range;
use crate::seeded_random::SeededRandom;

/// Maximum nesting of generated values, which may contain themselves.
const MAX_DEPTH: usize = 3;
/// Attempts to find a value that satisfies all rules.
const MAX_ATTEMPTS: u64 = 20;
/// The same for a key, which no other record may have.
const MAX_KEY_ATTEMPTS: u64 = 10_000;

/// The keys of a type that are in use.
#[derive(Debug)]
pub enum ExistingKeys {
    Counted { last: i64 },
    Others(HashSet<RecordId>),
}

/// Generates `count` records of every type, with ids after the existing ones.
#[derive(Debug)]
pub struct FakeRecords<'m> {
    model: &'m Model,
    seed: u64,
    count: i64,
    /// The number before the first new one of each type, by position: the last existing id, if ids are counted.
    last_numbers: Vec<i64>,
    /// The keys of the types whose keys have rules, by position; no others.
    ruled_keys: Vec<Vec<RecordId>>,
    /// Types in the order of creation: each before those that refer to it.
    pub creation_order: Vec<RecordTypeId>,
}

impl<'m> FakeRecords<'m> {
    pub fn new(
        model: &'m Model,
        seed: u64,
        count: i64,
        existing: Vec<ExistingKeys>,
    ) -> Result<FakeRecords<'m>> {
        let mut fakes = FakeRecords {
            model,
            seed,
            count,
            last_numbers: Vec::new(),
            ruled_keys: Vec::new(),
            creation_order: creation_order(model)?,
        };
        for (position, existing) in existing.into_iter().enumerate() {
            let record = RecordTypeId(position);
            let (last_number, keys) = match existing {
                ExistingKeys::Counted { last } => (last, Vec::new()),
                ExistingKeys::Others(keys) if fakes.has_ruled_key(record) => {
                    (keys.len() as i64, fakes.new_keys(record, keys)?)
                }
                ExistingKeys::Others(keys) => (fakes.last_used_number(record, &keys), Vec::new()),
            };
            fakes.last_numbers.push(last_number);
            fakes.ruled_keys.push(keys);
        }
        Ok(fakes)
    }

    fn has_ruled_key(&self, record: RecordTypeId) -> bool {
        let ty = self.model.record(record);
        ty.key_form() == KeyForm::Text && !ty.field(ty.id_field()).rules.is_empty()
    }

    /// A number after which enough keys are free: the number of records, or a greater one if some were deleted.
    fn last_used_number(&self, record: RecordTypeId, existing: &HashSet<RecordId>) -> i64 {
        let mut last = existing.len() as i64;
        let is_used = |number: &i64| existing.contains(&self.numbered_id(record, *number));
        while let Some(used) = (last + 1..=last + self.count).rev().find(is_used) {
            last = used;
        }
        last
    }

    /// Keys that satisfy the rules, all different and not among the existing ones.
    fn new_keys(&self, record: RecordTypeId, mut taken: HashSet<RecordId>) -> Result<Vec<RecordId>> {
        let ty = self.model.record(record);
        let field = ty.field(ty.id_field());
        let owner = FakeOwner { type_name: &ty.name, record_random: None };
        let last_number = taken.len() as i64;
        let mut keys = Vec::new();
        for number in last_number + 1..=last_number + self.count {
            let random = self.numbered_random(record, number);
            let candidate = |attempt: u64| {
                let random = random.derive_number(attempt);
                // Short texts differ too little by their numbers.
                let text = match attempt % 2 {
                    0 => text_value(owner, field, number, random)?,
                    _ => random_letters(field, random),
                };
                RecordId::from_value(KeyForm::Text, &Value::String(text)).ok()
            };
            let is_valid =
                |key: &RecordId| !taken.contains(key) && coerce::chosen_id_violations(ty, key).is_empty();
            let Some(key) = (0..MAX_KEY_ATTEMPTS).filter_map(candidate).find(is_valid) else {
                let message = "cannot generate enough different keys that satisfy the rules of the field";
                return Err(Error::invalid(&format!("{}.{}", ty.name, field.name), "FAKE", message));
            };
            taken.insert(key.clone());
            keys.push(key);
        }
        Ok(keys)
    }

    fn numbered_random(&self, record: RecordTypeId, number: i64) -> SeededRandom {
        SeededRandom(self.seed).derive(&self.model.record(record).name).derive_number(number.unsigned_abs())
    }

    /// The id of the record with this number of its type.
    pub fn record_id(&self, record: RecordTypeId, number: i64) -> RecordId {
        let ruled = usize::try_from(number - 1).ok().and_then(|i| self.ruled_keys[record.0].get(i));
        ruled.cloned().unwrap_or_else(|| self.numbered_id(record, self.last_numbers[record.0] + number))
    }

    fn numbered_id(&self, record: RecordTypeId, number: i64) -> RecordId {
        let ty = self.model.record(record);
        match ty.key_form() {
            KeyForm::Digits | KeyForm::Number => RecordId::Number(number),
            KeyForm::Text => RecordId::from(format!("{}-{number}", ty.path).as_str()),
            KeyForm::Uuid => {
                let random = self.numbered_random(record, number);
                let halves = ["high", "low"].map(|half| random.derive(half).below(u64::MAX));
                RecordId::from(uuid::Uuid::from_u64_pair(halves[0], halves[1]))
            }
        }
    }

    /// Creates the record with this number of its type, from 1 on.
    pub fn create_operation(&self, record: RecordTypeId, number: i64) -> Result<Operation> {
        let ty = self.model.record(record);
        let random = self.numbered_random(record, number);
        let owner = FakeOwner { type_name: &ty.name, record_random: Some(random) };
        let id = self.last_numbers[record.0] + number;
        let mut fields = Vec::new();
        // Accounts that the server fills, too: the operator, for whom records are generated, has none.
        let is_given = |field: &Field| field.is_writable() || field.value_source.is_account();
        for (position, field) in ty.fields.iter().enumerate().filter(|(_, field)| is_given(field)) {
            let random = random.derive(&field.name);
            // Unique values also differ between runs with the same seed.
            let random = if field.is_distinct() { random.derive_number(id.unsigned_abs()) } else { random };
            let value = match field.kind.relation() {
                Some(Relation::Reference(reference)) => {
                    self.reference_value(record, reference.target, field, number, random)
                }
                Some(Relation::Link(link)) => self.link_values(record, link.target, random),
                Some(Relation::Inverse(_)) => None,
                None => self.optional_value(owner, field, id, random)?,
            };
            fields.extend(value.map(|value| (FieldId(position), value)));
        }
        let id = Some(self.record_id(record, number));
        Ok(Operation::Create { record, id, fields, filled_fields: Vec::new(), selection: Arc::default() })
    }

    fn is_created_before(&self, one: RecordTypeId, other: RecordTypeId) -> bool {
        let position = |ty| self.creation_order.iter().position(|record| *record == ty);
        position(one) < position(other)
    }

    /// A record created before this one; of the same type, one with a smaller number.
    fn reference_value(
        &self,
        from: RecordTypeId,
        target: RecordTypeId,
        field: &Field,
        number: i64,
        random: SeededRandom,
    ) -> Option<Value> {
        let max = match (target == from, self.is_created_before(target, from)) {
            (true, _) => number - 1,
            (false, true) => self.count,
            (false, false) => 0,
        };
        let picked = match (field.is_distinct(), u64::try_from(max)) {
            (_, Ok(0) | Err(_)) => return None,
            (true, Ok(_)) if number <= max => number,
            (true, Ok(_)) => return None,
            (false, Ok(max)) => 1 + random.below(max) as i64,
        };
        Some(self.record_id(target, picked).to_value())
    }

    fn link_values(&self, from: RecordTypeId, target: RecordTypeId, random: SeededRandom) -> Option<Value> {
        if !self.is_created_before(target, from) || self.count == 0 {
            return None;
        }
        let pick_number =
            |number: u64| 1 + random.derive_number(number).below(self.count.unsigned_abs()) as i64;
        let mut numbers: Vec<i64> = (1..=random.below(4)).map(pick_number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let ids = numbers.into_iter().map(|number| self.record_id(target, number).to_value());
        Some(Value::List(ids.collect()))
    }

    /// A value that satisfies all rules; sometimes none if the field is optional.
    fn optional_value(
        &self,
        owner: FakeOwner<'_>,
        field: &Field,
        id: i64,
        random: SeededRandom,
    ) -> Result<Option<Value>> {
        let is_optional = !field.required || field.default.is_some();
        if is_optional && !field.is_distinct() && random.derive("missing").below(12) == 0 {
            return Ok(None);
        }
        let value = self.valid_value(owner, field, id, random);
        if value.is_some() || is_optional {
            return Ok(value);
        }
        let message = "cannot generate a value that satisfies the rules of the field";
        Err(Error::invalid(&format!("{}.{}", owner.type_name, field.name), "FAKE", message))
    }

    fn valid_value(
        &self,
        owner: FakeOwner<'_>,
        field: &Field,
        id: i64,
        random: SeededRandom,
    ) -> Option<Value> {
        let value_type = field.kind.own_value()?;
        let candidate = |attempt| {
            self.candidate_value(owner, field, value_type, id, random.derive_number(attempt), 0)
                .map(Value::from)
        };
        let passes = |value: &Value| coerce::coerce_field(self.model, field, value).is_ok();
        (0..MAX_ATTEMPTS).map_while(candidate).find(passes)
    }

    fn candidate_value(
        &self,
        owner: FakeOwner<'_>,
        field: &Field,
        value_type: &ValueType,
        id: i64,
        random: SeededRandom,
        depth: usize,
    ) -> Option<Json> {
        match value_type {
            ValueType::Scalar(scalar) => scalar_value(owner, field, *scalar, id, random),
            ValueType::Enum(name) => {
                let values = &self.model.enums.get(name)?.values;
                let position = usize::try_from(id).ok().filter(|_| field.is_distinct() && !values.is_empty());
                match position {
                    // Unique values are used in turn.
                    Some(id) => Some(json!(values[id % values.len()])),
                    None => (!values.is_empty()).then(|| json!(random.pick(values))),
                }
            }
            ValueType::Embedded(name) => self.embedded_value(name, id, random, depth + 1),
            ValueType::List(item) => Some(self.list_value(owner, field, item, id, random, depth)),
            // Depends on the records that exist.
            ValueType::Key(_) => None,
        }
    }

    /// `None` if the nesting does not end.
    fn embedded_value(&self, name: &str, id: i64, random: SeededRandom, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut object = serde_json::Map::new();
        for (inner, inner_type) in self.model.embedded.get(name)?.stored_fields() {
            // A type may contain itself.
            if inner_type.has_parts() && !inner.required {
                continue;
            }
            let owner = FakeOwner { type_name: name, record_random: None };
            let value = self.candidate_value(owner, inner, inner_type, id, random.derive(&inner.name), depth);
            object.insert(inner.name.clone(), value?);
        }
        Some(Json::Object(object))
    }

    fn list_value(
        &self,
        owner: FakeOwner<'_>,
        field: &Field,
        item: &ListItem,
        id: i64,
        random: SeededRandom,
        depth: usize,
    ) -> Json {
        let (min, max) = length_limits(field);
        let max = max.unwrap_or(min.max(1) + 2).min(min.max(1) + 2);
        let count = min + random.derive("count").below(max.saturating_sub(min) + 1);
        let item_value = |index| {
            self.candidate_value(
                owner,
                field,
                &item.value_type,
                id,
                random.derive("item").derive_number(index),
                depth,
            )
        };
        (0..count).filter_map(item_value).collect()
    }
}

/// A value for a field of the record with this number, if one satisfies all rules. Unique values differ for
/// different numbers.
pub fn fake_value(model: &Model, record: &RecordType, field: &Field, number: i64) -> Option<Value> {
    let records = FakeRecords {
        model,
        seed: number.unsigned_abs(),
        count: 0,
        last_numbers: Vec::new(),
        ruled_keys: Vec::new(),
        creation_order: Vec::new(),
    };
    let owner = FakeOwner { type_name: &record.name, record_random: None };
    records.valid_value(owner, field, number, SeededRandom(records.seed).derive(&field.name))
}

/// Each type after those that its records require and, as far as possible, after all that it refers to.
fn creation_order(model: &Model) -> Result<Vec<RecordTypeId>> {
    let mut waiting: Vec<RecordTypeId> = (0..model.records.len()).map(RecordTypeId).collect();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let is_waiting = |record: RecordTypeId, only_required: bool| {
            model.record(record).fields.iter().any(|field| {
                field.kind.reference().is_some_and(|Reference { target, on_delete, .. }| {
                    let is_required = field.required && *on_delete != OnDelete::SetNull;
                    (is_required || !only_required) && *target != record && waiting.contains(target)
                })
            })
        };
        let next_ready =
            |only_required| waiting.iter().position(|record| !is_waiting(*record, only_required));
        let Some(next) = next_ready(false).or_else(|| next_ready(true)) else {
            let names: Vec<&str> = waiting.iter().map(|record| model.record(*record).name.as_str()).collect();
            let message =
                format!("{} require each other: no first record can be generated", names.join(", "));
            return Err(Error::invalid(names[0], "FAKE", &message));
        };
        order.push(waiting.remove(next));
    }
    Ok(order)
}

/// The bounds of `@length`.
fn length_limits(field: &Field) -> (u64, Option<u64>) {
    let limits = field.rules.iter().find_map(|rule| match rule {
        FieldRule::Length { min, max } => Some((min.unwrap_or(0), *max)),
        FieldRule::NotBlank | FieldRule::Range { .. } | FieldRule::Pattern { .. } | FieldRule::Email => None,
    });
    limits.unwrap_or((0, None))
}

/// The bounds of generated numbers: those of `@range`, as whole numbers, within the usual range where possible.
fn number_limits(field: &Field, usual: (i64, i64)) -> (i64, i64) {
    let range = field.rules.iter().find_map(|rule| match rule {
        FieldRule::Range { min, max } => Some((min.as_deref(), max.as_deref())),
        FieldRule::NotBlank | FieldRule::Length { .. } | FieldRule::Pattern { .. } | FieldRule::Email => None,
    });
    let to_integer =
        |text: &str, round: fn(f64) -> f64| text.parse::<f64>().ok().map(|number| round(number) as i64);
    let (min, max) = range.unwrap_or((None, None));
    match (
        min.and_then(|text| to_integer(text, f64::ceil)),
        max.and_then(|text| to_integer(text, f64::floor)),
    ) {
        (None, None) => usual,
        (Some(min), None) => (usual.0.max(min), usual.1.max(min.saturating_add(100))),
        (None, Some(max)) => (usual.0.min(max.saturating_sub(100)), usual.1.min(max)),
        // No whole number is in the range: use the one below, to which a fraction is added.
        (Some(min), Some(max)) if min > max => (max, max),
        (Some(min), Some(max)) => {
            let clamped = (usual.0.clamp(min, max), usual.1.clamp(min, max));
            if clamped.0 < clamped.1 { clamped } else { (min, max) }
        }
    }
}

fn scalar_value(
    owner: FakeOwner<'_>,
    field: &Field,
    scalar: Scalar,
    id: i64,
    random: SeededRandom,
) -> Option<Json> {
    let number_within = |usual: (i64, i64)| {
        let (min, max) = number_limits(field, usual);
        let choices = max.abs_diff(min).saturating_add(1);
        if field.is_distinct() {
            min.saturating_add(id - 1)
        } else {
            min.saturating_add((random.below(choices)) as i64)
        }
    };
    Some(match scalar {
        Scalar::String | Scalar::Id => json!(text_value(owner, field, id, random)?),
        Scalar::Email => {
            json!(plausible_text::email(owner.person_random(random), random, id, field.is_distinct()))
        }
        Scalar::Url => json!(plausible_text::url(random, id)),
        Scalar::Int => json!(number_within(typical_range(&field.name))),
        Scalar::Long => json!(number_within(typical_range(&field.name)).to_string()),
        Scalar::Float => {
            json!(
                number_within(typical_range(&field.name)) as f64
                    + random.derive("part").below(8) as f64 / 8.0
            )
        }
        Scalar::Decimal => {
            let (whole, cents) =
                (number_within(typical_range(&field.name)), random.derive("cents").below(100));
            json!(if whole < 0 { whole.to_string() } else { format!("{whole}.{cents:02}") })
        }
        Scalar::Boolean if field.is_distinct() => json!(id % 2 == 1),
        Scalar::Boolean => json!(random.below(2) == 1),
        Scalar::Date => json!(plausible_text::date(owner.day(&field.name, random), id, field.is_distinct())),
        Scalar::DateTime | Scalar::LocalDateTime => {
            let day = owner.day(&field.name, random);
            json!(plausible_text::date_time(day, random, id, field.is_distinct()))
        }
        Scalar::Uuid => {
            let (high, low) = (random.derive("high").0, random.derive("low").0);
            json!(
                uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
                    .into_uuid()
                    .to_string()
            )
        }
        Scalar::Json => json!({ "note": plausible_text::sentence(random) }),
    })
}

/// Letters as many as `@length` asks for.
fn random_letters(field: &Field, random: SeededRandom) -> String {
    let (min, max) = length_limits(field);
    let length = max.unwrap_or(12).min(min.max(12));
    let letter = |position| char::from(b'a' + random.derive_number(position).below(26) as u8);
    (0..length).map(letter).collect()
}

/// A text that fits the field's name and `@length`.
fn text_value(owner: FakeOwner<'_>, field: &Field, id: i64, random: SeededRandom) -> Option<String> {
    let pattern = field.rules.iter().find_map(|rule| match rule {
        FieldRule::Pattern { pattern, .. } => Some(pattern),
        FieldRule::NotBlank | FieldRule::Length { .. } | FieldRule::Range { .. } | FieldRule::Email => None,
    });
    let is_unique = field.is_distinct() || field.kind.is_id();
    let is_email = field.rules.iter().any(|rule| matches!(rule, FieldRule::Email));
    let (min, max) = length_limits(field);
    if let Some(pattern) = pattern {
        return pattern_text::text_matching(pattern, random);
    }
    if is_email {
        return Some(plausible_text::email(owner.person_random(random), random, id, is_unique));
    }
    let mut text = plausible_text::text_for_field(owner, &field.name, random, id, is_unique);
    while (text.chars().count() as u64) < min {
        text = format!("{text} {}", plausible_text::word(random.derive(&text)));
    }
    let Some(max) = max.filter(|max| (text.chars().count() as u64) > *max) else { return Some(text) };
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    if is_unique {
        // The unique part is at the end.
        return Some(text.chars().rev().take(max).collect::<Vec<_>>().into_iter().rev().collect());
    }
    let cut: String = text.chars().take(max).collect();
    Some(cut.trim_end().to_owned())
        .filter(|cut| cut.chars().count() as u64 >= min)
        .or(Some(text.chars().take(max).collect()))
}
