//! What is wrong with the views of an application, found before anybody opens a page.

use crate::custom;
use crate::views::{BUILT_IN, Broken, Views};
use trefoil_application::{App, Reply};
use trefoil_model::SourceFile;
use trefoil_model::diagnostic::{Diagnostic, Severity};
use trefoil_model::naming::names;

const CODE: &str = "VIEW";

/// A view that does not compile is a mistake; one that nobody shows, or that is not there, a doubt.
pub fn audit(app: &App) -> Vec<Diagnostic> {
    let views = Views::over(app.views.iter().map(custom::template));
    let broken = views.broken().map(|broken| mistake(app, broken));
    let idle = app.views.iter().filter_map(|view| idle(app, view));
    broken.chain(idle).chain(missing(app)).collect()
}

fn mistake(app: &App, broken: &Broken) -> Diagnostic {
    let found = Diagnostic::in_file(broken.file.clone(), CODE, broken.reason.clone());
    let source = app.views.iter().find(|view| view.name == broken.file);
    match source.zip(broken.line) {
        Some((source, line)) => found.at(&source.name, &source.text, span(&source.text, line)),
        None => found,
    }
}

/// A line without the space around it; lines count from 1.
fn span(text: &str, line: usize) -> std::ops::Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let line = text[start..].lines().next().unwrap_or_default();
    let indent = line.len() - line.trim_start().len();
    start + indent..start + indent + line.trim().len()
}

/// It replaces nothing, no endpoint names it and no other view takes it in.
fn idle(app: &App, view: &SourceFile) -> Option<Diagnostic> {
    let (name, _) = custom::template(view);
    let known = || BUILT_IN.iter().map(|(name, _)| *name);
    let stem = name.strip_suffix(".html")?;
    let is_shown =
        app.manifest.texts.iter().any(|text| matches!(&text.reply, Reply::View(shown) if shown == stem));
    let quoted = [format!("\"{name}\""), format!("'{name}'")];
    let is_part = app.views.iter().any(|other| quoted.iter().any(|quoted| other.text.contains(quoted)));
    if is_shown || is_part || known().any(|known| known == name) {
        return None;
    }
    let message = format!("`{name}` replaces no built-in view, and nothing shows it");
    let mut doubt =
        Diagnostic { file: view.name.clone(), ..Diagnostic::new(Severity::Warning, CODE, message) };
    doubt.help(match names::nearest(&name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("a page of its own is declared by [[text]] with view = \"{stem}\""),
    });
    Some(doubt)
}

/// Endpoints whose view is not there: each request for them fails.
fn missing(app: &App) -> Vec<Diagnostic> {
    let lost = app.manifest.texts.iter().filter_map(|text| match &text.reply {
        Reply::View(name) if !app.has_view(name) => {
            let message = format!("`{}` shows the view `{name}`, and there is no such view", text.path);
            let found = Diagnostic::new(Severity::Warning, CODE, message);
            let mut doubt = Diagnostic { file: "trefoil.toml".to_owned(), ..found };
            doubt.help(format!("write views/{name}.html, or give the endpoint a `text`"));
            Some(doubt)
        }
        Reply::View(_) | Reply::Text(_) => None,
    });
    lost.collect()
}
