//! The start page: a map of the application.

use axum::response::Response;
use http::request::Parts;

use super::Served;
use crate::faces::problem::Problem;
use crate::faces::resources::Site;

impl Served {
    pub async fn home(&self, _site: &Site, _head: &Parts) -> Result<Response, Problem> {
        Err(crate::faces::resources::negotiate::RECORD.no_page())
    }
}
