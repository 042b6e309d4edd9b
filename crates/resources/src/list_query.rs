//! What stands behind the `?` of a record path: filters, search, order, fields and the part of the list that is wanted.

use http::Uri;

use crate::typed_values;
use trefoil_engine::arguments::{Asks, filter_field, is_null, order};
use trefoil_engine::{Condition, Count, Listing, Op, Order, PlanLimits, Slice, list_window, plan};
use trefoil_http::errors::problem::{About, Problem};
use trefoil_http::form_pairs;
use trefoil_http::form_pairs::{Pairs, encoded};
use trefoil_http::negotiation::format;
use trefoil_http::negotiation::format::Wanted;
use trefoil_model::error::{Error, Violation};
use trefoil_model::naming::names::nearest;
use trefoil_model::{FieldId, Kind, Model, RecordType, Scalar, Value};

/// Words that mean the list itself; a field of the same name is filtered by with an operator, as in `size.eq=3`.
pub const LIST_WORDS: [&str; 8] = ["fields", "q", "sort", "page", "size", "after", "count", "format"];

pub const OPERATORS: [&str; 9] = ["eq", "ne", "lt", "lte", "gt", "gte", "contains", "in", "null"];

/// Those that a field can be followed by: only text contains anything.
pub fn operators(kind: &Kind) -> impl Iterator<Item = &'static str> {
    OPERATORS.into_iter().filter(|op| *op != "contains" || plan::holds_text(kind))
}

/// Which parameters an address takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// All of them.
    List,
    /// The same, leniently: a page ignores what it does not know.
    Page,
    /// `fields` alone.
    Fields,
    /// `fields` and `snapshot`.
    Stream,
    Nothing,
}

/// A query that was understood.
#[derive(Debug, Default)]
pub struct Query {
    pub listing: Listing,
    /// In the order asked for; none where all are meant.
    pub fields: Option<Vec<FieldId>>,
    pub chose_fields: bool,
    /// The form that was asked for in so many words.
    pub format: Option<Wanted>,
    /// A stream begins with the list.
    pub snapshot: bool,
    /// A part of the list was asked for in so many words.
    pub sliced: bool,
    /// The page that was named, the first otherwise.
    pub page: i64,
    /// As given and understood, for links to other parts.
    given: Pairs,
}

/// How much of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Page,
    All,
}

impl Query {
    pub fn read(uri: &Uri, record: &RecordType, limits: &PlanLimits, takes: Takes) -> Result<Query, Problem> {
        let mut given = form_pairs::urlencoded(uri.query().unwrap_or_default(), "the query")?;
        // An empty parameter counts as absent: a form sends all its controls.
        given.retain(|(_, value)| !value.is_empty());
        let mut reader = Reader { record, takes, words: Words::default(), violations: Vec::new() };
        given.retain(|(name, value)| reader.take(name, value));
        let Reader { words, violations, .. } = reader;
        if !violations.is_empty() {
            return Err(refused(Error::Invalid(violations)));
        }
        let sliced = words.page.is_some() || words.size.is_some() || words.after.is_some();
        let slice = words.slice(limits, takes).map_err(out_of_window)?;
        let page = words.page.unwrap_or(1);
        // A format is of records, also where plain clients see texts.
        let chose_fields = words.chose_fields || words.format.is_some();
        let format = words.format;
        let conditions = list_window::conditions(limits, words.conditions).map_err(refused)?;
        let (search, order) = (words.search, words.order);
        let count = if words.count.unwrap_or(false) { Count::Exact } else { Count::No };
        let listing = Listing { conditions, search, order, slice, count, cursors: false };
        let snapshot = words.snapshot.unwrap_or(false);
        Ok(Query { listing, fields: words.fields, chose_fields, format, snapshot, sliced, page, given })
    }

