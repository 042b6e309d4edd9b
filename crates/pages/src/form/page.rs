//! A form laid out: its controls with what they hold, what is wrong with them, and what to press.

use axum::response::Response;
use http::StatusCode;

use crate::Served;
use crate::examples::form::Draft;
use crate::form::conflict::compare;
use crate::form::controls::Maker;
use crate::form::editable_record::Kept;
use crate::form::errors;
use crate::form::keys;
use crate::form::value_texts::{DEEPEST, spell};
use crate::view::{Conflict, Control, Form, Head, Link};
use trefoil_http::errors::problem::Problem;
use trefoil_model::error::Violation;
use trefoil_model::{Field, FieldId, Kind, Model, RecordType};
use trefoil_resources::control_tree::Node;
use trefoil_resources::form_input::Filled;
use trefoil_resources::request::Ask;

/// What a form page is made of.
pub struct Sheet {
    /// The record that is edited; none where a new one is to be made.
    pub of: Option<(i64, Kept)>,
    pub filled: Filled,
    pub trouble: Trouble,
}

/// Why a form came back.
pub enum Trouble {
    None,
    Invalid(Vec<Violation>),
    /// By another record.
    Taken(Vec<Violation>),
    /// Somebody else has saved this meanwhile.
    Overtaken(Box<Filled>),
    /// Somebody else has deleted the record.
    Gone,
}

impl Trouble {
    fn status(&self) -> StatusCode {
        match self {
            Trouble::None => StatusCode::OK,
            Trouble::Invalid(_) => StatusCode::BAD_REQUEST,
            Trouble::Taken(_) | Trouble::Overtaken(_) => StatusCode::CONFLICT,
            Trouble::Gone => StatusCode::NOT_FOUND,
        }
    }
}

impl Served {
    pub async fn sheet(&self, ask: &Ask<'_>, sheet: Sheet) -> Result<Response, Problem> {
        let (model, record, of) = (ask.site.engine.model(), ask.record(), ask.collection.record);
        let Sheet { of: edited, mut filled, trouble } = sheet;
        complete(model, record, &mut filled, edited.is_none());
        let choices = self.choices(ask.site, of, &filled).await?;
        let maker = Maker::new(model, record, &choices);
        let mut controls = maker.controls(record, &filled);
        if let Trouble::Overtaken(theirs) = &trouble {
            let choices = self.choices(ask.site, of, theirs).await?;
            compare(&mut controls, &Maker::new(model, record, &choices).controls(record, theirs));
        }
        let wrong = match &trouble {
            Trouble::Invalid(violations) | Trouble::Taken(violations) => violations.as_slice(),
            Trouble::None | Trouble::Overtaken(_) | Trouble::Gone => &[],
        };
        let complaints = errors::place(&mut controls, wrong);
        let (form, above) = self.form(ask, edited.as_ref(), &filled, &trouble, (controls, complaints));
        let here = if edited.is_some() { "Edit".to_owned() } else { form.heading.clone() };
        let mut head = Head::new(here, &self.subject(of).resource.path, above);
        head.title = form.heading.clone();
        let draft = Draft { filled: &filled, wrong, choices: &choices };
        let guide = self.guide(ask.site, ask.head);
        head.ways = Some(match &edited {
            Some((id, kept)) => guide.update(of, *id, kept, &draft),
            None => guide.create(of, Some(&draft)),
        });
        self.show(ask.headers(), trouble.status(), head, "form", &form)
    }

    /// The form, and the pages above it.
    fn form(
        &self,
        ask: &Ask<'_>,
        edited: Option<&(i64, Kept)>,
        filled: &Filled,
        trouble: &Trouble,
        (controls, complaints): (Vec<Control>, Vec<Link>),
    ) -> (Form, Vec<Link>) {
        let resource = &self.subject(ask.collection.record).resource;
        let (noun, path) = (&resource.noun, &resource.path);
        let mut above = vec![Link { label: resource.plural.clone(), href: path.clone() }];
        let (heading, action, submit) = match edited {
            None => (format!("New {noun}"), path.clone(), format!("Create {noun}")),
            Some((id, Kept { title, .. })) => {
                let own = format!("{path}/{id}");
                above.push(Link { label: title.clone(), href: own.clone() });
                (format!("Edit {title}"), own, format!("Save {noun}"))
            }
        };
        let cancel = above.last().map_or_else(|| path.clone(), |link| link.href.clone());
        let conflict = self::conflict(noun, trouble, &above);
        let submit =
            if matches!(trouble, Trouble::Overtaken(_)) { "Save mine anyway".to_owned() } else { submit };
        let version = filled.version.as_ref().and_then(|version| version.trim().parse().ok());
        let key = keys::fresh();
        let form = Form { heading, action, submit, cancel, key, version, controls, complaints, conflict };
        (form, above)
    }
}

fn conflict(noun: &str, trouble: &Trouble, above: &[Link]) -> Option<Conflict> {
    let href = above.last().map(|link| link.href.clone()).unwrap_or_default();
    match trouble {
        Trouble::None | Trouble::Invalid(_) | Trouble::Taken(_) => None,
        Trouble::Overtaken(_) => Some(Conflict {
            text: format!(
                "Somebody else saved this {noun} while you were editing it, so nothing of yours is saved yet. \
                 Below is what you typed, and under it what they saved where that differs."
            ),
            theirs: Link { label: "Keep what was saved".to_owned(), href },
        }),
        Trouble::Gone => Some(Conflict {
            text: format!(
                "This {noun} was deleted while you were editing it. What you typed is below: \
                 you can create a new {noun} with it."
            ),
            theirs: Link { label: "Leave it deleted".to_owned(), href },
        }),
    }
}

/// What was not filled in shows its default. A link of a record that is not shown stays as it is, so its control must
/// not appear: sent back blank it would unlink all.
fn complete(model: &Model, record: &RecordType, filled: &mut Filled, is_new: bool) {
    for (position, field) in record.fields.iter().enumerate() {
        let id = FieldId(position);
        if !field.is_writable() || filled.nodes.contains_key(&id) {
            continue;
        }
        if matches!(field.kind, Kind::Link { .. }) {
            if !is_new {
                filled.hidden.push(id);
            }
        } else if let Some(node) = default(model, field, 0) {
            filled.nodes.insert(id, node);
        }
    }
}

/// A value that must be there shows the defaults inside of it.
fn default(model: &Model, field: &Field, depth: usize) -> Option<Node> {
    if let Some(default) = &field.default {
        return Some(spell(model, &field.kind, default, depth));
    }
    let Kind::Embedded(name) = &field.kind else { return None };
    if !field.required || depth >= DEEPEST {
        return None;
    }
    let mut node = Node::default();
    for inner in &model.embedded.get(name)?.fields {
        if let Some(child) = default(model, inner, depth + 1) {
            node.below.insert(inner.name.clone(), child);
        }
    }
    Some(node)
}
