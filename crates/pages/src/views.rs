//! Templates: the built-in ones, an application's own over them, compiled once when they are loaded.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value};
use serde::Serialize;

macro_rules! built_in {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("templates/", $name)))),*] };
}

/// Name and text of each. Those that begin with an underscore are parts of others.
pub const BUILT_IN_VIEWS: &[(&str, &str)] = built_in![
    "layout.html",
    "home.html",
    "list.html",
    "detail.html",
    "form.html",
    "delete.html",
    "plain.html",
    "error.html",
    "_code.html",
    "_control.html",
    "_empty.html",
    "_form.html",
    "_pager.html",
    "_row.html",
    "_search.html",
    "_shown.html",
    "_table.html",
    "_ways.html",
];

/// A view that replaces a built-in one can extend it all the same: `{% extends "trefoil/list.html" %}`.
const BUILT_IN_PREFIX: &str = "trefoil/";

/// What stands in for a view that could not be compiled: it fails wherever the view is reached.
const BROKEN_STAND_IN: &str = "{{ broken_view() }}";

/// All templates of an application. Whatever a view does, a value is escaped when it is printed.
pub struct ViewTemplates {
    environment: Environment<'static>,
    /// The application's own that could not be compiled, by name.
    broken: BTreeMap<String, TemplateError>,
    /// The application's own, by name.
    custom_names: Vec<String>,
    /// The same with [`HOLE`] in place of each row. None where the application lays anything out itself: its views may
    /// do with rows whatever they like.
    frame_templates: Option<Environment<'static>>,
}

/// Where a row belongs in a frame. Printed values never have it, whoever wrote them: [`escape`] sees to that.
pub const ROW_PLACEHOLDER: char = '\0';

/// What is wrong with a view, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// As the application's folder has it: `views/list.html`; a built-in one has its bare name.
    pub file: String,
    pub line: Option<usize>,
    pub reason: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.reason),
            None => write!(f, "{}: {}", self.file, self.reason),
        }
    }
}

static BUILT_IN_TEMPLATES: LazyLock<ViewTemplates> = LazyLock::new(|| ViewTemplates::with_files([]));

impl ViewTemplates {
    /// The built-in ones alone, which also show errors where the application's own are the error.
    pub fn built_in() -> &'static ViewTemplates {
        &BUILT_IN_TEMPLATES
    }

    /// The application's files, name and text, over the built-in ones. One that cannot be compiled takes nothing with
    /// it but the pages that need it.
    pub fn with_files(files: impl IntoIterator<Item = (String, String)>) -> ViewTemplates {
        let mut views = ViewTemplates {
            environment: environment(),
            broken: BTreeMap::new(),
            custom_names: Vec::new(),
            frame_templates: None,
        };
        for (name, text) in BUILT_IN_VIEWS {
            for name in [(*name).to_owned(), format!("{BUILT_IN_PREFIX}{name}")] {
                let added = views.environment.add_template_owned(name, *text);
                added.expect("a built-in template, which a test compiles");
            }
        }
        for (name, text) in files {
            views.custom_names.push(name.clone());
            if let Err(error) = views.environment.add_template_owned(name.clone(), text) {
                let stand_in = views.environment.add_template_owned(name.clone(), BROKEN_STAND_IN);
                stand_in.expect("the stand-in compiles");
                views.broken.insert(name, views.locate_error(&error));
            }
        }
        let is_own = |(name, _): &(&str, &str)| views.custom_names.iter().any(|own| own == name);
        if !BUILT_IN_VIEWS.iter().any(is_own) {
            let mut frames = views.environment.clone();
            frames.add_template_owned("_row.html", ROW_PLACEHOLDER.to_string()).expect("one letter compiles");
            views.frame_templates = Some(frames);
        }
        views
    }

    /// Whether rows and what is around them can be rendered apart.
    pub fn has_frames(&self) -> bool {
        self.frame_templates.is_some()
    }

    /// What could not be compiled.
    pub fn broken(&self) -> impl Iterator<Item = &TemplateError> {
        self.broken.values()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.environment.get_template(name).is_ok()
    }

    pub fn render(&self, name: &str, context: impl Serialize) -> Result<String, TemplateError> {
        self.render_in(&self.environment, name, Value::from(Serde(context)))
    }

    /// The same with holes for the rows, where there are frames.
    pub fn render_frame(&self, name: &str, context: Value) -> Result<String, TemplateError> {
        self.render_in(self.frame_templates.as_ref().unwrap_or(&self.environment), name, context)
    }

    fn render_in(
        &self,
        environment: &Environment<'static>,
        name: &str,
        context: Value,
    ) -> Result<String, TemplateError> {
        let template = environment.get_template(name);
        template.and_then(|template| template.render(context)).map_err(|error| self.locate_error(&error))
    }

    /// The innermost place that is known: where an included view fails, the one that includes it is well.
    fn locate_error(&self, error: &Error) -> TemplateError {
        let mut innermost = error;
        let mut next = error.source();
        while let Some(inner) = next {
            next = inner.source();
            let known = inner.downcast_ref::<Error>().filter(|inner| inner.name().is_some());
            innermost = known.unwrap_or(innermost);
        }
        let name = innermost.name().unwrap_or("a view");
        if let Some(broken) = self.broken.get(name) {
            return broken.clone();
        }
        let file = match self.custom_names.iter().any(|own| own == name) {
            true => format!("views/{name}"),
            false => name.to_owned(),
        };
        TemplateError { file, line: innermost.line(), reason: error_reason(innermost) }
    }
}

