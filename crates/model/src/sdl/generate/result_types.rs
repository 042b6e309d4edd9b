//! The result types of generated operations: connections.

use crate::RecordType;
use crate::sdl::generate::generated_type::GeneratedType;

pub(super) const PAGE_INFO: &str = "PageInfo";

pub(super) fn connection_name(record: &RecordType) -> String {
    format!("{}Connection", record.name)
}

fn edge_name(record: &RecordType) -> String {
    format!("{}Edge", record.name)
}

/// The result type of this name, if it is one of the record type or of all.
pub(super) fn result_type(record: &RecordType, name: &str) -> Option<GeneratedType> {
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
    } else {
        return None;
    };
    let fields = fields.into_iter().map(|(name, ty)| (name.to_owned(), ty)).collect();
    Some(GeneratedType { name: name.to_owned(), keyword: "type", fields })
}
