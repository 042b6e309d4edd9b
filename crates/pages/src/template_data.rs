//! The data that templates receive: labels, links and messages are ready, so that a template only lays out.

use serde::Serialize;

pub use crate::detail::display_value::{DisplayValue, LabelledValue, ValueGroup};

/// `site` in every template.
#[derive(Debug, Clone, Serialize)]
pub struct SiteView {
    pub name: String,
    /// Record types and plain lists with a page, in the order of the schema, then the application's own pages.
    pub nav: Vec<PageLink>,
    /// The same links in menus, if there are many or the schema has groups.
    pub menus: Vec<NavMenu>,
    /// URLs of the style sheet, the script and the icon, which change with their content.
    pub css: String,
    pub js: String,
    pub icon: String,
    /// URLs of the application's own style sheets, after the built-in one.
    pub styles: Vec<String>,
    /// URL of the logo, if the application has one.
    pub logo: Option<String>,
    /// True if GraphiQL is enabled.
    pub graphiql: bool,
    /// The account that is signed in.
    pub actor: Option<SiteActor>,
    /// Where people sign in, for those who are not.
    pub sign_in: Option<String>,
    /// The page of the audit, for those who may see it.
    pub audit: Option<String>,
}

/// Who is signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiteActor {
    pub name: String,
    /// The page of the account.
    pub href: String,
}

/// Links of the navigation under one heading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NavMenu {
    /// `None` for links without a menu.
    pub label: Option<String>,
    pub links: Vec<PageLink>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageLink {
    pub label: String,
    pub href: String,
}

/// `head` in every template: everything around the content.
#[derive(Debug, Clone, Serialize)]
pub struct PageHead {
    /// Title of the window. The layout adds the name of the site, and forms with errors add "Error: ".
    pub title: String,
    /// From the start page down to the parent of this page.
    pub crumbs: Vec<PageLink>,
    /// The last crumb: this page.
    pub here: String,
    /// `href` of the navigation entry that this page belongs to; empty if none.
    pub section: String,
    pub flash: Option<FlashView>,
    /// The same request in GraphQL, REST and HTML.
    pub ways: Option<ApiExamples>,
}

/// The message after a write, shown once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlashView {
    /// "User created.", followed by the link if there is one.
    pub text: String,
    pub link: Option<PageLink>,
    /// The form for one more.
    pub another: Option<PageLink>,
}

/// The same request in GraphQL, REST and HTML.
#[derive(Debug, Clone, Serialize)]
pub struct ApiExamples {
    /// "Three ways to this page".
    pub title: String,
    pub graphql: GraphqlExample,
    /// Shell command with the REST call, perhaps after comment lines.
    pub rest: String,
    /// Shell command with the request of a browser, perhaps after comment lines.
    pub page: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct GraphqlExample {
    pub text: String,
    /// URL that opens the operation in GraphiQL; `None` if GraphiQL is disabled.
    pub run: Option<String>,
}

/// The names of a record type on its pages.
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
    /// The form for a new one, if the actor may create such records.
    pub new: Option<String>,
    pub search: SearchView,
    pub table: TableView,
    pub pager: PagerView,
    /// Downloads of this page and, if there are more, of all pages.
    pub downloads: Vec<DownloadLinks>,
    /// The sums that the type asks for.
    pub sums: Vec<LabelledValue>,
    /// URL of the summary; `None` if the type has nothing to group by.
    pub summary: Option<String>,
    /// Explains why there are no rows; `None` if there are rows.
    pub empty: Option<EmptyView>,
    /// The parent record of a nested list such as `/users/1/orders`.
    pub parent: Option<PageLink>,
}

/// Links to the same rows in each download format.
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
    /// True if the record type has text fields to search in.
    pub has_texts: bool,
    pub filters: Vec<ControlView>,
    /// Number of active filters, including the search.
    pub active: usize,
    pub clear: String,
    /// Hidden inputs: sort and size.
    pub hidden: Vec<NameValue>,
    /// What is searched and filtered for, each with the list without it.
    pub chips: Vec<PageLink>,
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
    /// The first column is the title of the record, a link.
    pub columns: Vec<ColumnView>,
    pub rows: Vec<TableRow>,
    /// URL of the event stream, for lists that update by themselves.
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
    /// Sorts by this column, or reverses the order.
    pub href: String,
    /// Value of `aria-sort`: `ascending`, `descending` or `none`.
    pub now: &'static str,
}

