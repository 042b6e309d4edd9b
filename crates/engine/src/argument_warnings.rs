//! Finds arguments that nothing reads, so that `check` names them before a request is refused for them.

use crate::arguments;
use crate::arguments::Role;
use crate::{Binding, Verb};
use trefoil_model::sdl::schema_warning::Doubt;
use trefoil_model::{Argument, Field, Kind, Model, RecordType, RootField};

/// What is wrong with the arguments of built-in operations and of relations.
pub fn doubts(model: &Model, bindings: &[Binding]) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    for (root, binding) in model.roots.iter().zip(bindings) {
        if let Binding::Builtin(builtin) = binding {
            let record = model.record(builtin.record);
            let place = Place { type_name: model.root_type(root.root), field: &root.name };
            place.arguments(record, builtin.verb, &root.arguments, &mut doubts);
            doubts.extend(place.no_id(builtin.verb, root));
        }
    }
    for owner in &model.records {
        for field in &owner.fields {
            if let Some(target) = listed(model, field) {
                let place = Place { type_name: &owner.name, field: &field.name };
                place.arguments(target, Verb::List, &field.arguments, &mut doubts);
            }
        }
    }
    doubts
}

/// The records of a list that the store answers.
fn listed<'m>(model: &'m Model, field: &Field) -> Option<&'m RecordType> {
    match &field.kind {
        Kind::Inverse { of: target, .. } | Kind::Link { target, .. } => Some(model.record(*target)),
        Kind::Id
        | Kind::Scalar(_)
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Unstored => None,
    }
}

/// The field whose arguments are looked at.
struct Place<'a> {
    type_name: &'a str,
    field: &'a str,
}

impl Place<'_> {
    fn arguments(&self, record: &RecordType, verb: Verb, arguments: &[Argument], doubts: &mut Vec<Doubt>) {
        for (argument, (_, role)) in arguments.iter().zip(arguments::roles(record, verb, arguments)) {
            let name = argument.name.as_str();
            let inside = |why: &dyn Fn(&str) -> Option<String>| -> Vec<(String, String)> {
                let fields = argument.fields.iter().map(|field| field.name.as_str());
                fields.filter_map(|field| Some((format!("{name}.{field}"), why(field)?))).collect()
            };
            let found = match role {
                Role::Unknown => vec![(name.to_owned(), arguments::unknown(record, verb, name))],
                Role::Where => inside(&|field| arguments::no_condition(record, field)),
                Role::Input => inside(&|field| arguments::no_input(record, verb, field)),
                Role::Id
                | Role::Field(_)
                | Role::ExpectedVersion
                | Role::Page
                | Role::Size
                | Role::First
                | Role::After
                | Role::OrderBy => Vec::new(),
            };
            doubts.extend(found.into_iter().map(|(what, why)| {
                let message = format!("`{what}` of `{}` does nothing: {why}", self.field);
                self.doubt(Some(name), message, help(verb))
            }));
        }
    }

    fn doubt(&self, argument: Option<&str>, message: String, help: &str) -> Doubt {
        Doubt {
            type_name: self.type_name.to_owned(),
            field: self.field.to_owned(),
            argument: argument.map(str::to_owned),
            message,
            help: help.to_owned(),
        }
    }

    /// What needs an id and has no way to be given one.
    fn no_id(&self, verb: Verb, root: &RootField) -> Option<Doubt> {
        let wanted = match verb {
            Verb::Get | Verb::Update | Verb::Delete => true,
            Verb::List | Verb::Create | Verb::Watch(_) => false,
        };
        let is_id = |argument: &Argument| argument.name == "id";
        let has = root.arguments.iter().any(|one| is_id(one) || one.fields.iter().any(is_id));
        let message = || format!("`{}` cannot be told which record is meant", self.field);
        (wanted && !has).then(|| self.doubt(None, message(), "add an argument `id: ID!`"))
    }
}

fn help(verb: Verb) -> &'static str {
    match verb {
        Verb::List => "name it after a field, or page, size, first, after, orderBy or where",
        Verb::Create | Verb::Update | Verb::Watch(_) => "name it after a field, or remove it",
        Verb::Get | Verb::Delete => "remove it",
    }
}
