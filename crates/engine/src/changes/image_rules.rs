//! Judges the image of a change by the rules of an actor, without asking the store: what is about the record's own
//! columns and the actor is decided here, with the results that the databases give.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use trefoil_model::access::{AccessVerdict, ActorFact, ActorFacts, RuleTest, RuleValue, TextComparison};
use trefoil_model::naming::names::{VERSION_COLUMN, key_column};
use trefoil_model::{
    CellValue, ComparisonOp, Field, FieldId, Model, RecordType, RecordTypeId, Scalar, StoredValue, ValueType,
};

use crate::access::{AccessView, ActorFactsView};
use crate::changes::change_filter::ChangeFilter;
use crate::changes::image_predicate::CellComparison;
use crate::changes::record_image::{RecordImage, image_cell};
use crate::engine::Engine;
use crate::operation::{ChildSelection, Selection};

/// Which of the events that actors of several classes share one of them may see.
pub struct EventAccess {
    model: Arc<Model>,
    view: Arc<AccessView>,
    record: RecordTypeId,
    /// A hash of the rule that is left when no value of the actor is known.
    common_rule: u128,
}

/// What the rule of the first actor says of an image, whatever values of theirs it compares it with. Those of nearly all
/// others differ in nothing else, and need not be looked at.
#[derive(Debug, Default)]
pub struct CommonVerdict(OnceLock<(u128, Option<bool>)>);

impl EventAccess {
    fn new(model: &Arc<Model>, view: &Arc<AccessView>, record: RecordTypeId) -> EventAccess {
        let test = common_test(model, view, record);
        let common_rule = xxhash_rust::xxh3::xxh3_128(format!("{test:?}").as_bytes());
        EventAccess { model: model.clone(), view: view.clone(), record, common_rule }
    }

    /// Whether the actor may see the event with this image.
    pub fn allows(&self, image: &RecordImage, common: &CommonVerdict) -> bool {
        let rules = ImageRules { model: &self.model, view: &self.view, record: self.record };
        let (rule, verdict) = common.0.get_or_init(|| {
            let test = common_test(&self.model, &self.view, self.record);
            (self.common_rule, test.and_then(|test| rules.holds(&test, image)))
        });
        match verdict {
            Some(verdict) if *rule == self.common_rule => *verdict,
            Some(_) | None => rules.is_readable(image) == Some(true),
        }
    }
}

/// Whether an actor may read a record, with all that is known of them but their values.
fn common_test(model: &Model, view: &AccessView, record: RecordTypeId) -> Option<RuleTest> {
    let read = &model.access.as_ref()?.types[record.0].read;
    Some(read.test.folded(&UnnamedActor(ActorFactsView { identity: view.identity.as_deref(), model })))
}

/// An actor with the roles and without the values of another: they are unknown, unless they are absent.
struct UnnamedActor<'a>(ActorFactsView<'a>);

impl ActorFacts for UnnamedActor<'_> {
    fn is_signed_in(&self) -> bool {
        self.0.is_signed_in()
    }

    fn has_role(&self, role: &str) -> bool {
        self.0.has_role(role)
    }

    fn value(&self, value: &RuleValue) -> ActorFact {
        match self.0.value(value) {
            ActorFact::Known(StoredValue::Null) | ActorFact::Absent => ActorFact::Absent,
            ActorFact::Known(_) | ActorFact::Unknown => ActorFact::Unknown,
        }
    }

    fn text_comparison(&self, value: &RuleValue) -> TextComparison {
        self.0.text_comparison(value)
    }
}

impl Engine {
    /// For events that look the same to all who may see them, and whose images alone tell who that is. `None` if the actor
    /// sees other events, or no rules apply.
    pub fn event_access(&self, filter: &ChangeFilter, selection: &Selection) -> Option<EventAccess> {
        let (model, record) = (self.model(), filter.record);
        let view = self.access_view()?;
        let rules = ImageRules { model, view, record };
        let is_id = |child: &ChildSelection| {
            let Some(reference) = model.record(record).field(child.field).kind.reference() else {
                return false;
            };
            let id = model.record(reference.target).id_field();
            let Selection { columns, children, .. } = &child.selection;
            child.aggregate.is_none() && children.is_empty() && columns.iter().all(|column| *column == id)
        };
        let is_shared = filter.relation_tests.is_none()
            && selection.children.iter().all(is_id)
            && view.of_type(record).read.verdict() != AccessVerdict::No
            && rules.decides_alone()
            && rules.shows_all_columns();
        is_shared.then(|| EventAccess::new(model, view, record))
    }
}

/// The rules of an actor for the images of one record type.
#[derive(Clone, Copy)]
pub(super) struct ImageRules<'a> {
    pub model: &'a Model,
    pub view: &'a AccessView,
    pub record: RecordTypeId,
}

