//! [`ImageList`]: images to be read as an actor sees them.

use std::sync::Arc;

use trefoil_model::RecordType;
use trefoil_model::naming::names::{VERSION_COLUMN, key_column};

use crate::changes::record_image::RecordImage;

/// Images of records, to be read as an actor sees them.
#[derive(Debug, Clone)]
pub struct ImageList {
    pub images: Arc<[RecordImage]>,
    /// The columns whose texts are JSON.
    pub json_columns: Arc<[String]>,
}

/// The columns of a record as the rows of an [`ImageList`] have them, after the position of the image.
pub fn seen_columns(record: &RecordType) -> Vec<String> {
    let mut columns = Vec::with_capacity(record.fields.len() + 1);
    for field in &record.fields {
        if field.is_stored() {
            columns.push(field.column.clone());
        }
        if field.may_be_hidden && field.kind.is_reference() {
            columns.push(key_column(&field.column));
        } else if field.may_be_hidden && field.kind.relation().is_some() {
            columns.push(key_column(&field.name));
        }
    }
    columns.push(VERSION_COLUMN.to_owned());
    columns
}
