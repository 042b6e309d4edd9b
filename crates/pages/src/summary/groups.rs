//! The groups that were read, with the texts, numbers and links that table and chart show.

use std::ops::Range;

use trefoil_engine::{GroupMeasure, MeasureFunction, OwnedRow};
use trefoil_http::form_pairs::FormPairs;
use trefoil_model::values::decimal_sum::DecimalSum;
use trefoil_model::{Model, RecordId, RecordTypeId, ScalarGroup, Value, ZoneOffsets};
use trefoil_resources::aggregate_query::GroupQuery;
use trefoil_resources::list_query::query_url;

use crate::detail::display::{BRIEF_LENGTH, ValueDisplay, display_typed, format_period, typed_value};
use crate::labels::ResourceLabels;
use crate::phrases::cut_text;
use crate::summary::group_filters::key_filters;
use crate::template_data::DisplayValue;

/// A group as it is shown.
#[derive(Debug, Default)]
pub struct ShownGroup {
    pub keys: Vec<String>,
    /// The first key as the API has it, unless it is null or no text.
    pub first_text: Option<String>,
    /// The measures; empty for null.
    pub values: Vec<String>,
    /// The first measure, if it is a number.
    pub number: Option<f64>,
    /// The list of its records.
    pub href: Option<String>,
}

/// Reads groups from rows: the keys, then titles of the records that they identify, then the measures.
pub struct GroupReader<'g> {
    pub model: &'g Model,
    pub all_labels: &'g [ResourceLabels],
    pub zone: &'g ZoneOffsets,
    pub record: RecordTypeId,
    pub groups: &'g GroupQuery,
    /// Where the fields of the title are among the cells, for each key.
    pub titles: &'g [Range<usize>],
    pub list_path: &'g str,
    /// Search and filters of the list.
    pub list_filters: &'g FormPairs,
}

/// Digits after the point of a mean: the API has twenty digits in all.
const MEAN_PLACES: usize = 4;