/// What an actor sees of an image.
pub(super) enum ShownImage {
    /// The record is out of sight.
    Nothing,
    Whole,
    /// With hidden columns as null, and with the key columns.
    Part(Vec<(String, StoredValue)>),
    /// Depends on other records.
    Unknown,
}

/// The columns of an image.
type ImageColumns<'i> = &'i [(String, StoredValue)];

impl ImageRules<'_> {
    fn owner(&self) -> &RecordType {
        self.model.record(self.record)
    }

    /// Whether the actor may read the record that an image shows; `None` if that depends on other records.
    pub fn is_readable(&self, image: ImageColumns<'_>) -> Option<bool> {
        self.holds(&self.view.of_type(self.record).read.test, image)
    }

    /// Whether images alone always tell who may read the record, whatever the time.
    pub fn decides_alone(&self) -> bool {
        is_of_columns(self.owner(), &self.view.of_type(self.record).read.test)
    }

    /// True if the actor sees every column of the records that they see.
    pub fn shows_all_columns(&self) -> bool {
        let verdict = |field: usize| self.view.field_verdict(self.record, FieldId(field));
        let is_open = |(position, field): (usize, &Field)| {
            !field.is_stored() || verdict(position) == AccessVerdict::Yes
        };
        self.owner().fields.iter().enumerate().all(is_open)
    }

    /// The image as the actor sees it. What else an update says of its record is not in a part of it.
    pub fn shown(&self, image: ImageColumns<'_>) -> ShownImage {
        match self.is_readable(image) {
            Some(true) => {}
            Some(false) => return ShownImage::Nothing,
            None => return ShownImage::Unknown,
        }
        // The keys of lists that may be hidden are in no image of the log.
        let is_hidden_list =
            |field: &Field| field.may_be_hidden && !field.is_stored() && field.kind.relation().is_some();
        if !self.owner().fields.iter().any(is_hidden_list) && self.shows_all_columns() {
            return ShownImage::Whole;
        }
        self.part(image).map_or(ShownImage::Unknown, ShownImage::Part)
    }

    fn part(&self, image: ImageColumns<'_>) -> Option<Vec<(String, StoredValue)>> {
        let owner = self.owner();
        let own = |column: &str| image_cell(image, column).to_stored();
        let shown = |is_shown: bool, column: &str| if is_shown { own(column) } else { StoredValue::Null };
        let mut part = Vec::with_capacity(owner.fields.len() + 2);
        for (position, field) in owner.fields.iter().enumerate() {
            if !field.may_be_hidden {
                if field.is_stored() {
                    part.push((field.column.clone(), own(&field.column)));
                }
                continue;
            }
            let view = &self.view.of_type(self.record).fields[position];
            let is_shown = self.holds(&view.read.test, image)?;
            if !field.is_stored() {
                if field.kind.relation().is_some() {
                    part.push((key_column(&field.name), shown(is_shown, "id")));
                }
                continue;
            }
            if !field.kind.is_reference() {
                part.push((field.column.clone(), shown(is_shown, &field.column)));
                continue;
            }
            let has_target = image_cell(image, &field.column) != CellValue::Null;
            let is_target_shown = match view.target.map(|target| self.view.of_type(target).read.verdict()) {
                Some(AccessVerdict::Yes) | None => true,
                Some(AccessVerdict::No) => false,
                Some(AccessVerdict::Some) if is_shown && has_target => return None,
                Some(AccessVerdict::Some) => false,
            };
            part.push((field.column.clone(), shown(is_shown && is_target_shown, &field.column)));
            part.push((key_column(&field.column), shown(is_shown, &field.column)));
        }
        part.push((VERSION_COLUMN.to_owned(), own(VERSION_COLUMN)));
        Some(part)
    }

    pub fn holds(&self, test: &RuleTest, image: ImageColumns<'_>) -> Option<bool> {
        match test {
            RuleTest::Constant(value) => Some(*value),
            // What is about the actor alone was decided before.
            RuleTest::SignedIn | RuleTest::HasRole(_) => Some(false),
            RuleTest::All(tests) => self.joined(tests, image, false),
            RuleTest::Any(tests) => self.joined(tests, image, true),
            RuleTest::Not(inner) => self.holds(inner, image).map(|holds| !holds),
            RuleTest::Related { .. } => None,
            RuleTest::IsAbsent(value) => {
                let value = self.value(value, image)?;
                Some(value.as_cell() == CellValue::Null)
            }
            RuleTest::IsTrue(value) => {
                let value = self.value(value, image)?;
                Some(value.as_cell() == CellValue::Int(1))
            }
            RuleTest::Compare { left, op, right } => {
                let comparison = comparison_of(self.owner(), &[left, right], is_ordering(*op))?;
                let (left, right) = (self.value(left, image)?, self.value(right, image)?);
                Some(compares(comparison, *op, left.as_cell(), right.as_cell()))
            }
            RuleTest::OneOf { value, choices } => {
                let sides: Vec<&RuleValue> = [value].into_iter().chain(choices).collect();
                let comparison = comparison_of(self.owner(), &sides, false)?;
                let own = self.value(value, image)?;
                let mut is_found = false;
                for choice in choices {
                    let choice = self.value(choice, image)?;
                    is_found |= compares(comparison, ComparisonOp::Eq, own.as_cell(), choice.as_cell());
                }
                Some(is_found)
            }
            RuleTest::HasItem { list, item } => {
                let comparison = list_comparison(self.owner(), list, item)?;
                let (list, item) = (self.value(list, image)?, self.value(item, image)?);
                Some(comparison.has_item(list.as_cell(), item.as_cell()))
            }
        }
    }

    /// `decisive` if one of the tests has that result, its opposite if none can have it.
    fn joined(&self, tests: &[RuleTest], image: ImageColumns<'_>, decisive: bool) -> Option<bool> {
        let mut result = Some(!decisive);
        for test in tests {
            match self.holds(test, image) {
                Some(holds) if holds == decisive => return Some(decisive),
                Some(_) => {}
                None => result = None,
            }
        }
        result
    }

    /// A value that the image or the request has.
    fn value<'v>(&'v self, value: &'v RuleValue, image: ImageColumns<'v>) -> Option<Cow<'v, StoredValue>> {
        match value {
            RuleValue::Literal(value) => Some(Cow::Borrowed(value)),
            RuleValue::Now => Some(Cow::Borrowed(&self.view.now)),
            RuleValue::LocalNow => Some(Cow::Borrowed(&self.view.local_now)),
            RuleValue::Today => Some(Cow::Borrowed(&self.view.today)),
            RuleValue::Field { .. } => {
                let field = own_field(self.owner(), value)?;
                let found = image.iter().find(|(column, _)| *column == field.column);
                Some(found.map_or(Cow::Owned(StoredValue::Null), |(_, value)| Cow::Borrowed(value)))
            }
            RuleValue::Actor { .. } | RuleValue::Claim(_) | RuleValue::Old(_) => None,
        }
    }
}

