//! The text endpoints and plain lists of `trefoil.toml`, and clashes between their paths.

use std::ops::Range;

use toml::de::DeTable;

use trefoil_model::sdl::resource_paths::{RESERVED_PATHS, is_reserved, is_reserved_below};

use crate::endpoint_path;
use crate::manifest_reader::ManifestReader;
use crate::manifest_rule::{ManifestRule, read_rule};

/// `[[text]]`: a path that responds with a fixed text or a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEndpoint {
    /// As requests spell it.
    pub path: String,
    pub methods: AllowedMethods,
    pub reply: EndpointReply,
    /// A line printed to standard output at each request.
    pub print: Option<String>,
    /// The `Cache-Control` of its responses.
    pub cache: Option<String>,
    /// Who may see it; everybody without it.
    pub allow: Option<ManifestRule>,
    pub(crate) span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedMethods {
    /// Any method, also unknown ones.
    Any,
    /// These; GET includes HEAD, and OPTIONS lists them.
    Only(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointReply {
    Text(String),
    /// The view of this name.
    View(String),
}

/// `[[list]]`: an ordered list of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainList {
    /// As requests spell it; each value is one segment below.
    pub path: String,
    /// Whether browsers get a page with a form.
    pub page: bool,
    /// The `Cache-Control` of its responses.
    pub cache: Option<String>,
    /// Who may read it, in an application with rules.
    pub read: Option<ManifestRule>,
    pub write: Option<ManifestRule>,
    pub(crate) span: Range<usize>,
}

impl PlainList {
    /// The path without its slash: the name of the list in the store and in `seed/`.
    pub fn name(&self) -> &str {
        &self.path[1..]
    }
}

impl AllowedMethods {
    fn overlap(&self, other: &AllowedMethods) -> bool {
        match (self, other) {
            (AllowedMethods::Any, _) | (_, AllowedMethods::Any) => true,
            (AllowedMethods::Only(some), AllowedMethods::Only(others)) => {
                some.iter().any(|method| others.contains(method))
            }
        }
    }
}

pub(crate) fn read_text_endpoints(reader: &mut ManifestReader, root: &DeTable) -> Vec<TextEndpoint> {
    let tables = reader.tables(root, "text");
    tables.into_iter().filter_map(|(table, span)| read_text_endpoint(reader, table, span)).collect()
}

fn read_text_endpoint(
    reader: &mut ManifestReader,
    table: &DeTable,
    span: Range<usize>,
) -> Option<TextEndpoint> {
    let known = ["path", "method", "methods", "text", "direct", "view", "print", "cache", "allow"];
    reader.refuse_unknown_keys(table, "[[text]]", &known);
    let methods = read_methods(reader, table);
    let print = read_line(reader, table, "print");
    let cache = read_cache_control(reader, table);
    let allow = read_rule(reader, table, "allow");
    let (path, span) = read_path(reader, table, span, "[[text]]")?;
    if is_reserved(&path) {
        report_reserved_path(reader, &span, &path);
    }
    let reply = read_reply(reader, table, &path, &span);
    Some(TextEndpoint { path, methods, reply, print, cache, allow, span })
}

pub(crate) fn read_plain_lists(reader: &mut ManifestReader, root: &DeTable) -> Vec<PlainList> {
    let tables = reader.tables(root, "list");
    tables.into_iter().filter_map(|(table, span)| read_plain_list(reader, table, span)).collect()
}

fn read_plain_list(reader: &mut ManifestReader, table: &DeTable, span: Range<usize>) -> Option<PlainList> {
    reader.refuse_unknown_keys(table, "[[list]]", &["path", "page", "cache", "read", "write"]);
    let page = reader.boolean(table, "page").unwrap_or(false);
    let cache = read_cache_control(reader, table);
    let (read, write) = (read_rule(reader, table, "read"), read_rule(reader, table, "write"));
    let (path, span) = read_path(reader, table, span, "[[list]]")?;
    if path.ends_with('/') && path != "/" {
        reader.report(&span, "the path of a list must not end with /");
    }
    if is_reserved_below(&path) {
        report_reserved_path(reader, &span, &path);
    }
    Some(PlainList { path, page, cache, read, write, span })
}

fn report_reserved_path(reader: &mut ManifestReader, span: &Range<usize>, path: &str) {
    let own = RESERVED_PATHS.join(", ");
    reader.report(span, format!("`{path}` is reserved for the server")).help =
        Some(format!("choose a path other than {own}"));
}

/// The endpoint's path and its position.
fn read_path(
    reader: &mut ManifestReader,
    table: &DeTable,
    span: Range<usize>,
    place: &str,
) -> Option<(String, Range<usize>)> {
    if !table.contains_key("path") {
        reader.report(&span, format!("{place} has no `path`")).help = Some("add path = \"/…\"".into());
    }
    let written = reader.string(table, "path")?;
    match endpoint_path::normalise_path(written.as_ref()) {
        Ok(path) => Some((path, written.span())),
        Err(reason) => {
            reader.report(&written.span(), format!("`{}` is not a valid path: {reason}", written.as_ref()));
            None
        }
    }
}

/// `method = "PUT"`, `methods = ["GET", "POST"]`, `method = "*"`; GET by default.
fn read_methods(reader: &mut ManifestReader, table: &DeTable) -> AllowedMethods {
    if let (Some(_), Some(both)) = (table.get("method"), table.get("methods")) {
        reader.report(&both.span(), "`method` and `methods` cannot be used together").help =
            Some("remove one of them".into());
    }
    let named: Vec<_> =
        ["method", "methods"].into_iter().filter_map(|key| Some((key, table.get(key)?))).collect();
    let mut methods = Vec::new();
    for (key, value) in named {
        let items = match value.as_ref().as_array() {
            Some(items) => items.iter().collect(),
            None => vec![value],
        };
        for item in items {
            match item.as_ref().as_str() {
                Some(method) => methods.extend(read_method(reader, &item.span(), method)),
                None => {
                    reader.report_wrong_type::<()>(item, key, "a quoted string");
                }
            }
        }
    }
    if methods.iter().any(|method| method == "*") {
        return AllowedMethods::Any;
    }
    AllowedMethods::Only(if methods.is_empty() { vec!["GET".into()] } else { methods })
}

/// Methods are case-sensitive, so `get` would never match a request.
fn read_method(reader: &mut ManifestReader, span: &Range<usize>, method: &str) -> Option<String> {
    let is_token_char = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if method.is_empty() || !method.chars().all(is_token_char) || (method.contains('*') && method != "*") {
        reader.report(span, format!("{method:?} is not an HTTP method")).help =
            Some("use GET, POST, … or \"*\"".into());
        return None;
    }
    let upper = method.to_ascii_uppercase();
    if upper != method {
        let diagnostic = reader.report(span, format!("HTTP methods must be in upper case, not {method:?}"));
        diagnostic.help = Some(format!("did you mean `{upper}`?"));
    }
    Some(upper)
}

/// With `text`, or if `direct`, a text; otherwise the view that `view` or the path names.
fn read_reply(
    reader: &mut ManifestReader,
    table: &DeTable,
    path: &str,
    span: &Range<usize>,
) -> EndpointReply {
    let text = reader.string(table, "text").map(toml::Spanned::into_inner);
    let view = reader.string(table, "view").map(toml::Spanned::into_inner);
    let direct = reader.boolean(table, "direct");
    let contradiction = match (&text, &view, direct) {
        (Some(_), Some(_), _) => Some("`text` and `view` cannot be used together"),
        (None, Some(_), Some(true)) => Some("`direct` and `view` cannot be used together"),
        (Some(_), None, Some(false)) => Some("`direct = false` cannot be used with `text`"),
        (Some(_), None, _) | (None, Some(_), _) | (None, None, _) => None,
    };
    if let Some(message) = contradiction {
        reader.report(span, message);
    }
    match (text, view, direct) {
        (Some(text), _, _) => EndpointReply::Text(text),
        (None, Some(view), _) => EndpointReply::View(view),
        (None, None, Some(true)) => EndpointReply::Text(String::new()),
        (None, None, Some(false) | None) => EndpointReply::View(path[1..].to_owned()),
    }
}

/// A valid `Cache-Control` header.
pub(crate) fn read_cache_control(reader: &mut ManifestReader, table: &DeTable) -> Option<String> {
    let value = reader.string(table, "cache")?;
    let text = value.as_ref();
    if text.trim().is_empty() || !text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        reader.report(&value.span(), "`cache` must be a Cache-Control header, such as \"max-age=60\"");
    }
    Some(value.into_inner())
}

