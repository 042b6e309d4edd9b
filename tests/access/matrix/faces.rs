//! The ways in which the matrix asks: the same act on each face, as a request, and what its answer says.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::asking::literal;
use super::super::secrets::found_marks;
use super::super::shape::{AccessShape, Content};
use super::super::stock::{AccessRow, Cell, body};
use super::forms::item;
use crate::support::{Client, Reply};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixFace {
    Graphql,
    Rest,
    Pages,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixAct {
    One,
    List,
    Csv,
    NewForm,
    EditForm,
    Create,
    Update,
    /// The whole record.
    Put,
    Delete,
}

use MatrixAct::{Create, Csv, Delete, EditForm, List, NewForm, One, Put, Update};
use MatrixFace::{Graphql, Pages, Rest};

pub const READS: [(MatrixFace, MatrixAct); 7] =
    [(Graphql, One), (Graphql, List), (Rest, One), (Rest, List), (Rest, Csv), (Pages, One), (Pages, List)];
pub const FORMS: [(MatrixFace, MatrixAct); 2] = [(Pages, NewForm), (Pages, EditForm)];
pub const CREATES: [(MatrixFace, MatrixAct); 3] = [(Graphql, Create), (Rest, Create), (Pages, Create)];
pub const UPDATES: [(MatrixFace, MatrixAct); 4] =
    [(Graphql, Update), (Rest, Update), (Rest, Put), (Pages, Update)];
pub const DELETES: [(MatrixFace, MatrixAct); 3] = [(Graphql, Delete), (Rest, Delete), (Pages, Delete)];

/// A request, made of what it is about.
pub struct MatrixRequest<'r> {
    pub shape: &'r AccessShape,
    pub of: usize,
    pub id: i64,
    /// The record as it is sent where the whole is sent.
    pub row: &'r AccessRow,
    /// What a write gives.
    pub given: &'r [(usize, Cell)],
}

/// What came of it.
#[derive(Debug, PartialEq)]
pub struct MatrixAnswer {
    pub status: u16,
    /// Of the first error of GraphQL.
    pub codes: Vec<String>,
    pub marks: BTreeSet<String>,
    pub text: String,
}

