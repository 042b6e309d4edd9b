//! Finds the fields of connections and pages that nothing answers.

use std::collections::HashSet;

use trefoil_model::sdl::schema_warning::SchemaWarning;
use trefoil_model::{Model, PageField};

use crate::builtin_operation::ResultShape;
use crate::engine::{ResolverBinding, ResolverRegistry};

/// Warnings about the fields of the types around records that lists return.
pub fn page_warnings(
    model: &Model,
    bindings: &[ResolverBinding],
    registry: &ResolverRegistry,
) -> Vec<SchemaWarning> {
    let mut checked = CheckedTypes { model, registry, seen: HashSet::new(), warnings: Vec::new() };
    for (root, binding) in model.root_fields.iter().zip(bindings) {
        let shape = match binding {
            ResolverBinding::Builtin(builtin) => builtin.result_shape,
            ResolverBinding::Abstract(operation) => operation.result_shape,
            ResolverBinding::Registered(_) | ResolverBinding::Missing(_) => continue,
        };
        if shape == ResultShape::Connection {
            checked.check_page(model.success_type(root.ty.inner_name()));
        }
    }
    for record in &model.records {
        let Some(object) = model.schema.get_object(&record.name) else { continue };
        for field in record.fields.iter().filter(|field| field.kind.relation().is_some()) {
            let ty = object.fields.get(field.name.as_str()).map(|field| field.ty.inner_named_type().as_str());
            if let Some(page) = ty.filter(|ty| model.connection_node(ty).is_some()) {
                checked.check_page(page);
            }
        }
    }
    checked.warnings
}

struct CheckedTypes<'a> {
    model: &'a Model,
    registry: &'a ResolverRegistry,
    /// Several lists may return the same type.
    seen: HashSet<&'a str>,
    warnings: Vec<SchemaWarning>,
}

impl<'a> CheckedTypes<'a> {
    fn check_page(&mut self, type_name: &'a str) {
        let model = self.model;
        self.check_type(type_name, |field| model.page_field(type_name, field).is_some());
        let Some(object) = model.schema.get_object(type_name) else { return };
        for field in object.fields.values() {
            let inner = field.ty.inner_named_type().as_str();
            match model.page_field(type_name, &field.name) {
                Some(PageField::Edges) => self.check_type(inner, |field| matches!(field, "cursor" | "node")),
                Some(PageField::Info) => {
                    self.check_type(inner, |field| model.page_part(inner, field).is_some());
                }
                Some(PageField::Records | PageField::Part(_)) | None => {}
            }
        }
    }

    fn check_type(&mut self, type_name: &'a str, is_answered: impl Fn(&str) -> bool) {
        let Some(object) = self.model.schema.get_object(type_name) else { return };
        if !self.seen.insert(type_name) {
            return;
        }
        for name in object.fields.keys() {
            if !is_answered(name) && self.registry.get(type_name, name).is_none() {
                self.warnings.push(SchemaWarning {
                    code: "PAGE_FIELD",
                    type_name: type_name.to_owned(),
                    field: name.to_string(),
                    argument: None,
                    message: format!("no resolver for field `{type_name}.{name}`: its name and its type do not say what it is of a page"),
                    label: "returns an error when used",
                    help: "use a name and a type that pages have, such as `totalPages: Int`, or register a resolver for it".to_owned(),
                });
            }
        }
    }
}
