//! The defaults that the controls of a form begin with.

use trefoil_model::{Field, FieldId, Model, RecordType, ValueType};
use trefoil_resources::forms::form_input::FormInput;
use trefoil_resources::forms::form_tree::ControlNode;

use crate::form::value_texts::{MAX_EMBEDDED_DEPTH, value_node};

/// Fills empty controls with defaults. A link field of an edited record that is not in the input has too many records to
/// show: its control is hidden, because a blank one would remove all links.
pub fn fill_defaults(model: &Model, record: &RecordType, input: &mut FormInput, is_new: bool) {
    for (position, field) in record.fields.iter().enumerate() {
        let id = FieldId(position);
        if !field.is_writable() || input.nodes.contains_key(&id) {
            continue;
        }
        if field.kind.is_link() {
            if !is_new {
                input.hidden_fields.push(id);
            }
        } else if let Some(node) = default_node(model, field, 0) {
            input.nodes.insert(id, node);
        }
    }
}

/// The default of a field; for a required embedded value, the defaults of its fields.
pub fn default_node(model: &Model, field: &Field, depth: usize) -> Option<ControlNode> {
    if let Some(default) = &field.default {
        return Some(value_node(model, &field.kind, default, depth));
    }
    let Some(ValueType::Embedded(name)) = field.kind.value_type() else { return None };
    if !field.required || depth >= MAX_EMBEDDED_DEPTH {
        return None;
    }
    let mut node = ControlNode::default();
    for inner in &model.embedded.get(name)?.fields {
        if let Some(child) = default_node(model, inner, depth + 1) {
            node.children.insert(inner.name.clone(), child);
        }
    }
    Some(node)
}
