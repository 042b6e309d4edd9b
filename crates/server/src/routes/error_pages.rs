//! Errors as pages, with the closest known address for an unknown one.

use trefoil_http::errors::problem::Problem;
use trefoil_http::errors::render::ErrorContext;
use trefoil_model::naming::names;
use trefoil_resources::ServedResources;

use super::resource_router::{MatchedResource, ResourceState};

/// Paths of the server itself that are suggested for misspelled ones.
const RESERVED: [&str; 3] = ["/graphql", "/docs", "/openapi.json"];

impl ResourceState {
    pub(super) fn error_page(&self, problem: &Problem, context: &ErrorContext, request_id: &str) -> String {
        let path = context.uri.path();
        let found = self.match_path(path);
        let resources = &*self.catalog.for_actor(|| context.client().actor());
        let pages = self.pages.of_actor(resources);
        let nearest = if found.is_none() { self.nearest_address(resources, path) } else { None };
        let collection = match found {
            Some(MatchedResource::Records(collection, _)) => {
                Some(collection).filter(|collection| resources.is_offered(&collection.path))
            }
            Some(MatchedResource::Text(_) | MatchedResource::List(_) | MatchedResource::ListValue(..))
            | None => None,
        };
        let examples = pages.error_examples(resources, problem, context);
        // With two slashes at its start the address would lead to another site.
        let address = context.uri.path_and_query().filter(|address| !address.as_str().starts_with("//"));
        let retry_address = address.filter(|_| context.method.is_safe()).map(ToString::to_string);
        pages.error_page(problem, collection, nearest.as_deref(), retry_address, examples, request_id)
    }

    /// A known address similar to an unknown path.
    fn nearest_address(&self, resources: &ServedResources, path: &str) -> Option<String> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let plain = format!("/{}", segments.join("/")).to_lowercase();
        let is_known = |path: &String| match self.match_path(path) {
            Some(MatchedResource::Records(collection, _)) => resources.is_offered(&collection.path),
            Some(MatchedResource::List(list) | MatchedResource::ListValue(list, _)) => {
                resources.is_offered(&list.path)
            }
            Some(MatchedResource::Text(_)) => resources.is_offered(path),
            None => false,
        };
        let known = self.addresses.iter().map(|(path, _)| path.as_str());
        let known = known.filter(|path| resources.is_offered(path));
        let nearest =
            |path: &str| names::nearest_name(path, known.clone().chain(RESERVED)).map(str::to_owned);
        let below = || {
            let (first, rest) = segments.split_first().filter(|(_, rest)| !rest.is_empty())?;
            Some(format!("{}/{}", nearest(&format!("/{first}"))?, rest.join("/"))).filter(is_known)
        };
        Some(plain.clone()).filter(is_known).or_else(|| nearest(&plain)).or_else(below)
    }
}
