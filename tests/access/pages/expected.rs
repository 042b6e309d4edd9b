//! What pages show an actor, by the interpreter of rules: titles, columns, values, buttons and controls.

use std::collections::{BTreeMap, BTreeSet};

use crate::access::judge::{RuleJudge, Verdict};
use crate::access::rule_tree::Deed;
use crate::access::shape::{Content, Kind, ShapeField};
use crate::access::stock::{AccessStock, Cell};

/// At most so many columns besides the title.
const MAX_COLUMNS: usize = 6;

/// What an actor sees of the records.
pub struct ShownWorld<'w> {
    pub judge: RuleJudge<'w>,
    pub world: AccessStock,
}

/// Records with the same title are different groups.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct GroupIdentity {
    text: String,
    record: Option<i64>,
}

impl<'w> ShownWorld<'w> {
    pub fn new(judge: RuleJudge<'w>) -> ShownWorld<'w> {
        ShownWorld { judge, world: judge.world() }
    }

    pub fn fields(&self, of: usize) -> &'w [ShapeField] {
        &self.judge.shape.types[of].fields
    }

    pub fn path(&self, of: usize, id: i64) -> String {
        format!("/{}/{id}", self.judge.shape.types[of].plural)
    }

    /// The status of a page that shows records of a type.
    pub fn status(&self, of: usize, deed: Deed) -> u16 {
        match self.judge.verdict(of, deed) {
            Verdict::No => self.refusal(),
            Verdict::Some | Verdict::Yes => 200,
        }
    }

    pub fn refusal(&self) -> u16 {
        if self.judge.actor.is_signed_in() { 403 } else { 401 }
    }

    pub fn is_seen(&self, of: usize, id: i64) -> bool {
        self.world.rows[of].contains_key(&id)
    }

    pub fn is_shown(&self, of: usize, at: usize) -> bool {
        self.judge.field_verdict(of, at, Deed::Read) != Verdict::No
    }

    /// What an account signs in with names it, else the first required text.
    fn title_field(&self, of: usize) -> Option<usize> {
        let is_login = |field: &ShapeField| field.content == Content::Login;
        let is_text = |field: &ShapeField| field.content == Content::Value(Kind::Text) && field.required;
        let login = self.fields(of).iter().position(is_login);
        let title = login.or_else(|| self.fields(of).iter().position(is_text));
        title.filter(|at| self.is_shown(of, *at))
    }

    pub fn title(&self, of: usize, id: i64) -> String {
        let title = self.title_field(of).map(|at| &self.world.rows[of][&id][at]);
        match title {
            Some(Cell::Text(text)) => text.clone(),
            _ => format!("{} {id}", self.judge.shape.types[of].name),
        }
    }

    /// The fields of a list besides the title, without the one by which the list belongs to a record.
    pub fn columns(&self, of: usize, left_out: Option<usize>) -> Vec<usize> {
        let has_column = |at: usize| match self.fields(of)[at].content {
            Content::Value(_) | Content::Login | Content::Reference { .. } => true,
            Content::Roles => !self.judge.shape.has_role_list,
            Content::Texts | Content::Spot | Content::Inverse { .. } | Content::Link { .. } => false,
        };
        let title = self.title_field(of);
        let shown = (0..self.fields(of).len())
            .filter(|at| has_column(*at) && Some(*at) != title && self.is_shown(of, *at));
        shown.take(MAX_COLUMNS).filter(|at| Some(*at) != left_out).collect()
    }

    /// What the row of a record says: its title with its address below `list`, then the values of the columns.
    pub fn row(&self, of: usize, id: i64, list: &str, left_out: Option<usize>) -> Vec<String> {
        let title = format!("{} at {list}/{id}", self.title(of, id));
        let cells = self.columns(of, left_out).into_iter().map(|at| self.value(of, id, at));
        std::iter::once(title).chain(cells).collect()
    }

    /// The fields on the page of a record, by their labels.
    pub fn labelled(&self, of: usize, id: i64) -> Vec<(String, String)> {
        let own = (0..self.fields(of).len())
            .filter(|at| !self.fields(of)[*at].content.is_list() && self.is_shown(of, *at));
        let values = own.map(|at| (label(&self.fields(of)[at].name), self.value(of, id, at)));
        std::iter::once(("ID".to_owned(), id.to_string())).chain(values).collect()
    }

    pub fn value(&self, of: usize, id: i64, at: usize) -> String {
        match &self.world.rows[of][&id][at] {
            Cell::One(other) => {
                let target = self.fields(of)[at].content.target().expect("a reference");
                format!("{} at {}", self.title(target, *other), self.path(target, *other))
            }
            cell => self.cell_text(cell),
        }
    }

    fn cell_text(&self, cell: &Cell) -> String {
        let spot = |part: Option<String>| part.unwrap_or_else(|| "Not set".to_owned());
        match cell {
            Cell::Null => "Not set".to_owned(),
            Cell::Text(text) | Cell::Moment(text) => text.clone(),
            Cell::Whole(number) => number.to_string(),
            Cell::Flag(flag) => if *flag { "Yes" } else { "No" }.to_owned(),
            Cell::Exact(_) => cell.rule_text(),
            Cell::Word(word) => label(word),
            Cell::Texts(texts) if texts.is_empty() => "None".to_owned(),
            Cell::Words(words) if words.is_empty() => "None".to_owned(),
            Cell::Texts(texts) => texts.join("; "),
            Cell::Words(words) => words.iter().map(|word| label(word)).collect::<Vec<_>>().join("; "),
            Cell::Spot(city, zip) => {
                let zip = zip.map(|zip| zip.to_string());
                format!("City: {}; Zip: {}", spot(city.clone()), spot(zip))
            }
            Cell::One(_) | Cell::Many(_) => panic!("{cell:?} is no text"),
        }
    }

