//! Sample data for every template, full and empty.

use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;

use crate::account::account_views::SignView;
use crate::account::audit_page::AuditView;
use crate::template_data::*;
use crate::tests::sample_accounts::{account, audit, bare_account, managed_session, sign};
use crate::tests::sample_forms::{bare_form, conflict, form};
use crate::tests::sample_summaries::{lines, no_groups, rejected, summary};

pub fn link(label: &str, href: &str) -> PageLink {
    PageLink { label: label.to_owned(), href: href.to_owned() }
}

pub fn pair(name: &str, value: &str) -> NameValue {
    NameValue { name: name.to_owned(), value: value.to_owned() }
}

pub fn text(text: &str) -> DisplayValue {
    DisplayValue::Text { text: text.to_owned(), cut: false }
}

fn number(text: &str) -> DisplayValue {
    DisplayValue::Number { text: text.to_owned() }
}

fn choice(text: &str, tone: usize) -> DisplayValue {
    DisplayValue::Choice { text: text.to_owned(), tone }
}

fn address(href: &str, text: &str) -> DisplayValue {
    DisplayValue::Address { href: href.to_owned(), text: text.to_owned() }
}

fn time() -> DisplayValue {
    DisplayValue::Time {
        datetime: "2026-11-14T09:30:00Z".to_owned(),
        text: "14 Nov 2026, 09:30 UTC".to_owned(),
    }
}

fn labelled(label: &str, value: DisplayValue) -> LabelledValue {
    LabelledValue { label: label.to_owned(), value }
}

fn site() -> SiteView {
    let nav = ["Users", "Products", "Orders", "Customers", "Articles", "Samples"];
    SiteView {
        name: "Sample Resource API".to_owned(),
        nav: nav.iter().map(|label| link(label, &format!("/{}", label.to_lowercase()))).collect(),
        menus: vec![
            NavMenu { label: None, links: vec![link("Users", "/users")] },
            NavMenu { label: Some("Trade".to_owned()), links: vec![link("Orders", "/orders")] },
        ],
        css: "/_/pages/app.css".to_owned(),
        js: "/_/pages/live.js".to_owned(),
        icon: "/_/pages/icon.svg".to_owned(),
        styles: vec!["/_/static/theme.css".to_owned()],
        logo: Some("/_/static/logo.svg".to_owned()),
        graphiql: true,
        actor: Some(SiteActor { name: "Ada Lovelace".to_owned(), href: "/_/account".to_owned() }),
        sign_in: None,
        audit: Some("/_/audit".to_owned()),
    }
}

fn page_number(label: &str, href: Option<&str>) -> PageNumber {
    PageNumber { label: label.to_owned(), href: href.map(str::to_owned) }
}

fn head(title: &str) -> PageHead {
    PageHead {
        title: title.to_owned(),
        crumbs: vec![link("Home", "/"), link("Orders", "/orders")],
        here: title.to_owned(),
        section: "/orders".to_owned(),
        flash: Some(FlashView {
            text: "Order created:".to_owned(),
            link: Some(link("Analytical engine", "/orders/1")),
            another: Some(link("Create another order", "/orders/new")),
        }),
        ways: Some(ApiExamples {
            title: "Three ways to this page".to_owned(),
            graphql: GraphqlExample {
                text: "{\n  orders(page: 1, size: 20) {\n    id\n    item\n    status\n  }\n}".to_owned(),
                run: Some("/graphql?query=%7Borders%7Bid%7D%7D".to_owned()),
            },
            rest: "curl -H 'Accept: application/json' 'http://localhost:8080/orders?page=1'".to_owned(),
            page: "curl -H 'Accept: text/html' 'http://localhost:8080/orders?page=1'".to_owned(),
        }),
    }
}

