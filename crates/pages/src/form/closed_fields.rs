//! What a form leaves out: fields that the schema keeps from forms or that its actor may not set, and lists that they may
//! not see.

use trefoil_engine::Engine;
use trefoil_model::access::AccessAction;
use trefoil_model::{FieldId, RecordTypeId};
use trefoil_resources::collection::NestedCollection;

/// The fields without a control: what no form has, and what the actor may never set, or never see once it is set.
pub fn closed_fields(engine: &Engine, action: AccessAction, record: RecordTypeId) -> Vec<FieldId> {
    let fields = engine.model().record(record).fields.iter().enumerate();
    let closed = fields.map(|(position, field)| (FieldId(position), field)).filter(|(id, field)| {
        // A new record has the values that were typed, whoever may read them. But records are chosen among others.
        let is_read = action != AccessAction::Create || field.kind.relation().is_some();
        let is_off = field.display.off.form || field.display.is_read_only;
        is_off || !engine.may_set(action, record, *id) || (is_read && !engine.shows_field(record, *id))
    });
    closed.map(|(id, _)| id).collect()
}

/// Whether the actor may see the records of a list and which of them belong to the record.
pub fn is_list_open(engine: &Engine, record: RecordTypeId, list: &NestedCollection) -> bool {
    !engine.model().record(record).field(list.field).display.off.form
        && engine.shows_field(record, list.field)
        && list.reference().is_none_or(|reference| engine.shows_field(list.record, reference))
}