/// The column of the record itself that a value is.
fn own_field<'o>(owner: &'o RecordType, value: &RuleValue) -> Option<&'o Field> {
    let RuleValue::Field { record, field, members } = value else { return None };
    let is_own = record.variable == 0 && record.references.is_empty() && members.is_empty();
    is_own.then(|| owner.field(*field)).filter(|field| field.is_stored())
}

/// Whether columns and constants are all that a test compares, in ways that [`ImageRules`] knows.
fn is_of_columns(owner: &RecordType, test: &RuleTest) -> bool {
    let is_known = |value: &RuleValue| match value {
        RuleValue::Literal(_) => true,
        RuleValue::Field { .. } => own_field(owner, value).is_some(),
        RuleValue::Now
        | RuleValue::LocalNow
        | RuleValue::Today
        | RuleValue::Actor { .. }
        | RuleValue::Claim(_)
        | RuleValue::Old(_) => false,
    };
    match test {
        RuleTest::Constant(_) | RuleTest::SignedIn | RuleTest::HasRole(_) => true,
        RuleTest::All(tests) | RuleTest::Any(tests) => tests.iter().all(|test| is_of_columns(owner, test)),
        RuleTest::Not(inner) => is_of_columns(owner, inner),
        RuleTest::Related { .. } => false,
        RuleTest::IsAbsent(value) | RuleTest::IsTrue(value) => is_known(value),
        RuleTest::Compare { left, op, right } => {
            let sides = [left, right];
            let comparison = comparison_of(owner, &sides, is_ordering(*op));
            sides.into_iter().all(is_known) && comparison.is_some()
        }
        RuleTest::OneOf { value, choices } => {
            let sides: Vec<&RuleValue> = [value].into_iter().chain(choices).collect();
            sides.iter().all(|value| is_known(value)) && comparison_of(owner, &sides, false).is_some()
        }
        RuleTest::HasItem { list, item } => {
            is_known(list) && is_known(item) && list_comparison(owner, list, item).is_some()
        }
    }
}

fn is_ordering(op: ComparisonOp) -> bool {
    match op {
        ComparisonOp::Eq | ComparisonOp::Ne => false,
        ComparisonOp::Lt | ComparisonOp::Lte | ComparisonOp::Gt | ComparisonOp::Gte => true,
    }
}

