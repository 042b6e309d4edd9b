//! The role of each argument of a built-in operation, by its name.

use trefoil_model::naming::names;
use trefoil_model::naming::operation_verbs::{TypeNoun, singular_words};
use trefoil_model::{Argument, ComparisonOp, FieldId, FilterOperator, KeyForm, RecordType, ValueSource};

use crate::builtin_operation::{ArgumentRole, OperationVerb, VerbGroup};

/// The argument of an upsert with the unique fields to find the record by.
pub const UNIQUE_FIELDS_ARGUMENT: &str = "by";

/// The role of each argument. A field's name wins over a paging word, so `size` filters if there is such a field.
pub fn argument_roles(
    record: &RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
) -> Vec<(String, ArgumentRole)> {
    // `bookId` means the book only if no argument is called like the key.
    let has_key =
        arguments.iter().any(|argument| named_role(record, verb, &argument.name) == ArgumentRole::Id);
    let role = |argument: &Argument| {
        if is_key_object(record, verb, argument) {
            return ArgumentRole::KeyObject;
        }
        if is_write_condition(record, verb, argument) {
            return ArgumentRole::Unknown;
        }
        let role = typed_role(named_role(record, verb, &argument.name), verb, argument);
        // `deleteUser(id: [ID!]!)` would delete several.
        if role == ArgumentRole::Id && argument.ty.is_list() {
            return ArgumentRole::Unknown;
        }
        // `author: ID!` for the field `authorId`.
        let is_value = role == ArgumentRole::Unknown && argument.fields.is_empty();
        let role = if is_value { named_role(record, verb, &format!("{}_id", argument.name)) } else { role };
        let may_be_key = !has_key && matches!(role, ArgumentRole::Unknown | ArgumentRole::Field(_));
        let is_alias = is_key_alias(record, verb, &argument.name)
            && !argument.ty.is_list()
            && !is_text_beside_key(record, argument);
        if may_be_key && is_alias {
            ArgumentRole::Id
        } else if role == ArgumentRole::Page && argument.is_zero_by_default {
            ArgumentRole::PageFromZero
        } else if role == ArgumentRole::Unknown
            && let Some(inverse) = written_inverse(record, verb, argument)
        {
            ArgumentRole::Field(inverse)
        } else if role == ArgumentRole::Unknown && is_input_object(record, verb, argument) {
            ArgumentRole::Input
        } else {
            role
        }
    };
    let mut roles: Vec<(String, ArgumentRole)> =
        arguments.iter().map(|argument| (argument.name.clone(), role(argument))).collect();
    if verb.writes_one() {
        leave_related_inputs(record, &mut roles);
    }
    let names_record =
        |(_, role): &(String, ArgumentRole)| matches!(role, ArgumentRole::Id | ArgumentRole::KeyObject);
    if verb.names_record() && !roles.iter().any(names_record) {
        accept_key_part(record, &mut roles);
    }
    roles
}

/// `createDoctor(input: DoctorInput!, userInput: UserInput!)`: beside the values of the doctor, those are of its user.
fn leave_related_inputs(record: &RecordType, roles: &mut [(String, ArgumentRole)]) {
    let is_related = |name: &str| {
        let words = names::snake_words(name);
        let owner = INPUT_ENDINGS.iter().find_map(|ending| words.strip_suffix(ending)?.strip_suffix('_'));
        let mut relations = record.fields.iter().filter(|field| field.kind.relation().is_some());
        owner.is_some_and(|owner| {
            relations.any(|field| singular_words(&names::snake_words(&field.name)) == owner)
        })
    };
    let is_input = |(_, role): &&mut (String, ArgumentRole)| *role == ArgumentRole::Input;
    let has_own = roles.iter().any(|(name, role)| *role == ArgumentRole::Input && !is_related(name));
    for (_, role) in roles.iter_mut().filter(is_input).filter(|(name, _)| has_own && is_related(name)) {
        *role = ArgumentRole::Unknown;
    }
}

/// Endings of the names of input objects.
pub(crate) const INPUT_ENDINGS: [&str; 7] = ["input", "dto", "request", "req", "data", "params", "args"];

