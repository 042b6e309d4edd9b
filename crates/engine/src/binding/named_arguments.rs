//! The arguments of a root field for one reading of its name: the role of each, and whether they say enough.

use trefoil_model::naming::names::{is_key_name, names_later_deed, snake_words};
use trefoil_model::naming::operation_verbs::{
    NameReading, NamedVerb, NounFit, TypeNoun, singular_words, type_words,
};
use trefoil_model::{
    Argument, Field, FieldId, FilterOperator, KeyForm, Model, RecordType, RecordTypeId, RootType,
};

use crate::arguments::argument_roles::{any_case_field, argument_roles, is_write_condition, member_role};
use crate::binding::inputs_of_other_types::describes_other;
use crate::builtin_operation::{ArgumentRole, OperationVerb};

pub(super) struct NamedArguments<'a> {
    pub(super) model: &'a Model,
    pub(super) record: &'a RecordType,
    pub(super) verb: OperationVerb,
    pub(super) arguments: &'a [Argument],
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
        named.accept_named_key();
        named.leave_inputs_of_others();
        // In an update it could be the id of the one who asks.
        if verb.root_kind() == RootType::Query || verb == OperationVerb::Create {
            named.accept_references();
        }
        if named.may_ask_related() {
            named.accept_related_ids();
        }
        named.accept_page_number();
        named
    }

    /// `removeDebt(debt: ID!)`, `removeDebt(debtDTO: ID!)`: an ID that is called like the type is the key, and one that
    /// is the only argument of `getDebt(key: ID!)` or `deleteDebt(input: Int!)`.
    fn accept_named_key(&mut self) {
        let names_record =
            |(_, role): &(String, ArgumentRole)| matches!(role, ArgumentRole::Id | ArgumentRole::KeyObject);
        if !self.verb.names_record() || self.roles.iter().any(names_record) {
            return;
        }
        let is_only =
            matches!(self.verb, OperationVerb::Get | OperationVerb::Delete) && self.arguments.len() == 1;
        let is_number = matches!(self.record.key_form(), KeyForm::Number | KeyForm::Digits);
        let is_own = |name: &str| {
            let words = snake_words(name);
            (is_only && matches!(name, "input" | "key" | "pk"))
                || self.is_own_name(words.strip_suffix("_dto").unwrap_or(&words))
        };
        let keys =
            self.arguments.iter().zip(&self.roles).enumerate().filter(|(_, (argument, (name, role)))| {
                let ty = argument.ty.inner_name();
                let is_id = ty == "ID" || (is_only && is_number && ty == "Int");
                *role == ArgumentRole::Unknown && is_id && !argument.ty.is_list() && is_own(name)
            });
        let positions: Vec<usize> = keys.map(|(position, _)| position).collect();
        if let [position] = positions.as_slice() {
            self.roles[*position].1 = ArgumentRole::Id;
        }
    }

    /// True if the words are the name of the record type. Without an ending they are not where they name another type
    /// or a field: `patient` for PatientRecord.
    fn is_own_name(&self, words: &str) -> bool {
        let is_field = |name: &str| any_case_field(self.record, name, RecordType::find_input_field).is_some();
        let is_type = || self.model.schema.types.keys().any(|name| type_words(name) == words);
        match TypeNoun::new(&self.record.name, |_| false).fit(words) {
            Some(NounFit::Exact) => true,
            Some(NounFit::Stripped) => !is_field(words) && !is_field(&format!("{words}_id")) && !is_type(),
            Some(NounFit::Qualified | NounFit::Empty | NounFit::Part) | None => false,
        }
    }

    /// `createUser(user: UserInput!, company: CompanyInput!)`: the values of another record are none of this one.
    fn leave_inputs_of_others(&mut self) {
        let inputs = self.roles.iter().filter(|(_, role)| *role == ArgumentRole::Input).count();
        for (argument, (_, role)) in self.arguments.iter().zip(&mut self.roles) {
            let is_input = *role == ArgumentRole::Input && self.verb.writes_one();
            if is_input && describes_other(self.model, self.record, argument, inputs > 1) {
                *role = ArgumentRole::Unknown;
            }
        }
    }

    /// `posts(userId: ID!)`, where the user of a post is called `author`. A reference to a record of the same type is
    /// called by its name only: the `categoryId` of a category is not that of its parent.
    fn accept_references(&mut self) {
        for position in 0..self.roles.len() {
            let words = snake_words(&self.arguments[position].name);
            if self.roles[position].1 == ArgumentRole::Unknown
                && let Some(target) = words.strip_suffix("_id")
                && let Some(field) = self.find_reference(target)
                && !self.is_own_name(target)
                && !names_later_deed(&self.record.field(field).name)
                && !self.roles.iter().any(|(_, role)| *role == ArgumentRole::Field(field))
            {
                self.roles[position].1 = ArgumentRole::Field(field);
            }
        }
    }

    /// `books(pageId: Int!, pageSize: Int!)`: the number of a page, where nothing else is called a page.
    fn accept_page_number(&mut self) {
        let has_role = |asked: &[ArgumentRole]| self.roles.iter().any(|(_, role)| asked.contains(role));
        let is_paged = has_role(&[ArgumentRole::Size, ArgumentRole::Limit])
            && !has_role(&[ArgumentRole::Page, ArgumentRole::PageFromZero]);
        let is_page = |words: &str| words == "page";
        let mut fields = self.record.fields.iter().flat_map(Field::name_words);
        if self.verb != OperationVerb::List
            || !is_paged
            || fields.any(|words| is_page(words))
            || self.model.schema.types.keys().any(|name| is_page(&type_words(name)))
        {
            return;
        }
        for (argument, (_, role)) in self.arguments.iter().zip(&mut self.roles) {
            let is_number = argument.ty.inner_name() == "Int" && !argument.ty.is_list();
            if *role == ArgumentRole::Unknown && is_number && snake_words(&argument.name) == "page_id" {
                *role =
                    if argument.is_zero_by_default { ArgumentRole::PageFromZero } else { ArgumentRole::Page };
            }
        }
    }

    /// The only reference to records of a type.
    pub(super) fn find_reference(&self, type_words: &str) -> Option<FieldId> {
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
            matches!(role, ArgumentRole::Id | ArgumentRole::KeyObject)
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
            let is_condition = is_write_condition(self.record, self.verb, argument);
            let describes_other =
                || self.verb.writes_one() && describes_other(self.model, self.record, argument, true);
            let is_needed = argument.ty.is_required() || is_condition || describes_other();
            let is_known = *role != ArgumentRole::Unknown || !is_needed;
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
            // A one-time password is sent to somebody, not just stored.
            OperationVerb::Create => !sends_codes(self.record) && (understood || can_ignore_rest()),
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
        let names_key = |record: &RecordType| {
            record.name != self.record.name && record.field(record.id_field()).name == argument.name
        };
        // `slug` in `addComment(slug: String!, text: String!)` is that of an article.
        let is_id = argument.ty.inner_name() == "ID"
            || words.ends_with("_id")
            || self.model.records.iter().any(names_key);
        let is_value = !argument.ty.is_list() && argument.fields.is_empty() && !is_id;
        is_value && !self.record.fields.iter().any(is_of_relation)
    }

    /// True if the key of the record may be left out, and a value of it must be given.
    pub fn may_create(&self) -> bool {
        let roles = || self.roles.iter().zip(self.arguments);
        let is_open =
            roles().any(|((_, role), argument)| *role == ArgumentRole::Id && !argument.ty.is_required());
        is_open
            && roles().any(|((_, role), argument)| {
                matches!(role, ArgumentRole::Field(_)) && argument.ty.is_required()
            })
    }

    /// `getCategories(id: String!)`: the id is that of something else, or one record is meant.
    pub fn requires_key(&self) -> bool {
        let key = ArgumentRole::Field(self.record.id_field());
        self.roles
            .iter()
            .zip(self.arguments)
            .any(|((_, role), argument)| *role == key && argument.ty.is_required())
    }

    /// True if an argument is what the words name: `user` in `userPosts(userId: ID!)`, and in `createUserPost(input)` where the
    /// input has the `userId`.
    pub fn names_owner(&self, words: &str) -> bool {
        let is_list = |field: FieldId| singular_words(&snake_words(&self.record.field(field).name)) == words;
        let is_named = |role: &ArgumentRole| {
            matches!(role, ArgumentRole::Field(field) if self.is_called(*field, words))
                || matches!(role, ArgumentRole::RelatedField(relation, _) if is_list(*relation))
        };
        self.roles_with_members().any(|role| is_named(&role))
    }

    /// True if the id and one field are all that the operation takes, and the words name that field: `status` in
    /// `updateOrderStatus(id: ID!, status: Status!)`. Secrets are not just stored.
    pub fn sets_only(&self, words: &str, is_whole_name: bool) -> bool {
        let mut fields = Vec::new();
        for role in self.roles_with_members() {
            if let ArgumentRole::Field(field) = role {
                fields.push(field);
            } else if !matches!(
                role,
                ArgumentRole::Id | ArgumentRole::ExpectedVersion | ArgumentRole::ClientMutationId
            ) {
                return false;
            }
        }
        let [field] = fields.as_slice() else { return false };
        let name = snake_words(&self.record.field(*field).name);
        let is_secret = name.split('_').any(|word| SECRET_WORDS.contains(&word));
        let is_part = || format!("_{name}_").contains(&format!("_{words}_"));
        // `setBookPages` has lost the plural of `pages`.
        let is_named = self.is_called(*field, words) || singular_words(&name) == words;
        !is_secret && (is_named || (!is_whole_name && is_part()))
    }

    /// The roles of the arguments, and of their members where they are input objects.
    fn roles_with_members(&self) -> impl Iterator<Item = ArgumentRole> {
        self.arguments.iter().zip(&self.roles).flat_map(|(argument, (_, role))| {
            if *role != ArgumentRole::Input {
                return vec![role.clone()];
            }
            let members = argument.fields.iter();
            members.map(|inner| member_role(self.record, self.verb, &inner.name)).collect()
        })
    }

    /// True if the values are in input objects of which no member is known: nothing of what is sent would be stored.
    pub fn stores_nothing(&self) -> bool {
        let stores_key = self.verb.may_create() && self.record.accepts_given_key();
        let is_known = |inner: &Argument| {
            let role = member_role(self.record, self.verb, &inner.name);
            let is_stored = !matches!(role, ArgumentRole::Unknown | ArgumentRole::ClientMutationId);
            is_stored && (stores_key || role != ArgumentRole::Id)
        };
        let sets = |(argument, (_, role)): (&Argument, &(String, ArgumentRole))| {
            let holds_known = || argument.fields.iter().any(is_known);
            matches!(role, ArgumentRole::Field(_)) || (*role == ArgumentRole::Input && holds_known())
        };
        let has_input = self.roles.iter().any(|(_, role)| *role == ArgumentRole::Input);
        let writes = self.verb.may_create() || self.verb == OperationVerb::Update;
        writes && has_input && !self.arguments.iter().zip(&self.roles).any(sets)
    }

    fn has_role(&self, role: &ArgumentRole) -> bool {
        self.roles.iter().any(|(_, found)| found == role)
    }

    fn has_filter(&self) -> bool {
        self.roles.iter().any(|(_, role)| {
            matches!(
                role,
                ArgumentRole::Field(_)
                    | ArgumentRole::RelatedField(..)
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
        let names_key = matches!(by, "id" | "pk" | "key") || key_name == by || self.is_own_key(by);
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
        // A write has no condition but the key: `deleteTaskByIdAndUserId` would delete the tasks of others.
        if self.verb.root_kind() == RootType::Mutation && self.verb != OperationVerb::Create {
            let is_key = |named: &(String, ArgumentRole)| named.1 == ArgumentRole::Id && is_named(named);
            let has_key = self.roles.iter().any(is_key);
            return has_key || (names_key && (self.takes_id() || self.accept_only_id()));
        }
        let is_clear = self.names_all_fields(by) || self.roles.iter().any(is_named);
        if is_clear || (names_key && self.takes_id()) {
            return true;
        }
        if names_key {
            return self.accept_only_id();
        }
        let Some(field) = self.find_field(by) else { return self.accept_related(by) };
        let field_name = snake_words(&self.record.field(field).name);
        let holds_key = self.record.field(field).kind.is_reference() || field_name.ends_with("_id");
        let is_own = field_name == by || self.is_own_field(&field_name, by);
        let is_argument = |name: &str| {
            let words = snake_words(name);
            words == by
                || words == field_name
                || (is_own && self.is_own_field(&words, by))
                || (holds_key && (words == "id" || words == format!("{by}_id")))
        };
        let position = self.arguments.iter().position(|argument| is_argument(&argument.name));
        let Some(position) = position else { return self.accept_related(by) };
        self.roles[position].1 = ArgumentRole::Field(field);
        true
    }

    /// True for `book_id` in a Book or a BookDto.
    fn is_own_key(&self, words: &str) -> bool {
        is_key_name(&self.record.name, words) || self.is_own_field(words, "id")
    }

    /// True for `station_name` if the words are `name` and the record is a Station.
    fn is_own_field(&self, field: &str, words: &str) -> bool {
        let owner = field.strip_suffix(words).and_then(|owner| owner.strip_suffix('_'));
        owner.is_some_and(|owner| self.is_own_name(owner))
    }

    /// True for `number_block` if these are the arguments, and each is a field.
    fn names_all_fields(&self, by: &str) -> bool {
        let names: Vec<String> = self.arguments.iter().map(|argument| snake_words(&argument.name)).collect();
        let is_field = |(_, role): &(String, ArgumentRole)| matches!(role, ArgumentRole::Field(_));
        names.len() > 1 && names.join("_") == by && self.roles.iter().all(is_field)
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
        // `stationName` is the name of a Station, `lineName` is not.
        let is_own =
            |field: &FieldId| self.is_own_field(&snake_words(&self.record.field(*field).name), words);
        if let Some(field) = fields().find(is_own) {
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

    /// True for `user` and `user_id` if the field is `user`, `userId` or `idUser`.
    fn is_called(&self, field: FieldId, words: &str) -> bool {
        let field = self.record.field(field);
        let without_id = |words: &str| {
            words.strip_suffix("_id").or_else(|| words.strip_prefix("id_")).unwrap_or(words).to_owned()
        };
        let names = [snake_words(&field.name), snake_words(&field.input_name)];
        names.iter().any(|name| name == words || without_id(name) == without_id(words))
            || self
                .find_reference(&without_id(words))
                .is_some_and(|found| self.record.field(found).name == field.name)
    }
}

/// True for a type of one-time passwords.
pub(super) fn sends_codes(record: &RecordType) -> bool {
    record.name.to_lowercase() == "otp"
}

/// Words in the names of fields that are not just stored as they are sent.
const SECRET_WORDS: [&str; 5] = ["password", "passwd", "pin", "secret", "token"];
