//! The arguments of a root field for one reading of its name: the role of each, and whether they say enough.

use trefoil_model::naming::names::{is_key_name, snake_words};
use trefoil_model::naming::operation_verbs::{NameReading, NamedVerb, TypeNoun};
use trefoil_model::{Argument, Field, FieldId, FilterOperator, Model, RecordType, RecordTypeId, RootKind};

use crate::arguments::roles::{argument_roles, member_role};
use crate::builtin_operation::{ArgumentRole, OperationVerb};

pub(super) struct NamedArguments<'a> {
    model: &'a Model,
    record: &'a RecordType,
    verb: OperationVerb,
    arguments: &'a [Argument],
    pub roles: Vec<(String, ArgumentRole)>,
}

impl<'a> NamedArguments<'a> {
    pub fn new(
        model: &'a Model,
        record: RecordTypeId,
        verb: OperationVerb,
        arguments: &'a [Argument],
    ) -> NamedArguments<'a> {
        let record = model.record(record);
        let roles = argument_roles(record, verb, arguments);
        let mut named = NamedArguments { model, record, verb, arguments, roles };
        // In an update it could be the id of the one who asks.
        if verb.root_kind() == RootKind::Query || verb == OperationVerb::Create {
            named.accept_references();
        }
        named
    }

    /// `posts(userId: ID!)`, where the user of a post is called `author`.
    fn accept_references(&mut self) {
        for position in 0..self.roles.len() {
            let words = snake_words(&self.arguments[position].name);
            if self.roles[position].1 == ArgumentRole::Unknown
                && let Some(target) = words.strip_suffix("_id")
                && let Some(field) = self.find_reference(target)
                && !self.roles.iter().any(|(_, role)| *role == ArgumentRole::Field(field))
            {
                self.roles[position].1 = ArgumentRole::Field(field);
            }
        }
    }

    /// The only reference to records of a type.
    fn find_reference(&self, type_words: &str) -> Option<FieldId> {
        let leads_to_type = |field: &Field| {
            let target =
                field.kind.relation().filter(|_| field.kind.is_reference()).map(|relation| relation.target());
            target.is_some_and(|target| {
                TypeNoun::new(&self.model.record(target).name, |_| false).is_named(type_words)
            })
        };
        let mut fields = self.record.fields.iter().enumerate().filter(|(_, field)| leads_to_type(field));
        let (position, _) = fields.next()?;
        fields.next().is_none().then_some(FieldId(position))
    }

    /// With the roles that the words of the name give: `id` in `reviewsByBook(id: ID!)` is that of a book. `None` if
    /// the words after `by` name no argument.
    pub fn for_reading(
        model: &'a Model,
        record: RecordTypeId,
        verb: OperationVerb,
        reading: &NameReading,
        arguments: &'a [Argument],
    ) -> Option<NamedArguments<'a>> {
        let mut named = NamedArguments::new(model, record, verb, arguments);
        if let Some(by) = &reading.by
            && !named.accept_by(by)
        {
            let parts: Vec<&str> = by.split("_and_").collect();
            let are_named = parts.len() > 1 && parts.iter().all(|part| named.accept_by(part));
            are_named.then_some(())?;
        }
        if reading.verb == NamedVerb::Search && !named.accept_search() {
            return None;
        }
        Some(named)
    }

    /// True if an argument, or a member of an input object, names the record.
    pub fn takes_id(&self) -> bool {
        self.roles.iter().zip(self.arguments).any(|((_, role), argument)| {
            *role == ArgumentRole::Id
                || (*role == ArgumentRole::Input
                    && argument
                        .fields
                        .iter()
                        .any(|inner| member_role(self.record, self.verb, &inner.name) == ArgumentRole::Id))
        })
    }

    /// True if the arguments say what the operation needs to know. `is_loose` is for names that do not say the record
    /// type: each required argument must have a role then.
    pub fn can_work(&self, is_loose: bool) -> bool {
        let has_known_members = |argument: &Argument| {
            argument.fields.iter().all(|inner| {
                !inner.ty.is_required()
                    || member_role(self.record, self.verb, &inner.name) != ArgumentRole::Unknown
            })
        };
        let is_understood = |argument: &Argument, role: &ArgumentRole| {
            let is_known = *role != ArgumentRole::Unknown || !argument.ty.is_required();
            is_known && (*role != ArgumentRole::Input || !is_loose || has_known_members(argument))
        };
        let mut unclear = self
            .arguments
            .iter()
            .zip(&self.roles)
            .filter_map(|(argument, (_, role))| (!is_understood(argument, role)).then_some(argument));
        let understood = unclear.clone().next().is_none();
        let mut can_ignore_rest = || !is_loose && unclear.all(|argument| self.may_be_ignored(argument));
        match self.verb {
            OperationVerb::List
            | OperationVerb::Aggregate
            | OperationVerb::Count
            | OperationVerb::Subscribe(_)
            | OperationVerb::SubscribeAll => understood,
            OperationVerb::Get => understood && (self.takes_id() || self.has_filter()),
            OperationVerb::Exists => understood && self.has_filter(),
            OperationVerb::Create => understood || can_ignore_rest(),
            OperationVerb::Update | OperationVerb::Save => {
                self.takes_id() && (understood || can_ignore_rest())
            }
            OperationVerb::Delete => self.takes_id() && understood,
            OperationVerb::CreateMany => understood && self.has_role(&ArgumentRole::Input),
            OperationVerb::UpdateMany | OperationVerb::DeleteMany => {
                understood && self.has_role(&ArgumentRole::Where)
            }
            OperationVerb::Upsert => understood && self.has_role(&ArgumentRole::UniqueFields),
        }
    }

    /// A text that is no field may be for a resolver that is yet to be written: a password. Several records, or what
    /// names another record, are not left out.
    fn may_be_ignored(&self, argument: &Argument) -> bool {
        let words = snake_words(&argument.name);
        let is_of_relation = |field: &Field| {
            field.kind.relation().is_some() && words.starts_with(&format!("{}_", snake_words(&field.name)))
        };
        let is_id = argument.ty.inner_name() == "ID" || words.ends_with("_id");
        let is_value = !argument.ty.is_list() && argument.fields.is_empty() && !is_id;
        is_value && !self.record.fields.iter().any(is_of_relation)
    }

    /// `getCategories(id: String!)`: the id is that of something else, or one record is meant.
    pub fn requires_key(&self) -> bool {
        let key = ArgumentRole::Field(self.record.id_field());
        self.roles
            .iter()
            .zip(self.arguments)
            .any(|((_, role), argument)| *role == key && argument.ty.is_required())
    }

    /// True if a filter is what the words name: `user` in `userPosts(userId: ID!)`.
    pub fn filters_by(&self, words: &str) -> bool {
        let is_named =
            |role: &ArgumentRole| matches!(role, ArgumentRole::Field(field) if self.is_called(*field, words));
        self.roles.iter().any(|(_, role)| is_named(role))
    }

    /// True if the id and one field are all that the operation takes, and the words name that field: `status` in
    /// `updateOrderStatus(id: ID!, status: Status!)`. Secrets are not just stored.
    pub fn sets_only(&self, words: &str, is_whole_name: bool) -> bool {
        let mut fields = Vec::new();
        for (_, role) in &self.roles {
            if let ArgumentRole::Field(field) = role {
                fields.push(*field);
            } else if !matches!(role, ArgumentRole::Id | ArgumentRole::ExpectedVersion) {
                return false;
            }
        }
        let [field] = fields.as_slice() else { return false };
        let name = snake_words(&self.record.field(*field).name);
        let is_secret = name.split('_').any(|word| SECRET_WORDS.contains(&word));
        let is_part = || format!("_{name}_").contains(&format!("_{words}_"));
        !is_secret && (self.is_called(*field, words) || (!is_whole_name && is_part()))
    }

    fn has_role(&self, role: &ArgumentRole) -> bool {
        self.roles.iter().any(|(_, found)| found == role)
    }

    fn has_filter(&self) -> bool {
        self.roles.iter().any(|(_, role)| {
            matches!(
                role,
                ArgumentRole::Field(_)
                    | ArgumentRole::Compare(..)
                    | ArgumentRole::Where
                    | ArgumentRole::Input
                    | ArgumentRole::Search
            )
        })
    }

    /// Finds the argument that the words after `by` name. False if there is none.
    fn accept_by(&mut self, by: &str) -> bool {
        let key_name = snake_words(&self.record.field(self.record.id_field()).name);
        let names_key =
            matches!(by, "id" | "pk" | "key") || key_name == by || is_key_name(&self.record.name, by);
        let range = by.strip_suffix("_range").or_else(|| by.strip_suffix("_between"));
        let is_named = |(name, role): &(String, ArgumentRole)| {
            if let ArgumentRole::Field(field) = role {
                return self.is_called(*field, by);
            }
            if let ArgumentRole::Compare(field, _) = role {
                return range.is_some_and(|range| self.is_called(*field, range));
            }
            let is_same = snake_words(name) == by;
            (*role == ArgumentRole::Id && (names_key || is_same))
                || (*role == ArgumentRole::Search && is_same)
        };
        if self.roles.iter().any(is_named) || (names_key && self.takes_id()) {
            return true;
        }
        if names_key {
            return self.accept_only_id();
        }
        let Some(field) = self.find_field(by) else { return false };
        let field_name = snake_words(&self.record.field(field).name);
        let holds_key = self.record.field(field).kind.is_reference() || field_name.ends_with("_id");
        let is_argument = |name: &str| {
            let words = snake_words(name);
            words == by
                || words == field_name
                || (holds_key && (words == "id" || words == format!("{by}_id")))
        };
        let position = self.arguments.iter().position(|argument| is_argument(&argument.name));
        let Some(position) = position else { return false };
        self.roles[position].1 = ArgumentRole::Field(field);
        true
    }

    /// `viewCompanyById(cid: ID!)`: the one argument is the id.
    fn accept_only_id(&mut self) -> bool {
        let ([argument], [(_, role)]) = (self.arguments, self.roles.as_mut_slice()) else { return false };
        let is_key =
            *role == ArgumentRole::Unknown && argument.ty.inner_name() == "ID" && !argument.ty.is_list();
        if is_key {
            let is_filter =
                matches!(self.verb, OperationVerb::List | OperationVerb::Count | OperationVerb::Exists);
            *role = if is_filter { ArgumentRole::Field(self.record.id_field()) } else { ArgumentRole::Id };
        }
        is_key
    }

    /// The arguments of a search: texts are contained, not equal. False if nothing is searched for.
    fn accept_search(&mut self) -> bool {
        let record = self.record;
        let is_text = |argument: &Argument| argument.ty.inner_name() == "String" && !argument.ty.is_list();
        for ((_, role), argument) in self.roles.iter_mut().zip(self.arguments) {
            if let ArgumentRole::Field(field) = *role
                && is_text(argument)
                && record.field(field).kind.is_text()
            {
                *role = ArgumentRole::Compare(field, FilterOperator::CONTAINS);
            }
        }
        if let ([argument], [(_, role)]) = (self.arguments, self.roles.as_mut_slice())
            && *role == ArgumentRole::Unknown
            && is_text(argument)
        {
            *role = ArgumentRole::Search;
        }
        self.has_filter()
    }

    /// The field that words name: by its name, with or without `id` at the end, or by a part of the name that no other
    /// field has, like `year` for `publicationYear`.
    fn find_field(&self, words: &str) -> Option<FieldId> {
        let fields = || {
            let fields = self.record.fields.iter().enumerate();
            fields.filter(|(_, field)| field.kind.is_comparable()).map(|(position, _)| FieldId(position))
        };
        if let Some(field) = fields().find(|field| self.is_called(*field, words)) {
            return Some(field);
        }
        let has_part = |field: &FieldId| {
            let name = snake_words(&self.record.field(*field).name);
            name.starts_with(&format!("{words}_")) || name.ends_with(&format!("_{words}"))
        };
        let mut parts = fields().filter(has_part);
        let part = parts.next().filter(|_| parts.next().is_none());
        part.or_else(|| self.find_reference(words.strip_suffix("_id").unwrap_or(words)))
    }

    /// True for `user` and `user_id` if the field is `user` or `userId`.
    fn is_called(&self, field: FieldId, words: &str) -> bool {
        let field = self.record.field(field);
        let without_id = |words: &str| words.strip_suffix("_id").unwrap_or(words).to_owned();
        let names = [snake_words(&field.name), snake_words(&field.input_name)];
        names.iter().any(|name| name == words || without_id(name) == without_id(words))
            || self
                .find_reference(&without_id(words))
                .is_some_and(|found| self.record.field(found).name == field.name)
    }
}

/// Words in the names of fields that are not just stored as they are sent.
const SECRET_WORDS: [&str; 5] = ["password", "passwd", "pin", "secret", "token"];
