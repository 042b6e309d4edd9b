//! Binds root fields whose result is an interface or union of record types.
//!
//! The name must read as a list, a look-up or a count of the interface or union, and its arguments must mean the same
//! for each of the record types.

use std::mem::discriminant;
use std::sync::Arc;

use trefoil_model::naming::names::{self, snake_words};
use trefoil_model::naming::operation_verbs::{
    NameReading, NamedVerb, NounFit, TypeNoun, read_operation_name,
};
use trefoil_model::{KeySource, Model, RecordTypeId, RootField, RootType};

use crate::abstract_operation::AbstractOperation;
use crate::arguments::argument_roles::first_page;
use crate::binding::named_arguments::NamedArguments;
use crate::binding::operation_name_binding::WordBinder;
use crate::binding::resolver_names::VERB_NAMES;
use crate::binding::result_type::find_abstract_shape;
use crate::builtin_operation::{ArgumentRole, BuiltinOperation, OperationVerb, ResultShape};
use crate::engine::ResolverBinding;

/// The binding of a root field over an interface or union; `None` if it is about something else.
pub(super) fn bind_abstract(
    model: &Model,
    words: &WordBinder<'_>,
    root: &RootField,
) -> Option<ResolverBinding> {
    if root.root_kind != RootType::Query {
        return None;
    }
    let readings = readings(model, words, root);
    let bindings = readings.iter().filter_map(|(type_name, reading, fit)| {
        let binding = AbstractBinder { model, root, type_name, reading, fit: *fit }.bind()?;
        Some(((*fit, binding.is_err()), binding))
    });
    let bindings: Vec<_> = bindings.collect();
    let best = bindings.iter().map(|(rank, _)| *rank).min()?;
    let mut best = bindings.into_iter().filter(|(rank, _)| *rank == best).map(|(_, binding)| binding);
    let first = best.next()?;
    let second = best.find_map(|other| explain_two(root, first.as_ref().ok()?, &other.ok()?));
    Some(match (first, second) {
        (_, Some(explanation)) | (Err(explanation), None) => ResolverBinding::Missing(explanation),
        (Ok(operation), None) => ResolverBinding::Abstract(Arc::new(operation)),
    })
}

/// The explanation for a name that fits two types, or two operations of one, equally well.
fn explain_two(root: &RootField, first: &AbstractOperation, second: &AbstractOperation) -> Option<String> {
    let describe = |operation: &AbstractOperation| {
        let verb = VERB_NAMES.iter().find(|(verb, _)| *verb == operation.verb);
        let verb = verb.map_or("", |(_, name)| name);
        format!("`@resolver(name: \"{}.{verb}\")`", operation.type_name)
    };
    let (first, second) = (describe(first), describe(second));
    (first != second).then(|| format!("`{}` has two readings; choose {first} or {second}", root.name))
}

type AbstractBinding = Result<AbstractOperation, String>;

/// The ways to read the name, each with the interface or union that it is about.
fn readings<'m>(
    model: &'m Model,
    words: &WordBinder<'_>,
    root: &'m RootField,
) -> Vec<(&'m str, NameReading, NounFit)> {
    if let Some(resolver) = &root.resolver {
        return resolver_reading(model, resolver).into_iter().collect();
    }
    let declared = model.result_abstract(root.ty.inner_name());
    let types: Vec<&str> = match declared {
        Some(declared) => vec![declared],
        None if model.schema.types.get(root.ty.inner_name()).is_some_and(|ty| ty.is_scalar()) => {
            model.abstract_types().collect()
        }
        None => Vec::new(),
    };
    let mut found = Vec::new();
    for type_name in types {
        if root.name == names::operation_names(type_name).connection {
            found.push((type_name, plain_reading(NamedVerb::List), NounFit::Exact));
        }
        let noun = TypeNoun::new(type_name, |_| false);
        for reading in read_operation_name(RootType::Query, &root.name) {
            let fit = noun.fit(&reading.noun).filter(|fit| match fit {
                NounFit::Exact | NounFit::Stripped => true,
                NounFit::Qualified => false,
                NounFit::Empty => declared.is_some() && reading.has_verb,
                NounFit::Part => declared.is_some() && words.is_part_of_name(&reading.noun),
            });
            found.extend(fit.map(|fit| (type_name, reading, fit)));
        }
    }
    found
}

/// What `@resolver(name: "Animal.list")` says.
fn resolver_reading<'m>(model: &'m Model, resolver: &'m str) -> Option<(&'m str, NameReading, NounFit)> {
    let (type_name, verb) = resolver.split_once('.').filter(|(type_name, _)| model.is_abstract(type_name))?;
    let verb = match verb {
        "list" => NamedVerb::List,
        "get" => NamedVerb::Get,
        "count" => NamedVerb::Count,
        "exists" => NamedVerb::Exists,
        _ => return None,
    };
    Some((type_name, plain_reading(verb), NounFit::Exact))
}

/// A reading that says nothing besides the verb.
fn plain_reading(verb: NamedVerb) -> NameReading {
    NameReading { verb, noun: String::new(), by: None, has_verb: true }
}

struct AbstractBinder<'a> {
    model: &'a Model,
    root: &'a RootField,
    type_name: &'a str,
    reading: &'a NameReading,
    fit: NounFit,
}

