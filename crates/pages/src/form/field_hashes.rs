//! What the fields of a record were when its form was made, as short hashes that the form carries: so after somebody else
//! saved the record, each field tells who changed it.

use std::collections::HashMap;

use trefoil_model::{FieldId, Model, RecordType};
use trefoil_resources::forms::form_input::FormInput;
use trefoil_resources::forms::form_tree::ControlNode;
use trefoil_resources::forms::typed_values::ControlReader;
use xxhash_rust::xxh3::xxh3_64;

use crate::form::editable_record::EditableRecord;

/// The fields that were changed by both, in different ways, by the names of their controls.
pub struct DisputedFields(Vec<String>);

impl DisputedFields {
    pub fn has(&self, control: &str) -> bool {
        self.0.iter().any(|name| name == control)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// `name:1a2b3c4d email:99887766`
pub fn field_hashes(model: &Model, record: &RecordType, stored: &EditableRecord) -> String {
    let hash = |(id, node): (FieldId, ControlNode)| {
        format!("{}:{}", record.field(id).input_name, node_hash(model, record, id, &node))
    };
    // A hash of what the actor may not see could be guessed.
    let shown = stored.displayed_nodes(model, record).filter(|(id, _)| !stored.closed.contains(id));
    let hashes: Vec<String> = shown.map(hash).collect();
    hashes.join(" ")
}

/// Takes what only somebody else changed into the input. `None` if the form does not say what the fields were.
pub fn merge_saved(
    model: &Model,
    record: &RecordType,
    input: &mut FormInput,
    stored: &EditableRecord,
) -> Option<DisputedFields> {
    let base = input.base.clone()?;
    let base: HashMap<&str, &str> = base.split(' ').filter_map(|pair| pair.split_once(':')).collect();
    let mut disputed = Vec::new();
    for (id, saved) in stored.displayed_nodes(model, record) {
        let name = &record.field(id).input_name;
        let (Some(base), Some(own)) = (base.get(name.as_str()), input.nodes.get(&id)) else { continue };
        let [own, theirs] = [own, &saved].map(|node| node_hash(model, record, id, node));
        match (own == *base, theirs == *base) {
            (_, true) => {}
            (true, false) => drop(input.nodes.insert(id, saved)),
            (false, false) if own == theirs => {}
            (false, false) => disputed.push(name.clone()),
        }
    }
    Some(DisputedFields(disputed))
}

/// Of the value, not of the text: browsers change line ends and the like.
fn node_hash(model: &Model, record: &RecordType, id: FieldId, node: &ControlNode) -> String {
    let mut reader = ControlReader::new(model);
    let value = reader.read_field(record.field(id), node);
    let text = match reader.violations.is_empty() {
        true => value.to_json().to_string(),
        false => format!("{:?}", node.texts),
    };
    format!("{:08x}", xxh3_64(text.as_bytes()) as u32)
}