/// True for `where: { id: 1 }` of a write of one record, as Prisma has it. What else it has is not set.
fn is_key_object(record: &RecordType, verb: OperationVerb, argument: &Argument) -> bool {
    let is_write = matches!(verb, OperationVerb::Update | OperationVerb::Delete);
    let has_key =
        || argument.fields.iter().any(|member| member_role(record, verb, &member.name) == ArgumentRole::Id);
    is_write && is_write_condition(record, verb, argument) && !argument.ty.is_list() && has_key()
}

/// True for an object that says which record is written, such as `where: { email: "x" }`: it holds no values to write.
pub(crate) fn is_write_condition(record: &RecordType, verb: OperationVerb, argument: &Argument) -> bool {
    matches!(argument.name.as_str(), "where" | "filter" | "condition")
        && verb.writes_one()
        && !argument.fields.is_empty()
        && named_role(record, verb, &argument.name) == ArgumentRole::Unknown
}

/// The role that the name says, unless the argument is an object and that role takes none: `page: PageRequest`. A
/// subscription compares fields and does not search, so it has no use for `where: String`.
fn typed_role(role: ArgumentRole, verb: OperationVerb, argument: &Argument) -> ArgumentRole {
    let is_text = argument.ty.inner_name() == "String";
    if role == ArgumentRole::Where && verb.group() == VerbGroup::Subscribe && is_text {
        return ArgumentRole::Unknown;
    }
    let takes_value = matches!(
        role,
        ArgumentRole::Page
            | ArgumentRole::PageFromZero
            | ArgumentRole::Size
            | ArgumentRole::Limit
            | ArgumentRole::Offset
            | ArgumentRole::First
            | ArgumentRole::After
            | ArgumentRole::Last
            | ArgumentRole::Before
            | ArgumentRole::Search
    );
    if takes_value && !argument.fields.is_empty() { ArgumentRole::Unknown } else { role }
}

/// `listId` is the key of a MovieList if no other argument is, and the type has no such field.
fn accept_key_part(record: &RecordType, roles: &mut [(String, ArgumentRole)]) {
    let noun = TypeNoun::new(&record.name, |_| false);
    let is_part = |(name, role): &&mut (String, ArgumentRole)| {
        let words = names::snake_words(name);
        let is_field = any_case_field(record, name, RecordType::find_input_field).is_some();
        let part = words.strip_suffix("_id").filter(|_| *role == ArgumentRole::Unknown && !is_field);
        part.is_some_and(|part| noun.ends_with(part))
    };
    let mut parts = roles.iter_mut().filter(is_part);
    if let (Some((_, role)), None) = (parts.next(), parts.next()) {
        *role = ArgumentRole::Id;
    }
}

/// The number of the first page, as the argument for it counts, or a member of an input object.
pub fn first_page(
    record: &RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
    roles: &[(String, ArgumentRole)],
) -> Option<i64> {
    let number = |role: &ArgumentRole| {
        let is_page = matches!(role, ArgumentRole::Page | ArgumentRole::PageFromZero);
        is_page.then(|| i64::from(*role == ArgumentRole::Page))
    };
    arguments.iter().zip(roles).find_map(|(argument, (_, role))| {
        let members = argument.fields.iter().filter(|_| *role == ArgumentRole::Input);
        let mut members = members.map(|member| member_role(record, verb, &member.name));
        number(role).or_else(|| members.find_map(|role| number(&role)))
    })
}

/// The role of a member of an input object.
pub fn member_role(record: &RecordType, verb: OperationVerb, member: &str) -> ArgumentRole {
    let role = named_role(record, verb, member);
    let is_key = role == ArgumentRole::Unknown && is_key_alias(record, verb, member);
    if is_key { ArgumentRole::Id } else { role }
}

fn named_role(record: &RecordType, verb: OperationVerb, name: &str) -> ArgumentRole {
    let role = operation_role(record, verb, name);
    let is_unknown = role == ArgumentRole::Unknown;
    if is_unknown && verb.writes_one() && is_client_mutation_id(name) {
        ArgumentRole::ClientMutationId
    } else {
        role
    }
}

