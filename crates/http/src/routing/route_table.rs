//! Fixed paths with their handlers, and their list: nothing is answered that is not in it.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{get, options, post};

/// A path that the server answers, and its methods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServedRoute {
    /// `/posts/{id}`.
    pub path: String,
    /// As in the header `Allow`: `GET, HEAD`.
    pub methods: String,
}

impl ServedRoute {
    pub fn new(path: impl Into<String>, methods: impl Into<String>) -> ServedRoute {
        ServedRoute { path: path.into(), methods: methods.into() }
    }
}

/// The router is made of it once, at the start: a request does not pay for the list.
pub struct RouteTable<S = ()> {
    router: Router<S>,
    routes: Vec<ServedRoute>,
}

impl<S: Clone + Send + Sync + 'static> Default for RouteTable<S> {
    fn default() -> RouteTable<S> {
        RouteTable { router: Router::new(), routes: Vec::new() }
    }
}

impl<S: Clone + Send + Sync + 'static> RouteTable<S> {
    pub fn get<H: Handler<T, S>, T: 'static>(mut self, path: &'static str, handler: H) -> RouteTable<S> {
        self.router = self.router.route(path, get(handler));
        self.listed(path, "GET, HEAD")
    }

    pub fn post<H: Handler<T, S>, T: 'static>(mut self, path: &'static str, handler: H) -> RouteTable<S> {
        self.router = self.router.route(path, post(handler));
        self.listed(path, "POST")
    }

    pub fn options<H: Handler<T, S>, T: 'static>(mut self, path: &'static str, handler: H) -> RouteTable<S> {
        self.router = self.router.route(path, options(handler));
        self.listed(path, "OPTIONS")
    }

    /// Answers what no route does. What it answers must be listed by whoever gives it.
    pub fn fallback<H: Handler<T, S>, T: 'static>(mut self, handler: H) -> RouteTable<S> {
        self.router = self.router.fallback(handler);
        self
    }

    pub fn merge(mut self, other: RouteTable<S>) -> RouteTable<S> {
        self.router = self.router.merge(other.router);
        self.routes.extend(other.routes);
        self
    }

    pub fn with_state(self, state: S) -> RouteTable {
        RouteTable { router: self.router.with_state(state), routes: self.routes }
    }

    fn listed(mut self, path: &'static str, methods: &'static str) -> RouteTable<S> {
        match self.routes.iter_mut().find(|route| route.path == path) {
            Some(route) => route.methods = format!("{}, {methods}", route.methods),
            None => self.routes.push(ServedRoute::new(path, methods)),
        }
        self
    }

    /// The router, and what it answers apart from its fallback.
    pub fn into_parts(self) -> (Router<S>, Vec<ServedRoute>) {
        (self.router, self.routes)
    }
}