    /// The conditions, each with its parameter and the text it was given.
    pub fn filters(&self) -> impl Iterator<Item = (&Condition, &str, &str)> {
        let filters = self.given.iter().filter(|(name, _)| !LIST_WORDS.contains(&name.as_str()));
        self.listing
            .conditions
            .iter()
            .zip(filters)
            .map(|(condition, (name, text))| (condition, name.as_str(), text.as_str()))
    }

    /// What the engine says against a list of these records, with the parameters called as they were given.
    pub fn blamed(&self, model: &Model, record: &RecordType, error: Error) -> Problem {
        let wrong = self.filters().flat_map(|(condition, name, _)| {
            let error = plan::tests(model, record, std::slice::from_ref(condition)).err();
            let named = |found: &Violation| Violation::new(name, found.code, found.message.clone());
            error.iter().flat_map(Error::violations).map(named).collect::<Vec<_>>()
        });
        let wrong: Vec<Violation> = wrong.collect();
        refused(if wrong.is_empty() { error } else { Error::Invalid(wrong) })
    }

    /// What a word of the list was given.
    pub fn word(&self, word: &str) -> Option<&str> {
        self.given.iter().find(|(name, _)| name == word).map(|(_, value)| value.as_str())
    }

    /// Which page this is; nothing where a cursor leads on without a name for where.
    pub fn numbered(&self) -> Option<i64> {
        (self.word("page").is_some() || self.word("after").is_none()).then_some(self.page)
    }

    /// The same records in another order, from the beginning.
    pub fn sorted(&self, path: &str, sort: &str) -> String {
        let given = self.given.iter().filter(|(name, _)| name != "sort").cloned().collect();
        Query { given, ..Query::default() }.elsewhere(path, &[("sort", sort.to_owned())])
    }

    /// The same list from elsewhere: these parameters in place of those that say where.
    pub fn elsewhere(&self, path: &str, place: &[(&str, String)]) -> String {
        let kept = self.given.iter().filter(|(name, _)| !["page", "after"].contains(&name.as_str()));
        let kept = kept.map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
        let placed = place.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
        let query: Vec<String> = kept.chain(placed).collect();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
    }

    /// What a page shows of this list, or all that matches, in a form for programs.
    pub fn exported(&self, record: &RecordType, path: &str, format: &str, extent: Extent) -> String {
        let is_place = |name: &str| ["page", "after", "size"].contains(&name);
        let kept = self.given.iter().filter(|(name, _)| !is_place(name));
        let given = kept.map(|(name, value)| (name.clone(), spelled_out(record, name, value))).collect();
        let mut place = match (extent, &self.listing.slice) {
            (Extent::Page, Slice::Page { page, size }) => {
                vec![("page", page.to_string()), ("size", size.to_string())]
            }
            (Extent::Page, Slice::First { first, after }) => {
                let after = after.iter().map(|after| ("after", after.clone()));
                after.chain([("size", first.to_string())]).collect()
            }
            (Extent::Page, Slice::All) | (Extent::All, _) => Vec::new(),
        };
        place.push(("format", format.to_owned()));
        Query { given, ..Query::default() }.elsewhere(path, &place)
    }

    /// The `Link` header: where the other parts of the list are, as far as it is known.
    pub fn links(&self, path: &str, next: Option<&str>, total: Option<u64>) -> String {
        let mut links = Vec::new();
        let mut add = |rel: &str, place: &[(&str, String)]| {
            links.push(format!("<{}>; rel=\"{rel}\"", self.elsewhere(path, place)));
        };
        match &self.listing.slice {
            Slice::Page { page, size } => {
                let at = |page: i64| [("page", page.to_string())];
                add("first", &at(1));
                if *page > 1 {
                    add("prev", &at(page - 1));
                }
                if next.is_some() {
                    add("next", &at(page.saturating_add(1)));
                }
                if let Some(total) = total {
                    add("last", &at((total.div_ceil((*size).max(1) as u64) as i64).max(1)));
                }
            }
            Slice::First { .. } | Slice::All => {
                add("first", &[]);
                if let Some(cursor) = next {
                    add("next", &[("after", cursor.to_owned())]);
                }
            }
        }
        links.join(", ")
    }
}