pub(crate) fn is_client_mutation_id(name: &str) -> bool {
    names::snake_words(name) == "client_mutation_id"
}

fn operation_role(record: &RecordType, verb: OperationVerb, name: &str) -> ArgumentRole {
    let is_key = || record.field(record.id_field()).name == name || name == "id";
    match verb {
        OperationVerb::UpdateMany | OperationVerb::DeleteMany if name == "where" => ArgumentRole::Where,
        OperationVerb::Upsert if name == UNIQUE_FIELDS_ARGUMENT => ArgumentRole::UniqueFields,
        verb if verb.names_record() && is_key() => ArgumentRole::Id,
        OperationVerb::Update | OperationVerb::Delete | OperationVerb::Save if name == "expectedVersion" => {
            ArgumentRole::ExpectedVersion
        }
        OperationVerb::List => filter_role(record, name).unwrap_or_else(|| listing_role(name)),
        OperationVerb::Count | OperationVerb::Exists => filter_role(record, name).unwrap_or_else(|| {
            let role = listing_role(name);
            let is_filter = matches!(role, ArgumentRole::Where | ArgumentRole::Ids | ArgumentRole::Search);
            if is_filter { role } else { ArgumentRole::Unknown }
        }),
        OperationVerb::Aggregate => filter_role(record, name).unwrap_or_else(|| aggregate_role(name)),
        OperationVerb::Get | OperationVerb::Subscribe(_) | OperationVerb::SubscribeAll => {
            match any_case_field(record, name, filter_field) {
                Some(field) => ArgumentRole::Field(field),
                None if name == "where" => ArgumentRole::Where,
                None => ArgumentRole::Unknown,
            }
        }
        OperationVerb::Create if is_key() => ArgumentRole::Id,
        OperationVerb::CreateMany | OperationVerb::Upsert if is_key() => {
            ArgumentRole::Field(record.id_field())
        }
        OperationVerb::Create
        | OperationVerb::CreateMany
        | OperationVerb::Update
        | OperationVerb::UpdateMany
        | OperationVerb::Save
        | OperationVerb::Upsert => {
            any_case_field(record, name, write_field).map_or(ArgumentRole::Unknown, ArgumentRole::Field)
        }
        OperationVerb::Delete | OperationVerb::DeleteMany => ArgumentRole::Unknown,
    }
}

/// `bookId` and `book_id` for the key of a Book, where the operation needs one.
fn is_key_alias(record: &RecordType, verb: OperationVerb, name: &str) -> bool {
    let is_written = matches!(verb, OperationVerb::Update | OperationVerb::Save);
    let is_field = record.find_input_field(name).is_some();
    verb.names_record() && !(is_written && is_field) && names::is_key_name(&record.name, name)
}

/// True for `movieId: String!` of a Movie whose key is a number, and which has a text of this name, too.
fn is_text_beside_key(record: &RecordType, argument: &Argument) -> bool {
    let field = record.find_input_field(&argument.name).map(|id| &record.field(id).kind);
    let is_number = matches!(record.key_form(), KeyForm::Number | KeyForm::Digits);
    is_number
        && argument.ty.inner_name() == "String"
        && field.is_some_and(|kind| kind.own_value().is_some() && kind.is_text())
}

/// True for an input object that holds what could also be separate arguments. That of a read may have
/// some other members, which are refused when they are given, like other arguments.
fn is_input_object(record: &RecordType, verb: OperationVerb, argument: &Argument) -> bool {
    let is_known = |inner: &Argument| member_role(record, verb, &inner.name) != ArgumentRole::Unknown;
    let holds_arguments = match verb.group() {
        VerbGroup::WriteFields => true,
        VerbGroup::ReadMany | VerbGroup::ReadOne => {
            let known = argument.fields.iter().filter(|inner| is_known(inner)).count();
            let is_complete = argument.fields.iter().all(|inner| is_known(inner) || !inner.ty.is_required());
            is_complete && known * 2 >= argument.fields.len()
        }
        VerbGroup::Delete => verb.names_record(),
        VerbGroup::Subscribe => false,
    };
    let is_many = verb == OperationVerb::CreateMany;
    holds_arguments && !argument.fields.is_empty() && argument.ty.is_list() == is_many
}

