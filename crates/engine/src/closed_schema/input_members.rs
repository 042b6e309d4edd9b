//! The members of input objects and enums: what each means where it is used, and whether the actor may ever give it.

use trefoil_model::access::AccessAction;
use trefoil_model::{FieldId, Model, RecordTypeId, Relation, RootType};

use crate::arguments::aggregates::AggregateParser;
use crate::arguments::argument_roles::{any_case_field, inverse_field, member_role};
use crate::arguments::conditions::{ConditionMember, condition_member};
use crate::arguments::sort_keys::parse_sort_key;
use crate::builtin_operation::{ArgumentRole, OperationVerb, VerbGroup};
use crate::engine::Engine;
use crate::operation::{MeasureFunction, ReferencePath};

/// What an input object or an enum is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputUse {
    /// What could also be arguments of such an operation, or the fields of a record.
    Arguments(RecordTypeId, OperationVerb),
    /// Conditions of records.
    Conditions(RecordTypeId),
    /// The order of records.
    Order(RecordTypeId),
    /// The keys of groups, and their order.
    Groups(RecordTypeId),
    /// Conditions of groups.
    Having(RecordTypeId),
    UniqueFields(RecordTypeId),
    /// What is done to the records of a relation, which the last says of which record: a new one or one that is changed.
    Related(RecordTypeId, FieldId, OperationVerb),
    /// The id of a record, and what is changed of it.
    Change(RecordTypeId),
}

/// What is given: a value or a list of values, an object, or a list of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenShape {
    Values,
    Object,
    Objects,
}

impl GivenShape {
    /// Of something with this type, which may be a list of it.
    pub fn new(model: &Model, type_name: &str, is_list: bool) -> GivenShape {
        match (model.schema.get_input_object(type_name).is_some(), is_list) {
            (false, _) => GivenShape::Values,
            (true, false) => GivenShape::Object,
            (true, true) => GivenShape::Objects,
        }
    }
}

/// Whether something may ever be given, and what is inside of it.
pub struct InputMeaning {
    pub is_open: bool,
    pub inner: Option<InputUse>,
}

impl InputMeaning {
    const OPEN: InputMeaning = InputMeaning { is_open: true, inner: None };

    fn plain(is_open: bool) -> InputMeaning {
        InputMeaning { is_open, inner: None }
    }

    fn of(inner: InputUse) -> InputMeaning {
        InputMeaning { is_open: true, inner: Some(inner) }
    }
}

/// Says what arguments and members of inputs mean for one actor.
#[derive(Clone, Copy)]
pub struct InputReader<'e> {
    pub engine: &'e Engine,
}

