//! The types of generated aggregates: `BookAggregate` with its parts, and `BookHaving`.

use crate::aggregate_wrapper::MeasureFields;
use crate::sdl::generate::generated_type::GeneratedType;
use crate::sdl::generate::input_types::FieldTypes;
use crate::{ComparisonOp, Field, FilterOperator, RecordType, Scalar};

/// The scalars of aggregates that a schema may lack.
const SCALARS: [&str; 2] = ["JSON", "Decimal"];

/// The parts of a group: the ending of its type, its fields in a group, and the fields of the record that it has.
const PARTS: [(&str, &[&str], MeasureFields); 3] = [
    ("Numbers", &["sum", "avg"], MeasureFields::Numbers),
    ("Values", &["min", "max"], MeasureFields::Ordered),
    ("Counts", &["countDistinct"], MeasureFields::Comparable),
];

pub(super) fn aggregate_name(record: &RecordType) -> String {
    format!("{}Aggregate", record.name)
}

pub(super) fn having_name(record: &RecordType) -> String {
    format!("{}Having", record.name)
}

impl FieldTypes<'_> {
    /// The type of this name, if it is one of the aggregates of the record type.
    pub(super) fn aggregate_type(&self, record: &RecordType, name: &str) -> Option<GeneratedType> {
        let generated = |keyword, fields| Some(GeneratedType { name: name.to_owned(), keyword, fields });
        if SCALARS.contains(&name) {
            return generated("scalar", Vec::new());
        }
        if name == aggregate_name(record) {
            return generated("type", self.group_fields(record));
        }
        if name == having_name(record) {
            return generated("input", self.having_fields(record));
        }
        let rest = name.strip_prefix(record.name.as_str())?;
        let (ending, is_input) = rest.strip_suffix("Having").map_or((rest, false), |ending| (ending, true));
        let (_, _, fields) = PARTS.into_iter().find(|(known, _, _)| *known == ending)?;
        match is_input {
            false => generated("type", self.part_fields(record, fields, true)),
            true => {
                let plain = self.part_fields(record, fields, false);
                generated("input", plain.iter().flat_map(|(name, ty)| with_operators(name, ty)).collect())
            }
        }
    }

    fn group_fields(&self, record: &RecordType) -> Vec<(String, String)> {
        let mut fields =
            vec![("key".to_owned(), "JSON!".to_owned()), ("count".to_owned(), "Int!".to_owned())];
        for (ending, names, _) in self.parts(record) {
            fields.extend(names.iter().map(|name| (name.to_string(), format!("{}{ending}", record.name))));
        }
        fields
    }

    fn having_fields(&self, record: &RecordType) -> Vec<(String, String)> {
        let mut fields = with_operators("count", "Int");
        for (ending, names, _) in self.parts(record) {
            let ty = format!("{}{ending}Having", record.name);
            fields.extend(names.iter().map(|name| (name.to_string(), ty.clone())));
        }
        fields
    }

    /// The parts that have a field.
    fn parts(&self, record: &RecordType) -> Vec<(&'static str, &'static [&'static str], MeasureFields)> {
        let has_field = |fields: MeasureFields| !self.part_fields(record, fields, true).is_empty();
        PARTS.into_iter().filter(|(_, _, fields)| has_field(*fields)).collect()
    }

    fn part_fields(
        &self,
        record: &RecordType,
        part: MeasureFields,
        is_result: bool,
    ) -> Vec<(String, String)> {
        // A hidden key is not a field of the schema.
        let declared = self.schema.get_object(&record.name);
        let is_declared =
            |field: &&Field| declared.is_some_and(|ty| ty.fields.contains_key(field.name.as_str()));
        let is_wanted = |field: &&Field| part.contains(field) && !field.kind.is_id();
        let fields = record.fields.iter().filter(is_declared).filter(is_wanted);
        let ty = |field: &Field| match part {
            MeasureFields::Numbers if field.kind.scalar() == Some(Scalar::Float) => "Float".to_owned(),
            MeasureFields::Numbers => "Decimal".to_owned(),
            MeasureFields::Ordered => self.single_type(&record.name, field),
            MeasureFields::Comparable if is_result => "Int!".to_owned(),
            MeasureFields::Comparable => "Int".to_owned(),
        };
        fields.map(|field| (field.name.clone(), ty(field))).collect()
    }
}

/// The comparisons of a value: `total`, `total_ne`, `total_gte` ….
fn with_operators(name: &str, ty: &str) -> Vec<(String, String)> {
    let suffixes = FilterOperator::NAMES
        .into_iter()
        .filter(|(_, operator)| matches!(operator, FilterOperator::Compare(op) if *op != ComparisonOp::Eq));
    let named = suffixes.map(|(suffix, _)| (format!("{name}_{suffix}"), ty.to_owned()));
    std::iter::once((name.to_owned(), ty.to_owned())).chain(named).collect()
}