/// A complaint about the query.
pub fn refused(error: Error) -> Problem {
    Problem::from(error).about(About::Query)
}

/// A complaint about the part of the list that is asked for; the only limit there is how long it may be.
fn out_of_window(error: Error) -> Problem {
    let size =
        matches!(error, Error::Limit(_)).then(|| Violation::new("size", "LIMIT_EXCEEDED", error.to_string()));
    let problem = refused(error);
    match size {
        Some(violation) => problem.violations(vec![violation]),
        None => problem,
    }
}

/// The parameters by meaning.
#[derive(Default)]
struct Words {
    conditions: Vec<Condition>,
    search: Option<String>,
    order: Vec<Order>,
    fields: Option<Vec<FieldId>>,
    chose_fields: bool,
    format: Option<Wanted>,
    page: Option<i64>,
    size: Option<i64>,
    after: Option<String>,
    count: Option<bool>,
    snapshot: Option<bool>,
}

impl Words {
    /// Without a page, a list goes on by cursor: nothing is skipped or seen twice however it changes.
    /// On a page, a cursor decides and `page` says what it is called.
    fn slice(&self, limits: &PlanLimits, takes: Takes) -> Result<Slice, Error> {
        match (takes, self.page, &self.after) {
            (Takes::Page, page, after) => {
                let numbered = list_window::page(limits, page, self.size)?;
                match after {
                    Some(after) => list_window::first(limits, "size", self.size, Some(after.clone())),
                    None => Ok(numbered),
                }
            }
            (_, Some(_), Some(_)) => Err(list_window::both("`page` or `after`")),
            (_, Some(page), None) => list_window::page(limits, Some(page), self.size),
            (_, None, after) => list_window::first(limits, "size", self.size, after.clone()),
        }
    }
}

struct Reader<'r> {
    record: &'r RecordType,
    takes: Takes,
    words: Words,
    violations: Vec<Violation>,
}

