//! Finds out whether anything was typed in a new row of a form.

use trefoil_model::{FieldId, Model, RecordType, Scalar};
use trefoil_resources::collection::NestedCollection;
use trefoil_resources::forms::form_input::ChildRow;
use trefoil_resources::forms::form_tree::ControlNode;

use crate::form::defaults::default_node;

/// True if nothing was typed in a new row. If its defaults make it complete, it is a record nevertheless, as the form shows it.
pub fn is_empty_row(model: &Model, child: &RecordType, list: &NestedCollection, row: &ChildRow) -> bool {
    let (mut all_blank, mut all_untouched, mut is_complete) = (true, true, true);
    let blank = ControlNode::default();
    for (position, field) in child.fields.iter().enumerate() {
        if Some(FieldId(position)) == list.reference() || !child.is_set_on_create(field) {
            continue;
        }
        let node = row.input.nodes.get(&FieldId(position)).unwrap_or(&blank);
        let default = default_node(model, field, 0);
        // A box that is not ticked.
        let is_checkbox = field.kind.scalar() == Some(Scalar::Boolean) && field.required;
        let is_off = is_checkbox && default.is_none() && node.last_text() == "false";
        let is_blank = node.is_blank() || is_off;
        let may_be_blank =
            !field.required || is_checkbox || field.kind.is_link() || field.kind.list_item().is_some();
        all_blank &= is_blank;
        all_untouched &= is_blank || default.is_some_and(|default| has_same_texts(node, &default));
        is_complete &= !is_blank || may_be_blank || field.has_default();
    }
    all_blank || (all_untouched && !is_complete)
}

/// True if the controls are as the default shows them, or blank.
fn has_same_texts(node: &ControlNode, default: &ControlNode) -> bool {
    let is_same = node.texts.iter().all(|text| text.trim().is_empty()) || sent(node) == sent(default);
    let is_same_child = |(name, child): (&String, &ControlNode)| {
        child.is_blank() || default.child(name).is_some_and(|default| has_same_texts(child, default))
    };
    is_same && node.children.iter().all(is_same_child)
}

/// The texts of a control, without what browsers add: blanks, `false` before a ticked box, and carriage returns.
fn sent(node: &ControlNode) -> Vec<String> {
    let texts = node.texts.iter().filter(|text| !text.trim().is_empty());
    let mut texts: Vec<String> = texts.map(|text| text.replace("\r\n", "\n")).collect();
    if texts.len() > 1 && texts[0] == "false" {
        texts.remove(0);
    }
    texts
}
