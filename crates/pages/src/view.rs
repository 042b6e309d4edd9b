//! What templates are given: plain data with every label, link and message ready, so that a view only lays out.

use serde::Serialize;

/// What every template sees beside its own data.
#[derive(Debug, Clone, Serialize)]
pub struct SiteView {
    pub name: String,
    /// Record types and plain lists that have a page, in the order of the schema.
    pub nav: Vec<PageLink>,
    /// The style sheet, the script and the icon, at addresses that change with their content.
    pub css: String,
    pub js: String,
    pub icon: String,
    /// Whether browsers are shown GraphiQL.
    pub graphiql: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageLink {
    pub label: String,
    pub href: String,
}

/// The frame around the content: `head` in templates.
#[derive(Debug, Clone, Serialize)]
pub struct PageHead {
    /// Of the window; the layout adds the name of the site, the form "Error: " where it complains.
    pub title: String,
    /// From the start page down to the page above this one.
    pub crumbs: Vec<PageLink>,
    /// The last crumb: this page.
    pub here: String,
    /// The entry of the navigation that this page belongs to: its `href`, empty where there is none.
    pub section: String,
    pub flash: Option<FlashView>,
    pub ways: Option<ApiExamples>,
}

/// What was done just now, told once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlashView {
    /// "User created."; before the link, if there is one.
    pub text: String,
    pub link: Option<PageLink>,
}

