//! The filters of a list that select the records of a group.

use trefoil_engine::GroupKey;
use trefoil_http::form_pairs::FormPairs;
use trefoil_model::{
    ComparisonOp, FilterOperator, Model, PeriodBounds, RecordType, Scalar, TimePeriod, Value, ZoneOffsets,
};

use crate::list::filters::parameter_name;

/// Longer texts would make an address that servers and browsers refuse.
const MAX_VALUE_BYTES: usize = 400;

/// The filters for one key of a group, `None` as its value for null; `None` if no filter says the same.
pub fn key_filters(
    model: &Model,
    zone: &ZoneOffsets,
    record: &RecordType,
    key: &GroupKey,
    value: Option<&Value>,
) -> Option<FormPairs> {
    let name = filter_name(model, record, key);
    let Some(value) = value else { return null_filter(model, record, key, &name) };
    let text = value_text(value).filter(|text| !text.is_empty() && text.len() <= MAX_VALUE_BYTES)?;
    let scalar = key.path.target(model, record).kind.scalar();
    match key.period {
        None => Some(vec![(parameter_name(&name, FilterOperator::EQUAL), text)]),
        Some(period) => period_filters(zone, scalar, &name, period, &text),
    }
}

/// The value as a filter is sent.
fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::List(_) | Value::Object(_) => None,
    }
}

/// `patient.city`, `userId`: the names by which filters find the fields.
fn filter_name(model: &Model, record: &RecordType, key: &GroupKey) -> String {
    let fields = key.path.fields(model, record);
    // Members of embedded values have only one name.
    let value_position = key.path.references.len();
    let name = |(position, field): (usize, &&trefoil_model::Field)| match position == value_position {
        true => field.input_name.clone(),
        false => field.name.clone(),
    };
    fields.iter().enumerate().map(name).collect::<Vec<_>>().join(".")
}

fn period_filters(
    zone: &ZoneOffsets,
    scalar: Option<Scalar>,
    name: &str,
    period: TimePeriod,
    text: &str,
) -> Option<FormPairs> {
    let bounds = PeriodBounds::from_text(period, text)?;
    let utc = ZoneOffsets::utc();
    let zone = if scalar == Some(Scalar::LocalDateTime) { &utc } else { zone };
    let bounds = if scalar == Some(Scalar::Date) { bounds.dates() } else { bounds.times(zone)? };
    let operators = [ComparisonOp::Gte, ComparisonOp::Lt];
    let filters = operators.into_iter().zip(bounds).map(|(op, bound)| {
        // On pages a day stands for its beginning in the zone of the application.
        let day = || Some(zone.show(&bound)?.local.get(..10)?.to_owned());
        let day = day().filter(|day| zone.day_bound(day, false).as_ref() == Some(&bound));
        (parameter_name(name, FilterOperator::Compare(op)), day.unwrap_or(bound))
    });
    Some(filters.collect())
}

