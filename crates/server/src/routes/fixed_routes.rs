//! The routes that every application has: the start page, the OpenAPI document, batches and static files.

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;

use trefoil_http::client_info::ClientInfo;
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_http::routing::RouteTable;
use trefoil_resources::body_text;
use trefoil_rest::batch::BATCH_PATH;

use super::home_text;
use super::resource_router::ResourceRouter;

impl ResourceRouter {
    /// A fallback instead of routes for the resources, because those can change while the server runs.
    pub fn fixed_routes(&self) -> RouteTable {
        RouteTable::default()
            .get("/", serve_home)
            .get("/openapi.json", serve_openapi)
            .get("/_/static/{*name}", serve_static)
            .post(BATCH_PATH, serve_batch)
            .fallback(serve_fallback)
            .with_state(self.clone())
            .merge(trefoil_rest::docs_routes())
            .merge(trefoil_pages::asset_routes())
    }
}

/// The start page: HTML for browsers, text for others.
async fn serve_home(State(router): State<ResourceRouter>, request: Request) -> Response {
    let client = ClientInfo::of(request.extensions());
    let (head, body) = request.into_parts();
    body_text::drain_body(body).await;
    let _lease = router.gate().enter().await;
    let state = router.current();
    let resources = &*state.catalog.for_actor(|| client.actor());
    if AcceptHeader::from_headers(&head.headers).prefers_html() {
        return state
            .pages
            .of_actor(resources)
            .home_page(resources, &head)
            .await
            .unwrap_or_else(IntoResponse::into_response);
    }
    let addresses = state.addresses.iter().filter(|(path, _)| resources.is_offered(path));
    let shows_metrics = client.is_local(&head.headers) || resources.engine.check_metrics().is_ok();
    home_text::home_text(&head.headers, state.pages.name(), shows_metrics, addresses)
}

/// A file of the application's folder `static/`.
async fn serve_static(
    State(router): State<ResourceRouter>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let _lease = router.gate().enter().await;
    let found = router.current().pages.static_file(&name, &headers);
    found.unwrap_or_else(IntoResponse::into_response)
}

async fn serve_openapi(State(router): State<ResourceRouter>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let client = ClientInfo::of(&head.extensions);
    let _lease = router.gate().enter().await;
    let state = router.current();
    let resources = state.catalog.for_actor(|| client.actor());
    state.rest.openapi_response(&resources, state.pages.custom_views(), &head.headers)
}

async fn serve_batch(State(router): State<ResourceRouter>, mut request: Request) -> Response {
    let client: ClientInfo = request.extensions_mut().remove().unwrap_or_default();
    let (head, body) = request.into_parts();
    let body = match body_text::read_body(body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let _lease = router.gate().enter().await;
    let state = router.current();
    Box::pin(state.handle_batch(&head, &body, &client)).await
}

async fn serve_fallback(State(router): State<ResourceRouter>, mut request: Request) -> Response {
    let client = request.extensions_mut().remove().unwrap_or_default();
    router.respond(request, client).await
}