    /// The lists below a record: the field, the type in it, and the reference that leads back.
    pub fn related(&self, of: usize) -> Vec<(usize, usize, Option<usize>)> {
        let lists = self.fields(of).iter().enumerate().filter_map(|(at, field)| match field.content {
            Content::Inverse { target, reference } => Some((at, target, Some(reference))),
            Content::Link { target, .. } => Some((at, target, None)),
            _ => None,
        });
        let is_open = |(at, target, reference): &(usize, usize, Option<usize>)| {
            self.is_shown(of, *at) && reference.is_none_or(|reference| self.is_shown(*target, reference))
        };
        lists.filter(is_open).collect()
    }

    /// The groups by the value at the end of a way, with how many records each has; and the key as addresses have it.
    /// Times are grouped by year.
    pub fn groups(&self, of: usize, way: &[&str]) -> (String, Vec<(String, usize)>) {
        let mut counts: BTreeMap<GroupIdentity, usize> = BTreeMap::new();
        let mut is_time = false;
        for id in self.world.rows[of].keys() {
            let key = match self.cell_at((of, *id), way) {
                Some((target, Cell::One(other))) => {
                    GroupIdentity { text: self.title(target, other), record: Some(other) }
                }
                Some((_, Cell::Moment(text))) => GroupIdentity { text: text[..4].to_owned(), record: None },
                // Equal numbers are one group, however they are written.
                Some((_, cell @ Cell::Exact(_))) => {
                    let text = cell.rule_text();
                    let text = text.trim_end_matches('0').trim_end_matches('.').to_owned();
                    GroupIdentity { text, record: None }
                }
                Some((_, cell)) => GroupIdentity { text: self.cell_text(&cell), record: None },
                None => GroupIdentity { text: "Not set".to_owned(), record: None },
            };
            *counts.entry(key).or_default() += 1;
        }
        let mut owner = of;
        for name in way {
            let field = self.fields(owner).iter().find(|field| field.name == *name);
            is_time |= field.is_some_and(|field| field.content == Content::Value(Kind::Moment));
            owner = field.and_then(|field| field.content.target()).unwrap_or(owner);
        }
        let key = way.join(".");
        let key = if is_time { format!("year({key})") } else { key };
        (key, counts.into_iter().map(|(key, count)| (key.text, count)).collect())
    }

    /// What is at the end of a way, with the type that a reference leads to; `None` for what is null or not there.
    fn cell_at(&self, (of, id): (usize, i64), way: &[&str]) -> Option<(usize, Cell)> {
        let (name, rest) = way.split_first()?;
        let at = self.fields(of).iter().position(|field| field.name == *name)?;
        let target = self.fields(of)[at].content.target();
        match (&self.world.rows[of][&id][at], rest) {
            (Cell::Null, _) => None,
            (Cell::One(other), [_, ..]) => self.cell_at((target?, *other), rest),
            // The tests group by one member of it.
            (Cell::Spot(city, _), [_, ..]) => Some((of, Cell::Text(city.clone()?))),
            (cell, _) => Some((target.unwrap_or(of), cell.clone())),
        }
    }

    pub fn may_edit(&self, of: usize, id: i64) -> bool {
        // Whoever may leave no record as an update would, may update none.
        self.judge.verdict(of, Deed::UpdateTo) != Verdict::No && self.judge.allows(of, id, Deed::Update)
    }

    pub fn may_delete(&self, of: usize, id: i64) -> bool {
        self.judge.allows(of, id, Deed::Delete)
    }

    pub fn may_create(&self, of: usize) -> bool {
        self.judge.verdict(of, Deed::Create) != Verdict::No
    }

    /// The fields with a control.
    pub fn controls(&self, of: usize, deed: Deed) -> BTreeSet<String> {
        let is_open = |at: usize| {
            let content = self.fields(of)[at].content;
            let may_set = self.judge.field_verdict(of, at, deed) != Verdict::No;
            let is_read = deed != Deed::Create || content.target().is_some();
            !matches!(content, Content::Inverse { .. }) && may_set && (!is_read || self.is_shown(of, at))
        };
        let open = (0..self.fields(of).len()).filter(|at| is_open(*at));
        open.map(|at| self.fields(of)[at].input_name()).collect()
    }

    /// What is chosen or typed in the control of a field.
    pub fn chosen(&self, of: usize, id: i64, at: usize) -> BTreeSet<String> {
        let texts = match &self.world.rows[of][&id][at] {
            Cell::Null => Vec::new(),
            // A time is typed in another form, and an embedded value has several controls.
            Cell::Moment(text) => vec![text[..16].to_owned()],
            Cell::Spot(city, zip) => city.iter().cloned().chain(zip.map(|zip| zip.to_string())).collect(),
            // A box that is not ticked stands for false.
            Cell::Flag(false) => Vec::new(),
            Cell::Text(text) | Cell::Word(text) => vec![text.clone()],
            Cell::Flag(true) => vec!["true".to_owned()],
            Cell::Whole(number) => vec![number.to_string()],
            Cell::Exact(_) => vec![self.world.rows[of][&id][at].rule_text()],
            Cell::Texts(texts) | Cell::Words(texts) => texts.clone(),
            Cell::One(id) => vec![id.to_string()],
            Cell::Many(ids) => ids.iter().map(i64::to_string).collect(),
        };
        texts.into_iter().collect()
    }
}

/// The words for a name of the schema.
pub fn label(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().expect("a name").to_ascii_uppercase();
    std::iter::once(first).chain(letters.map(|letter| letter.to_ascii_lowercase())).collect()
}
