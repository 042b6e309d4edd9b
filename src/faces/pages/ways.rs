//! "Three ways": the GraphQL operation, the REST call and the browser's request that show or do the same.

use http::header::HOST;
use http::request::Parts;
use http::{StatusCode, Uri};
use serde_json::Value as Json;

use super::Served;
use super::spelled::spell;
use super::view::{Way, Ways};
use crate::engine::document::{Wanted, selection};
use crate::engine::{Listing, Verb};
use crate::faces::client::Client;
use crate::faces::resources::Site;
use crate::faces::resources::collection::{Below, Collection, Nested};
use crate::faces::resources::form::Filled;
use crate::faces::resources::pairs::{self, Pairs, encoded};
use crate::faces::resources::query::{Query, Takes, spelled_out};
use crate::faces::resources::tree::Node;
use crate::model::{Field, Kind, Model, TypeId, Value, coerce, example, naming};

const TITLE: &str = "Three ways to this page";

/// Where nothing of the schema is meant: it is answered wherever GraphQL is.
pub const UNNAMED: &str = "# No operation of the schema stands for this address.\n{ __typename }\n";

/// What a page is about.
#[derive(Debug, Clone, Copy)]
pub enum About<'a> {
    /// The map of everything: the first thing on it.
    Home,
    /// A list of records: the address it has, with its query.
    List {
        record: TypeId,
        address: &'a str,
    },
    Record {
        record: TypeId,
        id: i64,
        address: &'a str,
    },
    Create {
        record: TypeId,
    },
    Update {
        record: TypeId,
        id: i64,
    },
    Delete {
        record: TypeId,
        id: i64,
    },
    /// What cannot be shown.
    Refused,
    /// A plain list.
    Plain {
        path: &'a str,
    },
}

impl Served {
    /// None where there is nothing to compare. What is written is made up.
    pub fn ways(&self, site: &Site, request: &Parts, about: About<'_>) -> Option<Ways> {
        self.ways_of_form(site, request, about, None)
    }

    /// The same for a form that has something in its controls.
    pub fn ways_of_form(
        &self,
        site: &Site,
        request: &Parts,
        about: About<'_>,
        filled: Option<&Filled>,
    ) -> Option<Ways> {
        let named = request.headers.get(HOST);
        let client = request.extensions.get::<Client>();
        let host = client.map_or_else(|| "http://localhost".to_owned(), |client| client.origin(named));
        let guide = Guide { pages: self, site, host };
        match about {
            About::Home => Some(guide.home()),
            About::List { record, address } => Some(guide.list(record, address)),
            About::Record { record, id, address } => Some(guide.record(record, id, address)),
            About::Create { record } => guide.create(record, filled),
            About::Update { record, id } => guide.update(record, id, filled),
            About::Delete { record, id } => Some(guide.delete(record, id)),
            About::Refused => Some(guide.refused(StatusCode::BAD_REQUEST, &request.method, &request.uri)),
            About::Plain { path } => Some(guide.looked(None, path, path)),
        }
    }
}

/// Knows where it all is.
pub struct Guide<'g> {
    pub pages: &'g Served,
    pub site: &'g Site,
    /// With its scheme: `https://shop.example`.
    pub host: String,
}