pub fn resource() -> ResourceView {
    ResourceView {
        label: "Order".to_owned(),
        noun: "order".to_owned(),
        plural: "Orders".to_owned(),
        path: "/orders".to_owned(),
        description: Some("What a user has ordered. It is deleted with its user.".to_owned()),
    }
}

pub fn control(kind: ControlKind, name: &str, value: &str) -> ControlView {
    let label = name[..1].to_uppercase() + &name[1..];
    ControlView {
        kind,
        name: name.to_owned(),
        id: format!("f-{name}"),
        label,
        value: value.to_owned(),
        ..Default::default()
    }
}

pub fn choices(chosen: usize) -> Vec<ChoiceOption> {
    let labels = ["New", "Paid", "Shipped", "Cancelled"].iter().enumerate();
    labels
        .map(|(index, label)| ChoiceOption {
            value: label.to_uppercase(),
            label: (*label).to_owned(),
            chosen: index == chosen,
        })
        .collect()
}

fn column(label: &str, numeric: bool, now: &'static str) -> ColumnView {
    ColumnView {
        label: label.to_owned(),
        numeric,
        sort: Some(SortLink { href: format!("?sort={label}"), now }),
    }
}

fn table() -> TableView {
    let row = |id: usize, title: &str, quantity: &str, status: DisplayValue| TableRow {
        key: format!("orders-{id}"),
        title: title.to_owned(),
        href: format!("/orders/{id}"),
        edit: Some(format!("/orders/{id}/edit")),
        cells: vec![
            DisplayValue::Record { href: "/users/1".to_owned(), text: "Ada Lovelace".to_owned() },
            number(quantity),
            status,
            if id.is_multiple_of(3) { DisplayValue::Nothing } else { time() },
        ],
    };
    TableView {
        caption: "1 to 5 of 42 orders, by item".to_owned(),
        columns: vec![
            column("Item", false, "ascending"),
            ColumnView { sort: None, ..column("User", false, "none") },
            column("Quantity", true, "none"),
            column("Status", false, "none"),
            column("Placed at", false, "none"),
        ],
        rows: vec![
            row(1, "Analytical engine", "1", choice("New", 0)),
            row(2, "Difference engine, second design", "12", choice("Paid", 1)),
            row(3, "Punched cards", "10,000", choice("Shipped", 2)),
            row(4, "Brass gear wheels", "250", choice("Cancelled", 3)),
            row(5, "", "3", choice("Returned", 4)),
        ],
        live: Some("/orders".to_owned()),
    }
}

pub fn list() -> ListView {
    let any = ChoiceOption { value: String::new(), label: "Any".to_owned(), chosen: true };
    let status = [vec![any], choices(9)].concat();
    ListView {
        resource: resource(),
        new: Some("/orders/new".to_owned()),
        search: SearchView {
            action: "/orders".to_owned(),
            q: "engine".to_owned(),
            has_texts: true,
            filters: vec![
                ControlView { options: status, ..control(ControlKind::Select, "status", "") },
                control(ControlKind::Number, "quantity", "12"),
                control(ControlKind::Date, "placedAt", ""),
            ],
            active: 2,
            clear: "/orders".to_owned(),
            hidden: vec![pair("sort", "item")],
            chips: vec![link("“engine”", "/orders?quantity=12"), link("Quantity: 12", "/orders?q=engine")],
        },
        table: table(),
        pager: PagerView {
            previous: Some("/orders?page=1".to_owned()),
            next: Some("/orders?page=3".to_owned()),
            text: "Page 2".to_owned(),
            pages: vec![page_number("1", Some("/orders")), page_number("2", None), page_number("…", None)],
            sizes: vec![page_number("20", None), page_number("50", Some("/orders?size=50"))],
        },
        downloads: vec![DownloadLinks {
            label: "This page".to_owned(),
            links: vec![link("CSV", "/orders?page=2&size=20&format=csv")],
        }],
        sums: vec![labelled("Sum of quantity, all pages", number("10266"))],
        summary: Some("/orders/-/summary?q=engine".to_owned()),
        empty: None,
        parent: Some(link("Ada Lovelace", "/users/1")),
    }
}