fn read_line(reader: &mut ManifestReader, table: &DeTable, key: &str) -> Option<String> {
    let value = reader.string(table, key)?;
    if value.as_ref().contains(['\n', '\r']) {
        reader.report(&value.span(), format!("`{key}` must be a single line"));
    }
    Some(value.into_inner())
}

/// Reports every endpoint whose path an earlier one has.
pub(crate) fn report_path_clashes(reader: &mut ManifestReader, texts: &[TextEndpoint], lists: &[PlainList]) {
    for (i, text) in texts.iter().enumerate() {
        let same = |other: &&TextEndpoint| other.path == text.path && other.methods.overlap(&text.methods);
        if let Some(other) = texts[..i].iter().find(same) {
            report_taken_path(reader, &text.span, &text.path, "text", &other.span);
        }
        if let Some(list) = lists.iter().find(|list| answers_at(list, &text.path)) {
            report_taken_path(reader, &text.span, &text.path, "list", &list.span);
        }
    }
    for (i, list) in lists.iter().enumerate() {
        let others = lists[..i].iter().chain(lists[i..].iter().filter(|other| other.path != list.path));
        if let Some(other) = others.into_iter().find(|other| answers_at(other, &list.path)) {
            report_taken_path(reader, &list.span, &list.path, "list", &other.span);
        }
    }
}

/// Whether the list has this path: its own, or `path/{index}`.
fn answers_at(list: &PlainList, path: &str) -> bool {
    match path.strip_prefix(&list.path) {
        Some("") => true,
        Some(below) => below.starts_with('/') && !below[1..].contains('/'),
        None => false,
    }
}

