//! Refuses operations that the actor may never run: by type, by the fields they name and by the fields they set.
//!
//! What depends on the record is left to the store. A selected field that the actor may not read is no mistake: the
//! store reads null.

use trefoil_model::access::{AccessAction, AccessVerdict};
use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::{Field, FieldId, Model, RecordTypeId, Relation, SourceLocation, Value};

use crate::access::AccessView;
use crate::operation::{
    AggregateQuery, Condition, GroupMeasure, Listing, MissingFields, NestedWrite, Operation, RecordInput,
    ReferencePath, RelatedInput, Selection,
};
use crate::plain_list;

/// The operation as far as the rules decide without a record.
pub(crate) fn check_operation(model: &Model, view: &AccessView, operation: &Operation) -> Result<()> {
    let mut check = AccessCheck::new(model, view);
    match operation {
        Operation::SeeImages { record, .. } => view.require(AccessAction::Read, *record)?,
        Operation::Get { record, selection, .. } | Operation::ReadImage { record, selection, .. } => {
            view.require(AccessAction::Read, *record)?;
            check.selection(*record, selection);
        }
        // Such as the account of an actor who has none.
        Operation::List { listing, .. } if listing.is_of_no_ids() => {}
        Operation::List { record, listing, selection } => {
            view.require(AccessAction::Read, *record)?;
            check.listing(*record, listing);
            check.selection(*record, selection);
        }
        Operation::Aggregate { record, query } => {
            view.require(AccessAction::Read, *record)?;
            check.aggregate(*record, query);
        }
        Operation::Create { record, fields, selection, .. } => {
            view.require(AccessAction::Create, *record)?;
            check.given_fields(AccessAction::Create, *record, fields, &[]);
            check.written_selection(*record, selection);
        }
        Operation::CreateMany { record, items, selection, .. } => {
            view.require(AccessAction::Create, *record)?;
            for (index, fields) in items.iter().enumerate() {
                check.given_fields(AccessAction::Create, *record, fields, &[PathSegment::Index(index)]);
            }
            check.written_selection(*record, selection);
        }
        Operation::Update { record, fields, missing_fields, selection, .. } => {
            require_update(view, *record)?;
            check.changed_fields(*record, fields, *missing_fields, &[]);
            check.written_selection(*record, selection);
        }
        Operation::UpdateMany { record, conditions, fields, .. } => {
            view.require(AccessAction::Read, *record)?;
            require_update(view, *record)?;
            check.conditions(*record, conditions);
            check.given_fields(AccessAction::Update, *record, fields, &[]);
        }
        Operation::Upsert { record, id, by, fields, selection, .. } => {
            view.require(AccessAction::Read, *record)?;
            view.require(AccessAction::Create, *record)?;
            require_update(view, *record)?;
            if id.is_none() {
                by.iter().for_each(|field| check.named_field(*record, *field));
            }
            check.given_fields(AccessAction::Create, *record, fields, &[]);
            check.given_fields(AccessAction::Update, *record, fields, &[]);
            check.written_selection(*record, selection);
        }
        Operation::Delete { record, selection, .. } => {
            view.require(AccessAction::Delete, *record)?;
            check.written_selection(*record, selection);
        }
        Operation::DeleteMany { record, conditions } => {
            view.require(AccessAction::Read, *record)?;
            view.require(AccessAction::Delete, *record)?;
            check.conditions(*record, conditions);
        }
        Operation::Nested { record, write, selection } => {
            check.nested_write(*record, write)?;
            check.written_selection(*record, selection);
        }
        Operation::PlainList(operation) => plain_list::check_access(operation, model, view)?,
    }
    check.finish()
}

/// The same for the conditions of a subscription.
pub(crate) fn check_conditions(
    model: &Model,
    view: &AccessView,
    record: RecordTypeId,
    conditions: &[Condition],
) -> Result<()> {
    view.require(AccessAction::Read, record)?;
    let mut check = AccessCheck::new(model, view);
    check.conditions(record, conditions);
    check.finish()
}

