//! What is said about names that an operation does not know.

use trefoil_model::naming::names;
use trefoil_model::{Argument, Field, Model, RecordType};

use crate::arguments::argument_roles::{inverse_field, member_role, takes_records};
use crate::builtin_operation::{ArgumentRole, OperationVerb, VerbGroup};

/// The message for an argument without a role.
pub(crate) fn unknown_argument_message(record: &RecordType, verb: OperationVerb, name: &str) -> String {
    unknown_name_message(record, verb, name, |_| true)
}

/// The same with none but the fields that may be offered to whoever gets the message.
pub(crate) fn unknown_name_message(
    record: &RecordType,
    verb: OperationVerb,
    name: &str,
    may_offer: impl Fn(&Field) -> bool,
) -> String {
    let owner = &record.name;
    let text = match verb.group() {
        VerbGroup::WriteFields => format!("{owner} has no field `{name}` that can be set"),
        VerbGroup::ReadMany | VerbGroup::Subscribe => format!("{owner} has no field `{name}` to filter by"),
        VerbGroup::Delete if verb == OperationVerb::DeleteMany => {
            return format!("`{name}` is not known; use `where`");
        }
        VerbGroup::ReadOne | VerbGroup::Delete => return not_identified_message(record, name),
    };
    // A field that the operation does take, by the name that clients use.
    let known = record.fields.iter().filter(|field| may_offer(field));
    let known = known.map(|field| field.input_name.as_str());
    let known = known.filter(|known| member_role(record, verb, known) != ArgumentRole::Unknown);
    match names::nearest_name(name, known) {
        Some(nearest) => format!("{text}; did you mean `{nearest}`?"),
        None => text,
    }
}

/// The message for a name that is not that of the key.
pub(crate) fn not_identified_message(record: &RecordType, name: &str) -> String {
    let key = &record.field(record.id_field()).input_name;
    format!("`{name}` does not identify a {}; use `{key}`", record.name)
}

/// The message for an unknown member of an input object, `None` if it is known. `id` is allowed, because operations
/// often share one input type.
pub(crate) fn unknown_member_message(
    model: &Model,
    record: &RecordType,
    verb: OperationVerb,
    member: &Argument,
) -> Option<String> {
    let name = member.name.as_str();
    let is_unknown = name != "id" && member_role(record, verb, name) == ArgumentRole::Unknown;
    let is_unknown = is_unknown && !describes_inverse(model, record, verb, member);
    is_unknown.then(|| unknown_argument_message(record, verb, name))
}

/// True if the member holds records that refer to this one.
fn describes_inverse(model: &Model, record: &RecordType, verb: OperationVerb, member: &Argument) -> bool {
    let is_object = model.schema.get_input_object(member.ty.inner_name()).is_some();
    is_object && takes_records(verb, member) && inverse_field(record, &member.name).is_some()
}
