//! Random writes, as documents of GraphQL, and what they do to records where they are allowed.

use super::asking::literal;
use super::judge::RuleJudge;
use super::rule_tree::Deed;
use super::shape::{AccessShape, Content, ROLES, ShapeField};
use super::stock::{self, AccessRow, AccessStock, Cell};
use crate::power::chance::Chance;

/// One record that a request writes.
#[derive(Clone, Debug)]
pub struct RecordDeed {
    pub deed: Deed,
    pub of: usize,
    /// `None` for a record that is created.
    pub id: Option<i64>,
    /// The fields that are given.
    pub given: Vec<(usize, Cell)>,
    /// A record of a list that is written with the record before it: the reference that the latter fills.
    pub inside: Option<usize>,
}

/// A request that writes.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    pub document: String,
    /// In the order in which they happen; all of them or none.
    pub deeds: Vec<RecordDeed>,
    /// `updateMany` and `deleteMany` reach what they find: what is out of sight is not among it.
    pub is_of_many: bool,
}

pub struct WriteMaker<'m> {
    pub shape: &'m AccessShape,
    pub stock: &'m AccessStock,
    pub chance: &'m mut Chance,
}

impl WriteMaker<'_> {
    pub fn request(&mut self) -> WriteRequest {
        let of = self.chance.below(self.shape.types.len());
        match self.chance.below(10) {
            0..=2 => self.create(of),
            3..=5 => self.update(of),
            6 => self.delete(of),
            7 => self.create_many(of),
            8 => self.write_many(of),
            _ => self.create_inside(of).unwrap_or_else(|| self.create(of)),
        }
    }

    fn create(&mut self, of: usize) -> WriteRequest {
        let deed = self.new_record(of);
        let name = self.shape.types[of].name;
        let document = format!("mutation {{ create{name}(input: {}) {{ id }} }}", self.input(&deed));
        WriteRequest { document, deeds: vec![deed], is_of_many: false }
    }

    fn create_many(&mut self, of: usize) -> WriteRequest {
        let deeds = vec![self.new_record(of), self.new_record(of)];
        let inputs: Vec<String> = deeds.iter().map(|deed| self.input(deed)).collect();
        let name = self.shape.types[of].plural;
        let title = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        let document = format!("mutation {{ create{title}(input: [{}]) {{ id }} }}", inputs.join(", "));
        WriteRequest { document, deeds, is_of_many: false }
    }

    fn update(&mut self, of: usize) -> WriteRequest {
        // At times one that is not there.
        let id = match self.chance.percent(5) {
            true => 900,
            false => self.some_id(of),
        };
        let deed =
            RecordDeed { deed: Deed::Update, of, id: Some(id), given: self.changes(of, id), inside: None };
        let name = self.shape.types[of].name;
        let document =
            format!("mutation {{ update{name}(id: {id}, input: {}) {{ id }} }}", self.input(&deed));
        WriteRequest { document, deeds: vec![deed], is_of_many: false }
    }

    fn delete(&mut self, of: usize) -> WriteRequest {
        let id = self.some_id(of);
        let name = self.shape.types[of].name;
        let document = format!("mutation {{ delete{name}(id: {id}) {{ id }} }}");
        WriteRequest { document, deeds: vec![RecordDeed::deletion(of, id)], is_of_many: false }
    }

    fn write_many(&mut self, of: usize) -> WriteRequest {
        let mut ids = [self.some_id(of), self.some_id(of)].to_vec();
        ids.sort_unstable();
        ids.dedup();
        let name = self.shape.types[of].plural;
        let title = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        let list = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        if self.chance.percent(50) {
            let deeds = ids.iter().map(|id| RecordDeed::deletion(of, *id)).collect();
            let document = format!("mutation {{ delete{title}(where: {{id_in: [{list}]}}) }}");
            return WriteRequest { document, deeds, is_of_many: true };
        }
        let given = self.changes(of, ids[0]);
        let deed = |id: &i64| RecordDeed {
            deed: Deed::Update,
            of,
            id: Some(*id),
            given: given.clone(),
            inside: None,
        };
        let deeds: Vec<RecordDeed> = ids.iter().map(deed).collect();
        let input = self.input(&deeds[0]);
        let document = format!("mutation {{ update{title}(where: {{id_in: [{list}]}}, input: {input}) }}");
        WriteRequest { document, deeds, is_of_many: true }
    }

    /// A record with another one in one of its lists.
    fn create_inside(&mut self, of: usize) -> Option<WriteRequest> {
        let fields = self.shape.types[of].fields.iter();
        let lists: Vec<(String, usize, usize)> = fields
            .filter_map(|field| match field.content {
                Content::Inverse { target, reference } => Some((field.name.clone(), target, reference)),
                _ => None,
            })
            .collect();
        let (list, target, reference) = self.chance.pick(&lists).cloned()?;
        let outer = self.new_record(of);
        let mut inner = self.new_record(target);
        inner.given.retain(|(field, _)| *field != reference);
        inner.inside = Some(reference);
        let outer_input = self.input(&outer);
        let input = format!(
            "{}{}{list}: {{create: [{}]}}}}",
            outer_input.strip_suffix('}').expect("an object"),
            if outer.given.is_empty() { "" } else { ", " },
            self.input(&inner)
        );
        let name = self.shape.types[of].name;
        let document = format!("mutation {{ create{name}(input: {input}) {{ id }} }}");
        Some(WriteRequest { document, deeds: vec![outer, inner], is_of_many: false })
    }

    fn some_id(&mut self, of: usize) -> i64 {
        let ids: Vec<i64> = self.stock.rows[of].keys().copied().collect();
        self.chance.pick(&ids).copied().unwrap_or(900)
    }

    fn new_record(&mut self, of: usize) -> RecordDeed {
        let mut given = Vec::new();
        for (at, field) in self.shape.types[of].fields.iter().enumerate() {
            if is_settable(field) && (field.required || self.chance.percent(60)) {
                let cell = self.cell(field);
                // Null is what a field has that is not given.
                if cell != Cell::Null {
                    given.push((at, cell));
                }
            }
        }
        RecordDeed { deed: Deed::Create, of, id: None, given, inside: None }
    }

    /// Other values for one to three fields of a record.
    fn changes(&mut self, of: usize, id: i64) -> Vec<(usize, Cell)> {
        let mut given: Vec<(usize, Cell)> = Vec::new();
        let fields: Vec<usize> = (0..self.shape.types[of].fields.len())
            .filter(|at| is_settable(&self.shape.types[of].fields[*at]))
            .collect();
        for _ in 0..1 + self.chance.below(3) {
            let Some(at) = self.chance.pick(&fields).copied() else { break };
            let field = &self.shape.types[of].fields[at];
            let cell = self.cell(field);
            let old = self.stock.rows[of].get(&id).map(|row| &row[at]);
            let is_other = old != Some(&cell) && !(field.required && cell == Cell::Null);
            if is_other && !given.iter().any(|(known, _)| *known == at) {
                given.push((at, cell));
            }
        }
        given
    }

    fn cell(&mut self, field: &ShapeField) -> Cell {
        match stock::random_cell(self.chance, self.shape, self.stock, field) {
            // A role that rules know, so that people gain and lose rights.
            Cell::Word(_) if field.content == Content::Roles => {
                Cell::Word((*self.chance.pick(&ROLES).expect("some")).to_owned())
            }
            cell => cell,
        }
    }

    fn input(&self, deed: &RecordDeed) -> String {
        let members = deed.given.iter().map(|(at, cell)| {
            let field = &self.shape.types[deed.of].fields[*at];
            format!("{}: {}", field.input_name(), literal(cell))
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
    }
}

/// Whether a request can give it.
pub fn is_settable(field: &ShapeField) -> bool {
    !matches!(field.content, Content::Inverse { .. } | Content::Link { is_owner: false, .. })
}

impl RecordDeed {
    fn deletion(of: usize, id: i64) -> RecordDeed {
        RecordDeed { deed: Deed::Delete, of, id: Some(id), given: Vec::new(), inside: None }
    }

    /// The record as it would be.
    pub fn row_after(
        &self,
        judge: &RuleJudge<'_>,
        before: Option<&AccessRow>,
        outer: Option<i64>,
    ) -> AccessRow {
        let fields = &judge.shape.types[self.of].fields;
        let mut row = match before {
            Some(row) => row.clone(),
            None => fields.iter().map(unset).collect(),
        };
        for (at, cell) in &self.given {
            row[*at] = match (&fields[*at].content, cell) {
                (Content::Link { target, .. }, Cell::Many(given)) => {
                    // Those out of sight stay.
                    let mut ids = given.clone();
                    let old = before.map(|row| &row[*at]);
                    if let Some(Cell::Many(old)) = old {
                        ids.extend(old.iter().filter(|id| !judge.allows(*target, **id, Deed::Read)));
                    }
                    ids.sort_unstable();
                    ids.dedup();
                    Cell::Many(ids)
                }
                _ => cell.clone(),
            };
        }
        if let (Some(reference), Some(outer)) = (self.inside, outer) {
            row[reference] = Cell::One(outer);
        }
        row
    }
}

/// What a field holds that nobody set.
fn unset(field: &ShapeField) -> Cell {
    match field.content {
        Content::Inverse { .. } | Content::Link { .. } => Cell::Many(Vec::new()),
        _ => Cell::Null,
    }
}
