//! Compiled templates: the built-in ones, and an application's own over them.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, LazyLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value};
use serde::Serialize;

use trefoil_model::naming::names::name_suggestion;

use crate::site::static_folder::StaticFolder;

macro_rules! built_in {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("templates/", $name)))),*] };
}

/// Name and text of each built-in template. Names with a leading underscore are included by others.
pub const BUILT_IN_VIEWS: &[(&str, &str)] = built_in![
    "layout.html",
    "home.html",
    "list.html",
    "detail.html",
    "form.html",
    "delete.html",
    "summary.html",
    "plain.html",
    "error.html",
    "sign.html",
    "account.html",
    "audit.html",
    "_chart.html",
    "_code.html",
    "_control.html",
    "_empty.html",
    "_filters.html",
    "_form.html",
    "_pager.html",
    "_row.html",
    "_search.html",
    "_shown.html",
    "_table.html",
    "_ways.html",
];

/// Lets a view that replaces a built-in one extend it: `{% extends "trefoil/list.html" %}`.
const BUILT_IN_PREFIX: &str = "trefoil/";

/// Replaces a view that does not compile: fails wherever the view is used.
const BROKEN_STAND_IN: &str = "{{ broken_view() }}";

/// All templates of an application. Every printed value is escaped, whatever a view does.
pub struct ViewTemplates {
    environment: Environment<'static>,
    /// Views of the application that do not compile, by name.
    broken: BTreeMap<String, TemplateError>,
    /// Names of the application's views.
    custom_names: Vec<String>,
    /// The same with [`ROW_PLACEHOLDER`] in place of each row. `None` if the application replaces a built-in view, which
    /// may then use rows in any way.
    frame_templates: Option<Environment<'static>>,
}

/// Marks the place of a row in a frame. Printed values never contain it: `write_escaped` replaces it.
pub const ROW_PLACEHOLDER: char = '\0';

/// An error in a view, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// Path in the application folder, such as `views/list.html`, or the name of a built-in view.
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

static BUILT_IN_TEMPLATES: LazyLock<ViewTemplates> =
    LazyLock::new(|| ViewTemplates::with_files([], Arc::default()));

impl ViewTemplates {
    /// The built-in templates alone. They also show the errors that the application's own views cause.
    pub fn built_in() -> &'static ViewTemplates {
        &BUILT_IN_TEMPLATES
    }

    /// The application's files, name and text, over the built-in ones. A file that does not compile breaks only the
    /// pages that use it.
    pub fn with_files(
        files: impl IntoIterator<Item = (String, String)>,
        static_folder: Arc<StaticFolder>,
    ) -> ViewTemplates {
        let mut views = ViewTemplates {
            environment: environment(static_folder),
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
        let is_replaced = |(name, _): &(&str, &str)| views.custom_names.iter().any(|custom| custom == name);
        if !BUILT_IN_VIEWS.iter().any(is_replaced) {
            let mut frames = views.environment.clone();
            frames.add_template_owned("_row.html", ROW_PLACEHOLDER.to_string()).expect("one letter compiles");
            views.frame_templates = Some(frames);
        }
        views
    }

    /// True if rows and the frame around them can be rendered separately.
    pub fn has_frames(&self) -> bool {
        self.frame_templates.is_some()
    }

    /// The views that do not compile.
    pub fn broken(&self) -> impl Iterator<Item = &TemplateError> {
        self.broken.values()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.environment.get_template(name).is_ok()
    }

    pub fn render(&self, name: &str, context: impl Serialize) -> Result<String, TemplateError> {
        self.render_in(&self.environment, name, Value::from(Serde(context)))
    }

    /// Renders with placeholders for the rows, if there are frame templates.
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

    /// The innermost known place: if an included view fails, the including one is not at fault.
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
        let file = match self.custom_names.iter().any(|custom| custom == name) {
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

fn environment(static_folder: Arc<StaticFolder>) -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters"));
    // Macros mark their output as escaped only where escaping is on.
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(write_escaped);
    environment.add_function("broken_view", || -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, "this view could not be compiled"))
    });
    environment.add_function("static", move |name: &str| -> Result<String, Error> {
        let address = static_folder.address(name).map(str::to_owned);
        address.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, missing_file(&static_folder, name)))
    });
    environment
}

