//! "Three ways" where nothing was shown or done: what was asked, said so that it can be asked again.

use http::{Method, StatusCode, Uri};
use serde_json::Value as Json;

use crate::Served;
use crate::examples::page::{Guide, quoted, single};
use crate::view::Ways;
use trefoil_engine::graphql_document::Wanted;
use trefoil_engine::{Listing, Verb};
use trefoil_http::errors::problem::Problem;
use trefoil_http::errors::render::Asker;
use trefoil_model::TypeId;
use trefoil_resources::Site;
use trefoil_resources::collection::{Below, Collection};

impl Served {
    /// Made of the request's first line alone: the store may be what failed.
    pub fn ways_of_error(&self, site: &Site, problem: &Problem, asker: &Asker) -> Ways {
        let guide = Guide { pages: self, site, host: asker.origin() };
        guide.refused(problem.status, &asker.method, &asker.uri)
    }
}

impl Guide<'_> {
    /// What was to be created or deleted is said as such. What was to overwrite a record is not known any more, and
    /// made-up values would do harm there: that record is asked for.
    pub fn refused(&self, status: StatusCode, method: &Method, uri: &Uri) -> Ways {
        let found = self.site.find(uri.path());
        let ways = match (found, method) {
            _ if status == StatusCode::METHOD_NOT_ALLOWED => None,
            (Some((collection, Below::New)), &Method::GET | &Method::HEAD)
            | (Some((collection, Below::List)), &Method::POST) => Some(self.create(collection.record, None)),
            (Some((collection, Below::Delete(id))), &Method::POST)
            | (Some((collection, Below::Record(id))), &Method::DELETE) => {
                id.parse().ok().map(|id| self.delete(collection.record, id))
            }
            (Some(_) | None, _) => None,
        };
        let mut ways = ways.unwrap_or_else(|| self.asked_again(found, uri));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            let address = quoted(&format!("{}{}", self.host, single(address(uri))));
            let line = |media: &str| format!("curl -i -X {} -H 'Accept: {media}' {address}", word(method));
            (ways.rest, ways.page) = (line("application/json"), line("text/html"));
        }
        Ways { title: "Three ways to ask for this".to_owned(), ..ways }
    }

    fn asked_again(&self, found: Option<(&Collection, Below<'_>)>, uri: &Uri) -> Ways {
        let address = address(uri);
        let Some((collection, below)) = found else {
            return self.looked(None, address, address);
        };
        let (record, path) = (collection.record, &collection.path);
        match below {
            Below::List | Below::New => self.looked(self.listed(record), address, address),
            Below::Record(id) => self.looked(self.one(record, id), address, address),
            // A form has no JSON; what it is about has.
            Below::Edit(id) | Below::Delete(id) => {
                self.looked(self.one(record, id), &format!("{path}/{id}"), address)
            }
            Below::Nested(id, nested) => {
                let text = self.nested(record, id, nested, &Listing::default());
                self.looked(text.or_else(|| self.listed(nested.record)), address, address)
            }
            Below::NestedRecord(_, nested, id) => self.looked(self.one(nested.record, id), address, address),
        }
    }

    pub fn listed(&self, record: TypeId) -> Option<String> {
        let (values, listing) = (Json::Null, Listing::default());
        let wanted = Wanted { record, verb: Verb::List, id: 0, values: &values, listing: Some(&listing) };
        self.document(&wanted)
    }

    pub fn one(&self, record: TypeId, id: &str) -> Option<String> {
        let values = Json::Null;
        match id.parse() {
            Ok(id) => self.document(&Wanted { record, verb: Verb::Get, id, values: &values, listing: None }),
            // What is no id can be no argument: the list has all that are.
            Err(_) => self.listed(record),
        }
    }
}

fn address(uri: &Uri) -> &str {
    uri.path_and_query().map_or_else(|| uri.path(), |address| address.as_str())
}

/// A method may have any name.
fn word(method: &Method) -> String {
    let is_plain = method.as_str().bytes().all(|letter| letter.is_ascii_alphanumeric());
    if is_plain { method.to_string() } else { quoted(method.as_str()) }
}