fn bare_list() -> ListView {
    let search = SearchView {
        action: "/orders".to_owned(),
        q: String::new(),
        has_texts: false,
        filters: Vec::new(),
        active: 0,
        clear: "/orders".to_owned(),
        hidden: Vec::new(),
        chips: Vec::new(),
    };
    ListView {
        resource: ResourceView { description: None, ..resource() },
        search,
        table: TableView { rows: Vec::new(), live: None, ..table() },
        pager: PagerView::default(),
        downloads: Vec::new(),
        sums: Vec::new(),
        summary: None,
        empty: Some(EmptyView {
            text: "There are no orders yet.".to_owned(),
            link: Some(link("Create the first order", "/orders/new")),
            is_beyond: false,
        }),
        parent: None,
        ..list()
    }
}

fn detail() -> DetailView {
    let mut detail = ungrouped_detail();
    let (first, rest) = detail.fields.split_at(2);
    let group = |label: Option<&str>, fields: &[LabelledValue]| ValueGroup {
        label: label.map(str::to_owned),
        fields: fields.to_vec(),
    };
    detail.groups = vec![group(None, first), group(Some("Trade"), rest)];
    detail
}

fn ungrouped_detail() -> DetailView {
    let street = vec![labelled("Street", text("12 St James's Square")), labelled("City", text("London"))];
    let object = DisplayValue::Object { fields: street };
    let list = DisplayValue::List { items: vec![text("brass"), choice("Heavy", 3), object.clone()] };
    DetailView {
        resource: resource(),
        title: "Analytical engine".to_owned(),
        edit: Some("/orders/1/edit".to_owned()),
        delete: Some("/orders/1/delete".to_owned()),
        manage: Some(ManageView {
            link: "/_/accounts/1/link".to_owned(),
            end_sessions: "/_/accounts/1/end-sessions".to_owned(),
            sessions: vec![managed_session()],
        }),
        fields: vec![
            labelled("ID", DisplayValue::Code { text: "1".to_owned() }),
            labelled(
                "User",
                DisplayValue::Record { href: "/users/1".to_owned(), text: "Ada Lovelace".to_owned() },
            ),
            labelled("Quantity", number("1")),
            labelled("Status", choice("New", 0)),
            labelled("Paid", DisplayValue::Boolean { yes: false }),
            labelled("Paint", DisplayValue::Color { text: "#0b6b52".to_owned() }),
            labelled("Placed at", time()),
            labelled("Note", text("Handle with care.\n\nThe mill is on the left, the store on the right.")),
            labelled("Summary", DisplayValue::Text { text: "It goes on and on".to_owned(), cut: true }),
            labelled("Title", text("")),
            labelled("Contact", address("mailto:ada@example.com", "ada@example.com")),
            labelled("Odd", address("javascript:alert(1)", "no address")),
            labelled("Delivered", DisplayValue::Nothing),
            labelled("Tags", list),
            labelled("None", DisplayValue::List { items: Vec::new() }),
            labelled("Address", object),
            labelled(
                "Raw",
                DisplayValue::Json { text: "{\n  \"steam\": true,\n  \"pressure\": [1, 2, 3]\n}".to_owned() },
            ),
        ],
        groups: Vec::new(),
        related: vec![
            RelatedView {
                label: "Parts".to_owned(),
                noun: "part".to_owned(),
                count: "42".to_owned(),
                href: "/orders/1/parts".to_owned(),
                new: Some("/parts/new?orderId=1".to_owned()),
                table: TableView { live: None, ..table() },
            },
            RelatedView {
                label: "Complaints".to_owned(),
                noun: "complaint".to_owned(),
                count: "0".to_owned(),
                href: "/orders/1/complaints".to_owned(),
                new: None,
                table: TableView { rows: Vec::new(), live: None, ..table() },
            },
        ],
        version: 3,
    }
}