/// The list whose records an argument describes: `createInvoice(lines: [LineInput!]!)`.
fn written_inverse(record: &RecordType, verb: OperationVerb, argument: &Argument) -> Option<FieldId> {
    let is_described = takes_records(verb, argument) && !argument.fields.is_empty();
    inverse_field(record, &argument.name).filter(|_| is_described)
}

/// True if an input object in this place describes related records. A plain list of them is created, so it is nothing
/// that a record which exists could be given.
pub(crate) fn takes_records(verb: OperationVerb, argument: &Argument) -> bool {
    match verb {
        OperationVerb::Create | OperationVerb::CreateMany => true,
        OperationVerb::Update | OperationVerb::Save => !argument.ty.is_list(),
        // Refused when it is used, see `ParsedArguments::accept_written`.
        OperationVerb::UpdateMany | OperationVerb::Upsert => !argument.ty.is_list(),
        OperationVerb::List
        | OperationVerb::Get
        | OperationVerb::Count
        | OperationVerb::Exists
        | OperationVerb::Aggregate
        | OperationVerb::Delete
        | OperationVerb::DeleteMany
        | OperationVerb::Subscribe(_)
        | OperationVerb::SubscribeAll => false,
    }
}

/// The filter that an argument of a list is, by a field's name and a comparison: `price`, `minPrice`, `titleContains`.
fn filter_role(record: &RecordType, name: &str) -> Option<ArgumentRole> {
    if let Some(field) = filter_field(record, name) {
        return Some(ArgumentRole::Field(field));
    }
    // A word for paging or searching is nothing else, unless there is a field of exactly this name.
    if listing_role(name) != ArgumentRole::Unknown {
        return None;
    }
    let equal = any_case_field(record, name, filter_field).map(ArgumentRole::Field);
    equal.or_else(|| comparison(record, name).map(|(field, op)| ArgumentRole::Compare(field, op)))
}

/// The field and the comparison that a name is made of.
pub(crate) fn comparison(record: &RecordType, name: &str) -> Option<(FieldId, FilterOperator)> {
    let words = names::snake_words(name);
    let compared = |words: &str, operator: FilterOperator| {
        let field = any_case_field(record, words, filter_field)?;
        let is_bound = matches!(operator, FilterOperator::Compare(_));
        let definition = record.field(field);
        let fits = operator.fits(definition) && (!is_bound || definition.kind.is_ordered());
        fits.then_some((field, operator))
    };
    let last = words.rsplit_once('_').and_then(|(field, word)| compared(field, last_word_op(word)?));
    let first = || words.split_once('_').and_then(|(word, field)| compared(field, first_word_op(word)?));
    last.or_else(first)
}

fn last_word_op(word: &str) -> Option<FilterOperator> {
    match word {
        "contains" | "containing" | "filter" => Some(FilterOperator::CONTAINS),
        "min" | "gte" | "from" | "since" => Some(FilterOperator::Compare(ComparisonOp::Gte)),
        "max" | "lte" | "to" | "until" => Some(FilterOperator::Compare(ComparisonOp::Lte)),
        "gt" => Some(FilterOperator::Compare(ComparisonOp::Gt)),
        "lt" => Some(FilterOperator::Compare(ComparisonOp::Lt)),
        "in" => Some(FilterOperator::In),
        _ => None,
    }
}

fn first_word_op(word: &str) -> Option<FilterOperator> {
    match word {
        "min" | "from" => Some(FilterOperator::Compare(ComparisonOp::Gte)),
        "max" | "to" => Some(FilterOperator::Compare(ComparisonOp::Lte)),
        _ => None,
    }
}