/// "there is no file `static/lgoo.svg`; did you mean `logo.svg`?"
pub fn missing_file(static_folder: &StaticFolder, name: &str) -> String {
    format!("there is no file `static/{name}`{}", name_suggestion(name, static_folder.names()))
}

/// Like the built-in formatter, except that slashes are not escaped, null prints nothing, `{% autoescape false %}` has no
/// effect, and U+0000, which HTML does not allow, becomes the replacement character.
fn write_escaped(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        // Fails if the environment is strict.
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
    while let Some(position) = rest.find(['&', '<', '>', '"', '\'', '\0']) {
        out.write_str(&rest[..position])?;
        out.write_str(match rest.as_bytes()[position] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\0' => "\u{fffd}",
            _ => "&#39;",
        })?;
        rest = &rest[position + 1..];
    }
    Ok(out.write_str(rest)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::tests::samples;

    fn views_with(files: &[(&str, &str)]) -> ViewTemplates {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        ViewTemplates::with_files(files, Arc::default())
    }

    fn page(views: &ViewTemplates, sample: &str) -> Result<String, TemplateError> {
        let mut pages = samples::all_pages().into_iter();
        let (_, template, context) = pages.find(|(name, ..)| *name == sample).expect("a sample");
        views.render(template, context)
    }

    #[test]
    fn compile_error_names_place_and_spares_other_pages() {
        let views = views_with(&[("list.html", "<h1>\n{% if list %}\n</h1>")]);
        let broken = page(&views, "list").expect_err("broken");
        assert_eq!((broken.file.as_str(), broken.line), ("views/list.html", Some(3)), "{broken}");
        assert!(broken.to_string().starts_with("views/list.html:3: syntax error: "), "{broken}");
        assert_eq!(views.broken().collect::<Vec<_>>(), [&broken]);
        assert!(page(&views, "detail").is_ok() && page(&views, "error").is_ok());
    }

    #[test]
    fn broken_include_breaks_pages_that_use_it() {
        let views = views_with(&[("_table.html", "\n{% macro table( %}"), ("layout.html", "fine")]);
        assert_eq!(page(&views, "home").as_deref(), Ok("fine"));
        let views = views_with(&[("_table.html", "\n{% macro table( %}")]);
        let broken = page(&views, "list").expect_err("broken");
        assert_eq!((broken.file.as_str(), broken.line), ("views/_table.html", Some(2)), "{broken}");
        assert!(page(&views, "form").is_ok());
    }

    #[test]
    fn undefined_variable_is_named() {
        let views =
            views_with(&[("_pager.html", "{% macro pager(pager) %}\n\n{{ pager.nxet }}{% endmacro %}")]);
        let broken = page(&views, "list").expect_err("broken");
        assert_eq!(broken.to_string(), "views/_pager.html:3: undefined value: `pager.nxet` is undefined");
        assert!(page(ViewTemplates::built_in(), "list").is_ok());
    }

    #[test]
    fn view_can_extend_the_one_it_replaces() {
        let text = "{% extends \"trefoil/list.html\" %}{% block search %}<p>no search</p>{% endblock %}";
        let views = views_with(&[("list.html", text), ("about.html", "{% extends \"layout.html\" %}")]);
        let html = page(&views, "list").expect("renders");
        assert!(html.contains("<p>no search</p>") && html.contains("<table>") && !html.contains("<search>"));
        assert!(views.contains("about.html") && !views.contains("contact.html"));
        assert!(!views.has_frames() && !views_with(&[("_row.html", "")]).has_frames());
        assert!(views_with(&[("about.html", "")]).has_frames());
    }

    #[test]
    fn values_are_always_escaped() {
        let views = views_with(&[(
            "home.html",
            "{% autoescape false %}{{ '<' ~ site.name }}{% endautoescape %}{{ none }}",
        )]);
        assert_eq!(page(&views, "home").as_deref(), Ok("&lt;Sample Resource API"));
        let views = views_with(&[("home.html", "{{ 'a\0b' }}")]);
        assert_eq!(page(&views, "home").as_deref(), Ok("a\u{fffd}b"));
    }
}