#[derive(Debug, Default, Serialize)]
pub struct TableRow {
    /// `users-1`: identifies the record in every list.
    pub key: String,
    pub title: String,
    pub href: String,
    /// The form, if the actor may change such records.
    pub edit: Option<String>,
    /// The cells after the first column.
    pub cells: Vec<DisplayValue>,
}

#[derive(Debug, Default, Serialize)]
pub struct PagerView {
    pub previous: Option<String>,
    pub next: Option<String>,
    /// "Page 2".
    pub text: String,
    /// The numbers of pages near this one, the first and the last, if all are known; none if there is only one.
    pub pages: Vec<PageNumber>,
    /// Other numbers of rows per page.
    pub sizes: Vec<PageNumber>,
}

/// A page of a list by its number, or a number of rows per page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageNumber {
    pub label: String,
    /// `None` for what is shown, and for what stands for several pages.
    pub href: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct EmptyView {
    pub text: String,
    /// Where to go instead, if the page itself has no such link.
    pub link: Option<PageLink>,
    /// True if the list ends before this page.
    pub is_beyond: bool,
}

/// `detail.html`: `detail` in the template.
#[derive(Debug, Serialize)]
pub struct DetailView {
    pub resource: ResourceView,
    pub title: String,
    /// The form and the page to delete it, if the actor may do that with such records.
    pub edit: Option<String>,
    pub delete: Option<String>,
    /// If it is an account that the actor may manage: where its link is made, and its sessions are ended.
    pub manage: Option<ManageView>,
    pub fields: Vec<LabelledValue>,
    /// The same fields by their groups.
    pub groups: Vec<ValueGroup>,
    pub related: Vec<RelatedView>,
    pub version: i64,
}

/// What those who may manage an account do with it.
#[derive(Debug, Serialize)]
pub struct ManageView {
    pub link: String,
    pub end_sessions: String,
    /// The last used first.
    pub sessions: Vec<SessionView>,
}

/// One session of an account.
#[derive(Debug, Serialize)]
pub struct SessionView {
    /// Times for people and in ISO format.
    pub created: String,
    pub created_at: String,
    pub seen: String,
    pub seen_at: String,
    pub address: String,
    pub browser: String,
    pub is_current: bool,
    /// The address that ends it; none for who manages the account.
    pub end: Option<String>,
}

/// Records related to the displayed one.
#[derive(Debug, Serialize)]
pub struct RelatedView {
    pub label: String,
    /// "order line".
    pub noun: String,
    /// "3", "more than 1,000".
    pub count: String,
    /// URL of the list of all of them.
    pub href: String,
    pub new: Option<String>,
    /// The first few records.
    pub table: TableView,
}

/// `form.html`: `form` in the template, for new and edited records, also when the input was rejected.
#[derive(Debug, Serialize)]
pub struct FormView {
    pub heading: String,
    pub action: String,
    /// Label of the button: "Create user".
    pub submit: String,
    pub cancel: String,
    /// `-key`: makes a double submit one write.
    pub key: String,
    /// `-version`: the version that the form may overwrite.
    pub version: Option<i64>,
    /// `-base`: what the fields were when the form was made.
    pub base: Option<String>,
    pub controls: Vec<ControlView>,
    /// Error summary at the top; each entry links to its control.
    pub complaints: Vec<PageLink>,
    pub conflict: Option<ConflictView>,
}

