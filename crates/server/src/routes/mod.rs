//! Routes requests for the application to REST and pages.

mod batch_routes;
mod error_pages;
mod fixed_routes;
mod home_text;
mod record_routes;
mod resource_router;
mod returned_forms;

pub use self::resource_router::{ResourceRouter, ResourceState};