/// "undefined value: `list.nmae` is undefined".
fn error_reason(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters"));
    // Macros hand on what they made as escaped already only where escaping is on.
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(write_escaped);
    environment.add_function("broken_view", || -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, "this view could not be compiled"))
    });
    environment
}

/// As the built-in formatter, but slashes stay readable, null is nothing, `{% autoescape false %}` has no effect,
/// and U+0000, which HTML has no place for, is the sign for what cannot be shown.
fn write_escaped(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        // Decides by the environment's strictness.
        return minijinja::escape_formatter(out, state, value);
    }
    if value.is_none() {
        return Ok(());
    }
    let owned;
    let text = match value.as_str() {
        Some(text) => text,
        None => {
            owned = value.to_string();
            &owned
        }
    };
    if value.is_safe() {
        return Ok(out.write_str(text)?);
    }
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '\0']) {
        out.write_str(&rest[..at])?;
        out.write_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\0' => "\u{fffd}",
            _ => "&#39;",
        })?;
        rest = &rest[at + 1..];
    }
    Ok(out.write_str(rest)?)
}

#[cfg(test)]
mod tests {
    use crate::tests::samples;

    use super::*;

    fn over(files: &[(&str, &str)]) -> ViewTemplates {
        ViewTemplates::with_files(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())))
    }

    fn page(views: &ViewTemplates, wanted: &str) -> Result<String, TemplateError> {
        let mut pages = samples::all_pages().into_iter();
        let (_, template, context) = pages.find(|(name, ..)| *name == wanted).expect("a sample");
        views.render(template, context)
    }

    #[test]
    fn a_view_that_cannot_be_compiled_names_its_place_and_leaves_other_pages_alone() {
        let views = over(&[("list.html", "<h1>\n{% if list %}\n</h1>")]);
        let broken = page(&views, "list").expect_err("broken");
        assert_eq!((broken.file.as_str(), broken.line), ("views/list.html", Some(3)), "{broken}");
        assert!(broken.to_string().starts_with("views/list.html:3: syntax error: "), "{broken}");
        assert_eq!(views.broken().collect::<Vec<_>>(), [&broken]);
        assert!(page(&views, "detail").is_ok() && page(&views, "error").is_ok());
    }

    #[test]
    fn a_broken_part_is_blamed_on_every_page_that_needs_it() {
        let views = over(&[("_table.html", "\n{% macro table( %}"), ("layout.html", "fine")]);
        assert_eq!(page(&views, "home").as_deref(), Ok("fine"));
        let views = over(&[("_table.html", "\n{% macro table( %}")]);
        let broken = page(&views, "list").expect_err("broken");
        assert_eq!((broken.file.as_str(), broken.line), ("views/_table.html", Some(2)), "{broken}");
        assert!(page(&views, "form").is_ok());
    }

    #[test]
    fn what_a_view_asks_in_vain_for_is_named() {
        let views = over(&[("_pager.html", "{% macro pager(pager) %}\n\n{{ pager.nxet }}{% endmacro %}")]);
        let broken = page(&views, "list").expect_err("broken");
        assert_eq!(broken.to_string(), "views/_pager.html:3: undefined value: `pager.nxet` is undefined");
        assert!(page(ViewTemplates::built_in(), "list").is_ok());
    }

    #[test]
    fn a_view_may_extend_what_it_replaces() {
        let text = "{% extends \"trefoil/list.html\" %}{% block search %}<p>no search</p>{% endblock %}";
        let views = over(&[("list.html", text), ("about.html", "{% extends \"layout.html\" %}")]);
        let html = page(&views, "list").expect("renders");
        assert!(html.contains("<p>no search</p>") && html.contains("<table>") && !html.contains("<search>"));
        assert!(views.contains("about.html") && !views.contains("contact.html"));
        assert!(!views.has_frames() && !over(&[("_row.html", "")]).has_frames());
        assert!(over(&[("about.html", "")]).has_frames());
    }

    #[test]
    fn no_view_can_forget_to_escape() {
        let views = over(&[(
            "home.html",
            "{% autoescape false %}{{ '<' ~ site.name }}{% endautoescape %}{{ none }}",
        )]);
        assert_eq!(page(&views, "home").as_deref(), Ok("&lt;Sample Resource API"));
        let views = over(&[("home.html", "{{ 'a\0b' }}")]);
        assert_eq!(page(&views, "home").as_deref(), Ok("a\u{fffd}b"));
    }
}
