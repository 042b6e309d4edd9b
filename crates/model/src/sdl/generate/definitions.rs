//! The definitions that a schema lacks: its operations, and the types that these need, unless it declares them.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use apollo_compiler::Schema;
use apollo_compiler::schema::ExtendedType;

use crate::RootType;
use crate::sdl::diagnostic_log::{DiagnosticLog, type_span};
use crate::sdl::generate::generated_operations::GenerationRequest;
use crate::sdl::generate::generated_type::{GeneratedType, inner_name};
use crate::sdl::generate::input_types::FieldTypes;
use crate::sdl::generate::operations::GeneratedOperation;
use crate::sdl::generate::{
    declared_types, input_types, nested_types, operations, result_types, where_types,
};
use crate::sdl::record_types::PartialModel;
use crate::sdl::root_fields;

/// The definitions that the schema lacks; empty if it lacks none.
pub(crate) fn generated_definitions(
    schema: &Schema,
    model: &PartialModel,
    request: &GenerationRequest,
    log: &mut DiagnosticLog,
) -> String {
    let mut generator = SdlGenerator {
        schema,
        model,
        log,
        types: HashMap::new(),
        type_sdl: String::new(),
        roots: [String::new(), String::new(), String::new()],
        taken: declared_root_fields(schema),
    };
    for (position, record) in model.records.iter().enumerate() {
        let operations = operations::operations_of(schema, model, position, request.flags(&record.name));
        generator.add_operations(position, operations);
    }
    for (position, record) in model.records.iter().enumerate() {
        if request.flags(&record.name).aggregates {
            generator.add_summaries(position, request);
        }
    }
    generator.finish()
}

struct SdlGenerator<'a> {
    schema: &'a Schema,
    model: &'a PartialModel,
    log: &'a mut DiagnosticLog,
    /// Why a type cannot be used, by name; `None` if it can.
    types: HashMap<String, Option<String>>,
    type_sdl: String,
    /// The fields of Query, Mutation and Subscription.
    roots: [String; 3],
    taken: HashSet<(RootType, String)>,
}

const ROOT_KINDS: [RootType; 3] = [RootType::Query, RootType::Mutation, RootType::Subscription];

fn declared_root_fields(schema: &Schema) -> HashSet<(RootType, String)> {
    let mut names = HashSet::new();
    for (kind, type_name) in root_fields::root_types(schema) {
        let fields = schema.get_object(type_name).into_iter().flat_map(|ty| ty.fields.keys());
        names.extend(fields.map(|name| (kind, name.to_string())));
    }
    names
}