fn report_taken_path(
    reader: &mut ManifestReader,
    span: &Range<usize>,
    path: &str,
    owner: &str,
    other: &Range<usize>,
) {
    let line = reader.line(other);
    reader.report(span, format!("`{path}` is already used by the {owner} in line {line}")).help =
        Some("choose another path".into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    fn read(text: &str) -> Manifest {
        let (manifest, mistakes) = Manifest::parse(text);
        assert_eq!(mistakes, [], "{text}");
        manifest
    }

    fn assert_mistake(text: &str, line: usize, message: &str) {
        let (_, mistakes) = Manifest::parse(text);
        let [mistake] = mistakes.as_slice() else { panic!("{text}\n{mistakes:?}") };
        assert_eq!(mistake.line, line, "{mistake}");
        assert!(mistake.message.contains(message), "{mistake}");
    }

    fn reply(extra: &str) -> EndpointReply {
        read(&format!("[[text]]\npath = \"/api/x\"\n{extra}")).text_endpoints.remove(0).reply
    }

    #[test]
    fn reply_is_text_or_view() {
        assert_eq!(reply("text = \"hi\""), EndpointReply::Text("hi".into()));
        assert_eq!(reply("text = \"\""), EndpointReply::Text(String::new()));
        assert_eq!(reply("direct = true"), EndpointReply::Text(String::new()));
        assert_eq!(reply("view = \"welcome\""), EndpointReply::View("welcome".into()));
        assert_eq!(reply(""), EndpointReply::View("api/x".into()));
    }

    #[test]
    fn methods_are_read_in_every_spelling() {
        let methods = |extra: &str| {
            read(&format!("[[text]]\npath = \"/x\"\ntext = \"\"\n{extra}")).text_endpoints.remove(0).methods
        };
        let only = |names: &[&str]| AllowedMethods::Only(names.iter().map(|name| (*name).into()).collect());
        assert_eq!(methods(""), only(&["GET"]));
        assert_eq!(methods("method = \"PUT\""), only(&["PUT"]));
        assert_eq!(methods("methods = [\"GET\", \"PURGE\"]"), only(&["GET", "PURGE"]));
        assert_eq!(methods("method = \"*\""), AllowedMethods::Any);
        assert_eq!(methods("methods = [\"*\"]"), AllowedMethods::Any);
    }

    #[test]
    fn invalid_endpoints_are_reported() {
        assert_mistake("[[text]]\ntext = \"x\"", 1, "[[text]] has no `path`");
        assert_mistake("[[text]]\npath = \"x\"", 2, "must start with /");
        assert_mistake("[[text]]\npath = \"/x?y\"", 2, "must not have a query");
        assert_mistake("[[text]]\npath = \"/docs\"", 2, "reserved for the server");
        assert_mistake("[[list]]\npath = \"/health\"", 2, "reserved for the server");
        assert_mistake("[[list]]\npath = \"/items/\"", 2, "must not end with /");
        assert_mistake("[[text]]\npath = \"/x\"\nmethod = \"get\"", 3, "in upper case");
        assert_mistake("[[text]]\npath = \"/x\"\nmethod = \"A B\"", 3, "not an HTTP method");
        assert_mistake("[[text]]\npath = \"/x\"\nmethod = 1", 3, "must be a quoted string");
        assert_mistake("[[text]]\npath = \"/x\"\ntext = \"\"\nview = \"v\"", 2, "cannot be used together");
        assert_mistake(
            "[[text]]\npath = \"/x\"\ntext = \"\"\ndirect = false",
            2,
            "cannot be used with `text`",
        );
        assert_mistake("[[text]]\npath = \"/x\"\nprint = \"a\\nb\"", 3, "single line");
        assert_mistake("[[text]]\npath = \"/x\"\ncache = \"\"", 3, "Cache-Control");
        assert_mistake("[[list]]\npath = \"/items\"\npage = 1", 3, "true or false");
    }

    #[test]
    fn path_clashes_are_reported() {
        let texts =
            |one: &str, two: &str| format!("[[text]]\npath = \"/x\"\n{one}\n[[text]]\npath = \"/x\"\n{two}");
        assert_mistake(&texts("", ""), 5, "already used by the text in line 2");
        assert_mistake(
            &texts("method = \"*\"", "method = \"POST\""),
            5,
            "already used by the text in line 2",
        );
        read(&texts("", "method = \"POST\""));
        let both =
            |kind: &str, path: &str| format!("[[list]]\npath = \"/items\"\n[[{kind}]]\npath = \"{path}\"");
        assert_mistake(&both("text", "/items"), 4, "already used by the list in line 2");
        assert_mistake(&both("text", "/items/first"), 4, "already used by the list in line 2");
        assert_mistake(&both("list", "/items"), 4, "already used by the list in line 2");
        assert_mistake(&both("list", "/items/more"), 4, "already used by the list in line 2");
        read(&both("text", "/items/first/name"));
        read(&both("list", "/itemsets"));
    }
}