/// The same thing on the three faces.
#[derive(Debug, Clone, Serialize)]
pub struct ApiExamples {
    /// Of what: "Three ways to this page".
    pub title: String,
    pub graphql: GraphqlExample,
    /// A line for a shell: the REST call. Comments may be above it.
    pub rest: String,
    /// A line for a shell: what a browser sends. Comments may be above it.
    pub page: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct GraphqlExample {
    pub text: String,
    /// Opens it in GraphiQL, ready to run; none where there is no GraphiQL.
    pub run: Option<String>,
}

/// A value as people read it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DisplayValue {
    /// Null.
    Nothing,
    /// `cut` where it goes on beyond what is shown.
    Text {
        text: String,
        cut: bool,
    },
    Number {
        text: String,
    },
    Truth {
        yes: bool,
    },
    /// An enum's value, and its place among the values, which gives it its colour.
    Choice {
        text: String,
        tone: usize,
    },
    /// `datetime` for programs, `text` for people.
    Time {
        datetime: String,
        text: String,
    },
    /// An address on the web or of a mailbox.
    Address {
        href: String,
        text: String,
    },
    /// Another record.
    Record {
        href: String,
        text: String,
    },
    /// What is read letter by letter: ids, UUIDs.
    Code {
        text: String,
    },
    /// JSON, laid out over lines.
    Json {
        text: String,
    },
    List {
        items: Vec<DisplayValue>,
    },
    Object {
        fields: Vec<LabelledValue>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelledValue {
    pub label: String,
    pub value: DisplayValue,
}

/// A record type as its pages speak of it.
#[derive(Debug, Clone, Serialize)]
pub struct ResourceView {
    /// "Order line".
    pub label: String,
    /// "order line", within a sentence.
    pub noun: String,
    /// "Order lines".
    pub plural: String,
    /// "/order-lines".
    pub path: String,
    pub description: Option<String>,
}

/// `list.html`: `list` in the template.
#[derive(Debug, Serialize)]
pub struct ListView {
    pub resource: ResourceView,
    pub new: String,
    pub search: SearchView,
    pub table: TableView,
    pub pager: PagerView,
    /// The rows for programs: of this page, and of all pages where there are more.
    pub downloads: Vec<DownloadLinks>,
    /// Why there are no rows, where there are none.
    pub empty: Option<EmptyView>,
    /// The record that this is a part of, for `/users/1/orders`.
    pub parent: Option<PageLink>,
}

/// Some rows of a list in each form that they can be had in.
#[derive(Debug, Serialize)]
pub struct DownloadLinks {
    /// "This page".
    pub label: String,
    pub links: Vec<PageLink>,
}

#[derive(Debug, Serialize)]
pub struct SearchView {
    pub action: String,
    pub q: String,
    /// Whether there are texts to search in.
    pub has_texts: bool,
    pub filters: Vec<ControlView>,
    /// How many filters are set, the search included.
    pub active: usize,
    pub clear: String,
    /// Goes along unseen: sort and size.
    pub hidden: Vec<NameValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NameValue {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Serialize)]
pub struct TableView {
    /// "1 to 20 of 42 users, by name".
    pub caption: String,
    /// The first is the record's title, which is a link.
    pub columns: Vec<ColumnView>,
    pub rows: Vec<TableRow>,
    /// Where changes are told, for lists that update by themselves.
    pub live: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct ColumnView {
    pub label: String,
    pub numeric: bool,
    pub sort: Option<SortLink>,
}

#[derive(Debug, Serialize)]
pub struct SortLink {
    /// Sorts by this, or the other way round.
    pub href: String,
    /// `ascending`, `descending` or `none`, as `aria-sort` has it.
    pub now: &'static str,
}

#[derive(Debug, Default, Serialize)]
pub struct TableRow {
    /// `users-1`, the same for the same record in every list.
    pub key: String,
    pub title: String,
    pub href: String,
    pub edit: String,
    /// Under the columns but the first.
    pub cells: Vec<DisplayValue>,
}

#[derive(Debug, Default, Serialize)]
pub struct PagerView {
    pub previous: Option<String>,
    pub next: Option<String>,
    /// "Page 2".
    pub text: String,
}

#[derive(Debug, Serialize)]
pub struct EmptyView {
    pub text: String,
    /// The way out, where it is not on this page.
    pub link: Option<PageLink>,
    /// The list ends before this page.
    pub is_beyond: bool,
}

/// `detail.html`: `detail` in the template.
#[derive(Debug, Serialize)]
pub struct DetailView {
    pub resource: ResourceView,
    pub title: String,
    pub edit: String,
    pub delete: String,
    pub fields: Vec<LabelledValue>,
    pub related: Vec<RelatedView>,
    pub version: i64,
}

/// Records that refer to the one that is shown.
#[derive(Debug, Serialize)]
pub struct RelatedView {
    pub label: String,
    /// "order line": what one of them is called.
    pub noun: String,
    /// "3", "more than 1,000".
    pub count: String,
    /// All of them, where they have a list.
    pub href: Option<String>,
    pub new: Option<String>,
    /// The first few.
    pub table: TableView,
}

/// `form.html`: `form` in the template; new and edit alike, and a form that did not pass.
#[derive(Debug, Serialize)]
pub struct FormView {
    pub heading: String,
    pub action: String,
    /// What the button says: "Create user".
    pub submit: String,
    pub cancel: String,
    /// `-key`: pressing the button twice is one write.
    pub key: String,
    /// `-version`: what is overwritten is what was seen.
    pub version: Option<i64>,
    pub controls: Vec<ControlView>,
    /// What is wrong, for the summary at the top; each leads to its control.
    pub complaints: Vec<PageLink>,
    pub conflict: Option<ConflictView>,
}

/// Somebody else was quicker.
#[derive(Debug, Serialize)]
pub struct ConflictView {
    pub text: String,
    /// Leaves the record as the other one left it.
    pub theirs: PageLink,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct ControlView {
    pub kind: ControlKind,
    pub name: String,
    /// Of the element: `f-name`.
    pub id: String,
    pub label: String,
    /// From the description in the schema.
    pub hint: Option<String>,
    pub optional: bool,
    /// As typed, also when it does not parse. A date or time that its control could not show whole (a
    /// fraction of more than three digits) needs `ControlKind::Text`, or it would be lost.
    pub value: String,
    /// For choices, all that is offered, the blank one ("Any", "None") too; for a reference, what can be
    /// referred to.
    pub options: Vec<ChoiceOption>,
    pub errors: Vec<String>,
    /// What somebody else has put here meanwhile, where it differs.
    pub theirs: Option<DisplayValue>,
    pub autocomplete: Option<&'static str>,
    pub inputmode: Option<&'static str>,
    /// Inside of an embedded value, or of each of several.
    pub children: Vec<ControlView>,
    /// The button that asks for one more group.
    pub more: Option<NameValue>,
    /// On one of several groups: the button that takes it away.
    pub less: Option<NameValue>,
    pub find: Option<FindView>,
}

/// Looks for something to refer to, where there is too much to list.
#[derive(Debug, Clone, Serialize)]
pub struct FindView {
    /// The text to look for: name and value of its control.
    pub name: String,
    pub value: String,
    /// The name and value of the button that looks.
    pub button: NameValue,
    /// "More than 50 users match; showing the first 50".
    pub note: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlKind {
    #[default]
    Text,
    Textarea,
    /// Several lines for a program.
    Json,
    Email,
    Url,
    Date,
    DateTime,
    /// A number typed as text.
    Number,
    /// `Boolean!`: a hidden `false` goes before the box.
    Checkbox,
    Radios,
    Select,
    /// A link to several records.
    Checkboxes,
    /// An embedded value: `children` are its fields.
    Group,
    /// A list of embedded values: `children` are groups, with a button for one more.
    Groups,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChoiceOption {
    pub value: String,
    pub label: String,
    pub chosen: bool,
}

/// `delete.html`: `delete` in the template.
#[derive(Debug, Serialize)]
pub struct DeleteView {
    pub resource: ResourceView,
    pub title: String,
    pub action: String,
    pub key: String,
    pub version: i64,
    /// Back to the record.
    pub keep: String,
    /// "Delete user and 3 orders".
    pub submit: String,
    pub effects: Vec<EffectView>,
    /// Something must go first.
    pub blocked: bool,
}

#[derive(Debug, Serialize)]
pub struct EffectView {
    /// "3 orders will be deleted too".
    pub text: String,
    pub href: String,
    pub blocks: bool,
}

/// `home.html`: `home` in the template.
#[derive(Debug, Serialize)]
pub struct HomeView {
    /// Of the schema.
    pub description: Option<String>,
    /// The store does not answer, so nothing is counted.
    pub is_away: bool,
    pub cards: Vec<ResourceCard>,
    /// Plain lists and text endpoints.
    pub others: Vec<PageLink>,
    pub tries: Vec<ShellExample>,
}

/// A line for a shell that works as it is.
#[derive(Debug, Serialize)]
pub struct ShellExample {
    /// "Ask GraphQL".
    pub label: String,
    pub text: String,
}

#[derive(Debug, Serialize)]
pub struct ResourceCard {
    pub resource: ResourceView,
    pub count: String,
    pub new: String,
    pub is_live: bool,
}

/// `plain.html`: a plain list; `plain` in the template.
#[derive(Debug, Serialize)]
pub struct PlainListView {
    pub heading: String,
    pub caption: String,
    pub values: Vec<IndexedValue>,
    /// Where there are no values to show.
    pub empty: Option<EmptyView>,
    pub pager: PagerView,
    pub form: FormView,
}

#[derive(Debug, Serialize)]
pub struct IndexedValue {
    pub index: u64,
    pub text: String,
}

/// `error.html`: `error` in the template.
#[derive(Debug, Serialize)]
pub struct ErrorView {
    pub status: u16,
    pub title: String,
    pub detail: String,
    pub violations: Vec<String>,
    /// What to do next.
    pub advice: String,
    /// The address that was perhaps meant.
    pub near: Option<PageLink>,
    /// The address of this page, where loading it again may help and does nothing else.
    pub again: Option<String>,
    pub request_id: String,
}