/// The field that `find` finds by this name, or by one that differs only in case, underscores and where `id` stands:
/// `authorID`, `author_id` and `idAuthor` for `authorId`.
pub(crate) fn any_case_field(
    record: &RecordType,
    name: &str,
    find: fn(&RecordType, &str) -> Option<FieldId>,
) -> Option<FieldId> {
    let by_words = || {
        let words = names::snake_words(name);
        let reversed = words.strip_prefix("id_").map(|rest| format!("{rest}_id"));
        let only = |words: &String| {
            let stored = record.fields.iter().filter(|field| !field.kind.is_unstored());
            let mut fields = stored.filter(|field| field.name_words().contains(words));
            let field = fields.next()?;
            Some(fields.next().is_none().then_some(field))
        };
        // A field of this very name is meant, whatever another one is called.
        let field = only(&words).or_else(|| only(reversed.as_ref()?))??;
        find(record, &field.name)
    };
    find(record, name).or_else(by_words)
}

fn listing_role(name: &str) -> ArgumentRole {
    match names::snake_words(name).as_str() {
        "page" | "page_number" | "page_no" | "page_num" | "current_page" => ArgumentRole::Page,
        "page_index" => ArgumentRole::PageFromZero,
        "size" | "page_size" | "per_page" | "items_per_page" => ArgumentRole::Size,
        "limit" | "take" | "max_results" => ArgumentRole::Limit,
        "offset" | "skip" => ArgumentRole::Offset,
        "first" => ArgumentRole::First,
        "after" => ArgumentRole::After,
        "last" => ArgumentRole::Last,
        "before" => ArgumentRole::Before,
        "order_by" | "order" | "sort" | "sort_by" => ArgumentRole::OrderBy,
        "direction" | "sort_direction" | "sort_order" | "order_direction" | "sort_type" => {
            ArgumentRole::SortDirection
        }
        "where" | "filter" => ArgumentRole::Where,
        "ids" => ArgumentRole::Ids,
        "query" | "q" | "search" | "search_term" | "search_text" | "search_query" | "term" | "text"
        | "keyword" => ArgumentRole::Search,
        _ => ArgumentRole::Unknown,
    }
}

/// The role of an argument of an aggregate that is not a filter.
fn aggregate_role(name: &str) -> ArgumentRole {
    match names::snake_words(name).as_str() {
        "group_by" | "group" => ArgumentRole::GroupBy,
        "having" => ArgumentRole::Having,
        _ => {
            let role = listing_role(name);
            let is_taken = matches!(
                role,
                ArgumentRole::First
                    | ArgumentRole::Limit
                    | ArgumentRole::OrderBy
                    | ArgumentRole::Where
                    | ArgumentRole::Ids
                    | ArgumentRole::Search
            );
            if is_taken { role } else { ArgumentRole::Unknown }
        }
    }
}

/// True if an argument of a list says how many records it has at most. Without a record type, of a list that a
/// registered resolver returns, the name alone decides.
pub fn is_length_argument(record: Option<&RecordType>, name: &str) -> bool {
    let role = match record {
        Some(record) => named_role(record, OperationVerb::List, name),
        None => listing_role(name),
    };
    matches!(role, ArgumentRole::Size | ArgumentRole::Limit | ArgumentRole::First | ArgumentRole::Last)
}

/// The field that `name` filters by; its column must be comparable.
pub fn filter_field(record: &RecordType, name: &str) -> Option<FieldId> {
    record.find_input_field(name).filter(|id| record.field(*id).kind.is_comparable())
}

/// The list of records that refer to this one, by its name. An input may hold such records.
pub(crate) fn inverse_field(record: &RecordType, name: &str) -> Option<FieldId> {
    any_case_field(record, name, RecordType::find_field)
        .filter(|id| record.field(*id).kind.inverse().is_some())
}

/// The field that `name` sets. Fields that the server fills are found too, so that they are refused by name.
fn write_field(record: &RecordType, name: &str) -> Option<FieldId> {
    record.find_input_field(name).filter(|id| {
        let field = record.field(*id);
        !field.kind.is_id() && (field.is_writable() || field.value_source != ValueSource::Client)
    })
}