fn delete() -> DeleteView {
    DeleteView {
        resource: resource(),
        title: "Analytical engine".to_owned(),
        action: "/orders/1/delete".to_owned(),
        key: "0192f0c1-7b2e".to_owned(),
        version: 3,
        keep: "/orders/1".to_owned(),
        submit: "Delete order and 3 parts".to_owned(),
        effects: vec![EffectView {
            text: "3 parts will be deleted too".to_owned(),
            href: "/orders/1/parts".to_owned(),
            blocks: false,
        }],
        blocked: false,
    }
}

fn blocked() -> DeleteView {
    let effect = EffectView {
        text: "3 invoices need this order".to_owned(),
        href: "/orders/1/invoices".to_owned(),
        blocks: true,
    };
    DeleteView { effects: vec![effect], blocked: true, ..delete() }
}

fn shell_example(label: &str, text: &str) -> ShellExample {
    ShellExample { label: label.to_owned(), text: text.to_owned() }
}

fn home() -> HomeView {
    let cards = [
        ("User", "users", "3", true),
        ("Product", "products", "12", false),
        ("Order", "orders", "7", false),
        ("Customer", "customers", "0", false),
        ("Article", "articles", "more than 10,000", false),
    ];
    let card = |(label, path, count, is_live): (&str, &str, &str, bool)| ResourceCard {
        resource: ResourceView {
            label: label.to_owned(),
            noun: label.to_lowercase(),
            plural: format!("{label}s"),
            path: format!("/{path}"),
            ..resource()
        },
        count: count.to_owned(),
        new: Some(format!("/{path}/new")),
        is_live,
    };
    HomeView {
        description: Some("Users, and a small shop.".to_owned()),
        is_away: false,
        cards: cards.map(card).into(),
        others: vec![link("/items", "/items"), link("/samples", "/samples"), link("/hello", "/hello")],
        tries: vec![
            shell_example(
                "Query with GraphQL",
                "curl localhost:8080/graphql -d '{\"query\":\"{ getAllUsers { name } }\"}'",
            ),
            shell_example("Ask REST", "curl -s localhost:8080/users/1 -H 'Accept: application/json'"),
            shell_example("Send a form", "curl -i localhost:8080/users -d name=Ada -d email=ada@example.com"),
        ],
    }
}

fn plain() -> PlainListPage {
    let values = ["milk", "bread", "a longer value,\nof two lines"].iter().zip(0..);
    PlainListPage {
        heading: "Samples".to_owned(),
        caption: "0 to 2 of 3 values".to_owned(),
        values: values.map(|(text, index)| IndexedValue { index, text: (*text).to_owned() }).collect(),
        pager: PagerView {
            next: Some("/samples?page=2".to_owned()),
            previous: None,
            text: "Page 1".to_owned(),
            ..PagerView::default()
        },
        empty: None,
        form: FormView {
            heading: "Add a value".to_owned(),
            version: None,
            base: None,
            complaints: Vec::new(),
            submit: "Add".to_owned(),
            controls: vec![control(ControlKind::Text, "value", "")],
            ..form()
        },
    }
}

fn error() -> ErrorView {
    ErrorView {
        status: 404,
        title: "Not found".to_owned(),
        detail: "There is no order with the id 42.".to_owned(),
        violations: vec!["page: must be a positive number".to_owned()],
        advice: "Check the address.".to_owned(),
        near: Some(link("/orders", "/orders")),
        again: Some("/orders/42".to_owned()),
        sign_in: Some("/_/sign-in?next=%2Fusers".to_owned()),
        request_id: "5f0e432c3ec717-1a".to_owned(),
    }
}