impl Reader<'_> {
    /// Says whether the parameter means something here.
    fn take(&mut self, name: &str, value: &str) -> bool {
        let taken = match (self.takes, name) {
            (Takes::Page, "fields" | "count") => return false,
            (Takes::Page, word) if LIST_WORDS.contains(&word) => self.word(word, value),
            (Takes::Page, name) => match self.filter(name) {
                Some(_) => self.condition(name, value),
                None => return false,
            },
            (Takes::List | Takes::Fields | Takes::Stream, "fields") => self.fields(value),
            (Takes::Stream, "snapshot") => self.word(name, value),
            (Takes::List, word) if LIST_WORDS.contains(&word) => self.word(word, value),
            (Takes::List, name) => self.condition(name, value),
            (Takes::Fields | Takes::Stream | Takes::Nothing, name) => Err(self.unknown(name)),
        };
        if let Err(violation) = taken {
            self.violations.push(violation);
        }
        true
    }

    fn word(&mut self, name: &str, value: &str) -> Result<(), Violation> {
        match name {
            "q" => once(name, &mut self.words.search, value.to_owned()),
            "sort" => self.sort(value),
            "page" => once(name, &mut self.words.page, positive(name, value)?),
            "size" => once(name, &mut self.words.size, positive(name, value)?),
            "after" => once(name, &mut self.words.after, value.to_owned()),
            "format" => self.format(value),
            "count" => once(name, &mut self.words.count, flag(name, value)?),
            "snapshot" => once(name, &mut self.words.snapshot, flag(name, value)?),
            _ => Err(self.unknown(name)),
        }
    }

    fn format(&mut self, value: &str) -> Result<(), Violation> {
        let Some(wanted) = format::named_format(value) else {
            let own = self.record.input_field("format").map(|_| "; the field is asked for as `format.eq`");
            let message =
                format!("`format` must be csv, ndjson or json, not {value:?}{}", own.unwrap_or_default());
            return Err(Violation::new("format", "TYPE", message));
        };
        once("format", &mut self.words.format, wanted)
    }

    fn sort(&mut self, value: &str) -> Result<(), Violation> {
        for word in names("sort", value)? {
            let order = order(self.record, "sort", word).map_err(|mut wrong| wrong.remove(0))?;
            order.follow(&mut self.words.order);
        }
        Ok(())
    }

    fn fields(&mut self, value: &str) -> Result<(), Violation> {
        self.words.chose_fields = true;
        let names = names("fields", value)?;
        let is_all = names.contains(&"*");
        for name in names.into_iter().filter(|name| *name != "*") {
            let found = self.record.input_field(name).filter(|id| self.record.field(*id).is_stored());
            let Some(field) = found else {
                let stored = self.record.fields.iter().filter(|field| field.is_stored());
                let hint = hint(name, stored.map(|field| field.input_name.as_str()));
                let message = format!("{} has no field `{name}` to show{hint}", self.record.name);
                return Err(Violation::new("fields", "UNKNOWN_FIELD", message));
            };
            let fields = self.words.fields.get_or_insert_default();
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        if is_all {
            self.words.fields = None;
        }
        Ok(())
    }

    /// `price=1`, `price.gte=1`, `status.in=NEW,PAID`, `price.null=true`.
    fn condition(&mut self, name: &str, text: &str) -> Result<(), Violation> {
        let Some((id, asks)) = self.filter(name) else { return Err(self.unknown(name)) };
        let kind = &self.record.field(id).kind;
        let text = match (self.takes, kind, asks) {
            (Takes::Page, Kind::Scalar(Scalar::DateTime), Asks::Compare(op)) => &moment(op, text),
            _ => text,
        };
        let compared = |op, value| Condition { field: id, op, value };
        self.words.conditions.push(match asks {
            Asks::IsNull => is_null(id, flag(name, text)?),
            Asks::Compare(op @ Op::In) => compared(
                op,
                Value::List(text.split(',').map(|item| typed_values::value(kind, item)).collect()),
            ),
            Asks::Compare(op @ (Op::Eq | Op::Ne | Op::Lt | Op::Lte | Op::Gt | Op::Gte | Op::Contains)) => {
                compared(op, typed_values::value(kind, text))
            }
        });
        Ok(())
    }

    /// The field that a parameter names, where it names one, and what is asked of it.
    fn filter(&self, name: &str) -> Option<(FieldId, Asks)> {
        let (field, asks) = asked(name)?;
        Some((filter_field(self.record, field)?, asks))
    }

    fn unknown(&self, name: &str) -> Violation {
        let message = match self.takes {
            Takes::Nothing => format!("unknown parameter `{name}`; this address takes none"),
            Takes::Fields => format!("unknown parameter `{name}`; this address takes `fields` alone"),
            Takes::Stream => {
                format!("unknown parameter `{name}`; a stream takes `fields` and `snapshot` alone")
            }
            Takes::List | Takes::Page => self.no_filter(name),
        };
        Violation::new(name, "UNKNOWN", message)
    }

    /// Why nothing is filtered by this parameter, and what could have been meant.
    fn no_filter(&self, name: &str) -> String {
        let (field, op) = name.split_once('.').map_or((name, None), |(field, op)| (field, Some(op)));
        let own = self.record.input_field(field).map(|id| self.record.field(id));
        let filters = self.record.fields.iter().filter(|field| field.kind.is_comparable());
        let filters = filters.map(|field| field.input_name.as_str());
        let hint = match (own, op) {
            (Some(own), _) if !own.kind.is_comparable() => return format!("`{field}` cannot be filtered by"),
            (Some(own), Some(op)) => match nearest(op, operators(&own.kind)) {
                Some(near) => format!("; did you mean `{field}.{near}`?"),
                None => {
                    let known: Vec<&str> = operators(&own.kind).collect();
                    format!("; `{field}` can be followed by .{}", known.join(", ."))
                }
            },
            (None, Some(op)) => match nearest(field, filters) {
                Some(near) if OPERATORS.contains(&op) => format!("; did you mean `{near}.{op}`?"),
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            },
            (Some(_) | None, None) => hint(name, filters.chain(LIST_WORDS)),
        };
        format!("unknown parameter `{name}`{hint}")
    }
}

