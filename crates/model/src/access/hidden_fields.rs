//! Fields that rules may hide: they are nullable where records are shown, whatever is required of those who write.

use apollo_compiler::Schema;
use apollo_compiler::schema::ExtendedType;

use crate::access::access_model::AccessModel;
use crate::{Field, Model, RecordType, RecordTypeId, Relation};

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

impl Model {
    /// Whether every record of the type is read by everybody.
    pub fn is_read_by_all(&self, record: RecordTypeId) -> bool {
        self.access.as_ref().is_none_or(|access| access.types[record.0].read.test.is_always())
    }

    /// Whether nobody who may read the record of a field is kept from the field, so that messages which are the same for
    /// all may offer its name.
    pub fn is_shown_to_all(&self, field: &Field) -> bool {
        let target = field.kind.relation().map(Relation::target);
        !field.may_be_hidden && target.is_none_or(|target| self.is_read_by_all(target))
    }

    /// Whether messages about records of the type `asked` may offer the name of a field of this type.
    pub fn may_offer(&self, asked: &RecordType, owner: &RecordType, field: &Field) -> bool {
        let is_read = || self.find_record(&owner.name).is_some_and(|owner| self.is_read_by_all(owner));
        self.is_shown_to_all(field) && (asked.name == owner.name || is_read())
    }

    /// Whether some rule keeps somebody from giving the field in a write.
    pub fn may_be_refused(&self, owner: &RecordType, field: &Field) -> bool {
        let position = owner.fields.iter().position(|own| own.name == field.name);
        let of_type = self.find_record(&owner.name);
        let rules = self.access.as_ref().zip(of_type).zip(position);
        rules.is_some_and(|((access, record), position)| {
            let rules = &access.types[record.0].fields[position];
            rules.create.iter().chain(&rules.update).any(|rule| !rule.test.is_always())
        })
    }
}
