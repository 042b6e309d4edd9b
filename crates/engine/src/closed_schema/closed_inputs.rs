//! Which members of input objects and values of enums are closed in every place that they can be given in.

use std::collections::{BTreeMap, BTreeSet};

use trefoil_model::Model;

use crate::closed_schema::closed_names::{NameMap, add_name};
use crate::closed_schema::input_members::{GivenShape, InputMeaning, InputReader, InputUse};

/// A member of an input object or a value of an enum, as it is used in one place.
struct UsedMember {
    name: String,
    /// The type of what it holds.
    type_name: Option<String>,
    is_required: bool,
    meaning: InputMeaning,
}

/// Goes through the types of arguments. Types that are used alike are looked at once.
pub struct ClosedInputReader<'e> {
    reader: InputReader<'e>,
    model: &'e Model,
    /// Whether anything can be given of a type that is used so.
    usable: BTreeMap<(String, InputUse), bool>,
    visited: BTreeSet<(String, InputUse)>,
    /// Whether the member of the type is open anywhere.
    open: BTreeMap<(String, String), bool>,
}

impl<'e> ClosedInputReader<'e> {
    pub fn new(reader: InputReader<'e>, model: &'e Model) -> ClosedInputReader<'e> {
        ClosedInputReader {
            reader,
            model,
            usable: BTreeMap::new(),
            visited: BTreeSet::new(),
            open: BTreeMap::new(),
        }
    }

    /// Whether anything can be given for something that means this.
    pub fn is_usable(&mut self, type_name: &str, meaning: &InputMeaning) -> bool {
        meaning.is_open && meaning.inner.is_none_or(|used| self.is_type_usable(type_name, used))
    }

    fn is_type_usable(&mut self, type_name: &str, used: InputUse) -> bool {
        let key = (type_name.to_owned(), used);
        if let Some(known) = self.usable.get(&key) {
            return *known;
        }
        // Of a type inside itself the rest decides.
        self.usable.insert(key.clone(), true);
        let Some(members) = self.members(type_name, used) else { return true };
        let mut has_open = false;
        let mut lacks_required = false;
        for member in &members {
            let is_open = self.is_member_usable(member);
            has_open |= is_open;
            lacks_required |= member.is_required && !is_open;
        }
        let is_usable = has_open && !lacks_required;
        self.usable.insert(key, is_usable);
        is_usable
    }

    fn is_member_usable(&mut self, member: &UsedMember) -> bool {
        match &member.type_name {
            Some(type_name) => self.is_usable(type_name, &member.meaning),
            None => member.meaning.is_open,
        }
    }

    /// Notes what can be given here, for something that can be given.
    pub fn visit(&mut self, type_name: &str, meaning: &InputMeaning) {
        let Some(used) = meaning.inner else { return };
        if !self.visited.insert((type_name.to_owned(), used)) {
            return;
        }
        for member in self.members(type_name, used).unwrap_or_default() {
            let is_open = self.is_member_usable(&member);
            let known = self.open.entry((type_name.to_owned(), member.name.clone())).or_default();
            *known |= is_open;
            if let (true, Some(inner)) = (is_open, &member.type_name) {
                self.visit(inner, &member.meaning);
            }
        }
    }

    /// The members that are nowhere open.
    pub fn closed(self) -> NameMap {
        let mut closed = NameMap::new();
        for ((type_name, name), is_open) in self.open {
            if !is_open {
                add_name(&mut closed, &type_name, &name);
            }
        }
        closed
    }

    /// The members of an input object, or the values of an enum; `None` of what has neither.
    fn members(&self, type_name: &str, used: InputUse) -> Option<Vec<UsedMember>> {
        if let Some(definition) = self.model.schema.get_input_object(type_name) {
            let members = definition.fields.values().map(|field| UsedMember {
                name: field.name.to_string(),
                type_name: Some(field.ty.inner_named_type().to_string()),
                is_required: field.is_required(),
                meaning: self.reader.member(
                    used,
                    &field.name,
                    GivenShape::new(self.model, field.ty.inner_named_type(), field.ty.is_list()),
                ),
            });
            return Some(members.collect());
        }
        let definition = self.model.schema.get_enum(type_name)?;
        let values = definition.values.keys().map(|name| UsedMember {
            name: name.to_string(),
            type_name: None,
            is_required: false,
            meaning: self.reader.member(used, name, GivenShape::Values),
        });
        Some(values.collect())
    }
}