impl GroupReader<'_> {
    pub fn read(&self, row: &OwnedRow) -> ShownGroup {
        let key_count = self.groups.query.group_keys.len();
        let first_measure = key_count + self.titles.iter().map(Range::len).sum::<usize>();
        let values: Vec<Option<Value>> = (0..key_count).map(|key| self.key_value(row, key)).collect();
        let measures = self.groups.columns[key_count..].iter().zip(&row.cells[first_measure..]);
        let measures = measures.map(|((_, value_type), cell)| typed_value(value_type, cell.as_cell()));
        let measures: Vec<Option<Value>> = measures.collect();
        let shown = |(position, value): (usize, &Option<Value>)| match value {
            Some(value) => self.measure_text(position, value),
            None => String::new(),
        };
        ShownGroup {
            keys: (0..key_count).map(|key| self.key_text(row, key, values[key].as_ref())).collect(),
            first_text: match values.first() {
                Some(Some(Value::String(text))) => Some(text.clone()),
                Some(_) | None => None,
            },
            values: measures.iter().enumerate().map(shown).collect(),
            number: measures.first().and_then(|value| self.chart_number(value.as_ref()?)),
            href: self.list_url(&values),
        }
    }

    fn display(&self) -> ValueDisplay<'_> {
        ValueDisplay { model: self.model }
    }

    fn key_value(&self, row: &OwnedRow, key: usize) -> Option<Value> {
        typed_value(&self.groups.columns[key].1, row.cells[key].as_cell())
    }

    fn key_text(&self, row: &OwnedRow, position: usize, value: Option<&Value>) -> String {
        let key = &self.groups.query.group_keys[position];
        let Some(value) = value else { return "Not set".to_owned() };
        let shown = display_typed(self.display(), &self.groups.columns[position].1, value);
        if let Some(period) = key.period {
            return format_period(period, &plain_text(shown));
        }
        let record = key.identified_type(self.model, self.record);
        match record.and_then(|record| self.model.find_record(&record.name)) {
            Some(record) => self.record_name(row, position, record),
            None => plain_text(shown),
        }
    }

    /// The name of the record that a key identifies.
    fn record_name(&self, row: &OwnedRow, position: usize, record: RecordTypeId) -> String {
        let id = RecordId::from_cell(row.cells[position].as_cell()).unwrap_or(RecordId::Number(0));
        let cells = self.titles.get(position).map_or(&[][..], |titles| &row.cells[titles.clone()]);
        let name = self.all_labels[record.0].record_name(self.display(), &id, cells);
        cut_text(&name, BRIEF_LENGTH).map_or(name.clone(), |part| format!("{part}…"))
    }

    fn measure_text(&self, position: usize, value: &Value) -> String {
        let text = plain_text(display_typed(
            self.display(),
            &self.groups.columns[self.groups.query.group_keys.len() + position].1,
            value,
        ));
        match self.groups.query.measures.get(position) {
            Some(GroupMeasure::OfField(MeasureFunction::Average, _)) => short_mean(&text).unwrap_or(text),
            Some(GroupMeasure::OfField(..) | GroupMeasure::Count) | None => text,
        }
    }

    /// The first measure as a number. One that is too large for a chart is drawn as the largest possible.
    fn chart_number(&self, value: &Value) -> Option<f64> {
        let (_, value_type) = &self.groups.columns[self.groups.query.group_keys.len()];
        value_type.scalar().filter(|scalar| scalar.group() == ScalarGroup::Number)?;
        number_of(value)
    }

    /// The list with the filters of the group besides its own.
    fn list_url(&self, values: &[Option<Value>]) -> Option<String> {
        let record = self.model.record(self.record);
        let mut pairs = self.list_filters.clone();
        for (key, value) in self.groups.query.group_keys.iter().zip(values) {
            let filters = key_filters(self.model, self.zone, record, key, value.as_ref())?;
            pairs.extend(filters.into_iter().filter(|pair| !self.list_filters.contains(pair)));
        }
        Some(query_url(self.list_path, pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
    }
}

/// The text of a value without markup.
fn plain_text(value: DisplayValue) -> String {
    match value {
        DisplayValue::Nothing => "Not set".to_owned(),
        DisplayValue::Text { text, .. } if text.trim().is_empty() => "Empty".to_owned(),
        DisplayValue::Text { text, cut: true } => format!("{text}…"),
        DisplayValue::Boolean { yes } => if yes { "Yes" } else { "No" }.to_owned(),
        DisplayValue::Text { text, cut: false }
        | DisplayValue::Number { text }
        | DisplayValue::Choice { text, .. }
        | DisplayValue::Time { text, .. }
        | DisplayValue::Address { text, .. }
        | DisplayValue::Record { text, .. }
        | DisplayValue::Color { text }
        | DisplayValue::Code { text }
        | DisplayValue::Json { text } => text,
        // Records are not grouped by such values.
        DisplayValue::List { .. } | DisplayValue::Object { .. } => String::new(),
    }
}

fn number_of(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Int(number) => *number as f64,
        Value::Number(number) => number.to_string().parse().ok()?,
        Value::String(text) => text.parse().ok()?,
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => return None,
    };
    Some(f64::clamp(number, -f64::MAX, f64::MAX))
}

/// A mean with few digits after the point.
fn short_mean(text: &str) -> Option<String> {
    let whole = text.trim_start_matches('-').split('.').next()?.len();
    let mut sum = DecimalSum::default();
    if sum.add(text) { sum.divided_by(1, whole + MEAN_PLACES) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_keep_their_whole_digits() {
        for (text, expected) in [
            ("1.3333333333333333333", "1.3333"),
            ("-123456789012.66666667", "-123456789012.6667"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("0.00012345678", "0.00012346"),
            ("5", "5"),
            ("0", "0"),
        ] {
            assert_eq!(short_mean(text).as_deref(), Some(expected));
        }
        assert_eq!(short_mean("1e300"), None);
    }

    #[test]
    fn numbers_of_any_size_can_be_drawn() {
        assert_eq!(number_of(&Value::Int(-3)), Some(-3.0));
        assert_eq!(number_of(&Value::from("0.10")), Some(0.1));
        assert_eq!(number_of(&Value::String("9".repeat(400))), Some(f64::MAX));
        assert_eq!(number_of(&Value::String(format!("-{}", "9".repeat(400)))), Some(-f64::MAX));
        assert_eq!(number_of(&Value::from("")), None);
        assert_eq!(number_of(&Value::Bool(true)), None);
    }
}
