//! Which operations, arguments and fields of results are closed.

use std::collections::{BTreeMap, BTreeSet};

use trefoil_model::access::AccessAction;
use trefoil_model::{FieldId, Model, RecordTypeId, Relation, RelationSummary, RootField, RootType};

use crate::abstract_operation::AbstractOperation;
use crate::arguments::argument_roles::member_role;
use crate::builtin_operation::{ArgumentRole, BuiltinOperation, OperationVerb};
use crate::closed_schema::closed_inputs::ClosedInputReader;
use crate::closed_schema::closed_names::{ClosedNames, add_name};
use crate::closed_schema::input_members::{GivenShape, InputMeaning, InputReader};
use crate::engine::{Engine, ResolverBinding};
use crate::operation::MeasureFunction;

/// Reads the closed parts of a schema for one actor.
pub struct ClosedOutputReader<'e> {
    engine: &'e Engine,
    model: &'e Model,
    inputs: ClosedInputReader<'e>,
    closed: ClosedNames,
    /// Fields of the measures of groups, and whether a group shows one of them.
    measures: BTreeMap<(String, String), bool>,
}

impl<'e> ClosedOutputReader<'e> {
    pub fn new(engine: &'e Engine) -> ClosedOutputReader<'e> {
        let (model, reader) = (engine.model(), InputReader { engine });
        let inputs = ClosedInputReader::new(reader, model);
        ClosedOutputReader {
            engine,
            model,
            inputs,
            closed: ClosedNames::default(),
            measures: BTreeMap::new(),
        }
    }

    pub fn read(mut self) -> ClosedNames {
        self.read_roots();
        for record in (0..self.model.records.len()).map(RecordTypeId) {
            self.read_record(record);
        }
        for ((type_name, name), is_open) in &self.measures {
            if !is_open {
                add_name(&mut self.closed.fields, type_name, name);
            }
        }
        self.closed.inputs = self.inputs.closed();
        self.closed
    }

    fn is_readable(&self, record: RecordTypeId) -> bool {
        self.engine.may(AccessAction::Read, record)
    }

    fn read_roots(&mut self) {
        let (model, engine) = (self.model, self.engine);
        let mut read_types = BTreeSet::new();
        let mut other_types = BTreeSet::new();
        for (root, binding) in model.root_fields.iter().zip(engine.bindings()) {
            let (is_open, members): (bool, Vec<&BuiltinOperation>) = match binding {
                ResolverBinding::Builtin(builtin) => {
                    (is_operation_open(engine, root, builtin), vec![builtin.as_ref()])
                }
                ResolverBinding::Abstract(operation) => {
                    read_types.insert(operation.type_name.as_str());
                    (is_abstract_open(engine, operation), operation.members.iter().collect())
                }
                ResolverBinding::Registered(_) | ResolverBinding::Missing(_) => {
                    (engine.check_call(root.root_kind, &root.name).is_ok(), Vec::new())
                }
            };
            if !matches!(binding, ResolverBinding::Abstract(_)) && is_open {
                other_types.insert(root.ty.inner_name());
            }
            let owner = root_name(model, root.root_kind);
            if !is_open || !self.read_arguments(&owner, root, &members) {
                add_name(&mut self.closed.fields, &owner, &root.name);
            } else if let [builtin] = members.as_slice() {
                self.read_groups(builtin.record, builtin.verb, root.ty.inner_name());
            }
        }
        // Who may not read a type meets it only where it is the result of something else.
        for type_name in read_types.difference(&other_types) {
            for record in model.abstract_records(type_name).unwrap_or_default() {
                if !self.is_readable(record) {
                    add_name(&mut self.closed.members, type_name, &model.record(record).name);
                }
            }
        }
    }

    /// Closes the arguments of a root field; false if one of them is required. Of several operations, all take the argument.
    fn read_arguments(&mut self, owner: &str, root: &RootField, members: &[&BuiltinOperation]) -> bool {
        let reader = InputReader { engine: self.engine };
        let mut open = Vec::new();
        for (position, argument) in root.arguments.iter().enumerate() {
            let type_name = argument.ty.inner_name();
            let shape = GivenShape::new(self.model, type_name, argument.ty.is_list());
            let meanings: Vec<InputMeaning> = members
                .iter()
                .map(|builtin| {
                    let (name, role) = &builtin.argument_roles[position];
                    reader.argument(builtin.record, builtin.verb, name, role, shape)
                })
                .collect();
            if meanings.iter().all(|meaning| self.inputs.is_usable(type_name, meaning)) {
                open.extend(meanings.into_iter().map(|meaning| (type_name, meaning)));
            } else {
                add_name(&mut self.closed.arguments, &format!("{owner}.{}", root.name), &argument.name);
                if argument.ty.is_required() {
                    return false;
                }
            }
        }
        open.iter().for_each(|(type_name, meaning)| self.inputs.visit(type_name, meaning));
        true
    }

    /// Notes which measures the groups of these records show.
    fn read_groups(&mut self, record: RecordTypeId, verb: OperationVerb, type_name: &str) {
        if verb != OperationVerb::Aggregate {
            return;
        }
        let Some(groups) = self.model.schema.get_object(type_name) else { return };
        for part in groups.fields.values().filter(|part| MeasureFunction::from_name(&part.name).is_some()) {
            let part_type = part.ty.inner_named_type();
            let Some(measures) = self.model.schema.get_object(part_type) else { continue };
            for name in measures.fields.keys() {
                let field = self.model.record(record).find_input_field(name);
                let is_open = field.is_none_or(|field| self.engine.shows_field(record, field));
                *self.measures.entry((part_type.to_string(), name.to_string())).or_default() |= is_open;
            }
        }
    }

    fn read_record(&mut self, id: RecordTypeId) {
        let (model, record) = (self.model, self.model.record(id));
        let Some(object) = model.schema.get_object(&record.name) else { return };
        let is_readable = self.is_readable(id);
        for field in object.fields.values() {
            let name = field.name.as_str();
            let summary = model.relation_summary(record, name);
            let relation = summary.map(|summary| match summary {
                RelationSummary::Count(relation) | RelationSummary::Groups(relation) => relation,
            });
            let shown = relation.or_else(|| self.shown_field(id, name));
            let is_open = shown.is_none_or(|shown| {
                let is_id = record.id_field() == shown;
                self.engine.shows_field(id, shown) && (is_id || is_readable)
            });
            if !is_open {
                add_name(&mut self.closed.fields, &record.name, name);
                continue;
            }
            let target = shown.and_then(|shown| record.field(shown).kind.relation()).map(Relation::target);
            let Some(target) = target else { continue };
            let verb = match summary {
                Some(RelationSummary::Groups(_)) => OperationVerb::Aggregate,
                Some(RelationSummary::Count(_)) | None => OperationVerb::List,
            };
            self.read_groups(target, verb, field.ty.inner_named_type());
            let reader = InputReader { engine: self.engine };
            for argument in &field.arguments {
                let role = member_role(model.record(target), verb, &argument.name);
                let type_name = argument.ty.inner_named_type();
                let shape = GivenShape::new(model, type_name, argument.ty.is_list());
                let meaning = reader.argument(target, verb, &argument.name, &role, shape);
                if self.inputs.is_usable(type_name, &meaning) {
                    self.inputs.visit(type_name, &meaning);
                } else {
                    let owner = format!("{}.{name}", record.name);
                    add_name(&mut self.closed.arguments, &owner, &argument.name);
                }
            }
        }
    }

    /// The field of the model whose content the schema shows under this name.
    fn shown_field(&self, record: RecordTypeId, name: &str) -> Option<FieldId> {
        let owner = self.model.record(record);
        let declared = owner.find_field(name)?;
        let shown = owner.find_shown_reference(name);
        Some(shown.filter(|_| owner.field(declared).kind.is_unstored()).unwrap_or(declared))
    }
}

fn root_name(model: &Model, kind: RootType) -> String {
    let definition = &model.schema.schema_definition;
    let name = match kind {
        RootType::Query => &definition.query,
        RootType::Mutation => &definition.mutation,
        RootType::Subscription => &definition.subscription,
    };
    name.as_ref().map_or_else(|| kind.default_name().to_owned(), ToString::to_string)
}

/// Whether the actor may run the operation with some arguments.
fn is_operation_open(engine: &Engine, root: &RootField, builtin: &BuiltinOperation) -> bool {
    let record = builtin.record;
    if builtin.verb != OperationVerb::Save {
        return engine.may_run(builtin.verb, record);
    }
    // Without an id a record is created, with an expected version one is updated.
    let mut roles = root.arguments.iter().zip(&builtin.argument_roles);
    let needs_id = roles.any(|(argument, (_, role))| *role == ArgumentRole::Id && argument.ty.is_required());
    (!needs_id && engine.may_run(OperationVerb::Create, record))
        || engine.may_run(OperationVerb::Update, record)
}

/// Several types are read together, so all of them must be readable; of an id only its own.
fn is_abstract_open(engine: &Engine, operation: &AbstractOperation) -> bool {
    let may_run = |member: &BuiltinOperation| engine.may_run(member.verb, member.record);
    let is_id = |role: &ArgumentRole| matches!(role, ArgumentRole::Id | ArgumentRole::Ids);
    let first = operation.members.first();
    let takes_ids = first.is_some_and(|first| first.argument_roles.iter().any(|(_, role)| is_id(role)));
    match takes_ids {
        true => operation.members.iter().any(may_run),
        false => operation.members.iter().all(may_run),
    }
}
