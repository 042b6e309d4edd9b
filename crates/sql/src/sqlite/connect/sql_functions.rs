//! The SQL functions for queries, which the schema must not use.

use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};

use trefoil_engine::plan::{pattern_count, without_marks, word_count};
use trefoil_model::values::decimal_sum::{DecimalSum, decimal_places, with_decimal_places};
use trefoil_model::values::{date_times, decimal};
use trefoil_model::{StoredValue, TimePeriod, ZoneOffsets};

use crate::statements::decimal_key;

/// The digits of a mean that is compared, more than are shown.
const COMPARED_DIGITS: usize = 60;

pub fn register_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("trefoil_decimal_key", 1, flags, decimal_key_function)?;
    connection.create_scalar_function("trefoil_real", 1, flags, real_function)?;
    connection.create_scalar_function("trefoil_time", 1, flags, time_function)?;
    connection.create_scalar_function("trefoil_without_marks", 1, flags, without_marks_function)?;
    connection.create_scalar_function("trefoil_pattern_count", 2, flags, |context| {
        count_function(context, pattern_count)
    })?;
    connection.create_scalar_function("trefoil_word_count", 2, flags, |context| {
        count_function(context, word_count)
    })?;
    connection.create_scalar_function("trefoil_mean", 2, flags, mean_function)?;
    connection.create_scalar_function("trefoil_period", 3, flags, period_function)?;
    connection.create_aggregate_function("trefoil_decimal_sum", 1, flags, SumFunction)?;
    connection.create_aggregate_function("trefoil_real_sum", 1, flags, RealSumFunction)?;
    connection.create_aggregate_function("trefoil_decimal_min", 1, flags, ExtremeFunction::Least)?;
    connection.create_aggregate_function("trefoil_decimal_max", 1, flags, ExtremeFunction::Greatest)
}

/// Counts the words of a JSON array in a text.
fn count_function(context: &Context<'_>, count: fn(&str, &[String]) -> usize) -> rusqlite::Result<i64> {
    let text = context.get_raw(0).as_str().unwrap_or_default();
    let words = context.get_raw(1).as_str().ok().and_then(|words| serde_json::from_str(words).ok());
    let words: Vec<String> = words.unwrap_or_default();
    Ok(i64::try_from(count(text, &words)).unwrap_or(i64::MAX))
}

fn decimal_key_function(context: &Context<'_>) -> rusqlite::Result<Option<Vec<u8>>> {
    Ok(match context.get_raw(0) {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(decimal_key::encode_decimal(&number.to_string())),
        ValueRef::Real(number) => Some(decimal_key::encode_decimal(&number.to_string())),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(decimal_key::encode_decimal(&String::from_utf8_lossy(bytes)))
        }
    })
}

fn real_function(context: &Context<'_>) -> rusqlite::Result<Option<f64>> {
    Ok(context.get_raw(0).as_str().ok().and_then(|text| text.parse().ok()))
}

/// A time of JSON with all six digits, as columns have it.
fn time_function(context: &Context<'_>) -> rusqlite::Result<Option<String>> {
    Ok(context.get_raw(0).as_str().ok().and_then(date_times::stored_form))
}

fn without_marks_function(context: &Context<'_>) -> rusqlite::Result<Option<String>> {
    Ok(match context.get_raw(0) {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(without_marks(&String::from_utf8_lossy(bytes)).into_owned())
        }
    })
}

/// A sum divided by a number of values.
fn mean_function(context: &Context<'_>) -> rusqlite::Result<Option<String>> {
    let mut sum = DecimalSum::default();
    let count = context.get_raw(1).as_i64().map_or(0, i64::unsigned_abs);
    let is_number = add_number(&mut sum, context.get_raw(0));
    Ok(if is_number { sum.divided_by(count, COMPARED_DIGITS) } else { None })
}

/// The period of a date or a time: its name, the zone, the value.
fn period_function(context: &Context<'_>) -> rusqlite::Result<Value> {
    let period: Arc<Option<TimePeriod>> = context.get_or_create_aux(0, |name| {
        Ok::<_, rusqlite::Error>(name.as_str().ok().and_then(TimePeriod::from_name))
    })?;
    let zone: Arc<Arc<ZoneOffsets>> =
        context.get_or_create_aux(1, |name| ZoneOffsets::load(name.as_str().unwrap_or_default()))?;
    let (Some(period), Ok(text)) = (*period, context.get_raw(2).as_str()) else { return Ok(Value::Null) };
    Ok(match period.of_stored(&zone, text) {
        StoredValue::Text(text) => Value::Text(text),
        StoredValue::Int(number) => Value::Integer(number),
        StoredValue::Null | StoredValue::Real(_) => Value::Null,
    })
}

/// Adds a value; false for null and for what is no exact number, which another program wrote.
fn add_number(sum: &mut DecimalSum, value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Integer(number) => sum.add_integer(number),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).is_ok_and(|text| sum.add(text)),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => false,
    }
}

/// The exact sum of decimals or integers; null if there are none.
struct SumFunction;

impl Aggregate<Option<DecimalSum>, Option<String>> for SumFunction {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Option<DecimalSum>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, sum: &mut Option<DecimalSum>) -> rusqlite::Result<()> {
        let value = context.get_raw(0);
        match sum {
            Some(sum) => drop(add_number(sum, value)),
            None => {
                let mut first = DecimalSum::default();
                *sum = add_number(&mut first, value).then_some(first);
            }
        }
        Ok(())
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        sum: Option<Option<DecimalSum>>,
    ) -> rusqlite::Result<Option<String>> {
        Ok(sum.flatten().map(|sum| sum.to_text()))
    }
}

/// The sum of floats as their shortest decimals say, rounded once, so that their order makes no difference. Null if there
/// are none, and beyond the range of a float.
struct RealSumFunction;

impl Aggregate<Option<DecimalSum>, Option<f64>> for RealSumFunction {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Option<DecimalSum>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, sum: &mut Option<DecimalSum>) -> rusqlite::Result<()> {
        let number = match context.get_raw(0) {
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => return Ok(()),
        };
        sum.get_or_insert_default().add(&number);
        Ok(())
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        sum: Option<Option<DecimalSum>>,
    ) -> rusqlite::Result<Option<f64>> {
        let number = sum.flatten().and_then(|sum| sum.to_text().parse().ok());
        Ok(number.filter(|number: &f64| number.is_finite()))
    }
}

/// The least or greatest decimal, with as many decimal places as the value with most.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExtremeFunction {
    Least,
    Greatest,
}

/// The value so far, and the greatest number of decimal places.
type ExtremeValue = Option<(String, usize)>;

impl Aggregate<ExtremeValue, Option<String>> for ExtremeFunction {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<ExtremeValue> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, extreme: &mut ExtremeValue) -> rusqlite::Result<()> {
        let Ok(text) = context.get_raw(0).as_str() else { return Ok(()) };
        if !decimal::is_canonical(text) {
            return Ok(());
        }
        let Some((value, places)) = extreme else {
            *extreme = Some((text.to_owned(), decimal_places(text)));
            return Ok(());
        };
        *places = decimal_places(text).max(*places);
        let order = decimal::compare(text, value);
        let is_beyond = if *self == ExtremeFunction::Least { order.is_lt() } else { order.is_gt() };
        if is_beyond {
            text.clone_into(value);
        }
        Ok(())
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        extreme: Option<ExtremeValue>,
    ) -> rusqlite::Result<Option<String>> {
        Ok(extreme.flatten().map(|(value, places)| with_decimal_places(&value, places)))
    }
}
