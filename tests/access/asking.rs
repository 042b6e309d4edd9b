//! Random requests that read, as documents of GraphQL and as paths of REST.

use super::judge::{RuleJudge, Verdict};
use super::rule_tree::Deed;
use super::shape::{AccessShape, Content, Kind, ROLES, ShapeField};
use super::stock::{self, Cell};
use crate::power::chance::Chance;

/// Makes requests.
pub struct ReadMaker<'r> {
    pub judge: RuleJudge<'r>,
    pub chance: &'r mut Chance,
    /// Names also what the actor may never read.
    pub names_all: bool,
}

/// A request, and whether its answer tells where the next page begins.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    pub document: String,
    /// The name of a connection, whose pages are followed with the variable `after`.
    pub connection: Option<String>,
}

impl ReadMaker<'_> {
    fn shape(&self) -> &AccessShape {
        self.judge.shape
    }

    /// The fields that the actor may name.
    fn fields(&self, of: usize) -> Vec<(usize, ShapeField)> {
        let fields = self.shape().types[of].fields.iter().cloned().enumerate();
        let is_named =
            |at: usize| self.names_all || self.judge.field_verdict(of, at, Deed::Read) != Verdict::No;
        fields.filter(|(at, _)| is_named(*at)).collect()
    }

    pub fn request(&mut self, of: usize) -> ReadRequest {
        let (name, plural) = (self.shape().types[of].name.to_lowercase(), self.shape().types[of].plural);
        let depth = self.chance.below(3);
        let mut connection = None;
        let body = match self.chance.below(8) {
            0 => {
                let id = 1 + self.chance.below(14);
                format!("{name}(id: {id}) {{ {} }}", self.selection(of, depth))
            }
            1 if of == self.shape().account
                && self.fields(of).iter().any(|(_, field)| field.content == Content::Login) =>
            {
                let id = 1 + self.chance.below(14);
                format!("{name}ByLogin(login: \"login{id}\") {{ {} }}", self.selection(of, depth))
            }
            2 | 3 => self.groups(of, &format!("{plural}Aggregate")),
            4 | 5 => {
                let (forward, size) = (self.chance.percent(75), 1 + self.chance.below(4));
                let mut arguments = self.list_arguments(of, depth);
                let place = if forward {
                    format!("first: {size}, after: $cursor")
                } else {
                    format!("last: {size}, before: $cursor")
                };
                arguments.push(place);
                connection = Some(format!("{plural}Connection"));
                format!(
                    "{plural}Connection({}) {{ totalCount pageInfo {{ hasNextPage hasPreviousPage startCursor endCursor }} \
                     edges {{ cursor node {{ {} }} }} }}",
                    arguments.join(", "),
                    self.selection(of, depth)
                )
            }
            _ => {
                let mut arguments = self.list_arguments(of, 2);
                match self.chance.below(3) {
                    0 => arguments.push(format!("first: {}", 1 + self.chance.below(5))),
                    1 => arguments.push(format!(
                        "page: {}, size: {}",
                        1 + self.chance.below(3),
                        1 + self.chance.below(4)
                    )),
                    _ => {}
                }
                format!("{plural}{} {{ {} }}", in_parentheses(&arguments), self.selection(of, depth))
            }
        };
        let head = if connection.is_some() { "query($cursor: String) " } else { "" };
        ReadRequest { document: format!("{head}{{ {body} }}"), connection }
    }

    fn list_arguments(&mut self, of: usize, depth: usize) -> Vec<String> {
        let mut arguments = Vec::new();
        if self.chance.percent(60) {
            arguments.push(format!("where: {}", self.conditions(of, depth)));
        }
        if self.chance.percent(60) {
            let keys = self.order(of);
            arguments.push(format!(
                "orderBy: [{}]",
                keys.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", ")
            ));
        }
        arguments
    }

    pub fn selection(&mut self, of: usize, depth: usize) -> String {
        let mut parts = vec!["id".to_owned()];
        for (_, field) in self.fields(of) {
            if self.chance.percent(40) {
                continue;
            }
            let name = field.name.clone();
            match field.content {
                Content::Value(_) | Content::Texts | Content::Roles | Content::Login => parts.push(name),
                Content::Spot => parts.push(format!("{name} {{ city zip }}")),
                Content::Reference { target, .. } if depth > 0 => {
                    parts.push(format!("{name} {{ {} }}", self.selection(target, depth - 1)));
                }
                Content::Reference { .. } => parts.push(format!("{name} {{ id }}")),
                Content::Inverse { target, .. } | Content::Link { target, .. } => {
                    match self.chance.below(4) {
                        0 => {
                            let conditions = format!("where: {}", self.conditions(target, 1));
                            let given = if self.chance.percent(60) { vec![conditions] } else { Vec::new() };
                            parts.push(format!("{name}Count{}", in_parentheses(&given)));
                        }
                        1 => parts.push(self.groups(target, &format!("{name}Aggregate"))),
                        _ if depth > 0 => {
                            let mut arguments = self.list_arguments(target, 1);
                            if self.chance.percent(30) {
                                arguments.push(format!("first: {}", 1 + self.chance.below(3)));
                            }
                            let inner = self.selection(target, depth - 1);
                            parts.push(format!("{name}{} {{ {inner} }}", in_parentheses(&arguments)));
                        }
                        _ => parts.push(format!("{name} {{ id }}")),
                    }
                }
            }
        }
        parts.join(" ")
    }

    /// Groups of the records of a type, as a field of this name gives them.
    fn groups(&mut self, of: usize, name: &str) -> String {
        let mut arguments = Vec::new();
        if self.chance.percent(50) {
            arguments.push(format!("where: {}", self.conditions(of, 1)));
        }
        let mut keys: Vec<String> = Vec::new();
        for _ in 0..self.chance.below(3) {
            keys.extend(self.way_to_value(of, true).filter(|key| !keys.contains(key)));
        }
        arguments.push(format!(
            "groupBy: [{}]",
            keys.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", ")
        ));
        if self.chance.percent(20) {
            arguments.push(format!("having: {{ count_gte: {} }}", 1 + self.chance.below(3)));
        }
        if self.chance.percent(20) {
            arguments.push("orderBy: [\"-count\"]".to_owned());
        }
        let mut measures = vec!["key count".to_owned()];
        for function in ["sum", "avg", "min", "max", "countDistinct"] {
            let fits = |field: &ShapeField| match (field.content, function) {
                (Content::Value(kind), "sum" | "avg") => matches!(kind, Kind::Int | Kind::Decimal),
                (Content::Value(kind), "min" | "max") => kind.is_ordered(),
                (Content::Value(_), _) => true,
                _ => false,
            };
            let fields = self.fields(of).into_iter().filter(|(_, field)| fits(field));
            let names: Vec<String> = fields.map(|(_, field)| field.name).collect();
            let names: Vec<String> = names.into_iter().filter(|_| self.chance.percent(30)).collect();
            if !names.is_empty() {
                measures.push(format!("{function} {{ {} }}", names.join(" ")));
            }
        }
        format!("{name}{} {{ {} }}", in_parentheses(&arguments), measures.join(" "))
    }

    fn order(&mut self, of: usize) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for _ in 0..1 + self.chance.below(2) {
            let key = self.way_to_value(of, false).unwrap_or_else(|| "id".to_owned());
            if !keys.iter().any(|known| known.trim_start_matches('-') == key) {
                keys.push(if self.chance.percent(40) { format!("-{key}") } else { key });
            }
        }
        keys
    }

    /// `one0.text1`: a single value, through at most two references. Groups may be by a reference itself.
    pub fn way_to_value(&mut self, mut of: usize, takes_reference: bool) -> Option<String> {
        let mut names: Vec<String> = Vec::new();
        while names.len() < 2 && self.chance.percent(35) {
            let references: Vec<(String, usize)> = self
                .fields(of)
                .into_iter()
                .filter(|(_, field)| field.content.is_reference())
                .filter_map(|(_, field)| Some((field.name, field.content.target()?)))
                .collect();
            let Some((name, target)) = self.chance.pick(&references).cloned() else { break };
            names.push(name);
            of = target;
        }
        let fits = |content: Content| {
            matches!(content, Content::Value(_) | Content::Spot) || takes_reference && content.is_reference()
        };
        let fields: Vec<(usize, ShapeField)> =
            self.fields(of).into_iter().filter(|(_, field)| fits(field.content)).collect();
        let (_, field) = self.chance.pick(&fields)?;
        names.push(field.name.clone());
        if field.content == Content::Spot {
            names.push("city".to_owned());
        }
        Some(names.join("."))
    }

    /// An object of conditions.
    pub fn conditions(&mut self, of: usize, depth: usize) -> String {
        let mut members: Vec<(String, String)> = Vec::new();
        for _ in 0..1 + self.chance.below(2) {
            let member = self.condition(of, depth);
            if !members.iter().any(|(name, _)| *name == member.0) {
                members.push(member);
            }
        }
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        format!("{{{}}}", members.join(", "))
    }

    fn condition(&mut self, of: usize, depth: usize) -> (String, String) {
        let own = |text: &str| text.to_owned();
        if depth > 0 && self.chance.percent(20) {
            let inner = [(); 2].map(|()| self.conditions(of, depth - 1));
            return match self.chance.below(3) {
                0 => (own("or"), format!("[{}]", inner.join(", "))),
                1 => (own("and"), format!("[{}]", inner.join(", "))),
                _ => (own("not"), inner[0].clone()),
            };
        }
        let fields = self.fields(of);
        if self.chance.percent(10) || fields.is_empty() {
            let id = 1 + self.chance.below(8);
            return if self.chance.percent(50) {
                (own("id"), format!("\"{id}\""))
            } else {
                (own("id_in"), format!("[1, {id}]"))
            };
        }
        let (_, field) = self.chance.pick(&fields).cloned().expect("some");
        let name = field.name.clone();
        match field.content {
            Content::Value(kind) => self.value_condition(&name, kind, field.required),
            Content::Login => (format!("{name}_contains"), format!("\"{}\"", self.chance.below(8))),
            Content::Texts => (format!("{name}_has"), literal(&stock::value(self.chance, Kind::Text))),
            Content::Roles if self.shape().has_role_list => {
                (format!("{name}_has"), own(self.chance.pick(&ROLES).expect("some")))
            }
            Content::Roles => (name, own(self.chance.pick(&ROLES).expect("some"))),
            Content::Spot => match self.chance.below(3) {
                0 => (name, format!("{{zip_gte: {}}}", self.chance.below(4))),
                1 => (format!("{name}_null"), own("true")),
                _ => (name, format!("{{city: {}}}", literal(&stock::value(self.chance, Kind::Text)))),
            },
            Content::Reference { target, .. } => match self.chance.below(4) {
                0 => (format!("{name}Id"), format!("\"{}\"", 1 + self.chance.below(8))),
                1 if !field.required => (format!("{name}Id"), own("null")),
                _ => (name, self.conditions(target, depth.saturating_sub(1))),
            },
            Content::Inverse { target, .. } | Content::Link { target, .. } => {
                let ending = *self.chance.pick(&["some", "every", "none"]).expect("some");
                (format!("{name}_{ending}"), self.conditions(target, depth.saturating_sub(1)))
            }
        }
    }

    fn value_condition(&mut self, name: &str, kind: Kind, required: bool) -> (String, String) {
        let value = literal(&stock::value(self.chance, kind));
        let plain = |ending: &str| (format!("{name}{ending}"), value.clone());
        match self.chance.below(6) {
            0 if !required => (format!("{name}_null"), self.chance.percent(50).to_string()),
            1 => plain("_ne"),
            2 if kind != Kind::Flag => {
                let other = literal(&stock::value(self.chance, kind));
                let ending = if self.chance.percent(50) { "_in" } else { "_notIn" };
                (format!("{name}{ending}"), format!("[{value}, {other}]"))
            }
            3 | 4 if kind.is_ordered() => {
                plain(self.chance.pick(&["_lt", "_lte", "_gt", "_gte"]).expect("some"))
            }
            5 if kind == Kind::Text => {
                plain(self.chance.pick(&["_contains", "_startsWith", "_ci"]).expect("some"))
            }
            _ => plain(""),
        }
    }

    /// The same in REST: lists with conditions, orders, searches and counts, records, and records below others.
    pub fn path(&mut self, of: usize) -> String {
        let plural = self.shape().types[of].plural;
        let id = 1 + self.chance.below(14);
        match self.chance.below(6) {
            0 => return self.with_fields(of, &format!("/{plural}/{id}"), &[]),
            1 => {
                let lists: Vec<(String, usize)> = self
                    .fields(of)
                    .into_iter()
                    .filter(|(_, field)| field.content.is_list())
                    .filter_map(|(_, field)| Some((field.name, field.content.target()?)))
                    .collect();
                if let Some((list, target)) = self.chance.pick(&lists).cloned() {
                    return self.with_fields(target, &format!("/{plural}/{id}/{list}"), &[]);
                }
            }
            _ => {}
        }
        if self.chance.percent(20) {
            let mut parameters = self.filters(of);
            let key = self.way_to_value(of, true);
            parameters.push(format!("aggregate=count&group={}", key.unwrap_or_else(|| "id".to_owned())));
            return format!("/{plural}?{}", parameters.join("&"));
        }
        let mut parameters = self.list_parameters(of);
        if self.chance.percent(40) {
            parameters.push(format!("size={}&count=true", 1 + self.chance.below(4)));
        }
        if self.chance.percent(30) {
            let format = *self.chance.pick(&["csv", "ndjson"]).expect("some");
            parameters.push(format!("format={format}"));
        }
        self.with_fields(of, &format!("/{plural}"), &parameters)
    }

    fn filters(&mut self, of: usize) -> Vec<String> {
        let fields = self.fields(of);
        let mut parameters: Vec<String> = Vec::new();
        for _ in 0..self.chance.below(3) {
            let Some((_, field)) = self.chance.pick(&fields).cloned() else { break };
            parameters.extend(self.parameter(&field));
        }
        parameters
    }

    /// Conditions, a search and an order of a list, as addresses have them.
    pub fn list_parameters(&mut self, of: usize) -> Vec<String> {
        let mut parameters = self.filters(of);
        if self.chance.percent(25) {
            parameters.push(format!("q={}", self.chance.pick(&["a", "pond", "Ba"]).expect("some")));
        }
        if self.chance.percent(50) {
            parameters.push(format!("sort={}", self.order(of).join(",")));
        }
        parameters
    }

    /// An address that names the fields where some are left out of what the actor is shown.
    fn with_fields(&self, of: usize, path: &str, parameters: &[String]) -> String {
        let (all, shown) = (&self.shape().types[of].fields, self.fields(of));
        let mut parameters = parameters.to_vec();
        if shown.len() < all.len() {
            let is_column = |field: &ShapeField| !matches!(field.content, Content::Inverse { .. });
            let names =
                shown.iter().filter(|(_, field)| is_column(field)).map(|(_, field)| match field.content {
                    Content::Link { .. } => format!("{}Ids", field.name.trim_end_matches('s')),
                    _ => field.input_name(),
                });
            let names: Vec<String> = std::iter::once("id".to_owned()).chain(names).collect();
            parameters.push(format!("fields={}", names.join(",")));
        }
        let question = if parameters.is_empty() { "" } else { "?" };
        format!("{path}{question}{}", parameters.join("&").replace(' ', "%20"))
    }

    fn parameter(&mut self, field: &ShapeField) -> Option<String> {
        let name = &field.name;
        let Content::Value(kind) = field.content else {
            return field.content.is_reference().then(|| format!("{name}Id={}", 1 + self.chance.below(8)));
        };
        let value = match stock::value(self.chance, kind) {
            Cell::Flag(flag) => flag.to_string(),
            cell => match cell.json() {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            },
        };
        let ending = match self.chance.below(3) {
            0 if kind.is_ordered() => *self.chance.pick(&[".lt", ".gte", ".ne"]).expect("some"),
            _ => "",
        };
        Some(format!("{name}{ending}={value}"))
    }
}

/// A value as a literal of GraphQL.
pub fn literal(cell: &Cell) -> String {
    match cell {
        Cell::Word(word) => word.clone(),
        Cell::Words(words) => format!("[{}]", words.join(", ")),
        Cell::Spot(city, zip) => {
            let city = city.as_ref().map_or("null".to_owned(), |city| format!("{city:?}"));
            let zip = zip.map_or("null".to_owned(), |zip| zip.to_string());
            format!("{{city: {city}, zip: {zip}}}")
        }
        other => other.json().to_string(),
    }
}

fn in_parentheses(arguments: &[String]) -> String {
    if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) }
}
