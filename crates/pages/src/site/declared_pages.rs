//! The views, lists and texts that an application declares, as links and template sources.

use trefoil_application::{AllowedMethods, App, EndpointReply, Manifest, TextEndpoint};
use trefoil_model::SourceFile;

use crate::labels::path_heading;
use crate::template_data::PageLink;

pub fn custom_view_names(app: &App) -> Vec<String> {
    app.view_names().map(str::to_owned).collect()
}

/// The template name and the text of a view.
pub fn template_source(view: &SourceFile) -> (String, String) {
    let name = view.name.strip_prefix("views/").unwrap_or(&view.name);
    (name.to_owned(), view.text.clone())
}

/// Navigation entries of the declared pages that respond to GET.
pub fn navigation_links(app: &App) -> impl Iterator<Item = PageLink> {
    let link = |endpoint: &TextEndpoint| match &endpoint.reply {
        EndpointReply::View(name) if app.has_view(name) && is_readable(&endpoint.methods) => {
            Some(PageLink { label: view_title(name), href: endpoint.path.clone() })
        }
        EndpointReply::View(_) | EndpointReply::Text(_) => None,
    };
    app.manifest.text_endpoints.iter().filter_map(link)
}

fn is_readable(methods: &AllowedMethods) -> bool {
    match methods {
        AllowedMethods::Any => true,
        AllowedMethods::Only(methods) => methods.iter().any(|method| method == "GET"),
    }
}

/// "Our team" for `about/our-team`.
pub fn view_title(name: &str) -> String {
    path_heading(name.rsplit('/').next().unwrap_or(name))
}

/// Links to plain lists, and to text endpoints that respond to GET.
pub fn other_links(manifest: &Manifest) -> Vec<PageLink> {
    let lists = manifest.plain_lists.iter().map(|list| &list.path);
    let texts = manifest
        .text_endpoints
        .iter()
        .filter(|text| is_readable(&text.methods) && matches!(text.reply, EndpointReply::Text(_)));
    let paths = lists.chain(texts.map(|text| &text.path));
    paths.map(|path| PageLink { label: path.clone(), href: path.clone() }).collect()
}