impl MatrixRequest<'_> {
    pub fn send(
        &self,
        client: &mut Client,
        credential: Option<&str>,
        face: MatrixFace,
        act: MatrixAct,
    ) -> MatrixAnswer {
        let owner = &self.shape.types[self.of];
        let (list, one) = (format!("/{}", owner.plural), format!("/{}/{}", owner.plural, self.id));
        if face == Graphql {
            let query = json!({ "query": self.document(act) }).to_string();
            return ask(
                client,
                credential,
                ("POST", "/graphql"),
                "application/json",
                Some(("application/json", query)),
            );
        }
        let json = |value: Value| Some(("application/json", value.to_string()));
        let form = |pairs: String| Some(("application/x-www-form-urlencoded", pairs));
        let accept = if face == Rest { "application/json" } else { "text/html" };
        let (method, path, accept, sent) = match (face, act) {
            (_, One) => ("GET", one, accept, None),
            (_, List) => ("GET", list, accept, None),
            (_, Csv) => ("GET", list, "text/csv", None),
            (_, NewForm) => ("GET", format!("{list}/new"), accept, None),
            (_, EditForm) => ("GET", format!("{one}/edit"), accept, None),
            (Rest, Create) => ("POST", list, accept, json(self.given_json())),
            (_, Create) => ("POST", list, accept, form(self.pairs())),
            (Rest, Update) => ("PATCH", one, accept, json(self.given_json())),
            (_, Update) => ("POST", one, accept, form(self.pairs())),
            (_, Put) => ("PUT", one, accept, json(self.whole_json())),
            (Rest, Delete) => ("DELETE", one, accept, None),
            (_, Delete) => ("POST", format!("{one}/delete"), accept, form(String::new())),
        };
        ask(client, credential, (method, &path), accept, sent)
    }

    fn document(&self, act: MatrixAct) -> String {
        let owner = &self.shape.types[self.of];
        let (name, id) = (owner.name, self.id);
        match act {
            One => format!("{{ {}(id: {id}) {{ id title note secret }} }}", name.to_lowercase()),
            List => format!("{{ {} {{ id title note secret }} }}", owner.plural),
            Create => format!("mutation {{ create{name}(input: {}) {{ id }} }}", self.input()),
            Update => format!("mutation {{ update{name}(id: {id}, input: {}) {{ id }} }}", self.input()),
            Delete => format!("mutation {{ delete{name}(id: {id}) {{ id }} }}"),
            Csv | NewForm | EditForm | Put => panic!("GraphQL has no {act:?}"),
        }
    }

    fn input(&self) -> String {
        let fields = &self.shape.types[self.of].fields;
        let members =
            self.given.iter().map(|(at, cell)| format!("{}: {}", fields[*at].input_name(), literal(cell)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
    }

    fn given_json(&self) -> Value {
        let fields = &self.shape.types[self.of].fields;
        self.given.iter().map(|(at, cell)| (fields[*at].input_name(), cell.json())).collect()
    }

    fn whole(&self) -> AccessRow {
        let mut row = self.row.clone();
        self.given.iter().for_each(|(at, cell)| row[*at] = cell.clone());
        row
    }

    /// A value that the actor cannot see is left out: it is no guess.
    fn whole_json(&self) -> Value {
        let mut whole = body(&self.shape.types[self.of].fields, &self.whole());
        if self.whole()[item::SECRET] == Cell::Null {
            whole.remove("secret");
        }
        Value::Object(whole)
    }

    /// The controls of a form.
    fn pairs(&self) -> String {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (at, (field, cell)) in self.shape.types[self.of].fields.iter().zip(self.whole()).enumerate() {
            let name = field.input_name();
            match (field.content, cell) {
                (_, Cell::Null) if at == item::SECRET => {}
                (Content::Spot, Cell::Spot(city, zip)) => {
                    pairs.push((format!("{name}.city"), city.unwrap_or_default()));
                    pairs.push((format!("{name}.zip"), zip.map_or(String::new(), |zip| zip.to_string())));
                }
                (Content::Spot, _) => {
                    pairs.extend(["city", "zip"].map(|member| (format!("{name}.{member}"), String::new())));
                }
                // A line each.
                (_, Cell::Texts(texts)) => pairs.push((name, texts.join("%0D%0A"))),
                (_, Cell::Many(ids)) => {
                    // The form has it empty for those that nothing is chosen in.
                    pairs.push((name.clone(), String::new()));
                    pairs.extend(ids.iter().map(|id| (name.clone(), id.to_string())));
                }
                (_, Cell::Null) => pairs.push((name, String::new())),
                (_, cell) => {
                    let text = match cell.json() {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    pairs.push((name, text));
                }
            }
        }
        let pairs = pairs.iter().map(|(name, text)| format!("{name}={}", text.replace(' ', "+")));
        pairs.collect::<Vec<_>>().join("&")
    }
}

fn ask(
    client: &mut Client,
    credential: Option<&str>,
    (method, path): (&str, &str),
    accept: &str,
    sent: Option<(&str, String)>,
) -> MatrixAnswer {
    let mut headers = vec![("Accept", accept)];
    headers.extend(credential.map(|credential| ("Authorization", credential)));
    let body = sent.as_ref().map_or("", |(_, body)| body.as_str());
    headers.extend(sent.as_ref().map(|(media, _)| ("Content-Type", *media)));
    let reply: Reply = client.send(method, path, &headers, body.as_bytes());
    let text = reply.text();
    let told: Value =
        if path == "/graphql" { serde_json::from_str(&text).unwrap_or_default() } else { Value::Null };
    let errors = told["errors"].as_array().into_iter().flatten();
    let codes = errors.flat_map(|error| {
        let extensions = &error["extensions"];
        let violations = extensions["violations"].as_array().into_iter().flatten();
        let all = std::iter::once(&extensions["code"]).chain(violations.map(|violation| &violation["code"]));
        all.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    });
    MatrixAnswer { status: reply.status, codes: codes.collect(), marks: found_marks(&text), text }
}