impl AbstractBinder<'_> {
    /// The operation, or why there is none although the name says what it does; `None` if the reading does not fit.
    fn bind(&self) -> Option<AbstractBinding> {
        let verb = match self.reading.verb {
            NamedVerb::List | NamedVerb::Search => OperationVerb::List,
            NamedVerb::Get => OperationVerb::Get,
            NamedVerb::Count => OperationVerb::Count,
            NamedVerb::Exists => OperationVerb::Exists,
            NamedVerb::Create
            | NamedVerb::Update
            | NamedVerb::Set
            | NamedVerb::Delete
            | NamedVerb::Save
            | NamedVerb::Created
            | NamedVerb::Updated
            | NamedVerb::Deleted => return None,
        };
        let shape = find_abstract_shape(self.model, self.root, self.type_name, verb)?;
        let (name, type_name) = (&self.root.name, self.type_name);
        let Some(records) = self.model.abstract_records(type_name) else {
            let other = self.model.unstored_member(type_name);
            let reason = other.map(|other| format!("`{other}` is not a record type"));
            let reason = reason.unwrap_or_else(|| "it has no type".to_owned());
            return Some(Err(format!("`{name}` cannot read `{type_name}` from the store: {reason}")));
        };
        let members: Option<Vec<BuiltinOperation>> =
            records.iter().map(|record| self.member(*record, verb, shape)).collect();
        let members = members.map(search_in_all).filter(|members| mean_the_same(members));
        Some(match members {
            None if self.root.arguments.is_empty() => {
                Err(format!("`{name}` has no argument that identifies the {type_name}"))
            }
            None => {
                Err(format!("the arguments of `{name}` do not mean the same for each type of `{type_name}`"))
            }
            Some(members) => self.check_ids(&records, &members).map(|()| AbstractOperation {
                type_name: type_name.to_owned(),
                verb,
                result_shape: shape,
                members,
            }),
        })
    }

    fn member(
        &self,
        record: RecordTypeId,
        verb: OperationVerb,
        result_shape: ResultShape,
    ) -> Option<BuiltinOperation> {
        let arguments =
            NamedArguments::for_reading(self.model, record, verb, self.reading, &self.root.arguments)?;
        let is_loose = matches!(self.fit, NounFit::Empty | NounFit::Part);
        let can_work = arguments.can_work(is_loose);
        can_work.then(|| BuiltinOperation {
            record,
            verb,
            first_page: first_page(self.model.record(record), verb, &self.root.arguments, &arguments.roles),
            argument_roles: arguments.roles,
            result_shape,
            is_singleton: false,
            is_own_account: false,
            filled_fields: Vec::new(),
        })
    }

    /// How ids become unique over several types.
    fn unique_ids_hint(&self) -> &'static str {
        let has_node = self.model.find_root_field(RootType::Query, "node").is_some();
        match self.type_name {
            "Node" if has_node => "`global-ids = true` in trefoil.toml makes them unique",
            _ => "`id: ID! @key(kind: UUID)` in each of its types makes them unique",
        }
    }

    /// Refuses ids that could be those of several records.
    fn check_ids(&self, records: &[RecordTypeId], members: &[BuiltinOperation]) -> Result<(), String> {
        let takes_ids =
            members.iter().flat_map(|member| &member.argument_roles).zip(&self.root.arguments).any(
                |((_, role), argument)| {
                    let has_id = || argument.fields.iter().any(|inner| snake_words(&inner.name) == "id");
                    let is_id = matches!(role, ArgumentRole::Id | ArgumentRole::Ids);
                    is_id || (*role == ArgumentRole::Input && has_id())
                },
            );
        let counted: Vec<&str> = records
            .iter()
            .map(|record| self.model.record(*record))
            .filter(|record| record.key_source == KeySource::Counter && !record.has_global_ids)
            .map(|record| record.name.as_str())
            .collect();
        match counted.as_slice() {
            [first, ..] if takes_ids && records.len() > 1 => Err(format!(
                "`{}` cannot tell which record of `{}` an id means, because the ids of `{first}` are counted; {}",
                self.root.name,
                self.type_name,
                self.unique_ids_hint()
            )),
            _ => Ok(()),
        }
    }
}

/// A text to search for is not a field in some types only: `search(text: String)`, where one of them has a field `text`.
fn search_in_all(mut members: Vec<BuiltinOperation>) -> Vec<BuiltinOperation> {
    for position in 0..members.first().map_or(0, |member| member.argument_roles.len()) {
        let role = |member: &BuiltinOperation| member.argument_roles[position].1.clone();
        let is_field =
            |role: ArgumentRole| matches!(role, ArgumentRole::Field(_) | ArgumentRole::Compare(..));
        let is_search = |member: &BuiltinOperation| role(member) == ArgumentRole::Search;
        if members.iter().any(is_search)
            && members.iter().all(|member| is_search(member) || is_field(role(member)))
        {
            members.iter_mut().for_each(|member| member.argument_roles[position].1 = ArgumentRole::Search);
        }
    }
    members
}

/// True if each argument has the same role in all members.
fn mean_the_same(members: &[BuiltinOperation]) -> bool {
    let roles = |member: &BuiltinOperation| -> Vec<_> {
        member.argument_roles.iter().map(|(_, role)| discriminant(role)).collect()
    };
    members.windows(2).all(|pair| roles(&pair[0]) == roles(&pair[1]))
}