/// A concurrent change by someone else.
#[derive(Debug, Serialize)]
pub struct ConflictView {
    pub text: String,
    /// Link that keeps the version of the other person.
    pub theirs: PageLink,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct ControlView {
    pub kind: ControlKind,
    pub name: String,
    /// Id of the element: `f-name`.
    pub id: String,
    pub label: String,
    /// From the description in the schema.
    pub hint: Option<String>,
    pub placeholder: Option<String>,
    /// `narrow`, `short` or none for the whole width.
    pub width: Option<&'static str>,
    pub optional: bool,
    /// What the schema says where nothing is typed and something must be.
    #[serde(skip)]
    pub blank_message: Option<String>,
    /// As typed, even if it does not parse. A date or time that the browser's control cannot show in full (a
    /// fraction of more than three digits) needs `ControlKind::Text`, or the browser would drop it.
    pub value: String,
    /// The options of a choice, including the blank one ("Any", "None"), or the records that a reference can
    /// point to.
    pub options: Vec<ChoiceOption>,
    pub errors: Vec<String>,
    /// The value saved concurrently by someone else, if it differs.
    pub theirs: Option<DisplayValue>,
    pub autocomplete: Option<&'static str>,
    pub inputmode: Option<&'static str>,
    /// The controls of an embedded value, or the groups of a list of them.
    pub children: Vec<ControlView>,
    /// The button that adds a group.
    pub more: Option<NameValue>,
    /// The button that removes this group.
    pub less: Option<NameValue>,
    pub find: Option<FindView>,
    /// The label of the button that adds a row: "Add line". Only for records that belong to the record of the form.
    pub add_label: Option<String>,
    /// The list of the records, if there are too many for the form.
    pub link: Option<PageLink>,
    /// The page opens with the focus here; for a list, on the button that adds a row.
    pub focus: bool,
}

/// A search among the records that a reference can point to, if there are too many to list.
#[derive(Debug, Clone, Serialize)]
pub struct FindView {
    /// Name and value of the text control.
    pub name: String,
    pub value: String,
    /// Name and value of the button that searches.
    pub button: NameValue,
    /// "More than 50 users match; showing the first 50".
    pub note: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlKind {
    #[default]
    Text,
    /// Sent back as it is: the id and version of a row.
    Hidden,
    /// Sent along for password managers, and not seen.
    Username,
    /// Never has a value.
    Password,
    Textarea,
    /// Several lines of JSON.
    Json,
    Email,
    Url,
    Date,
    DateTime,
    /// A number in a text input.
    Number,
    /// `Boolean!`: a hidden `false` is sent before the box.
    Checkbox,
    Radios,
    Select,
    /// A link to several records.
    Checkboxes,
    /// An embedded value: `children` are its fields.
    Group,
    /// A list of embedded values, or of the records that belong to the record: `children` are groups, with a button that
    /// adds one.
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
    /// URL of the record, to cancel.
    pub keep: String,
    /// "Delete user and 3 orders".
    pub submit: String,
    pub effects: Vec<EffectView>,
    /// True if other records must be deleted first.
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
    /// Description of the schema.
    pub description: Option<String>,
    /// True if the store does not respond, so that nothing is counted.
    pub is_away: bool,
    pub cards: Vec<ResourceCard>,
    /// Plain lists and text endpoints.
    pub others: Vec<PageLink>,
    pub tries: Vec<ShellExample>,
}

/// A shell command that works as it is.
#[derive(Debug, Serialize)]
pub struct ShellExample {
    /// "Query with GraphQL".
    pub label: String,
    pub text: String,
}

#[derive(Debug, Serialize)]
pub struct ResourceCard {
    pub resource: ResourceView,
    pub count: String,
    pub new: Option<String>,
    pub is_live: bool,
}

/// `plain.html`: a plain list; `plain` in the template.
#[derive(Debug, Serialize)]
pub struct PlainListPage {
    pub heading: String,
    pub caption: String,
    pub values: Vec<IndexedValue>,
    /// Explains why there are no values; `None` if there are values.
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
    /// Advice on what to do next.
    pub advice: String,
    /// A similar address that exists.
    pub near: Option<PageLink>,
    /// URL of this page, if loading it again may help and has no side effect.
    pub again: Option<String>,
    /// Where people sign in, if there may be more to see then.
    pub sign_in: Option<String>,
    pub request_id: String,
}