/// A value is null in a record, hidden from the actor, or missing because a reference leads nowhere that they may see.
fn null_filter(model: &Model, record: &RecordType, key: &GroupKey, name: &str) -> Option<FormPairs> {
    let fields = key.path.fields(model, record);
    let mut names: Vec<String> = Vec::new();
    for (position, field) in fields.iter().enumerate().take(key.path.references.len()) {
        if !field.is_always_shown() {
            let path = fields[..=position].iter().map(|field| field.name.as_str()).collect::<Vec<_>>();
            names.push(path.join("."));
        }
    }
    if fields[key.path.references.len()..].iter().any(|field| !field.is_always_shown()) {
        names.push(name.to_owned());
    }
    let names: Vec<String> = names.iter().map(|name| parameter_name(name, FilterOperator::IsNull)).collect();
    match names.as_slice() {
        [] => None,
        [name] => Some(vec![(name.clone(), "true".to_owned())]),
        names => {
            let items: Vec<String> = names.iter().map(|name| format!("{name}=true")).collect();
            Some(vec![("or".to_owned(), format!("({})", items.join(",")))])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use trefoil_engine::arguments::aggregates::AggregateParser;
    use trefoil_model::{SourceFile, parse_schema};

    const SCHEMA: &str = r#"
        scalar Date  scalar DateTime  scalar Decimal
        enum InvoiceStatus { NEW PAID }
        type City { id: ID!  name: String  zone: Int! }
        type Patient { id: ID!  city: City  town: String!  age: Int }
        type Place { street: String }
        type Invoice {
          id: ID!  patient: Patient  payer: Patient!  status: InvoiceStatus!  paid: Boolean  size: String
          on: Date  at: DateTime  total: Decimal  place: Place
        }
        type Query { invoices: [Invoice!]! }
    "#;

    fn filters(zone: &str, text: &str, value: Option<Value>) -> Option<String> {
        filters_in(SCHEMA, zone, text, value)
    }

    fn filters_in(schema: &str, zone: &str, text: &str, value: Option<Value>) -> Option<String> {
        let files = [SourceFile { name: "t.graphqls".into(), text: schema.into() }];
        let model = parse_schema(&files, &[]).expect("the schema is right").0;
        let record = model.find_record("Invoice").expect("the type");
        let key = AggregateParser { model: &model, record }.group_key(text).expect("a key");
        let zone = ZoneOffsets::load(zone).expect("a zone");
        let pairs = key_filters(&model, &zone, model.record(record), &key, value.as_ref())?;
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Some(pairs.join("&"))
    }

    #[test]
    fn groups_are_filters_of_the_list() {
        let table = [
            ("status", Value::from("PAID"), "status=PAID"),
            ("paid", Value::Bool(false), "paid=false"),
            ("patient", Value::from("7"), "patientId=7"),
            ("size", Value::from("a&b=c"), "size.eq=a&b=c"),
            ("total", Value::from("-0.10"), "total=-0.10"),
            ("patient.town", Value::from("Ulm"), "patient.town=Ulm"),
            ("patient.city", Value::from("3"), "patient.cityId=3"),
            ("patient.age", Value::Int(40), "patient.age=40"),
            ("place.street", Value::from("Main"), "place.street=Main"),
            ("month(on)", Value::from("2026-12"), "on.gte=2026-12-01&on.lt=2027-01-01"),
            ("quarter(at)", Value::from("2026-Q4"), "at.gte=2026-10-01&at.lt=2027-01-01"),
            ("week(on)", Value::from("2026-W53"), "on.gte=2026-12-28&on.lt=2027-01-04"),
        ];
        for (key, value, expected) in table {
            assert_eq!(filters("UTC", key, Some(value)).as_deref(), Some(expected), "{key}");
        }
        let local = filters("Europe/Berlin", "day(at)", Some(Value::from("2026-03-29")));
        assert_eq!(local.as_deref(), Some("at.gte=2026-03-29&at.lt=2026-03-30"));
    }

    #[test]
    fn null_is_a_filter_too() {
        let table = [
            ("paid", "paid.null=true"),
            ("patient", "patientId.null=true"),
            ("month(at)", "at.null=true"),
            ("payer.city", "payer.cityId.null=true"),
            ("patient.town", "patient.null=true"),
            ("patient.city.zone", "or=(patient.null=true,patient.city.null=true)"),
            ("patient.age", "or=(patient.null=true,patient.age.null=true)"),
            ("place.street", "place.street.null=true"),
        ];
        for (key, expected) in table {
            assert_eq!(filters("UTC", key, None).as_deref(), Some(expected), "{key}");
        }
    }

    #[test]
    fn required_values_may_be_hidden() {
        const PROTECTED: &str = r#"
            type City @allow(read: true) { id: ID!  zone: Int! @allow(read: "signedIn") }
            type Patient @allow(read: "signedIn") { id: ID!  city: City!  town: String! }
            type Invoice @allow(read: true) { id: ID!  patient: Patient!  city: City!  size: String! @allow(read: "signedIn") }
            type Query { invoices: [Invoice!]! }
        "#;
        let table = [
            ("size", Some("size.null=true")),
            ("patient", Some("patientId.null=true")),
            ("patient.town", Some("patient.null=true")),
            ("city.zone", Some("city.zone.null=true")),
            ("patient.city", Some("patient.null=true")),
            ("city", None),
        ];
        for (key, expected) in table {
            assert_eq!(filters_in(PROTECTED, "UTC", key, None).as_deref(), expected, "{key}");
        }
    }

    #[test]
    fn some_groups_have_no_filter() {
        for (key, value) in [
            ("weekday(at)", Value::Int(1)),
            ("hour(at)", Value::Int(9)),
            ("year(at)", Value::from("9999")),
            ("size", Value::from("")),
            ("size", Value::from("x".repeat(500))),
            ("status", Value::Null),
        ] {
            assert_eq!(filters("UTC", key, Some(value)), None, "{key}");
        }
        assert_eq!(filters("UTC", "status", None), None);
    }
}
