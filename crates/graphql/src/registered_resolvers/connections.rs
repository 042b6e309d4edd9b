//! Resolves fields of related records in connections, those of all parents together.

use std::sync::Arc;

use trefoil_engine::{OwnedRow, ResolverResult};
use trefoil_model::Value;

use crate::plan::shape::{FieldShape, ObjectShape, RelatedConnection};
use crate::registered_resolvers::resolved_tree::{
    NodeSource, ResolvedConnection, ResolvedFields, ResolvedTree,
};
use crate::registered_resolvers::run::{ResolverExecution, property_value};

impl ResolverExecution<'_> {
    /// Resolves a field that shows the related records of many objects in connections.
    pub(super) async fn resolve_connections(
        &self,
        field: &FieldShape,
        related: &Arc<RelatedConnection>,
        sources: &[NodeSource],
    ) -> Vec<ResolvedTree> {
        let rows: Vec<&OwnedRow> = sources.iter().filter_map(NodeSource::row).collect();
        let values = sources.iter().filter_map(|source| match source {
            NodeSource::Value(value) => {
                Some(Ok(ResolverResult::Value(property_value(value, &field.label.name))))
            }
            NodeSource::Row(_) => None,
        });
        let mut of_values = self.complete_values(&field.slot, values.collect()).await.into_iter();
        let mut of_rows = self.resolve_row_connections(related, &rows).await.into_iter();
        let trees = sources.iter().map(|source| match source {
            NodeSource::Value(_) => of_values.next(),
            NodeSource::Row(_) => {
                of_rows.next().map(|connection| ResolvedTree::Connection(Box::new(connection)))
            }
        });
        trees.map(|tree| tree.unwrap_or(ResolvedTree::Value(Value::Null))).collect()
    }

    async fn resolve_row_connections(
        &self,
        related: &Arc<RelatedConnection>,
        parents: &[&OwnedRow],
    ) -> Vec<ResolvedConnection> {
        let records: Vec<&[OwnedRow]> = parents.iter().map(|parent| related.page_rows(parent)).collect();
        let mut connections: Vec<ResolvedConnection> = Vec::with_capacity(parents.len());
        for (parent, records) in parents.iter().zip(&records) {
            let nodes = records.iter().map(|_| Vec::new()).collect();
            let (related, parent) = (related.clone(), (*parent).clone());
            connections.push(ResolvedConnection {
                related,
                parent,
                nodes,
                fields: ResolvedFields::default(),
            });
        }
        let sources = || -> Vec<NodeSource> {
            records.iter().flat_map(|records| records.iter().cloned()).map(NodeSource::Row).collect()
        };
        for shape in related.connection.node_shapes() {
            let mut nodes = self.resolve_objects(&shape, sources()).await.into_iter();
            for of_record in connections.iter_mut().flat_map(|connection| &mut connection.nodes) {
                of_record.extend(nodes.next());
            }
        }
        let (of_connection, of_edges) = related.connection.resolver_fields();
        for field in of_connection {
            let trees = self.call_for_each(&field, vec![Value::Null; parents.len()]).await;
            for (connection, tree) in connections.iter_mut().zip(trees) {
                connection.fields.add(field.clone(), vec![tree]);
            }
        }
        for field in of_edges {
            let parent = related.connection.parent.as_deref();
            let value =
                |source| parent.map_or(Value::Null, |shape: &ObjectShape| self.parent_value(shape, &source));
            let mut trees =
                self.call_for_each(&field, sources().into_iter().map(value).collect()).await.into_iter();
            for (connection, records) in connections.iter_mut().zip(&records) {
                connection.fields.add(field.clone(), trees.by_ref().take(records.len()).collect());
            }
        }
        connections
    }
}

impl RelatedConnection {
    /// The records on the page of a row.
    fn page_rows<'r>(&self, parent: &'r OwnedRow) -> &'r [OwnedRow] {
        let rows = self.records.map_or(&[][..], |child| parent.children[child].as_slice());
        &rows[self.shown(rows.len()).0]
    }
}

impl NodeSource {
    fn row(&self) -> Option<&OwnedRow> {
        match self {
            NodeSource::Row(row) => Some(row),
            NodeSource::Value(_) => None,
        }
    }
}
