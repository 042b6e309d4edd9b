//! "Three ways": the GraphQL operation, the REST call and the browser's request that show or do the same.

use http::header::HOST;
use http::request::Parts;
use http::{StatusCode, Uri};
use serde_json::Value as Json;

use trefoil_engine::graphql_document::{self, DocumentRequest, selection_text};
use trefoil_engine::{Listing, OperationVerb};
use trefoil_http::client::ClientInfo;
use trefoil_http::form_pairs::{self, FormPairs, percent_encode};
use trefoil_model::naming::names;
use trefoil_model::{FieldKind, Model, RecordTypeId};
use trefoil_resources::ServedResources;
use trefoil_resources::collection::{Collection, NestedCollection, SubPath};
use trefoil_resources::list_query::{ListQuery, ParamSet, api_value};

use crate::Pages;
use crate::view::{ApiExamples, GraphqlExample};

pub const EXAMPLES_TITLE: &str = "Three ways to this page";

/// Where nothing of the schema is meant: it is answered wherever GraphQL is.
pub const NO_OPERATION: &str = "# No operation of the schema stands for this address.\n{ __typename }\n";

/// What a page is about.
#[derive(Debug, Clone, Copy)]
pub enum PageSubject<'a> {
    /// The map of everything: the first thing on it.
    Home,
    /// A list of records: the address it has, with its query.
    List {
        record: RecordTypeId,
        address: &'a str,
    },
    Record {
        record: RecordTypeId,
        id: i64,
        address: &'a str,
    },
    Delete {
        record: RecordTypeId,
        id: i64,
    },
    /// What cannot be shown.
    Rejected,
    /// A plain list.
    PlainList {
        path: &'a str,
    },
}

impl Pages {
    pub fn api_examples(
        &self,
        resources: &ServedResources,
        request: &Parts,
        about: PageSubject<'_>,
    ) -> ApiExamples {
        let guide = self.example_builder(resources, request);
        match about {
            PageSubject::Home => guide.home_examples(),
            PageSubject::List { record, address } => guide.list_examples(record, address),
            PageSubject::Record { record, id, address } => guide.record_examples(record, id, address),
            PageSubject::Delete { record, id } => guide.delete_examples(record, id),
            PageSubject::Rejected => {
                guide.rejected_examples(StatusCode::BAD_REQUEST, &request.method, &request.uri)
            }
            PageSubject::PlainList { path } => guide.read_examples(None, path, path),
        }
    }

    pub fn example_builder<'g>(
        &'g self,
        resources: &'g ServedResources,
        request: &Parts,
    ) -> ExampleBuilder<'g> {
        let named = request.headers.get(HOST);
        let client = request.extensions.get::<ClientInfo>();
        let host = client.map_or_else(|| "http://localhost".to_owned(), |client| client.origin(named));
        ExampleBuilder { pages: self, resources, origin: host }
    }
}

/// Knows where it all is.
pub struct ExampleBuilder<'g> {
    pub pages: &'g Pages,
    pub resources: &'g ServedResources,
    /// With its scheme: `https://shop.example`.
    pub origin: String,
}

