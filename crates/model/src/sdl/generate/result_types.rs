//! The result types of generated operations: connections, and changes.

use crate::RecordType;
use crate::naming::names::operation_names;
use crate::sdl::generate::generated_type::GeneratedType;

pub(super) const PAGE_INFO: &str = "PageInfo";

pub(super) const CHANGE_KIND: &str = "ChangeKind";

pub(super) fn change_name(record: &RecordType) -> String {
    format!("{}Change", record.name)
}

pub(super) fn connection_name(record: &RecordType) -> String {
    format!("{}Connection", record.name)
}

fn edge_name(record: &RecordType) -> String {
    format!("{}Edge", record.name)
}

/// The result type of this name, if it is one of the record type or of all.
pub(super) fn result_type(record: &RecordType, key_type: &str, name: &str) -> Option<GeneratedType> {
    let names = operation_names(&record.name);
    let [_, record_field] = &names.get;
    let keyword = if name == CHANGE_KIND { "enum" } else { "type" };
    let fields = if name == connection_name(record) {
        vec![
            ("edges", format!("[{}!]!", edge_name(record))),
            ("pageInfo", format!("{PAGE_INFO}!")),
            ("totalCount", "Int!".to_owned()),
        ]
    } else if name == edge_name(record) {
        vec![("node", format!("{}!", record.name)), ("cursor", "String!".to_owned())]
    } else if name == PAGE_INFO {
        let flag = || "Boolean!".to_owned();
        let cursor = || "String".to_owned();
        vec![
            ("hasNextPage", flag()),
            ("hasPreviousPage", flag()),
            ("startCursor", cursor()),
            ("endCursor", cursor()),
        ]
    } else if name == change_name(record) {
        vec![
            ("kind", format!("{CHANGE_KIND}!")),
            ("id", format!("{key_type}!")),
            ("version", "Int!".to_owned()),
            (record_field, record.name.clone()),
            ("changed", "[String!]!".to_owned()),
        ]
    } else if name == CHANGE_KIND {
        ["CREATED", "UPDATED", "DELETED"].map(|value| (value, String::new())).to_vec()
    } else {
        return None;
    };
    let fields = fields.into_iter().map(|(name, ty)| (name.to_owned(), ty)).collect();
    Some(GeneratedType { name: name.to_owned(), keyword, fields })
}
