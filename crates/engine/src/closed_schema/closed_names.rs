//! [`ClosedNames`]: the names of what is closed to an actor.

use std::collections::{BTreeMap, BTreeSet};

/// The parts of the schema that are closed to an actor.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClosedNames {
    /// By the name of their type.
    pub(super) fields: NameMap,
    /// By their type and field: `Query.books`.
    pub(super) arguments: NameMap,
    /// Fields of input objects and values of enums, by the name of their type.
    pub(super) inputs: NameMap,
    /// Types of interfaces and unions, by the name of the latter.
    pub(super) members: NameMap,
}

pub type NameMap = BTreeMap<String, BTreeSet<String>>;

impl ClosedNames {
    pub fn has_field(&self, type_name: &str, field: &str) -> bool {
        has_name(&self.fields, type_name, field)
    }

    pub fn has_argument(&self, type_name: &str, field: &str, argument: &str) -> bool {
        has_name(&self.arguments, &format!("{type_name}.{field}"), argument)
    }

    /// A field of an input object, or a value of an enum.
    pub fn has_input(&self, type_name: &str, name: &str) -> bool {
        has_name(&self.inputs, type_name, name)
    }

    /// A type that an interface or union does not have for the actor.
    pub fn has_member(&self, abstract_type: &str, type_name: &str) -> bool {
        has_name(&self.members, abstract_type, type_name)
    }

    /// Whether something of the type is closed.
    pub fn has_type(&self, type_name: &str) -> bool {
        [&self.fields, &self.inputs, &self.members].iter().any(|names| names.contains_key(type_name))
    }
}

fn has_name(names: &NameMap, owner: &str, name: &str) -> bool {
    names.get(owner).is_some_and(|names| names.contains(name))
}

pub fn add_name(names: &mut NameMap, owner: &str, name: &str) {
    names.entry(owner.to_owned()).or_default().insert(name.to_owned());
}