impl ExampleBuilder<'_> {
    pub fn model(&self) -> &Model {
        self.resources.engine.model()
    }

    pub fn collection_path(&self, record: RecordTypeId) -> &str {
        &self.resources.collection(record).path
    }

    /// The stored fields; of a record that is referred to, what people know it by.
    fn selection_text(&self, record: RecordTypeId) -> String {
        let related = |target: RecordTypeId| {
            let title = self.pages.labels_of(target).title_field;
            let title = title.map(|title| self.model().record(target).field(title).name.as_str());
            Some(title.map_or_else(|| "id".to_owned(), |title| format!("id {title}")))
        };
        selection_text(self.model(), &self.model().record(record).fields, &related)
    }

    pub fn operation_text(&self, wanted: &DocumentRequest<'_>) -> Option<String> {
        wanted.render(&self.resources.engine, &self.selection_text(wanted.record))
    }

    fn home_examples(&self) -> ApiExamples {
        match self.resources.collections.first() {
            Some(Collection { record, path, .. }) => {
                let title = format!("Three ways to the {}", self.pages.labels_of(*record).plural_noun);
                ApiExamples { title, ..self.list_examples(*record, path) }
            }
            None => self.read_examples(None, "/openapi.json", "/"),
        }
    }

    fn list_examples(&self, record: RecordTypeId, address: &str) -> ApiExamples {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let (engine, known) = (&self.resources.engine, self.api_query(record, query));
        let uri = format!("/?{known}").parse::<Uri>().unwrap_or_default();
        let read = ListQuery::parse(&uri, engine.model().record(record), engine.limits(), ParamSet::List);
        let listing = read.map(|query| query.listing).unwrap_or_default();
        let text = match self.resources.find_path(path) {
            Some((above, SubPath::Nested(id, nested))) => {
                self.nested_operation(above.record, id, nested, &listing)
            }
            Some(_) | None => {
                let values = Json::Null;
                let wanted = DocumentRequest {
                    record,
                    verb: OperationVerb::List,
                    id: 0,
                    values: &values,
                    listing: Some(&listing),
                };
                self.operation_text(&wanted)
                    .map(|text| with_missing_arguments(&wanted.unexpressed_parts(engine), text))
            }
        };
        let is_texts =
            self.resources.collection(record).texts.is_some() && path == self.collection_path(record);
        let chosen = if is_texts { "fields=%2A" } else { "" };
        let query: Vec<&str> = [chosen, &known].into_iter().filter(|part| !part.is_empty()).collect();
        let json = if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
        self.read_examples(text, &json, address)
    }

    /// What JSON takes of a page's query: pages ignore what they do not know, and name the page beside a cursor.
    fn api_query(&self, record: RecordTypeId, query: &str) -> String {
        let engine = &self.resources.engine;
        let given: FormPairs = form_pairs::parse_urlencoded(query, "the query").unwrap_or_default();
        let goes_on = given.iter().any(|(name, value)| name == "after" && !value.is_empty());
        let taken = given.iter().filter(|(name, value)| {
            let alone = format!("/?{}={}", percent_encode(name), percent_encode(value))
                .parse::<Uri>()
                .unwrap_or_default();
            let is_spare = value.is_empty() || name == "fields" || (goes_on && name == "page");
            let record = engine.model().record(record);
            !is_spare && ListQuery::parse(&alone, record, engine.limits(), ParamSet::List).is_ok()
        });
        let record = engine.model().record(record);
        let taken = taken.map(|(name, value)| {
            format!("{}={}", percent_encode(name), percent_encode(&api_value(record, name, value)))
        });
        taken.collect::<Vec<_>>().join("&")
    }

    /// The list inside of the record above it.
    pub fn nested_operation(
        &self,
        above: RecordTypeId,
        id: &str,
        nested: &NestedCollection,
        listing: &Listing,
    ) -> Option<String> {
        let owner = self.model().record(above);
        let is_it = |kind: &FieldKind| matches!(kind, FieldKind::Inverse { target, field } if *target == nested.record && *field == nested.reference);
        let field = owner
            .fields
            .iter()
            .find(|field| is_it(&field.kind) && names::path_segment(&field.name) == nested.segment)?;
        let inside = format!("id {} {{ {} }}", field.name, self.selection_text(nested.record));
        let (values, id) = (Json::Null, id.parse().ok()?);
        let wanted =
            DocumentRequest { record: above, verb: OperationVerb::Get, id, values: &values, listing: None };
        let text = wanted.render(&self.resources.engine, &inside)?;
        Some(with_missing_arguments(
            &graphql_document::unexpressed_listing_parts(self.model().record(nested.record), listing, |_| {
                false
            }),
            text,
        ))
    }

    fn record_examples(&self, record: RecordTypeId, id: i64, address: &str) -> ApiExamples {
        let values = Json::Null;
        let wanted = DocumentRequest { record, verb: OperationVerb::Get, id, values: &values, listing: None };
        let path = address.split_once('?').map_or(address, |(path, _)| path);
        self.read_examples(self.operation_text(&wanted), path, address)
    }

    /// Without a text there is no operation for it.
    pub fn read_examples(&self, text: Option<String>, json: &str, page: &str) -> ApiExamples {
        let host = &self.origin;
        ApiExamples {
            title: EXAMPLES_TITLE.to_owned(),
            graphql: self.graphql_example(text.unwrap_or_else(|| NO_OPERATION.to_owned())),
            rest: format!(
                "curl -H 'Accept: application/json' {}",
                shell_quote(&format!("{host}{}", escape_brackets(json)))
            ),
            page: format!(
                "curl -H 'Accept: text/html' {}",
                shell_quote(&format!("{host}{}", escape_brackets(page)))
            ),
        }
    }

    pub fn delete_examples(&self, record: RecordTypeId, id: i64) -> ApiExamples {
        let values = Json::Null;
        let wanted =
            DocumentRequest { record, verb: OperationVerb::Delete, id, values: &values, listing: None };
        let url = format!("{}{}/{id}", self.origin, self.collection_path(record));
        ApiExamples {
            title: EXAMPLES_TITLE.to_owned(),
            graphql: self.graphql_example(
                self.operation_text(&wanted).unwrap_or_else(|| self.fallback_operation(record, Some(id))),
            ),
            rest: format!("curl -i -X DELETE -H 'Accept: application/json' {}", shell_quote(&url)),
            page: format!("curl -i -X POST {}", shell_quote(&format!("{url}/delete"))),
        }
    }

    /// Where no operation writes: what is to be written to is read.
    pub fn fallback_operation(&self, record: RecordTypeId, id: Option<i64>) -> String {
        let one = id.and_then(|id| self.get_operation(record, &id.to_string()));
        let text = one.or_else(|| self.list_operation(record));
        let remark = "# No operation of the schema can be given here. This one reads what it is about.\n";
        text.map_or_else(|| NO_OPERATION.to_owned(), |text| format!("{remark}{text}"))
    }

    pub fn graphql_example(&self, text: String) -> GraphqlExample {
        let run = self.pages.site_view.graphiql.then(|| format!("/graphql?query={}", percent_encode(&text)));
        GraphqlExample { text, run }
    }
}

/// Says what of the page the operation cannot say.
pub fn with_missing_arguments(unsaid: &[String], text: String) -> String {
    if unsaid.is_empty() {
        text
    } else {
        format!("# The schema gives no argument for: {}\n{text}", unsaid.join(", "))
    }
}

/// One address to curl, which takes brackets and braces for many.
pub fn escape_brackets(address: &str) -> String {
    let table = [('[', "%5B"), (']', "%5D"), ('{', "%7B"), ('}', "%7D")];
    table.iter().fold(address.to_owned(), |address, (letter, spelled)| address.replace(*letter, spelled))
}

/// One word to a POSIX shell, whatever is in it.
pub fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_one_word() {
        for text in ["", "plain", "it's", "$(reboot) `x` \"y\" \\ !z", "a\nb", "';'"] {
            let line = format!("printf %s {}", shell_quote(text));
            let told = std::process::Command::new("sh").args(["-c", &line]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&told.stdout), text, "{line}");
        }
    }
}
