//! Requests for groups of records, made at random, and the groups that the rows have.

use std::cmp::Ordering;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use serde_json::{Value, json};

use super::exact::ExactNumber;
use super::interpreter::{FieldPath, PlainWorld};
use super::rows::PlainRow;
use super::schema::ValueKind;
use super::tree::{ConditionTree, TestOperator};
use super::values::PlainValue;

#[derive(Clone, Debug)]
pub struct GroupRequest {
    pub record: usize,
    pub conditions: Vec<ConditionTree>,
    pub keys: Vec<GroupKey>,
    pub measures: Vec<GroupMeasure>,
    pub having: Vec<(GroupMeasure, TestOperator, PlainValue)>,
    pub order: Vec<(OrderOf, bool)>,
    pub first: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GroupKey {
    pub path: FieldPath,
    pub period: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GroupMeasure {
    Count,
    Of(&'static str, FieldPath),
}

#[derive(Clone, Debug, PartialEq)]
pub enum OrderOf {
    Key(usize),
    Measure(GroupMeasure),
}

pub const PERIODS: [&str; 7] = ["year", "quarter", "month", "week", "day", "weekday", "hour"];

/// What is compared of a measure: a mean exactly, whatever digits of it are shown.
enum Measured {
    Value(PlainValue),
    Mean(ExactNumber, usize),
}

/// A group: the values of its keys and its rows.
struct PlainGroup<'w> {
    keys: Vec<PlainValue>,
    rows: Vec<&'w PlainRow>,
}

impl<'w> PlainWorld<'w> {
    /// The answer: for each group its keys, then its measures.
    pub fn groups(self, request: &GroupRequest) -> Vec<Vec<Value>> {
        self.groups_of(request, &self.select(request.record, &request.conditions, &[]))
    }

    /// The same for these rows, which meet the conditions.
    pub fn groups_of(self, request: &GroupRequest, rows: &[usize]) -> Vec<Vec<Value>> {
        let mut groups = self.all_groups(request, rows);
        groups.retain(|group| {
            request.having.iter().all(|(measure, operator, operand)| {
                self.measured(request, group, measure).is_met(*operator, operand)
            })
        });
        groups.sort_by(|left, right| self.compare_groups(request, left, right));
        groups.truncate(request.first.unwrap_or(usize::MAX));
        groups.iter().map(|group| self.cells(request, group)).collect()
    }

    fn all_groups(self, request: &GroupRequest, positions: &[usize]) -> Vec<PlainGroup<'w>> {
        let rows = &self.data.rows[request.record];
        let mut groups: Vec<PlainGroup<'w>> = Vec::new();
        if request.keys.is_empty() {
            groups.push(PlainGroup { keys: Vec::new(), rows: Vec::new() });
        }
        for at in positions.iter().copied() {
            let keys = request.keys.iter().map(|key| self.key_value(request.record, &rows[at], key));
            let keys: Vec<PlainValue> = keys.collect();
            match groups.iter_mut().find(|group| group.keys == keys) {
                Some(group) => group.rows.push(&rows[at]),
                None => groups.push(PlainGroup { keys, rows: vec![&rows[at]] }),
            }
        }
        groups
    }

    fn key_value(self, record: usize, row: &'w PlainRow, key: &GroupKey) -> PlainValue {
        let value = self.value(record, row, &key.path);
        match (value, key.period) {
            (PlainValue::Exact(number), _) => PlainValue::Exact(number.without_zeros()),
            (PlainValue::Day(day), Some(period)) => period_of(period, day, 0),
            (PlainValue::Moment(moment), Some(period)) => {
                let (day, hour) = local(self.schema.zone, moment);
                period_of(period, day, hour)
            }
            (value, _) => value,
        }
    }

    fn compare_groups(
        self,
        request: &GroupRequest,
        left: &PlainGroup<'w>,
        right: &PlainGroup<'w>,
    ) -> Ordering {
        let by_key = |at: usize, descending| left.keys[at].compare_sorted(&right.keys[at], descending);
        let given = request.order.iter().map(|(of, descending)| match of {
            OrderOf::Key(at) => by_key(*at, *descending),
            OrderOf::Measure(measure) => {
                let [left, right] = [left, right].map(|group| self.measured(request, group, measure));
                left.compare_sorted(&right, *descending)
            }
        });
        let rest = (0..request.keys.len()).map(|at| by_key(at, false));
        given.chain(rest).fold(Ordering::Equal, Ordering::then)
    }

    fn cells(self, request: &GroupRequest, group: &PlainGroup<'w>) -> Vec<Value> {
        let keys = request.keys.iter().zip(&group.keys).map(|(key, value)| match key.period {
            Some(_) => value.to_json(ValueKind::Int),
            None => value.to_json(self.kind(request.record, &key.path)),
        });
        let measures = request.measures.iter().map(|measure| {
            let measured = self.measured(request, group, measure);
            match (measured, measure) {
                (Measured::Mean(sum, count), _) => json!(sum.mean(count).to_string()),
                (Measured::Value(value), GroupMeasure::Of("min" | "max", path)) => {
                    value.to_json(self.kind(request.record, path))
                }
                (Measured::Value(value), _) => value.to_json(ValueKind::Int),
            }
        });
        keys.chain(measures).collect()
    }

    /// The kind of the values at a path.
    pub fn kind(self, record: usize, path: &FieldPath) -> ValueKind {
        super::paths::field_at(self.schema, record, path).single(self.schema).unwrap()
    }

    fn measured(self, request: &GroupRequest, group: &PlainGroup<'w>, measure: &GroupMeasure) -> Measured {
        let GroupMeasure::Of(function, path) = measure else {
            return Measured::Value(PlainValue::Whole(group.rows.len() as i64));
        };
        let values = group.rows.iter().map(|row| self.value(request.record, row, path));
        let mut values: Vec<PlainValue> = values.filter(|value| !value.is_null()).collect();
        let count = values.len();
        if *function == "countDistinct" {
            values.sort_by(PlainValue::compare);
            values.dedup_by(|left, right| left.compare(right) == Ordering::Equal);
            return Measured::Value(PlainValue::Whole(values.len() as i64));
        }
        if values.is_empty() {
            return Measured::Value(PlainValue::Null);
        }
        match *function {
            "min" | "max" => {
                let places = values.iter().map(places).max().unwrap_or(0);
                values.sort_by(PlainValue::compare);
                let at = if *function == "min" { 0 } else { count - 1 };
                Measured::Value(match values.swap_remove(at) {
                    PlainValue::Exact(number) => PlainValue::Exact(number.with_places(places)),
                    value => value,
                })
            }
            _ if matches!(values[0], PlainValue::Real(_)) => {
                let numbers: Vec<ExactNumber> = values.iter().map(exact).collect();
                let sum: f64 = ExactNumber::sum(numbers.iter()).to_string().parse().unwrap();
                let real = if *function == "avg" { sum / count as f64 } else { sum };
                Measured::Value(if sum.is_finite() { PlainValue::Real(real) } else { PlainValue::Null })
            }
            function => {
                let numbers: Vec<ExactNumber> = values.iter().map(exact).collect();
                let sum = ExactNumber::sum(numbers.iter());
                match function {
                    "avg" => Measured::Mean(sum, count),
                    _ => Measured::Value(PlainValue::Exact(sum)),
                }
            }
        }
    }
}

fn places(value: &PlainValue) -> usize {
    if let PlainValue::Exact(number) = value { number.places } else { 0 }
}

fn exact(value: &PlainValue) -> ExactNumber {
    match value {
        PlainValue::Exact(number) => number.clone(),
        PlainValue::Whole(number) => ExactNumber { digits: (*number).into(), places: 0 },
        // Rust writes the shortest digits, without an exponent.
        PlainValue::Real(number) => ExactNumber::parse(&number.to_string()),
        other => panic!("{other:?} is no exact number"),
    }
}

impl Measured {
    fn is_null(&self) -> bool {
        matches!(self, Measured::Value(PlainValue::Null))
    }