fn require_update(view: &AccessView, record: RecordTypeId) -> Result<()> {
    view.require(AccessAction::Update, record)?;
    view.require(AccessAction::UpdateTo, record)
}

/// Whether a credential could let an anonymous actor set a field: what nobody may set is refused to all in the same way.
pub(super) fn needs_credential(
    model: &Model,
    view: &AccessView,
    action: AccessAction,
    (record, field): (RecordTypeId, FieldId),
) -> bool {
    let rules = model.access.as_ref().map(|access| &access.types[record.0].fields[field.0]);
    let rule = rules.and_then(|rules| match action {
        AccessAction::Create => rules.create.as_ref(),
        AccessAction::Read | AccessAction::Update | AccessAction::UpdateTo | AccessAction::Delete => {
            rules.update.as_ref()
        }
    });
    let is_nobody = view.identity.is_none() && !view.rules.is_sign_up;
    is_nobody && rule.is_some_and(|rule| !rule.test.is_never())
}

/// The mistake of giving a value for a field that the actor may set in no record.
pub(super) fn unsettable_field(field: &Field) -> Violation {
    let message = format!("`{}` may not be set by you", field.input_name);
    Violation::new(&field.input_name, "FORBIDDEN", message)
}

/// The mistake of giving an account that the server fills in.
pub(super) fn filled_account(field: &Field) -> Violation {
    let message = format!("`{}` is set by the server and cannot be written", field.name);
    Violation::new(&field.input_name, "READ_ONLY", message)
}

/// Collects the fields that the actor may not read or set.
struct AccessCheck<'a> {
    model: &'a Model,
    view: &'a AccessView,
    violations: Vec<Violation>,
    /// The rule of the first of them.
    rule: Option<Box<SourceLocation>>,
    /// The actor is anonymous, and somebody else may set such a field.
    needs_credential: bool,
}