impl Guide<'_> {
    fn model(&self) -> &Model {
        self.site.engine.model()
    }

    fn path(&self, record: TypeId) -> &str {
        &self.site.collection(record).path
    }

    /// The stored fields; of a record that is referred to, what people know it by.
    fn selection(&self, record: TypeId) -> String {
        let related = |target: TypeId| {
            let title = self.pages.subject(target).title;
            let title = title.map(|title| self.model().record(target).field(title).name.as_str());
            Some(title.map_or_else(|| "id".to_owned(), |title| format!("id {title}")))
        };
        selection(self.model(), &self.model().record(record).fields, &related)
    }

    pub fn document(&self, wanted: &Wanted<'_>) -> Option<String> {
        wanted.document(&self.site.engine, &self.selection(wanted.record))
    }

    fn home(&self) -> Ways {
        match self.site.collections.first() {
            Some(Collection { record, path, .. }) => {
                let title = format!("Three ways to the {}", self.pages.subject(*record).nouns);
                Ways { title, ..self.list(*record, path) }
            }
            None => self.looked(Some(UNNAMED.to_owned()), "/openapi.json", "/"),
        }
    }

    fn list(&self, record: TypeId, address: &str) -> Ways {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let (engine, known) = (&self.site.engine, self.known(record, query));
        let uri = format!("/?{known}").parse::<Uri>().unwrap_or_default();
        let read = Query::read(&uri, engine.model().record(record), engine.limits(), Takes::List);
        let listing = read.map(|query| query.listing).unwrap_or_default();
        let text = match self.site.find(path) {
            Some((above, Below::Nested(id, nested))) => self.nested(above.record, id, nested, &listing),
            Some(_) | None => {
                let values = Json::Null;
                let wanted =
                    Wanted { record, verb: Verb::List, id: 0, values: &values, listing: Some(&listing) };
                self.document(&wanted).map(|text| remarked(&wanted.unsaid(engine), text))
            }
        };
        let is_texts = self.site.collection(record).texts.is_some() && path == self.path(record);
        let chosen = if is_texts { "fields=%2A" } else { "" };
        let query: Vec<&str> = [chosen, &known].into_iter().filter(|part| !part.is_empty()).collect();
        let json = if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
        self.looked(text, &json, address)
    }

    /// What JSON takes of a page's query: pages ignore what they do not know, and name the page beside a cursor.
    fn known(&self, record: TypeId, query: &str) -> String {
        let engine = &self.site.engine;
        let given: Pairs = pairs::urlencoded(query, "the query").unwrap_or_default();
        let goes_on = given.iter().any(|(name, value)| name == "after" && !value.is_empty());
        let taken = given.iter().filter(|(name, value)| {
            let alone = format!("/?{}={}", encoded(name), encoded(value)).parse::<Uri>().unwrap_or_default();
            let is_spare = value.is_empty() || name == "fields" || (goes_on && name == "page");
            let record = engine.model().record(record);
            !is_spare && Query::read(&alone, record, engine.limits(), Takes::List).is_ok()
        });
        let record = engine.model().record(record);
        let taken = taken
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(&spelled_out(record, name, value))));
        taken.collect::<Vec<_>>().join("&")
    }

    /// The list inside of the record above it.
    pub fn nested(&self, above: TypeId, id: &str, nested: &Nested, listing: &Listing) -> Option<String> {
        let owner = self.model().record(above);
        let is_it = |kind: &Kind| matches!(kind, Kind::Inverse { of, field } if *of == nested.record && *field == nested.reference);
        let field = owner
            .fields
            .iter()
            .find(|field| is_it(&field.kind) && naming::segment(&field.name) == nested.segment)?;
        let inside = format!("id {} {{ {} }}", field.name, self.selection(nested.record));
        let (values, id) = (Json::Null, id.parse().ok()?);
        let wanted = Wanted { record: above, verb: Verb::Get, id, values: &values, listing: None };
        let text = wanted.document(&self.site.engine, &inside)?;
        let record = self.model().record(nested.record);
        let filters = listing.conditions.iter().map(|condition| record.field(condition.field).name.clone());
        Some(remarked(&filters.collect::<Vec<_>>(), text))
    }

    fn record(&self, record: TypeId, id: i64, address: &str) -> Ways {
        let values = Json::Null;
        let wanted = Wanted { record, verb: Verb::Get, id, values: &values, listing: None };
        let path = address.split_once('?').map_or(address, |(path, _)| path);
        self.looked(self.document(&wanted), path, address)
    }

    pub fn looked(&self, text: Option<String>, json: &str, page: &str) -> Ways {
        let host = &self.host;
        Ways {
            title: TITLE.to_owned(),
            graphql: text.map(|text| self.way(text)),
            rest: format!(
                "curl -H 'Accept: application/json' {}",
                quoted(&format!("{host}{}", single(json)))
            ),
            page: format!("curl -H 'Accept: text/html' {}", quoted(&format!("{host}{}", single(page)))),
        }
    }

    pub fn create(&self, record: TypeId, filled: Option<&Filled>) -> Option<Ways> {
        let fields = &self.model().record(record).fields;
        let mut made_up = example::given(self.model(), fields)?;
        let mut typed = filled.map(|filled| self.values(record, filled)).unwrap_or_default();
        typed.retain(|(_, value)| !value.is_null());
        // What must differ between records is made up anew for each way: all three can be pasted.
        let [by_graphql, by_rest, by_form] = [(); 3].map(|()| {
            let mut values = made_up.clone();
            example::differ(self.model(), fields, &mut made_up);
            for (name, value) in &typed {
                values[name] = value.clone();
            }
            values
        });
        let wanted = Wanted { record, verb: Verb::Create, id: 0, values: &by_graphql, listing: None };
        let text = self.document(&wanted);
        Some(self.written(text, "", record, self.path(record), [&by_rest, &by_form]))
    }

    fn update(&self, record: TypeId, id: i64, filled: Option<&Filled>) -> Option<Ways> {
        let fields = &self.model().record(record).fields;
        let mut values = example::given(self.model(), fields)?;
        // GraphQL keeps what it is not given, and the others overwrite everything.
        for field in fields.iter().filter(|field| field.is_writable() && !field.required && field.is_stored())
        {
            if values.get(&field.input_name).is_none() {
                values[&field.input_name] = Json::Null;
            }
        }
        for (name, value) in filled.map(|filled| self.values(record, filled)).unwrap_or_default() {
            values[name] = value;
        }
        let wanted = Wanted { record, verb: Verb::Update, id, values: &values, listing: None };
        let text = self.document(&wanted);
        Some(self.written(text, " -X PUT", record, &format!("{}/{id}", self.path(record)), [&values; 2]))
    }

    /// What was typed, as far as it passes: a way that leads to a refusal is none.
    fn values(&self, record: TypeId, filled: &Filled) -> Vec<(String, Json)> {
        let (model, record) = (self.model(), self.model().record(record));
        let meant =
            filled.read(model, record).fields.into_iter().map(|(id, value)| (record.field(id), value));
        let passing = meant.filter(|(field, value)| coerce::field(model, field, value).is_ok());
        let shown = |(field, value): (&Field, Value)| {
            let told = example::written(model, field, value.to_json());
            (field.input_name.clone(), told.unwrap_or_else(|| value.to_json()))
        };
        passing.map(shown).collect()
    }

    fn written(
        &self,
        text: Option<String>,
        method: &str,
        record: TypeId,
        path: &str,
        [by_rest, by_form]: [&Json; 2],
    ) -> Ways {
        let url = quoted(&format!("{}{path}", self.host));
        let mut controls = String::new();
        for (name, text) in self.controls(record, by_form) {
            controls.push_str(&format!(" --data-urlencode {}", quoted(&format!("{name}={text}"))));
        }
        let controls = if controls.is_empty() { " -d ''".to_owned() } else { controls };
        Ways {
            title: TITLE.to_owned(),
            graphql: text.map(|text| self.way(text)),
            rest: format!(
                "curl{method} -H 'Accept: application/json' -H 'Content-Type: application/json' -d {} {url}",
                quoted(&by_rest.to_string())
            ),
            page: format!("curl -i{controls} {url}"),
        }
    }

    /// The controls of a form that says this.
    fn controls(&self, record: TypeId, values: &Json) -> Pairs {
        let mut pairs = Pairs::new();
        for field in &self.model().record(record).fields {
            if let Some(value) = values.get(&field.input_name) {
                let node = spell(self.model(), &field.kind, &Value::from(value.clone()), 0);
                flatten(&mut pairs, field.input_name.clone(), &node);
            }
        }
        pairs
    }

    pub fn delete(&self, record: TypeId, id: i64) -> Ways {
        let values = Json::Null;
        let wanted = Wanted { record, verb: Verb::Delete, id, values: &values, listing: None };
        let url = format!("{}{}/{id}", self.host, self.path(record));
        Ways {
            title: TITLE.to_owned(),
            graphql: self.document(&wanted).map(|text| self.way(text)),
            rest: format!("curl -i -X DELETE -H 'Accept: application/json' {}", quoted(&url)),
            page: format!("curl -i -X POST {}", quoted(&format!("{url}/delete"))),
        }
    }

    fn way(&self, text: String) -> Way {
        let run = self.pages.site.graphiql.then(|| format!("/graphql?query={}", encoded(&text)));
        Way { text, run }
    }
}

/// Says what of the page the operation cannot say.
fn remarked(unsaid: &[String], text: String) -> String {
    if unsaid.is_empty() {
        text
    } else {
        format!("# The schema gives no argument for: {}\n{text}", unsaid.join(", "))
    }
}

fn flatten(pairs: &mut Pairs, name: String, node: &Node) {
    pairs.extend(node.texts.iter().map(|text| (name.clone(), text.clone())));
    for (segment, below) in &node.below {
        flatten(pairs, format!("{name}.{segment}"), below);
    }
}

/// One address to curl, which takes brackets and braces for many.
pub fn single(address: &str) -> String {
    let table = [('[', "%5B"), (']', "%5D"), ('{', "%7B"), ('}', "%7D")];
    table.iter().fold(address.to_owned(), |address, (letter, spelled)| address.replace(*letter, spelled))
}

/// One word to a POSIX shell, whatever is in it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_one_word() {
        for text in ["", "plain", "it's", "$(reboot) `x` \"y\" \\ !z", "a\nb", "';'"] {
            let line = format!("printf %s {}", quoted(text));
            let told = std::process::Command::new("sh").args(["-c", &line]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&told.stdout), text, "{line}");
        }
    }
}
