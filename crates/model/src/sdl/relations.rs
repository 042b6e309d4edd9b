//! Decides for each list of records whether it is the inverse of a reference or one side of a link table.

use apollo_compiler::Schema;
use apollo_compiler::parser::SourceSpan;

use crate::list_wrapper::is_named_wrapper;
use crate::naming::names;
use crate::sdl::diagnostic_log::{DiagnosticLog, suggest_or_else};
use crate::sdl::record_types::{PartialModel, RecordListField};
use crate::{Field, FieldId, FieldKind, Inverse, Link, RecordTypeId, Relation};

/// A field of a record type.
type FieldRef = (RecordTypeId, FieldId);

pub(crate) fn resolve_relations(partial_model: &mut PartialModel, schema: &Schema, log: &mut DiagnosticLog) {
    let lists = std::mem::take(&mut partial_model.lists);
    let mut resolver = RelationResolver {
        partial_model,
        schema,
        log,
        resolved_fields: Vec::new(),
        postponed_fields: Vec::new(),
        lists: &lists,
    };
    resolver.apply_reference_inverses();
    resolver.apply_list_inverses();
    resolver.postpone_connections();
    resolver.guess_relations();
    resolver.repeat_lists();
    resolver.guess_relations();
    resolver.report_unresolved();
}

struct RelationResolver<'a> {
    partial_model: &'a mut PartialModel,
    schema: &'a Schema,
    log: &'a mut DiagnosticLog,
    lists: &'a [RecordListField],
    /// Lists that are decided, and references that have their list.
    resolved_fields: Vec<FieldRef>,
    /// Connections beside a list of the same records. The list is decided as if they were not there.
    postponed_fields: Vec<FieldRef>,
}