/// How the sides compare; `None` where the database must do it.
fn comparison_of(owner: &RecordType, sides: &[&RuleValue], is_ordering: bool) -> Option<CellComparison> {
    let mut fields = sides.iter().filter(|side| matches!(side, RuleValue::Field { .. }));
    let first = own_field(owner, fields.next()?)?;
    let has_scalar = |field: &Field| match field.kind.value_type() {
        Some(ValueType::List(_) | ValueType::Embedded(_)) => false,
        Some(value_type) => value_type.scalar() != Some(Scalar::Json),
        None => field.kind.is_reference(),
    };
    let is_alike = |side: &&RuleValue| {
        own_field(owner, side)
            .is_some_and(|field| field.ignores_case == first.ignores_case && has_scalar(field))
    };
    let is_simple = has_scalar(first) && !(is_ordering && first.ignores_case);
    (is_simple && fields.all(is_alike)).then(|| CellComparison::new(first))
}

/// How items of a list compare; `None` where the database must do it.
fn list_comparison(owner: &RecordType, list: &RuleValue, item: &RuleValue) -> Option<CellComparison> {
    let list = own_field(owner, list).filter(|list| list.kind.list_item().is_some() && !list.ignores_case)?;
    let is_alike = match item {
        RuleValue::Field { .. } => own_field(owner, item).is_some_and(|item| !item.ignores_case),
        RuleValue::Literal(_)
        | RuleValue::Actor { .. }
        | RuleValue::Claim(_)
        | RuleValue::Now
        | RuleValue::LocalNow
        | RuleValue::Today
        | RuleValue::Old(_) => true,
    };
    is_alike.then(|| CellComparison::new(list))
}

/// A comparison with something absent is false.
fn compares(comparison: CellComparison, op: ComparisonOp, left: CellValue<'_>, right: CellValue<'_>) -> bool {
    left != CellValue::Null && right != CellValue::Null && comparison.compare(op, left, right)
}

#[cfg(test)]
mod tests {
    use trefoil_model::{SourceFile, Value, ZoneOffsets, parse_schema};

    use super::*;
    use crate::access::{AccountFacts, ActorIdentity, ActorRules};

    const SCHEMA: &str = r#"
enum Status { OPEN DRAFT }
type User @account(login: "email") @allow(all: true) { id: ID! email: String! @unique }
type Note @allow(read: "status == OPEN && (owner == me || shared) || role(EDITOR) && status == DRAFT", write: true) {
  id: ID!  status: Status!  shared: Boolean!  owner: User
}
"#;

    fn access(model: &Arc<Model>, account: i64, roles: &[&str]) -> EventAccess {
        let account = AccountFacts {
            id: account.into(),
            label: String::new(),
            model_hash: model.hash,
            values: model
                .access
                .as_ref()
                .expect("rules")
                .actor_paths()
                .into_iter()
                .map(|path| (path, StoredValue::Int(account)))
                .collect(),
        };
        let identity = Arc::new(ActorIdentity {
            name: "a".into(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            account: Some(account),
            claims: Value::Null,
            expires: None,
        });
        let rules = model.access.as_ref().expect("rules");
        let rules = Arc::new(ActorRules::new(model, rules, Some(&identity)));
        let view = AccessView::new(Some(identity), rules, jiff::Timestamp::UNIX_EPOCH, &ZoneOffsets::utc());
        EventAccess::new(model, &Arc::new(view), model.find_record("Note").expect("a type"))
    }

    #[test]
    fn values_of_the_schema_decide_for_all_actors() {
        let file = SourceFile { name: "a.graphqls".into(), text: SCHEMA.into() };
        let model = Arc::new(parse_schema(&[file], &[]).expect("a valid schema").0);
        let [ada, eve] = [7, 8].map(|id| access(&model, id, &[]));
        let editor = access(&model, 8, &["EDITOR"]);
        for (status, shared, owner, common, seen) in [
            ("OPEN", true, 7, Some(true), [true, true, true]),
            ("OPEN", false, 7, None, [true, false, false]),
            ("OPEN", false, 8, None, [false, true, true]),
            ("DRAFT", true, 7, Some(false), [false, false, true]),
        ] {
            let record = model.record(model.find_record("Note").expect("a type"));
            let column = |name: &str| record.field(record.find_field(name).expect("a field")).column.clone();
            let image: RecordImage = Arc::new(vec![
                (column("status"), StoredValue::Text(status.into())),
                (column("shared"), StoredValue::Int(shared.into())),
                (column("owner"), StoredValue::Int(owner)),
            ]);
            let verdict = CommonVerdict::default();
            let allowed = [&ada, &eve, &editor].map(|actor| actor.allows(&image, &verdict));
            assert_eq!(allowed, seen, "{status} {shared} {owner}");
            assert_eq!(
                verdict.0.get().map(|(_, verdict)| *verdict),
                Some(common),
                "{status} {shared} {owner}"
            );
        }
    }
}