impl InputReader<'_> {
    /// An argument of an operation.
    pub fn argument(
        self,
        record: RecordTypeId,
        verb: OperationVerb,
        name: &str,
        role: &ArgumentRole,
        shape: GivenShape,
    ) -> InputMeaning {
        match role {
            ArgumentRole::Field(field) if verb.root_kind() == RootType::Mutation => {
                self.written_field(record, verb, *field, shape)
            }
            ArgumentRole::Field(field) | ArgumentRole::Compare(field, _) => {
                InputMeaning::plain(self.engine.shows_field(record, *field))
            }
            ArgumentRole::RelatedField(relation, field) => {
                InputMeaning::plain(self.engine.shows_related_field(record, *relation, *field))
            }
            ArgumentRole::Input => InputMeaning::of(InputUse::Arguments(record, verb)),
            ArgumentRole::KeyObject => InputMeaning::of(InputUse::Arguments(record, OperationVerb::Get)),
            ArgumentRole::Where => InputMeaning::of(InputUse::Conditions(record)),
            ArgumentRole::GroupBy => InputMeaning::of(InputUse::Groups(record)),
            ArgumentRole::OrderBy if verb == OperationVerb::Aggregate => {
                InputMeaning::of(InputUse::Groups(record))
            }
            ArgumentRole::OrderBy => InputMeaning::of(InputUse::Order(record)),
            ArgumentRole::Having => InputMeaning::of(InputUse::Having(record)),
            ArgumentRole::UniqueFields => InputMeaning::of(InputUse::UniqueFields(record)),
            ArgumentRole::Unknown if verb.group() == VerbGroup::WriteFields => {
                match inverse_field(self.engine.model().record(record), name) {
                    Some(inverse) => self.written_field(record, verb, inverse, shape),
                    None => InputMeaning::OPEN,
                }
            }
            ArgumentRole::Unknown
            | ArgumentRole::Id
            | ArgumentRole::Ids
            | ArgumentRole::ExpectedVersion
            | ArgumentRole::ClientMutationId
            | ArgumentRole::Page
            | ArgumentRole::PageFromZero
            | ArgumentRole::Size
            | ArgumentRole::Limit
            | ArgumentRole::Offset
            | ArgumentRole::First
            | ArgumentRole::After
            | ArgumentRole::Last
            | ArgumentRole::Before
            | ArgumentRole::SortDirection
            | ArgumentRole::Search => InputMeaning::OPEN,
        }
    }

    /// A member of an input object or a value of an enum that is used so.
    pub fn member(self, used: InputUse, name: &str, shape: GivenShape) -> InputMeaning {
        let model = self.engine.model();
        match used {
            InputUse::Arguments(record, verb) => {
                let role = member_role(model.record(record), verb, name);
                self.argument(record, verb, name, &role, shape)
            }
            InputUse::Conditions(record) => match condition_member(model.record(record), name) {
                Some(ConditionMember::Field(field)) => {
                    let target = model.record(record).field(field).kind.relation().map(Relation::target);
                    InputMeaning {
                        is_open: self.engine.shows_field(record, field),
                        inner: target.map(InputUse::Conditions),
                    }
                }
                Some(ConditionMember::Group) => InputMeaning::of(used),
                None => InputMeaning::OPEN,
            },
            InputUse::Order(record) => self.order_member(record, name),
            InputUse::Groups(record) => {
                let key = AggregateParser { model, record }.group_key(name).ok();
                InputMeaning::plain(key.is_none_or(|key| self.shows_path(record, &key.path)))
            }
            InputUse::Having(record) => match MeasureFunction::from_name(name) {
                Some(_) => InputMeaning::of(InputUse::Conditions(record)),
                None => InputMeaning::OPEN,
            },
            InputUse::UniqueFields(record) => {
                let field = model.record(record).find_input_field(name);
                InputMeaning::plain(field.is_none_or(|field| self.engine.shows_field(record, field)))
            }
            InputUse::Related(record, relation, verb) => self.related_member(record, relation, verb, name),
            InputUse::Change(record) if name == "input" => InputMeaning {
                is_open: self.engine.may_run(OperationVerb::Update, record),
                inner: Some(InputUse::Arguments(record, OperationVerb::Update)),
            },
            InputUse::Change(_) => InputMeaning::OPEN,
        }
    }

    fn shows_path(self, record: RecordTypeId, path: &ReferencePath) -> bool {
        let view = self.engine.access_view();
        view.is_none_or(|view| !view.hides_path(self.engine.model(), record, path))
    }

    /// `NAME_DESC`, or a member of `{ name: DESC, user: { name: ASC } }` or `{ field: NAME, direction: DESC }`.
    fn order_member(self, record: RecordTypeId, name: &str) -> InputMeaning {
        let owner = self.engine.model().record(record);
        let field = any_case_field(owner, name, |record, name| record.find_input_field(name));
        let reference = field.filter(|field| owner.field(*field).kind.is_reference());
        if let Some(reference) = reference {
            let target = owner.field(reference).kind.relation().map(Relation::target);
            return InputMeaning {
                is_open: self.engine.shows_field(record, reference),
                inner: target.map(InputUse::Order),
            };
        }
        if field.is_none() && matches!(name, "field" | "property" | "by" | "key") {
            return InputMeaning::of(InputUse::Order(record));
        }
        let key = parse_sort_key(self.engine.model(), owner, "sort", name).ok();
        let path = key.as_ref().and_then(|key| key.value.path());
        InputMeaning::plain(path.is_none_or(|path| self.shows_path(record, path)))
    }

    /// The actions that a verb asks the rules of fields for, any of which may be the one.
    fn write_actions(verb: OperationVerb) -> &'static [AccessAction] {
        match verb {
            OperationVerb::Update | OperationVerb::UpdateMany => &[AccessAction::Update],
            OperationVerb::Save | OperationVerb::Upsert => &[AccessAction::Create, AccessAction::Update],
            OperationVerb::Create
            | OperationVerb::CreateMany
            | OperationVerb::List
            | OperationVerb::Get
            | OperationVerb::Count
            | OperationVerb::Exists
            | OperationVerb::Aggregate
            | OperationVerb::Delete
            | OperationVerb::DeleteMany
            | OperationVerb::Subscribe(_)
            | OperationVerb::SubscribeAll => &[AccessAction::Create],
        }
    }

    fn may_set(self, record: RecordTypeId, verb: OperationVerb, field: FieldId) -> bool {
        let mut actions = InputReader::write_actions(verb).iter();
        match verb == OperationVerb::Upsert {
            // Both, whichever it turns out to be.
            true => actions.all(|action| self.engine.may_set(*action, record, field)),
            false => actions.any(|action| self.engine.may_set(*action, record, field)),
        }
    }

    fn written_field(
        self,
        record: RecordTypeId,
        verb: OperationVerb,
        field: FieldId,
        shape: GivenShape,
    ) -> InputMeaning {
        let definition = self.engine.model().record(record).field(field);
        let is_given = !definition.value_source.is_account();
        let is_open = is_given && self.may_set(record, verb, field);
        match (definition.kind.relation(), shape) {
            (None, _) | (Some(Relation::Link(_)), GivenShape::Values) => InputMeaning::plain(is_open),
            (Some(Relation::Reference(_)), _) => {
                InputMeaning { is_open, inner: Some(InputUse::Related(record, field, verb)) }
            }
            // Each of them is a new record.
            (Some(Relation::Link(_) | Relation::Inverse(_)), GivenShape::Objects) => {
                self.related_member(record, field, verb, "create")
            }
            (Some(Relation::Link(_)), GivenShape::Object) => {
                InputMeaning { is_open: is_given, inner: Some(InputUse::Related(record, field, verb)) }
            }
            (Some(Relation::Inverse(_)), _) => InputMeaning::of(InputUse::Related(record, field, verb)),
        }
    }

    /// `create`, `connect` and the others, of a relation.
    fn related_member(
        self,
        record: RecordTypeId,
        field: FieldId,
        verb: OperationVerb,
        name: &str,
    ) -> InputMeaning {
        let engine = self.engine;
        let Some(relation) = engine.model().record(record).field(field).kind.relation() else {
            return InputMeaning::OPEN;
        };
        let target = relation.target();
        let may_update = || engine.may_run(OperationVerb::Update, target);
        // Whether the relation itself may be set: on the other side, if it is the list of an inverse.
        let may_set = |action: AccessAction| match relation {
            Relation::Inverse(inverse) => engine.may_set(action, target, inverse.field),
            Relation::Reference(_) | Relation::Link(_) => self.may_set(record, verb, field),
        };
        let is_inverse = matches!(relation, Relation::Inverse(_));
        match name {
            "create" => InputMeaning {
                is_open: engine.may(AccessAction::Create, target) && may_set(AccessAction::Create),
                inner: Some(InputUse::Arguments(target, OperationVerb::Create)),
            },
            "update" => InputMeaning { is_open: may_update(), inner: Some(InputUse::Change(target)) },
            "delete" => InputMeaning::plain(engine.may(AccessAction::Delete, target)),
            "connect" | "disconnect" | "set" => {
                InputMeaning::plain(may_set(AccessAction::Update) && (!is_inverse || may_update()))
            }
            _ => InputMeaning::plain(is_inverse || may_set(AccessAction::Update)),
        }
    }
}
