//! Fields that rules may hide: they are nullable where records are shown, whatever is required of those who write.

use apollo_compiler::Schema;
use apollo_compiler::schema::ExtendedType;

use crate::access::access_model::AccessModel;
use crate::{RecordType, Relation};

/// Marks the fields with a rule for reading, and the references to records that not everybody may read.
pub(crate) fn mark_hidden_fields(records: &mut [RecordType], access: &AccessModel) {
    for (record, rules) in records.iter_mut().zip(&access.types) {
        for (field, own) in record.fields.iter_mut().zip(&rules.fields) {
            let target = field.kind.relation().map(Relation::target);
            let of_target =
                target.filter(|_| field.kind.is_reference()).map(|target| &access.types[target.0].read);
            let mut rules = own.read.iter().chain(of_target);
            field.may_be_hidden = !field.kind.is_id() && rules.any(|rule| !rule.test.is_always());
        }
        // `teamId` beside `team` shows the same record.
        for position in 0..record.fields.len() {
            let field = &record.fields[position];
            let shown = field.kind.is_unstored().then(|| record.find_shown_reference(&field.name)).flatten();
            if shown.is_some_and(|reference| record.field(reference).may_be_hidden) {
                record.fields[position].may_be_hidden = true;
            }
        }
    }
}

/// Makes the marked fields nullable in the types of records, and in the interfaces that these implement.
pub(crate) fn make_nullable(schema: &mut Schema, records: &[RecordType]) {
    for record in records {
        for field in record.fields.iter().filter(|field| field.may_be_hidden) {
            let interfaces = schema.get_object(&record.name).map(|ty| ty.implements_interfaces.clone());
            let interfaces = interfaces.into_iter().flatten().map(|interface| interface.name.to_string());
            for name in interfaces.chain([record.name.clone()]) {
                let fields = match schema.types.get_mut(name.as_str()) {
                    Some(ExtendedType::Object(ty)) => &mut ty.make_mut().fields,
                    Some(ExtendedType::Interface(ty)) => &mut ty.make_mut().fields,
                    Some(
                        ExtendedType::Scalar(_)
                        | ExtendedType::Union(_)
                        | ExtendedType::Enum(_)
                        | ExtendedType::InputObject(_),
                    )
                    | None => continue,
                };
                if let Some(declared) = fields.get_mut(field.name.as_str()) {
                    let declared = declared.make_mut();
                    declared.ty = declared.ty.clone().nullable();
                }
            }
        }
    }
}
