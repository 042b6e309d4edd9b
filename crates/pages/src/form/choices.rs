//! What the references and links of a form can lead to: the first few records, those that are chosen, and what was looked for.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Served;
use crate::multi_read::{Found, PART, look};
use trefoil_engine::{Condition, Listing, Op, Operation, OwnedRow, Selection, Slice};
use trefoil_model::error::Result;
use trefoil_model::{Cell, Field, FieldId, Kind, Model, Stored, TypeId, Value};
use trefoil_resources::Site;
use trefoil_resources::form_input::Filled;

/// So many are listed; of more, those that are looked for.
pub const MOST: usize = 50;

/// So many ids are looked up by number, whatever was typed.
const MOST_CHOSEN: usize = 1_000;

/// Longer titles are cut: a choice is one line.
const LONGEST: usize = 80;

/// What one reference or link can lead to.
#[derive(Debug, Default)]
pub struct Offered {
    pub options: Vec<(i64, String)>,
    /// There are others.
    pub more: bool,
    /// What was looked for.
    pub sought: String,
    /// How many were found by it, where that is known.
    pub found: usize,
    /// Of the type that it leads to: "users".
    pub plural: String,
}

pub type Choices = HashMap<FieldId, Offered>;

impl Served {
    pub async fn choices(&self, site: &Site, record: TypeId, filled: &Filled) -> Result<Choices> {
        let model = site.engine.model();
        let fields = model.record(record).fields.iter().enumerate();
        let fields = fields.filter(|(_, field)| field.is_writable()).filter_map(|(position, field)| {
            let (Kind::Reference { target, .. } | Kind::Link { target, .. }) = &field.kind else {
                return None;
            };
            Some((FieldId(position), field, *target))
        });
        let fields: Vec<(FieldId, &Field, TypeId)> = fields.collect();
        let mut operations = Vec::new();
        for (id, field, target) in &fields {
            let sought = filled.sought.get(&field.input_name).map_or("", |text| text.trim());
            operations.push(self.first(model, *target, sought));
            operations.push(self.numbered(model, *target, chosen(filled, *id, sought)));
        }
        if operations.is_empty() {
            return Ok(Choices::new());
        }
        let mut gathered = look(&site.engine, operations, PART).await?.into_iter();
        let mut choices = Choices::new();
        for (id, field, target) in fields {
            let (Some(first), Some(numbered)) = (gathered.next(), gathered.next()) else { break };
            let sought = filled.sought.get(&field.input_name).cloned().unwrap_or_default();
            choices.insert(id, self.offered(target, first, numbered, sought));
        }
        Ok(choices)
    }

    /// In the order of ids: any other would have to look at all of them.
    fn first(&self, model: &Model, target: TypeId, sought: &str) -> Operation {
        let search = Some(sought.to_owned()).filter(|sought| !sought.is_empty() && !sought.contains('\0'));
        let slice = Slice::First { first: MOST as i64 + 1, after: None };
        let listing = Listing { search, slice, ..Listing::default() };
        Operation::List { record: target, listing, selection: self.titles(model, target) }
    }

    fn numbered(&self, model: &Model, target: TypeId, ids: Vec<i64>) -> Operation {
        let field = model.record(target).id_field();
        let value = Value::List(ids.into_iter().map(Value::Int).collect());
        let conditions = vec![Condition { field, op: Op::In, value }];
        let listing = Listing { conditions, ..Listing::default() };
        Operation::List { record: target, listing, selection: self.titles(model, target) }
    }

    /// The id and, where there is one, the title of each record.
    pub fn titles(&self, model: &Model, record: TypeId) -> Arc<Selection> {
        let id = model.record(record).id_field();
        let columns = std::iter::once(id).chain(self.subject(record).title).collect();
        Arc::new(Selection::new(columns, Vec::new()))
    }

    fn offered(&self, target: TypeId, first: Found, numbered: Found, sought: String) -> Offered {
        let more = first.rows.len() > MOST;
        let found = first.rows.len().min(MOST);
        let mut options: Vec<(i64, String)> = Vec::new();
        for row in first.rows.iter().take(MOST).chain(&numbered.rows) {
            if let Some((id, title)) = self.title(target, row)
                && !options.iter().any(|(known, _)| *known == id)
            {
                options.push((id, title));
            }
        }
        if !more {
            options.sort_by_cached_key(|(_, title)| title.to_lowercase());
        }
        tell_apart(&mut options);
        let plural = self.subject(target).resource.plural.to_lowercase();
        Offered { options, more: more || !sought.trim().is_empty(), sought, found, plural }
    }

    /// What a row of [`Served::titles`] says.
    pub fn title(&self, record: TypeId, row: &OwnedRow) -> Option<(i64, String)> {
        let id = row.cells.first()?.as_cell().to_i64()?;
        let title = row.cells.get(1).map_or(Cell::Null, Stored::as_cell);
        let title = if let Cell::Text(text) = title { Some(text) } else { None };
        Some((id, cut(&self.subject(record).name(id, title))))
    }
}

/// The ids that are chosen now, and one that was looked for by number.
fn chosen(filled: &Filled, field: FieldId, sought: &str) -> Vec<i64> {
    let texts = filled.nodes.get(&field).into_iter().flat_map(|node| &node.texts);
    let ids = texts.flat_map(|text| text.lines()).filter_map(|line| line.trim().parse().ok());
    ids.chain(sought.parse().ok()).take(MOST_CHOSEN).collect()
}

/// Two records with one title go by their numbers as well.
fn tell_apart(options: &mut [(i64, String)]) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for (_, title) in options.iter() {
        *times.entry(title.clone()).or_default() += 1;
    }
    for (id, title) in options.iter_mut().filter(|(_, title)| times[title] > 1) {
        *title = format!("{title} ({id})");
    }
}

fn cut(title: &str) -> String {
    match title.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}
