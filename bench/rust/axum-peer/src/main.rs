//! The server a good Rust engineer would write in a day: axum, async-graphql with derived types, rusqlite.
//!
//!     axum-peer PORT DATABASE

mod store;

use std::sync::Arc;

use askama::Template;
use async_graphql::{Context, ID, Object, Schema, SimpleObject, Subscription};
use async_graphql_axum::{GraphQLProtocol, GraphQLRequest, GraphQLResponse, GraphQLWebSocket};
use axum::extract::{Query as Parameters, State, WebSocketUpgrade};
use axum::http::header;
use axum::response::{Html, IntoResponse, Response, Sse, sse};
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use futures_util::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use store::{Product, StatusGroup, Store};
use tokio::sync::broadcast;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(SimpleObject, Serialize, Clone)]
pub struct User {
    pub id: ID,
    pub name: String,
    pub email: String,
}

struct Query;

#[Object]
impl Query {
    async fn get_all_users(&self, context: &Context<'_>) -> async_graphql::Result<Option<Vec<Option<User>>>> {
        let users = context.data::<App>()?.store.users()?;
        Ok(Some(users.into_iter().map(Some).collect()))
    }

    async fn get_user_by_id(&self, context: &Context<'_>, id: ID) -> async_graphql::Result<Option<User>> {
        Ok(context.data::<App>()?.store.user(id.parse()?)?)
    }
}

struct Mutation;

#[Object]
impl Mutation {
    async fn create_user(
        &self,
        context: &Context<'_>,
        name: String,
        email: String,
    ) -> async_graphql::Result<Option<User>> {
        let app = context.data::<App>()?;
        let user = app.store.create_user(name, email).await?;
        let _ = app.created.send(user.clone());
        Ok(Some(user))
    }
}

struct Subscriptions;

#[Subscription]
impl Subscriptions {
    async fn user_created(
        &self,
        context: &Context<'_>,
    ) -> async_graphql::Result<impl Stream<Item = Option<User>>> {
        let created = context.data::<App>()?.created.subscribe();
        let next = |mut created: broadcast::Receiver<User>| async move {
            loop {
                match created.recv().await {
                    Ok(user) => return Some((Some(user), created)),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        };
        Ok(stream::unfold(created, next))
    }
}

type ApiSchema = Schema<Query, Mutation, Subscriptions>;

#[derive(Clone)]
struct App {
    store: Arc<Store>,
    created: broadcast::Sender<User>,
}

#[derive(Template)]
#[template(path = "products.html")]
struct Page {
    products: Vec<Product>,
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let port: u16 = arguments[1].parse().expect("a port");
    let app = App { store: Arc::new(Store::open(&arguments[2])), created: broadcast::channel(4096).0 };
    let schema = Schema::build(Query, Mutation, Subscriptions).data(app.clone()).finish();
    let router = Router::new()
        .route("/graphql", get(subscribe).post(graphql))
        .with_state(schema)
        .route("/hello", get(|| async { ([(header::CONTENT_TYPE, "text/plain")], "Hello, World!") }))
        .route("/items", get(async |State(app): State<App>| Json(app.store.items().expect("items"))))
        .route("/products", get(products))
        .route("/users", get(users_of_item))
        .route("/orders", get(orders_by_status))
        .with_state(app);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, router).await.expect("serving");
}

#[derive(Deserialize)]
struct OfItem {
    #[serde(rename = "orders.item")]
    item: String,
}

async fn users_of_item(State(app): State<App>, Parameters(of): Parameters<OfItem>) -> Json<Vec<User>> {
    Json(app.store.users_of_item(&of.item).expect("users"))
}

async fn orders_by_status(State(app): State<App>) -> Json<Vec<StatusGroup>> {
    Json(app.store.orders_by_status().expect("groups"))
}

async fn products(State(app): State<App>) -> Html<String> {
    let products = app.store.products().expect("products");
    Html(Page { products }.render().expect("the page"))
}

async fn graphql(
    State(schema): State<ApiSchema>,
    headers: header::HeaderMap,
    request: GraphQLRequest,
) -> Response {
    let wants_stream = headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/event-stream");
    if !wants_stream {
        return GraphQLResponse::from(schema.execute(request.into_inner()).await).into_response();
    }
    let events = schema
        .execute_stream(request.into_inner())
        .map(|response| sse::Event::default().event("next").json_data(response));
    Sse::new(events).into_response()
}

async fn subscribe(
    State(schema): State<ApiSchema>,
    protocol: GraphQLProtocol,
    upgrade: WebSocketUpgrade,
) -> Response {
    // The default buffers of 128 KiB a socket are the one thing worth a setting.
    upgrade
        .protocols(async_graphql::http::ALL_WEBSOCKET_PROTOCOLS)
        .write_buffer_size(4096)
        .read_buffer_size(4096)
        .on_upgrade(move |socket| GraphQLWebSocket::new(socket, schema, protocol).serve())
}
