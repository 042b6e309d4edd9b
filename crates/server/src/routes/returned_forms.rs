//! Forms that were sent after a session had ended: what was typed comes back.

use axum::body::Bytes;
use axum::response::Response;
use http::request::Parts;
use http::{Method, StatusCode};

use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_http::monitoring::refusals::RequestRefusals;
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_resources::{ServedResources, body_text};

use super::resource_router::ResourceState;

impl ResourceState {
    /// A form that nobody is signed in for, as far as it may be needed again.
    pub(crate) fn form_to_return(
        &self,
        head: &Parts,
        client: &ClientInfo,
        body: &Result<Bytes, Problem>,
    ) -> Option<FormPairs> {
        if head.method != Method::POST || client.identity.is_some() || self.accounts.is_none() {
            return None;
        }
        let is_page = AcceptHeader::from_headers(&head.headers).prefers_html();
        let media_type = body_text::media_type(&head.headers);
        let bytes = body.as_ref().ok().filter(|_| is_page)?;
        match media_type.as_str() {
            "multipart/form-data" => {
                form_pairs::parse_multipart(body_text::content_type(&head.headers), bytes).ok()
            }
            "application/x-www-form-urlencoded" => {
                form_pairs::parse_urlencoded(std::str::from_utf8(bytes).ok()?, "the form").ok()
            }
            _ => None,
        }
    }

    /// What was typed into a form comes back if its session had ended. Then a record may be out of sight, too.
    pub(crate) fn return_form(
        &self,
        resources: &ServedResources,
        head: &Parts,
        client: &ClientInfo,
        (form, response): (FormPairs, Response),
    ) -> Response {
        let status = response.status();
        let is_lost =
            status == StatusCode::UNAUTHORIZED || client.has_stale_cookie && status == StatusCode::NOT_FOUND;
        if !is_lost {
            return response;
        }
        let pages = self.pages.of_actor(resources);
        match pages.unsent_form_page(&head.headers, head.uri.path(), &form) {
            Ok(mut page) => {
                if let Some(problem) = response.extensions().get::<Problem>() {
                    RequestRefusals::of_problem(problem).attach(&mut page);
                }
                page
            }
            Err(_) => response,
        }
    }
}
