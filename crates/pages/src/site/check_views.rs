//! Diagnostics about the views of an application: broken, unused and missing ones.

use std::ops::Range;
use std::sync::Arc;

use trefoil_application::{App, EndpointReply};
use trefoil_model::SourceFile;
use trefoil_model::diagnostic::{Diagnostic, Severity};
use trefoil_model::naming::names;

use crate::site::declared_pages;
use crate::site::static_folder::StaticFolder;
use crate::templates::{BUILT_IN_VIEWS, TemplateError, ViewTemplates, missing_file};

const CODE: &str = "VIEW";

/// All diagnostics. A view that does not compile is an error; an unused or missing one is a warning.
pub fn check_views(app: &App) -> Vec<Diagnostic> {
    let static_folder = Arc::new(StaticFolder::new(app));
    let sources = app.views.iter().map(declared_pages::template_source);
    let views = ViewTemplates::with_files(sources, static_folder.clone());
    let broken = views.broken().map(|broken| template_diagnostic(app, broken));
    let unused = app.views.iter().filter_map(|view| unused_view(app, view));
    let files = app.views.iter().flat_map(|view| missing_files(&static_folder, view));
    broken.chain(unused).chain(files).chain(missing_views(app)).collect()
}

/// A mistake for each `static("name")` in a view that names no file. Names that are computed are checked when they are used.
fn missing_files(static_folder: &StaticFolder, view: &SourceFile) -> Vec<Diagnostic> {
    let mut mistakes = Vec::new();
    for (position, call) in view.text.match_indices("static(") {
        let start = position + call.len();
        let rest = &view.text[start..];
        let Some(quote) = rest.chars().next().filter(|quote| ['"', '\''].contains(quote)) else { continue };
        let Some(name) = rest[1..].split(quote).next().filter(|name| name.len() + 1 < rest.len()) else {
            continue;
        };
        if static_folder.address(name).is_none() {
            let mistake = Diagnostic::in_file(view.name.clone(), CODE, missing_file(static_folder, name));
            let span = start..start + name.len() + 2;
            mistakes.push(mistake.with_span(&view.name, &view.text, span));
        }
    }
    mistakes
}

fn template_diagnostic(app: &App, broken: &TemplateError) -> Diagnostic {
    let diagnostic = Diagnostic::in_file(broken.file.clone(), CODE, broken.reason.clone());
    let source = app.views.iter().find(|view| view.name == broken.file);
    match source.zip(broken.line) {
        Some((source, line)) => {
            diagnostic.with_span(&source.name, &source.text, line_span(&source.text, line))
        }
        None => diagnostic,
    }
}

/// The span of a line without surrounding white space; lines count from 1.
fn line_span(text: &str, line: usize) -> Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let line = text[start..].lines().next().unwrap_or_default();
    let indent = line.len() - line.trim_start().len();
    start + indent..start + indent + line.trim().len()
}

/// A warning if the view replaces no built-in one, no endpoint names it and no other view includes it.
fn unused_view(app: &App, view: &SourceFile) -> Option<Diagnostic> {
    let (name, _) = declared_pages::template_source(view);
    let known = || BUILT_IN_VIEWS.iter().map(|(name, _)| *name);
    let stem = name.strip_suffix(".html")?;
    let is_shown = app
        .manifest
        .text_endpoints
        .iter()
        .any(|endpoint| matches!(&endpoint.reply, EndpointReply::View(shown) if shown == stem));
    let quoted = [format!("\"{name}\""), format!("'{name}'")];
    let is_included = app.views.iter().any(|other| quoted.iter().any(|quoted| other.text.contains(quoted)));
    if is_shown || is_included || known().any(|known| known == name) {
        return None;
    }
    let message = format!(
        "the view `{name}` is not used: it does not override a built-in view, and no endpoint shows it"
    );
    let mut diagnostic =
        Diagnostic { file: view.name.clone(), ..Diagnostic::new(Severity::Warning, CODE, message) };
    diagnostic.help(match names::nearest_name(&name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("to serve it as a page, add [[text]] with view = \"{stem}\""),
    });
    Some(diagnostic)
}

/// Warnings about endpoints whose view does not exist: each request to them fails.
fn missing_views(app: &App) -> Vec<Diagnostic> {
    let missing = app.manifest.text_endpoints.iter().filter_map(|endpoint| match &endpoint.reply {
        EndpointReply::View(name) if !app.has_view(name) => {
            let message = format!("`{}` shows the view `{name}`, which does not exist", endpoint.path);
            let diagnostic = Diagnostic::new(Severity::Warning, CODE, message);
            let mut diagnostic = Diagnostic { file: "trefoil.toml".to_owned(), ..diagnostic };
            diagnostic.help(format!("create views/{name}.html, or give the endpoint a `text`"));
            Some(diagnostic)
        }
        EndpointReply::View(_) | EndpointReply::Text(_) => None,
    });
    missing.collect()
}
