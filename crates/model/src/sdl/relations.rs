//! Decides what each list of records is: the inverse of a reference, one side of a link table, or a riddle.

use apollo_compiler::Schema;
use apollo_compiler::parser::SourceSpan;

use crate::naming::names;
use crate::sdl::diagnostic_log::{Log, did_you_mean};
use crate::sdl::record_types::{Draft, RecordList};
use crate::{FieldId, Kind, TypeId};

/// The field of a record type.
type At = (TypeId, FieldId);

pub(crate) fn resolve(draft: &mut Draft, schema: &Schema, log: &mut Log) {
    let lists = std::mem::take(&mut draft.lists);
    let mut relations = Relations { draft, schema, log, settled: Vec::new(), lists: &lists };
    relations.said_by_references();
    relations.said_by_lists();
    relations.guess_inverses();
    relations.guess_links();
    relations.riddles();
}

struct Relations<'a> {
    draft: &'a mut Draft,
    schema: &'a Schema,
    log: &'a mut Log,
    lists: &'a [RecordList],
    /// Lists that need no further thought, and references that have their list.
    settled: Vec<At>,
}

impl Relations<'_> {
    /// `user: User @reference(inverse: "orders")`
    fn said_by_references(&mut self) {
        for (owner, field, inverse) in std::mem::take(&mut self.draft.named_inverses) {
            let Kind::Reference { target, .. } = self.draft.records[owner.0].fields[field.0].kind else {
                continue;
            };
            let Some(list) = self.draft.records[target.0].field_named(&inverse) else {
                self.no_such_field((owner, field), target, &inverse);
                continue;
            };
            match self.list_at((target, list)) {
                Some(found) if found.target == owner => self.set_inverse((target, list), (owner, field)),
                _ => self.no_way_back((owner, field), (target, list), "a list of"),
            }
        }
    }

    /// `orders: [Order] @reference(inverse: "user")`
    fn said_by_lists(&mut self) {
        for list in self.lists {
            let at = (list.owner, list.field);
            let Some(inverse) = &list.inverse else { continue };
            let Some(field) = self.draft.records[list.target.0].field_named(inverse) else {
                self.no_such_field(at, list.target, inverse);
                self.settled.push(at);
                continue;
            };
            let other = (list.target, field);
            let refers = matches!(self.kind(other), Kind::Reference { target, .. } if *target == list.owner);
            if refers {
                self.set_inverse(at, other);
            } else if self.list_at(other).is_some_and(|found| found.target == list.owner) {
                self.set_link(at, other);
            } else {
                self.no_way_back(at, other, "a reference to, or a list of");
                self.settled.push(at);
            }
        }
    }

    /// One list and one reference between two types belong together.
    fn guess_inverses(&mut self) {
        for list in self.lists {
            let at = (list.owner, list.field);
            let open = self.open_lists(list.owner, list.target);
            let references = self.open_references(list.target, list.owner);
            if let ([only], [reference]) = (open.as_slice(), references.as_slice())
                && *only == at
            {
                self.set_inverse(at, *reference);
            }
        }
    }

    /// One list each way, and no reference, is a link table; so is one list of the type itself.
    fn guess_links(&mut self) {
        for list in self.lists {
            let at = (list.owner, list.field);
            let there = self.open_lists(list.owner, list.target);
            let back = self.open_lists(list.target, list.owner);
            let referred = !self.references(list.target, list.owner).is_empty();
            if let ([only], [other]) = (there.as_slice(), back.as_slice())
                && *only == at
                && !referred
                && self.references(list.owner, list.target).is_empty()
            {
                self.set_link(at, *other);
            }
        }
    }

    fn riddles(&mut self) {
        for list in self.lists.iter().filter(|list| !self.settled.contains(&(list.owner, list.field))) {
            let at = (list.owner, list.field);
            let (owner, target) = (&self.draft.records[list.owner.0], &self.draft.records[list.target.0]);
            let name = format!("{}.{}", owner.name, owner.field(list.field).name);
            let mut back = self.references(list.target, list.owner);
            back.extend(self.open_lists(list.target, list.owner));
            let names: Vec<&str> = back.iter().map(|(_, field)| target.field(*field).name.as_str()).collect();
            let (reason, help) = match names.first() {
                Some(first) => (
                    format!("it could be the other side of `{}` of `{}`", names.join("` or `"), target.name),
                    format!("say which: `@reference(inverse: \"{first}\")`"),
                ),
                None => self.nothing_left(list),
            };
            let span = self.span(at);
            self.log
                .warning(span, "NOT_STORED", format!("`{name}` is not stored: {reason}"))
                .label("errors when requested")
                .help(help);
        }
    }

    /// Why nothing is the other side of a list, and what to do.
    fn nothing_left(&self, list: &RecordList) -> (String, String) {
        let (owner, target) = (&self.draft.records[list.owner.0], &self.draft.records[list.target.0]);
        let taken = target.fields.iter().find_map(|back| match back.kind {
            Kind::Inverse { of, field } if of == list.owner => Some((&back.name, &owner.field(field).name)),
            Kind::Id
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Reference { .. }
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored => None,
        });
        match taken {
            Some((back, reference)) => (
                format!("`{}.{back}` is the other side of `{}.{reference}`", target.name, owner.name),
                format!(
                    "if that is wrong, write `@reference(inverse: \"{back}\")` here, else add a field of type `[{}]` to `{}`",
                    owner.name, target.name
                ),
            ),
            None => (
                format!("no field of `{}` leads back to `{}`", target.name, owner.name),
                format!(
                    "add a field of type `{0}` or `[{0}]` to `{1}`, or register a resolver for `{0}.{2}`",
                    owner.name,
                    target.name,
                    owner.field(list.field).name
                ),
            ),
        }
    }

    fn set_inverse(&mut self, list: At, (of, field): At) {
        self.draft.records[list.0.0].fields[list.1.0].kind = Kind::Inverse { of, field };
        self.settled.extend([list, (of, field)]);
    }

    /// The side that comes first in the schema names the table.
    fn set_link(&mut self, one: At, other: At) {
        if self.settled.contains(&one) {
            return;
        }
        let (first, second) = if one <= other { (one, other) } else { (other, one) };
        let records = &self.draft.records;
        let side = |at: At| (records[at.0.0].name.as_str(), records[at.0.0].field(at.1).name.as_str());
        let table = names::link_table(&records[first.0.0].table, side(first).1);
        let (to_first, to_second) = names::link_columns(side(first), side(second));
        self.link_side(second, first.0, &table, &to_second, &to_first);
        // A list of the type itself is its own other side; set last, it leads away from its owner.
        self.link_side(first, second.0, &table, &to_first, &to_second);
        self.settled.extend([first, second]);
    }

    fn link_side(&mut self, at: At, target: TypeId, table: &str, own: &str, other: &str) {
        let field = &mut self.draft.records[at.0.0].fields[at.1.0];
        field.input_name = names::link_input(&field.name);
        field.kind = Kind::Link {
            target,
            table: table.to_owned(),
            own_column: own.to_owned(),
            other_column: other.to_owned(),
        };
    }

    fn list_at(&self, at: At) -> Option<&RecordList> {
        self.lists.iter().find(|list| (list.owner, list.field) == at)
    }

    fn open_lists(&self, owner: TypeId, target: TypeId) -> Vec<At> {
        let between = self.lists.iter().filter(|list| list.owner == owner && list.target == target);
        between.map(|list| (list.owner, list.field)).filter(|at| !self.settled.contains(at)).collect()
    }

    fn open_references(&self, owner: TypeId, target: TypeId) -> Vec<At> {
        self.references(owner, target).into_iter().filter(|at| !self.settled.contains(at)).collect()
    }

    fn references(&self, owner: TypeId, wanted: TypeId) -> Vec<At> {
        let fields = self.draft.records[owner.0].fields.iter().enumerate();
        fields
            .filter(|(_, field)| matches!(field.kind, Kind::Reference { target, .. } if target == wanted))
            .map(|(i, _)| (owner, FieldId(i)))
            .collect()
    }

    fn kind(&self, at: At) -> &Kind {
        &self.draft.records[at.0.0].field(at.1).kind
    }

    fn span(&self, (owner, field): At) -> Option<SourceSpan> {
        let record = &self.draft.records[owner.0];
        let ty = self.schema.get_object(&record.name)?;
        ty.fields.get(record.field(field).name.as_str())?.name.location()
    }

    /// Where the directive says `inverse`.
    fn inverse_span(&self, at: At) -> Option<SourceSpan> {
        let record = &self.draft.records[at.0.0];
        let def = self.schema.get_object(&record.name)?.fields.get(record.field(at.1).name.as_str())?;
        def.directives.get("reference")?.specified_argument_by_name("inverse")?.location()
    }

    fn no_such_field(&mut self, at: At, target: TypeId, inverse: &str) {
        let (owner, target) = (&self.draft.records[at.0.0], &self.draft.records[target.0]);
        let known = target.fields.iter().map(|field| field.name.as_str());
        let help = did_you_mean(inverse, known, || {
            format!(
                "add `{inverse}` to `{}`, or name the field that leads back to `{}`",
                target.name, owner.name
            )
        });
        let message = format!("`{}` has no field `{inverse}`", target.name);
        let span = self.inverse_span(at);
        self.log.error(span, "REFERENCE", message).label("names nothing").help(help);
    }

    fn no_way_back(&mut self, at: At, other: At, wanted: &str) {
        let (owner, target) = (&self.draft.records[at.0.0], &self.draft.records[other.0.0]);
        let message = format!(
            "`{}.{}` is not {wanted} `{}` and so no inverse of `{}.{}`",
            target.name,
            target.field(other.1).name,
            owner.name,
            owner.name,
            owner.field(at.1).name
        );
        let span = self.inverse_span(at);
        self.log
            .error(span, "REFERENCE", message)
            .label("does not lead back")
            .help(format!("name a field of `{}` that leads back to `{}`", target.name, owner.name));
    }
}
