//! What is wrong with the views of an application, found before anybody opens a page.

use trefoil_application::{App, EndpointReply};
use trefoil_model::SourceFile;
use trefoil_model::diagnostic::{Diagnostic, Severity};
use trefoil_model::naming::names;

use crate::custom;
use crate::views::{BUILT_IN_VIEWS, TemplateError, ViewTemplates};

const CODE: &str = "VIEW";

/// A view that does not compile is a mistake; one that nobody shows, or that is not there, a doubt.
pub fn check_views(app: &App) -> Vec<Diagnostic> {
    let views = ViewTemplates::with_files(app.views.iter().map(custom::template_source));
    let broken = views.broken().map(|broken| template_diagnostic(app, broken));
    let idle = app.views.iter().filter_map(|view| unused_view(app, view));
    broken.chain(idle).chain(missing_views(app)).collect()
}

fn template_diagnostic(app: &App, broken: &TemplateError) -> Diagnostic {
    let found = Diagnostic::in_file(broken.file.clone(), CODE, broken.reason.clone());
    let source = app.views.iter().find(|view| view.name == broken.file);
    match source.zip(broken.line) {
        Some((source, line)) => found.with_span(&source.name, &source.text, line_span(&source.text, line)),
        None => found,
    }
}

/// A line without the space around it; lines count from 1.
fn line_span(text: &str, line: usize) -> std::ops::Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let line = text[start..].lines().next().unwrap_or_default();
    let indent = line.len() - line.trim_start().len();
    start + indent..start + indent + line.trim().len()
}

/// It replaces nothing, no endpoint names it and no other view takes it in.
fn unused_view(app: &App, view: &SourceFile) -> Option<Diagnostic> {
    let (name, _) = custom::template_source(view);
    let known = || BUILT_IN_VIEWS.iter().map(|(name, _)| *name);
    let stem = name.strip_suffix(".html")?;
    let is_shown = app
        .manifest
        .text_endpoints
        .iter()
        .any(|text| matches!(&text.reply, EndpointReply::View(shown) if shown == stem));
    let quoted = [format!("\"{name}\""), format!("'{name}'")];
    let is_part = app.views.iter().any(|other| quoted.iter().any(|quoted| other.text.contains(quoted)));
    if is_shown || is_part || known().any(|known| known == name) {
        return None;
    }
    let message = format!("`{name}` replaces no built-in view, and nothing shows it");
    let mut doubt =
        Diagnostic { file: view.name.clone(), ..Diagnostic::new(Severity::Warning, CODE, message) };
    doubt.help(match names::nearest_name(&name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("a page of its own is declared by [[text]] with view = \"{stem}\""),
    });
    Some(doubt)
}

/// Endpoints whose view is not there: each request for them fails.
fn missing_views(app: &App) -> Vec<Diagnostic> {
    let lost = app.manifest.text_endpoints.iter().filter_map(|text| match &text.reply {
        EndpointReply::View(name) if !app.has_view(name) => {
            let message = format!("`{}` shows the view `{name}`, and there is no such view", text.path);
            let found = Diagnostic::new(Severity::Warning, CODE, message);
            let mut doubt = Diagnostic { file: "trefoil.toml".to_owned(), ..found };
            doubt.help(format!("write views/{name}.html, or give the endpoint a `text`"));
            Some(doubt)
        }
        EndpointReply::View(_) | EndpointReply::Text(_) => None,
    });
    lost.collect()
}