/// `price.gte` taken apart.
pub fn asked(name: &str) -> Option<(&str, Asks)> {
    match name.split_once('.') {
        Some((field, word)) => Some((field, Asks::named(word)?)),
        None => Some((name, Asks::Compare(Op::Eq))),
    }
}

/// A parameter of a page as other addresses take it.
pub fn spelled_out(record: &RecordType, name: &str, text: &str) -> String {
    let found = asked(name).filter(|_| !LIST_WORDS.contains(&name));
    match found.and_then(|(field, asks)| Some((filter_field(record, field)?, asks))) {
        Some((id, Asks::Compare(op))) if record.field(id).kind == Kind::Scalar(Scalar::DateTime) => {
            moment(op, text)
        }
        Some((_, Asks::Compare(_) | Asks::IsNull)) | None => text.to_owned(),
    }
}

/// A day that is typed where a time is kept: its beginning, or its end where it bounds from above; in UTC.
fn moment(op: Op, text: &str) -> String {
    let is_day = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    match op {
        Op::Lte | Op::Gt if is_day => format!("{text}T23:59:59.999999Z"),
        Op::Eq | Op::Ne | Op::Lt | Op::Gte | Op::Lte | Op::Gt | Op::Contains | Op::In if is_day => {
            format!("{text}T00:00:00Z")
        }
        Op::Eq | Op::Ne | Op::Lt | Op::Gte | Op::Lte | Op::Gt | Op::Contains | Op::In => text.to_owned(),
    }
}

/// The page and its size that a query names for a list that has nothing else to ask for.
pub fn page_and_size(uri: &Uri, limits: &PlanLimits) -> Result<(i64, i64), Problem> {
    let given = form_pairs::urlencoded(uri.query().unwrap_or_default(), "the query")?;
    let number = |wanted: &str| {
        let found = given.iter().rev().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(name, value)| positive(name, value)).transpose()
    };
    let invalid = |violation| refused(Error::Invalid(vec![violation]));
    let (page, size) = (number("page").map_err(invalid)?, number("size").map_err(invalid)?);
    match list_window::page(limits, page, size).map_err(out_of_window)? {
        Slice::Page { page, size } => Ok((page, size)),
        Slice::All | Slice::First { .. } => Err(Error::internal("a page that is none").into()),
    }
}

fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// The names between the commas; with none between two of them something was forgotten.
fn names<'v>(parameter: &str, value: &'v str) -> Result<Vec<&'v str>, Violation> {
    let names: Vec<&str> = value.split(',').map(str::trim).collect();
    if names.iter().any(|name| name.trim_start_matches('-').is_empty()) {
        let message = format!("`{parameter}` must be names with a comma between two, not {value:?}");
        return Err(Violation::new(parameter, "EMPTY_NAME", message));
    }
    Ok(names)
}

fn once<T>(name: &str, place: &mut Option<T>, value: T) -> Result<(), Violation> {
    if place.is_some() {
        return Err(Violation::new(name, "TWICE", format!("`{name}` is given twice")));
    }
    *place = Some(value);
    Ok(())
}

/// A number that the window then judges.
fn positive(name: &str, value: &str) -> Result<i64, Violation> {
    let digits = !value.starts_with('+');
    value.parse().ok().filter(|_| digits).ok_or_else(|| {
        Violation::new(
            name,
            "TYPE",
            format!("`{name}` must be a positive whole number of 64 bits, not {value:?}"),
        )
    })
}

fn flag(name: &str, value: &str) -> Result<bool, Violation> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Violation::new(name, "TYPE", format!("`{name}` must be true or false, not {value:?}"))),
    }
}