impl SdlGenerator<'_> {
    /// Adds the operations of a record type that are not declared and whose types can be used.
    fn add_operations(&mut self, position: usize, operations: Vec<GeneratedOperation>) {
        let wanted: Vec<GeneratedOperation> = operations
            .into_iter()
            .filter(|operation| !self.taken.contains(&(operation.root, operation.name.clone())))
            .collect();
        let mut reported: Vec<&str> = Vec::new();
        for operation in &wanted {
            let unusable =
                operation.types.iter().find_map(|ty| Some((ty.as_str(), self.use_type(position, ty)?)));
            let Some((type_name, reason)) = unusable else {
                let _ = writeln!(self.roots[operation.root as usize], "  {}", operation.sdl);
                self.taken.insert((operation.root, operation.name.clone()));
                continue;
            };
            if !reported.contains(&type_name) {
                reported.push(type_name);
                let with_type = wanted.iter().filter(|other| other.types.iter().any(|ty| ty == type_name));
                let names: Vec<String> = with_type.map(|other| format!("`{}`", other.name)).collect();
                self.report_unusable(position, &reason, &names);
            }
        }
    }

    /// Adds the fields of a record type that count and group its related records, as far as their types can be used.
    fn add_summaries(&mut self, position: usize, request: &GenerationRequest) {
        let record = &self.model.records[position];
        let Some(declared) = self.schema.get_object(&record.name) else { return };
        let mut fields = String::new();
        for field in &record.fields {
            let relation = field.kind.relation().filter(|_| !field.kind.is_reference());
            let Some(target) = relation.map(|relation| relation.target().0) else { continue };
            if !request.flags(&self.model.records[target].name).aggregates {
                continue;
            }
            for summary in operations::summary_fields(self.schema, self.model, &field.name, target) {
                let is_usable = summary.types.iter().all(|ty| self.use_type(target, ty).is_none());
                if is_usable && !declared.fields.contains_key(summary.name.as_str()) {
                    let _ = writeln!(fields, "  {}", summary.sdl);
                }
            }
        }
        if !fields.is_empty() {
            let _ = write!(self.type_sdl, "\nextend type {} {{\n{fields}}}\n", record.name);
        }
    }

    /// Makes a type available; the reason if the schema declares another one of that name.
    fn use_type(&mut self, position: usize, name: &str) -> Option<String> {
        if let Some(known) = self.types.get(name) {
            return known.clone();
        }
        // A type may contain itself.
        self.types.insert(name.to_owned(), None);
        let mut definition = self.definition(position, name)?;
        let reason = match self.schema.types.get(name) {
            Some(declared) => declared_types::misfit(self.schema, declared, &definition),
            None => {
                // What a type may lack is left out: conditions on records whose type of conditions cannot be used, and
                // related records whose types cannot. The others come first, because a type that is looked at while
                // this one is may contain it.
                let may_lack =
                    |ty: &str| where_types::is_where_name(name) || nested_types::is_nested_name(ty);
                let inner = definition.fields.iter().map(|(_, ty)| inner_name(ty).to_owned());
                let needed: Vec<String> = inner.filter(|inner| !may_lack(inner)).collect();
                let unusable = needed.iter().find_map(|inner| self.use_type(position, inner));
                if unusable.is_none() {
                    definition.fields.retain(|(_, ty)| {
                        !may_lack(inner_name(ty)) || self.use_type(position, inner_name(ty)).is_none()
                    });
                    self.type_sdl.push_str(&definition.to_sdl());
                }
                unusable
            }
        };
        self.types.insert(name.to_owned(), reason.clone());
        reason
    }

    /// The definition of a type that can be generated; `None` for those of the schema itself.
    fn definition(&self, position: usize, name: &str) -> Option<GeneratedType> {
        let record = &self.model.records[position];
        input_types::input_type(self.schema, self.model, name).or_else(|| {
            let types = FieldTypes { schema: self.schema, model: self.model };
            types
                .aggregate_type(record, name)
                .or_else(|| result_types::result_type(record, &types.key_type(position), name))
        })
    }

    fn report_unusable(&mut self, position: usize, reason: &str, operations: &[String]) {
        let record = &self.model.records[position];
        let are = if operations.len() == 1 { "is" } else { "are" };
        let message = format!("{} {are} not generated: {reason}", operations.join(", "));
        let span = type_span(self.schema, record);
        self.log
            .warning(span, "NOT_GENERATED", message)
            .label(format!("operations of `{}`", record.name))
            .help("rename that type, or declare the operations yourself");
    }

    fn finish(mut self) -> String {
        let mut sdl = std::mem::take(&mut self.type_sdl);
        let mut new_roots = Vec::new();
        for kind in ROOT_KINDS {
            let fields = std::mem::take(&mut self.roots[kind as usize]);
            if fields.is_empty() {
                continue;
            }
            let default_name = kind.default_name();
            let bound = root_fields::root_types(self.schema).into_iter().find(|(root, _)| *root == kind);
            let name = bound.map_or(default_name, |(_, name)| name);
            match self.schema.types.get(name) {
                Some(ExtendedType::Object(_)) if bound.is_some() => {
                    let _ = write!(sdl, "\nextend type {name} {{\n{fields}}}\n");
                }
                Some(_) => self.report_taken_root(name, kind),
                None => {
                    let _ = write!(sdl, "\ntype {name} {{\n{fields}}}\n");
                    if bound.is_none() {
                        new_roots.push(format!("{}: {name}", kind.keyword()));
                    }
                }
            }
        }
        // Without a schema definition, the names of the types alone make them root types.
        if is_schema_defined(self.schema) && !new_roots.is_empty() {
            let _ = write!(sdl, "\nextend schema {{ {} }}\n", new_roots.join(" "));
        }
        sdl.trim_start().to_owned()
    }

    fn report_taken_root(&mut self, name: &str, kind: RootType) {
        let span = self.schema.types.get(name).and_then(|ty| ty.name().location());
        let operation = kind.keyword();
        let message =
            format!("no {operation} is generated: `{name}` is a type of the schema, not its root type");
        let help = format!("declare another root type: `schema {{ {operation}: Root{name} … }}`");
        self.log.warning(span, "NOT_GENERATED", message).label("this type has its name").help(help);
    }
}

/// True if the schema says `schema { … }`.
fn is_schema_defined(schema: &Schema) -> bool {
    schema.schema_definition.location().is_some()
}