/// A page of every kind: name, template and context.
pub fn all_pages() -> Vec<(&'static str, &'static str, Value)> {
    fn page(key: &'static str, head: PageHead, data: impl Serialize) -> Value {
        let parts = [
            ("site", Value::from(Serde(site()))),
            ("head", Value::from(Serde(head))),
            (key, Value::from(Serde(data))),
        ];
        Value::from_pairs(parts)
    }
    let bare = |title: &str| PageHead {
        flash: None,
        ways: None,
        crumbs: Vec::new(),
        section: String::new(),
        ..head(title)
    };
    let flash = Some(FlashView { text: "Order deleted.".to_owned(), link: None, another: None });
    let calm = |title: &str| PageHead { flash: None, ..head(title) };
    let nothing = HomeView {
        description: None,
        is_away: false,
        cards: Vec::new(),
        others: Vec::new(),
        tries: Vec::new(),
    };
    let no_values = PlainListPage {
        empty: Some(EmptyView { text: "No values yet.".to_owned(), link: None, is_beyond: false }),
        values: Vec::new(),
        pager: PagerView::default(),
        ..plain()
    };
    let back = Some(link("Back to the last page", "/orders?page=2"));
    let beyond = ListView {
        empty: Some(EmptyView { text: "Page 9 is past the end.".to_owned(), link: back, is_beyond: true }),
        table: TableView { rows: Vec::new(), ..table() },
        ..list()
    };
    let alone = DetailView {
        manage: None,
        fields: Vec::new(),
        groups: Vec::new(),
        related: Vec::new(),
        title: String::new(),
        ..detail()
    };
    let no_effects = DeleteView { effects: Vec::new(), submit: "Delete order".to_owned(), ..delete() };
    let unknown = ErrorView { violations: Vec::new(), near: None, again: None, sign_in: None, ..error() };
    vec![
        ("home", "home.html", page("home", bare("Sample Resource API"), home())),
        ("home-empty", "home.html", page("home", bare(""), nothing)),
        ("list", "list.html", page("list", head("Orders"), list())),
        ("list-empty", "list.html", page("list", PageHead { flash, ..head("Orders") }, bare_list())),
        ("list-beyond", "list.html", page("list", calm("Orders"), beyond)),
        ("summary", "summary.html", page("summary", calm("Summary of orders"), summary())),
        ("summary-lines", "summary.html", page("summary", calm("Summary of orders"), lines())),
        ("summary-empty", "summary.html", page("summary", bare("Summary of orders"), no_groups())),
        ("summary-rejected", "summary.html", page("summary", bare("Summary of orders"), rejected())),
        ("detail", "detail.html", page("detail", calm("Analytical engine"), detail())),
        ("detail-empty", "detail.html", page("detail", bare("1"), alone)),
        ("form", "form.html", page("form", calm("Edit order"), form())),
        ("form-empty", "form.html", page("form", bare("New order"), bare_form())),
        ("conflict", "form.html", page("form", calm("Edit order"), conflict())),
        ("delete", "delete.html", page("delete", calm("Delete order"), delete())),
        ("delete-empty", "delete.html", page("delete", bare("Delete order"), no_effects)),
        ("blocked", "delete.html", page("delete", calm("Delete order"), blocked())),
        ("plain", "plain.html", page("plain", calm("Samples"), plain())),
        ("plain-empty", "plain.html", page("plain", bare("Samples"), no_values)),
        ("sign", "sign.html", page("sign", calm("Sign in"), sign())),
        ("sign-empty", "sign.html", page("sign", bare("Sign in"), SignView::default())),
        ("audit", "audit.html", page("audit", calm("Audit"), audit())),
        ("audit-empty", "audit.html", page("audit", bare("Audit"), AuditView::default())),
        ("account", "account.html", page("account", calm("Account"), account())),
        ("account-empty", "account.html", page("account", bare("Account"), bare_account())),
        ("error", "error.html", page("error", calm("Not found"), error())),
        ("error-empty", "error.html", page("error", bare("Not found"), unknown)),
    ]
}