    fn compare(&self, other: &Measured) -> Ordering {
        match (self, other) {
            (Measured::Value(left), Measured::Value(right)) => left.compare(right),
            (left, right) => {
                let [(left, count), (right, other_count)] = [left, right].map(|measured| match measured {
                    Measured::Mean(sum, count) => (sum.clone(), *count),
                    Measured::Value(value) => (exact(value), 1),
                });
                left.compare_means(count, &right, other_count)
            }
        }
    }

    fn compare_sorted(&self, other: &Measured, descending: bool) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (false, false) if descending => other.compare(self),
            (false, false) => self.compare(other),
            (own, other) => own.cmp(&other),
        }
    }

    fn is_met(&self, operator: TestOperator, operand: &PlainValue) -> bool {
        let order = (!self.is_null()).then(|| self.compare(&Measured::Value(operand.clone())));
        match operator {
            TestOperator::Eq => order == Some(Ordering::Equal),
            TestOperator::Ne => order != Some(Ordering::Equal),
            TestOperator::Lt => order.is_some_and(Ordering::is_lt),
            TestOperator::Lte => order.is_some_and(Ordering::is_le),
            TestOperator::Gt => order.is_some_and(Ordering::is_gt),
            TestOperator::Gte => order.is_some_and(Ordering::is_ge),
            other => panic!("groups have no {other:?}"),
        }
    }
}

/// The day and hour in a time zone.
fn local(zone: &str, moment: Timestamp) -> (Date, i8) {
    let zone = if zone == "UTC" { Offset::UTC.to_time_zone() } else { TimeZone::get(zone).unwrap() };
    let local = moment.to_zoned(zone);
    (local.date(), local.hour())
}

fn period_of(period: &str, day: Date, hour: i8) -> PlainValue {
    let week = day.iso_week_date();
    PlainValue::Text(match period {
        "year" => format!("{:04}", day.year()),
        "quarter" => format!("{:04}-Q{}", day.year(), 1 + (day.month() - 1) / 3),
        "month" => format!("{:04}-{:02}", day.year(), day.month()),
        "week" => format!("{:04}-W{:02}", week.year(), week.week()),
        "day" => day.to_string(),
        "weekday" => return PlainValue::Whole(day.weekday().to_monday_one_offset().into()),
        "hour" => return PlainValue::Whole(hour.into()),
        other => panic!("`{other}` is no period"),
    })
}
