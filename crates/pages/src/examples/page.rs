//! "Three ways": the GraphQL operation, the REST call and the browser's request that show or do the same.

use http::header::HOST;
use http::request::Parts;
use http::{StatusCode, Uri};
use serde_json::Value as Json;

use crate::Served;
use crate::view::{Way, Ways};
use trefoil_engine::graphql_document;
use trefoil_engine::graphql_document::{Wanted, selection};
use trefoil_engine::{Listing, Verb};
use trefoil_http::client::Client;
use trefoil_http::form_pairs;
use trefoil_http::form_pairs::{Pairs, encoded};
use trefoil_model::naming::names;
use trefoil_model::{Kind, Model, TypeId};
use trefoil_resources::Site;
use trefoil_resources::collection::{Below, Collection, Nested};
use trefoil_resources::list_query::{Query, Takes, spelled_out};

pub const TITLE: &str = "Three ways to this page";

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
    pub fn ways(&self, site: &Site, request: &Parts, about: About<'_>) -> Ways {
        let guide = self.guide(site, request);
        match about {
            About::Home => guide.home(),
            About::List { record, address } => guide.list(record, address),
            About::Record { record, id, address } => guide.record(record, id, address),
            About::Delete { record, id } => guide.delete(record, id),
            About::Refused => guide.refused(StatusCode::BAD_REQUEST, &request.method, &request.uri),
            About::Plain { path } => guide.looked(None, path, path),
        }
    }

    pub fn guide<'g>(&'g self, site: &'g Site, request: &Parts) -> Guide<'g> {
        let named = request.headers.get(HOST);
        let client = request.extensions.get::<Client>();
        let host = client.map_or_else(|| "http://localhost".to_owned(), |client| client.origin(named));
        Guide { pages: self, site, host }
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
    pub fn model(&self) -> &Model {
        self.site.engine.model()
    }

    pub fn path(&self, record: TypeId) -> &str {
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
            None => self.looked(None, "/openapi.json", "/"),
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
        let given: Pairs = form_pairs::urlencoded(query, "the query").unwrap_or_default();
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
            .find(|field| is_it(&field.kind) && names::segment(&field.name) == nested.segment)?;
        let inside = format!("id {} {{ {} }}", field.name, self.selection(nested.record));
        let (values, id) = (Json::Null, id.parse().ok()?);
        let wanted = Wanted { record: above, verb: Verb::Get, id, values: &values, listing: None };
        let text = wanted.document(&self.site.engine, &inside)?;
        Some(remarked(
            &graphql_document::unsaid(self.model().record(nested.record), listing, |_| false),
            text,
        ))
    }

    fn record(&self, record: TypeId, id: i64, address: &str) -> Ways {
        let values = Json::Null;
        let wanted = Wanted { record, verb: Verb::Get, id, values: &values, listing: None };
        let path = address.split_once('?').map_or(address, |(path, _)| path);
        self.looked(self.document(&wanted), path, address)
    }

    /// Without a text there is no operation for it.
    pub fn looked(&self, text: Option<String>, json: &str, page: &str) -> Ways {
        let host = &self.host;
        Ways {
            title: TITLE.to_owned(),
            graphql: self.way(text.unwrap_or_else(|| UNNAMED.to_owned())),
            rest: format!(
                "curl -H 'Accept: application/json' {}",
                quoted(&format!("{host}{}", single(json)))
            ),
            page: format!("curl -H 'Accept: text/html' {}", quoted(&format!("{host}{}", single(page)))),
        }
    }

    pub fn delete(&self, record: TypeId, id: i64) -> Ways {
        let values = Json::Null;
        let wanted = Wanted { record, verb: Verb::Delete, id, values: &values, listing: None };
        let url = format!("{}{}/{id}", self.host, self.path(record));
        Ways {
            title: TITLE.to_owned(),
            graphql: self.way(self.document(&wanted).unwrap_or_else(|| self.instead(record, Some(id)))),
            rest: format!("curl -i -X DELETE -H 'Accept: application/json' {}", quoted(&url)),
            page: format!("curl -i -X POST {}", quoted(&format!("{url}/delete"))),
        }
    }

    /// Where no operation writes: what is to be written to is read.
    pub fn instead(&self, record: TypeId, id: Option<i64>) -> String {
        let one = id.and_then(|id| self.one(record, &id.to_string()));
        let text = one.or_else(|| self.listed(record));
        let remark = "# No operation of the schema can be given here. This one reads what it is about.\n";
        text.map_or_else(|| UNNAMED.to_owned(), |text| format!("{remark}{text}"))
    }

    pub fn way(&self, text: String) -> Way {
        let run = self.pages.site.graphiql.then(|| format!("/graphql?query={}", encoded(&text)));
        Way { text, run }
    }
}

/// Says what of the page the operation cannot say.
pub fn remarked(unsaid: &[String], text: String) -> String {
    if unsaid.is_empty() {
        text
    } else {
        format!("# The schema gives no argument for: {}\n{text}", unsaid.join(", "))
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