impl RelationResolver<'_> {
    fn guess_relations(&mut self) {
        self.guess_inverses();
        self.guess_links();
        self.guess_one_sided_links();
    }

    fn postpone_connections(&mut self) {
        let beside_list = self.lists.iter().filter(|list| {
            let is_same = |other: &RecordListField| {
                !other.is_wrapped && (other.owner, other.target) == (list.owner, list.target)
            };
            list.is_wrapped && self.lists.iter().any(is_same)
        });
        let beside_list = beside_list.map(|list| (list.owner, list.field));
        self.postponed_fields = beside_list.filter(|at| !self.resolved_fields.contains(at)).collect();
    }

    /// `ordersConnection` beside `orders` is the same inverse. That of a link is left to a resolver: the link would have
    /// two names in inputs.
    fn repeat_lists(&mut self) {
        for at in std::mem::take(&mut self.postponed_fields) {
            let owner = &self.partial_model.records[at.0.0];
            let name = owner.field(at.1).name.as_str();
            let mut others = owner.fields.iter().filter(|field| field.name != name);
            let Some(repeated) = others.find(|field| is_named_wrapper(name, &field.name)) else { continue };
            if repeated.kind.inverse().is_some() {
                self.partial_model.records[at.0.0].fields[at.1.0].kind = repeated.kind.clone();
            } else {
                let (field, list) = (format!("{}.{name}", owner.name), repeated.name.clone());
                let span = self.field_span(at);
                self.log
                    .warning(span, "NOT_STORED", format!("`{field}` is not stored: it repeats `{list}`"))
                    .label("returns an error when queried")
                    .help(format!("query `{list}`, or register a resolver for `{field}`"));
            }
            self.resolved_fields.push(at);
        }
    }

    /// `user: User @reference(inverse: "orders")`
    fn apply_reference_inverses(&mut self) {
        for (owner, field, inverse) in std::mem::take(&mut self.partial_model.named_inverses) {
            let reference = self.partial_model.records[owner.0].field(field).kind.reference();
            let Some(target) = reference.map(|reference| reference.target) else { continue };
            let Some(list) = self.partial_model.records[target.0].find_field(&inverse) else {
                self.report_unknown_inverse((owner, field), target, &inverse);
                continue;
            };
            match self.list_at((target, list)) {
                Some(found) if found.target == owner => self.set_inverse((target, list), (owner, field)),
                _ => self.report_wrong_inverse((owner, field), (target, list), "a list of"),
            }
        }
    }

    /// `orders: [Order] @reference(inverse: "user")`
    fn apply_list_inverses(&mut self) {
        for list in self.lists {
            let at = (list.owner, list.field);
            let Some(inverse) = &list.inverse else { continue };
            let Some(field) = self.partial_model.records[list.target.0].find_field(inverse) else {
                self.report_unknown_inverse(at, list.target, inverse);
                self.resolved_fields.push(at);
                continue;
            };
            let other = (list.target, field);
            if refers_to(self.partial_model.records[other.0.0].field(other.1), list.owner) {
                self.set_inverse(at, other);
            } else if self.list_at(other).is_some_and(|found| found.target == list.owner) {
                self.set_link(at, other);
            } else {
                self.report_wrong_inverse(at, other, "a reference to or a list of");
                self.resolved_fields.push(at);
            }
        }
    }

    /// A single list and a single reference between two types belong together.
    fn guess_inverses(&mut self) {
        for list in self.lists {
            let at = (list.owner, list.field);
            let lists = self.unresolved_lists(list.owner, list.target);
            let references = self.unresolved_references(list.target, list.owner);
            if let ([only], [reference]) = (lists.as_slice(), references.as_slice())
                && *only == at
            {
                self.set_inverse(at, *reference);
            }
        }
    }

    /// One list in each direction and no reference is a link table; so is a single list of the type itself.
    fn guess_links(&mut self) {
        for list in self.lists {
            let at = (list.owner, list.field);
            let forward = self.unresolved_lists(list.owner, list.target);
            let back = self.unresolved_lists(list.target, list.owner);
            let has_reference = !self.references(list.target, list.owner).is_empty();
            if let ([only], [other]) = (forward.as_slice(), back.as_slice())
                && *only == at
                && !has_reference
                && self.references(list.owner, list.target).is_empty()
            {
                self.set_link(at, *other);
            }
        }
    }

    /// A list of records that do not lead back is one side of a link table: `specialties` of a vet.
    fn guess_one_sided_links(&mut self) {
        for list in self.lists {
            let at = (list.owner, list.field);
            let leads_back = !self.references(list.target, list.owner).is_empty()
                || self.lists.iter().any(|back| back.owner == list.target && back.target == list.owner);
            let is_decided = self.resolved_fields.contains(&at) || self.postponed_fields.contains(&at);
            if list.owner == list.target || leads_back || is_decided {
                continue;
            }
            let (owner, target) =
                (&self.partial_model.records[list.owner.0], &self.partial_model.records[list.target.0]);
            let name = owner.field(list.field).name.as_str();
            let table = names::link_table(&owner.table, name);
            let (own, other) = names::link_columns((&owner.name, name), (&target.name, ""));
            self.set_link_side(at, list.target, &table, &own, &other);
            self.resolved_fields.push(at);
        }
    }

    fn report_unresolved(&mut self) {
        for list in self.lists.iter().filter(|list| !self.resolved_fields.contains(&(list.owner, list.field)))
        {
            let at = (list.owner, list.field);
            let (owner, target) =
                (&self.partial_model.records[list.owner.0], &self.partial_model.records[list.target.0]);
            let name = format!("{}.{}", owner.name, owner.field(list.field).name);
            let mut back = self.references(list.target, list.owner);
            back.extend(self.unresolved_lists(list.target, list.owner));
            let names: Vec<&str> = back.iter().map(|(_, field)| target.field(*field).name.as_str()).collect();
            let (reason, help) = match names.first() {
                Some(first) => (
                    format!(
                        "it could be the inverse of more than one field: `{}` of `{}`",
                        names.join("` or `"),
                        target.name
                    ),
                    format!("choose one with `@reference(inverse: \"{first}\")`"),
                ),
                None => self.explain_unresolved(list),
            };
            let span = self.field_span(at);
            self.log
                .warning(span, "NOT_STORED", format!("`{name}` is not stored: {reason}"))
                .label("returns an error when queried")
                .help(help);
        }
    }

    /// The reason why a list has no other side, and help.
    fn explain_unresolved(&self, list: &RecordListField) -> (String, String) {
        let (owner, target) =
            (&self.partial_model.records[list.owner.0], &self.partial_model.records[list.target.0]);
        let other_pair = target.fields.iter().find_map(|back| {
            let inverse = back.kind.inverse().filter(|inverse| inverse.target == list.owner)?;
            Some((&back.name, &owner.field(inverse.field).name))
        });
        match other_pair {
            Some((back, reference)) => (
                format!("`{}.{back}` is already the inverse of `{}.{reference}`", target.name, owner.name),
                format!(
                    "write `@reference(inverse: \"{back}\")` here, or add a field of type `[{}]` to `{}`",
                    owner.name, target.name
                ),
            ),
            None => (
                format!("no field of `{}` refers to `{}`", target.name, owner.name),
                format!(
                    "add a field of type `{0}` or `[{0}]` to `{1}`, or register a resolver for `{0}.{2}`",
                    owner.name,
                    target.name,
                    owner.field(list.field).name
                ),
            ),
        }
    }

    fn set_inverse(&mut self, list: FieldRef, (target, field): FieldRef) {
        self.partial_model.records[list.0.0].fields[list.1.0].kind =
            FieldKind::Relation(Relation::Inverse(Inverse { target, field }));
        self.resolved_fields.extend([list, (target, field)]);
    }

    /// Makes two lists the sides of a link table; the side that comes first in the schema names the table.
    fn set_link(&mut self, one: FieldRef, other: FieldRef) {
        if self.resolved_fields.contains(&one) {
            return;
        }
        let (first, second) = if one <= other { (one, other) } else { (other, one) };
        let records = &self.partial_model.records;
        let side = |at: FieldRef| (records[at.0.0].name.as_str(), records[at.0.0].field(at.1).name.as_str());
        let table = names::link_table(&records[first.0.0].table, side(first).1);
        let (to_first, to_second) = names::link_columns(side(first), side(second));
        self.set_link_side(second, first.0, &table, &to_second, &to_first);
        // A list of the type itself is its own other side; set last, it points away from its owner.
        self.set_link_side(first, second.0, &table, &to_first, &to_second);
        self.resolved_fields.extend([first, second]);
    }

    fn set_link_side(&mut self, at: FieldRef, target: RecordTypeId, table: &str, own: &str, other: &str) {
        let key_form = self.partial_model.records[target.0].key_form();
        let field = &mut self.partial_model.records[at.0.0].fields[at.1.0];
        field.input_name = names::link_input_name(&field.name);
        field.kind = FieldKind::Relation(Relation::Link(Link {
            target,
            key_form,
            table: table.to_owned(),
            own_column: own.to_owned(),
            other_column: other.to_owned(),
        }));
    }

    fn list_at(&self, at: FieldRef) -> Option<&RecordListField> {
        self.lists.iter().find(|list| (list.owner, list.field) == at)
    }

    fn unresolved_lists(&self, owner: RecordTypeId, target: RecordTypeId) -> Vec<FieldRef> {
        let between = self.lists.iter().filter(|list| list.owner == owner && list.target == target);
        let is_open =
            |at: &FieldRef| !self.resolved_fields.contains(at) && !self.postponed_fields.contains(at);
        between.map(|list| (list.owner, list.field)).filter(is_open).collect()
    }

    fn unresolved_references(&self, owner: RecordTypeId, target: RecordTypeId) -> Vec<FieldRef> {
        self.references(owner, target).into_iter().filter(|at| !self.resolved_fields.contains(at)).collect()
    }

    fn references(&self, owner: RecordTypeId, referenced: RecordTypeId) -> Vec<FieldRef> {
        let fields = self.partial_model.records[owner.0].fields.iter().enumerate();
        fields.filter(|(_, field)| refers_to(field, referenced)).map(|(i, _)| (owner, FieldId(i))).collect()
    }

    fn field_span(&self, (owner, field): FieldRef) -> Option<SourceSpan> {
        let record = &self.partial_model.records[owner.0];
        let ty = self.schema.get_object(&record.name)?;
        ty.fields.get(record.field(field).name.as_str())?.name.location()
    }

    /// The span of the `inverse` argument.
    fn inverse_span(&self, at: FieldRef) -> Option<SourceSpan> {
        let record = &self.partial_model.records[at.0.0];
        let def = self.schema.get_object(&record.name)?.fields.get(record.field(at.1).name.as_str())?;
        def.directives.get("reference")?.specified_argument_by_name("inverse")?.location()
    }

    fn report_unknown_inverse(&mut self, at: FieldRef, target: RecordTypeId, inverse: &str) {
        let (owner, target) = (&self.partial_model.records[at.0.0], &self.partial_model.records[target.0]);
        let known = target.fields.iter().map(|field| field.name.as_str());
        let help = suggest_or_else(inverse, known, || {
            format!("add `{inverse}` to `{}`, or name the field that refers to `{}`", target.name, owner.name)
        });
        let message = format!("`{}` has no field `{inverse}`", target.name);
        let span = self.inverse_span(at);
        self.log.error(span, "REFERENCE", message).label("unknown field").help(help);
    }

    fn report_wrong_inverse(&mut self, at: FieldRef, other: FieldRef, expected: &str) {
        let (owner, target) = (&self.partial_model.records[at.0.0], &self.partial_model.records[other.0.0]);
        let message = format!(
            "`{}.{}` is not {expected} `{}`, so it cannot be the inverse of `{}.{}`",
            target.name,
            target.field(other.1).name,
            owner.name,
            owner.name,
            owner.field(at.1).name
        );
        let span = self.inverse_span(at);
        self.log
            .error(span, "REFERENCE", message)
            .label("not an inverse")
            .help(format!("name a field of `{}` that refers to `{}`", target.name, owner.name));
    }
}

fn refers_to(field: &Field, target: RecordTypeId) -> bool {
    field.kind.reference().is_some_and(|reference| reference.target == target)
}