impl<'a> AccessCheck<'a> {
    fn new(model: &'a Model, view: &'a AccessView) -> AccessCheck<'a> {
        AccessCheck { model, view, violations: Vec::new(), rule: None, needs_credential: false }
    }

    fn finish(self) -> Result<()> {
        if self.violations.is_empty() {
            return Ok(());
        }
        if self.needs_credential {
            return Err(Error::Unauthenticated { rule: self.rule });
        }
        Err(Error::Forbidden { violations: self.violations, rule: self.rule })
    }

    fn refuse(&mut self, path: &[PathSegment], record: RecordTypeId, field: FieldId, action: AccessAction) {
        if self.violations.is_empty() {
            self.rule = self.view.field_refusal(action, record, field);
        }
        self.needs_credential |=
            action != AccessAction::Read && needs_credential(self.model, self.view, action, (record, field));
        let field = self.model.record(record).field(field);
        let violation = match action {
            AccessAction::Read => {
                let message = format!("`{}` may not be read by you", field.input_name);
                Violation::new(&field.input_name, "FORBIDDEN", message)
            }
            AccessAction::Create | AccessAction::Update | AccessAction::UpdateTo | AccessAction::Delete => {
                unsettable_field(field)
            }
        };
        let violation = path.iter().rev().cloned().fold(violation, Violation::nested_under);
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }

    /// Refuses a condition on a hidden field, at its place in the request if that is known.
    fn refuse_condition(
        &mut self,
        path: &[PathSegment],
        record: RecordTypeId,
        field: FieldId,
        condition: &Condition,
    ) {
        let known = self.violations.len();
        self.refuse(path, record, field, AccessAction::Read);
        if let (Some(violation), Some(place)) = (self.violations.get_mut(known), condition.place()) {
            violation.path = place.to_vec();
        }
    }

    /// A field whose value decides which records or groups there are, or how they are sorted.
    fn named_field(&mut self, record: RecordTypeId, field: FieldId) {
        self.field_at(&[], record, field);
    }

    fn field_at(&mut self, path: &[PathSegment], record: RecordTypeId, field: FieldId) {
        if self.view.hides_field(record, field) {
            self.refuse(path, record, field, AccessAction::Read);
        }
    }

    fn conditions(&mut self, record: RecordTypeId, conditions: &[Condition]) {
        self.conditions_at(&[], record, conditions);
    }

    fn conditions_at(&mut self, path: &[PathSegment], record: RecordTypeId, conditions: &[Condition]) {
        for condition in conditions {
            match condition {
                Condition::Compare(comparison) if self.view.hides_field(record, comparison.path.field) => {
                    self.refuse_condition(path, record, comparison.path.field, condition);
                }
                Condition::Compare(_) => {}
                Condition::HasId(_) => {}
                Condition::All(inner) | Condition::Any(inner) => self.conditions_at(path, record, inner),
                Condition::Not(inner) => self.conditions_at(path, record, std::slice::from_ref(inner)),
                Condition::Related { relation, conditions } => {
                    if self.view.hides_field(record, *relation) {
                        self.refuse_condition(path, record, *relation, condition);
                    } else if let Some(target) = self.relation_target(record, *relation) {
                        let name = self.model.record(record).field(*relation).name.clone();
                        let path = [path, &[PathSegment::Field(name)]].concat();
                        self.conditions_at(&path, target, conditions);
                    }
                }
                Condition::LinkedFrom { owner, field, .. } => self.field_at(path, *owner, *field),
            }
        }
    }

    fn relation_target(&self, record: RecordTypeId, relation: FieldId) -> Option<RecordTypeId> {
        self.model.record(record).field(relation).kind.relation().map(Relation::target)
    }

    fn reference_path(&mut self, record: RecordTypeId, path: &ReferencePath) {
        let mut owner = record;
        for reference in &path.references {
            if self.view.hides_field(owner, *reference) {
                return self.refuse(&[], owner, *reference, AccessAction::Read);
            }
            if let Some(target) = self.relation_target(owner, *reference) {
                owner = target;
            }
        }
        self.named_field(owner, path.value.field);
    }

    fn listing(&mut self, record: RecordTypeId, listing: &Listing) {
        self.conditions(record, &listing.conditions);
        for key in &listing.sort_keys {
            if let Some(path) = key.value.path() {
                self.reference_path(record, path);
            }
        }
    }

    fn aggregate(&mut self, record: RecordTypeId, query: &AggregateQuery) {
        self.conditions(record, &query.conditions);
        query.group_keys.iter().for_each(|key| self.reference_path(record, &key.path));
        for measure in &query.measures {
            match measure {
                GroupMeasure::Count => {}
                GroupMeasure::OfField(_, path) => self.reference_path(record, path),
            }
        }
    }

    /// The lists of related records. What is hidden as a whole is read as null, whatever its list asks for.
    fn selection(&mut self, record: RecordTypeId, selection: &Selection) {
        for child in &selection.children {
            if self.view.hides_field(record, child.field) {
                continue;
            }
            let Some(target) = self.relation_target(record, child.field) else { continue };
            self.listing(target, &child.listing);
            if let Some(query) = &child.aggregate {
                self.aggregate(target, query);
            }
            self.selection(target, &child.selection);
        }
    }

    /// What is read of a written record; of one that may not be read that is the id alone.
    fn written_selection(&mut self, record: RecordTypeId, selection: &Selection) {
        if self.view.verdict(AccessAction::Read, record) != AccessVerdict::No {
            self.selection(record, selection);
        }
    }

    fn given_fields(
        &mut self,
        action: AccessAction,
        record: RecordTypeId,
        fields: &[(FieldId, Value)],
        path: &[PathSegment],
    ) {
        for (field, _) in fields {
            let given = self.model.record(record).field(*field);
            if given.value_source.is_account() {
                let violation =
                    path.iter().rev().cloned().fold(filled_account(given), Violation::nested_under);
                self.violations.push(violation);
            } else {
                self.given_field(action, record, *field, path);
            }
        }
    }

    /// Whoever overwrites a record sends back what they were shown, also of fields that they may not set: there the
    /// store judges what really changes.
    fn changed_fields(
        &mut self,
        record: RecordTypeId,
        fields: &[(FieldId, Value)],
        missing_fields: MissingFields,
        path: &[PathSegment],
    ) {
        match missing_fields {
            MissingFields::Keep => self.given_fields(AccessAction::Update, record, fields, path),
            MissingFields::Reset => {}
        }
    }

    fn given_field(
        &mut self,
        action: AccessAction,
        record: RecordTypeId,
        field: FieldId,
        path: &[PathSegment],
    ) {
        if !self.view.may_set(action, record, field) {
            self.refuse(path, record, field, action);
        }
    }

    fn nested_write(&mut self, record: RecordTypeId, write: &NestedWrite) -> Result<()> {
        match write {
            NestedWrite::Create(input) => self.new_record(record, input, &[]),
            NestedWrite::CreateMany(inputs) => {
                let mut inputs = inputs.iter().enumerate();
                inputs.try_for_each(|(index, input)| {
                    self.new_record(record, input, &[PathSegment::Index(index)])
                })
            }
            NestedWrite::Update { input, missing_fields, .. } => {
                self.changed_record(record, input, *missing_fields, &[])
            }
        }
    }

    fn new_record(&mut self, record: RecordTypeId, input: &RecordInput, path: &[PathSegment]) -> Result<()> {
        self.view.require(AccessAction::Create, record)?;
        self.given_fields(AccessAction::Create, record, &input.fields, path);
        let mut related = input.related.iter();
        related.try_for_each(|related| self.related_records(AccessAction::Create, record, related, path))
    }

    fn changed_record(
        &mut self,
        record: RecordTypeId,
        input: &RecordInput,
        missing_fields: MissingFields,
        path: &[PathSegment],
    ) -> Result<()> {
        require_update(self.view, record)?;
        self.changed_fields(record, &input.fields, missing_fields, path);
        let mut related = input.related.iter();
        related.try_for_each(|related| self.related_records(AccessAction::Update, record, related, path))
    }

    /// What a write does to the records that a relation leads to.
    fn related_records(
        &mut self,
        action: AccessAction,
        record: RecordTypeId,
        related: &RelatedInput,
        path: &[PathSegment],
    ) -> Result<()> {
        let field = self.model.record(record).field(related.relation);
        let Some(relation) = field.kind.relation() else { return Ok(()) };
        let (target, name) = (relation.target(), PathSegment::Field(field.name.clone()));
        let path = [path, &[name]].concat();
        let parts = [related.create.len(), related.connect.len(), related.disconnect.len()];
        let changes_relation = parts.iter().any(|count| *count > 0) || related.set.is_some();
        match relation {
            // The list of an inverse is the references of the others.
            Relation::Inverse(inverse) => {
                let (back, changes) = (inverse.field, parts[1] + parts[2] > 0 || related.set.is_some());
                if changes {
                    require_update(self.view, target)?;
                    self.given_field(AccessAction::Update, target, back, &path);
                }
                if !related.create.is_empty() {
                    self.given_field(AccessAction::Create, target, back, &path);
                }
            }
            Relation::Reference(_) | Relation::Link(_) if changes_relation => {
                self.given_field(action, record, related.relation, &path[..path.len() - 1]);
            }
            Relation::Reference(_) | Relation::Link(_) => {}
        }
        for (index, input) in related.create.iter().enumerate() {
            let path = [&path[..], &[PathSegment::Index(index)]].concat();
            self.new_record(target, input, &path)?;
        }
        for (index, (_, input)) in related.update.iter().enumerate() {
            let place = [
                PathSegment::Field("update".to_owned()),
                PathSegment::Index(index),
                PathSegment::Field("input".to_owned()),
            ];
            let path = [&path[..], &place].concat();
            self.changed_record(target, input, MissingFields::Keep, &path)?;
        }
        if !related.delete.is_empty() {
            self.view.require(AccessAction::Delete, target)?;
        }
        Ok(())
    }
}
