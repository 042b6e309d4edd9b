//! Sample forms: a control of every kind, with and without errors, and a conflict.

use crate::template_data::*;
use crate::tests::samples::{choices, control, link, pair, text};

fn controls() -> Vec<ControlView> {
    use ControlKind as Kind;
    let find = FindView {
        name: "-find-userId".to_owned(),
        value: "ada".to_owned(),
        button: pair("-find", "userId"),
        note: "More than 50 users match; these are the first 50.".to_owned(),
    };
    let street = control(Kind::Text, "street", "12 St James's Square");
    let city = ControlView { optional: true, ..control(Kind::Text, "city", "") };
    let group = |number: usize| ControlView {
        id: format!("f-lines-{number}"),
        label: format!("Line {number}"),
        children: vec![
            ControlView {
                id: format!("f-lines-{number}-text"),
                label: "Text".to_owned(),
                ..control(Kind::Text, &format!("lines.{number}.text"), "wheel")
            },
            ControlView {
                id: format!("f-lines-{number}-count"),
                label: "Count".to_owned(),
                ..control(Kind::Number, &format!("lines.{number}.count"), "4")
            },
        ],
        less: Some(pair("_less", &format!("lines.{number}"))),
        ..control(Kind::Group, "lines", "")
    };
    vec![
        ControlView {
            hint: Some("What is wanted, in a few words.".to_owned()),
            autocomplete: Some("off"),
            ..control(Kind::Text, "item", "Analytical engine")
        },
        ControlView {
            errors: vec!["Quantity must be 1 or more".to_owned()],
            inputmode: Some("numeric"),
            ..control(Kind::Number, "quantity", "-3")
        },
        ControlView {
            options: choices(0),
            errors: vec!["Status must be one of those offered".to_owned()],
            ..control(Kind::Radios, "status", "NEW")
        },
        ControlView {
            options: choices(1),
            find: Some(find),
            theirs: Some(text("Grace Hopper")),
            ..control(Kind::Select, "userId", "PAID")
        },
        ControlView {
            optional: true,
            autocomplete: Some("email"),
            hint: Some("Where the bill goes.".to_owned()),
            errors: vec!["Enter an email address in the correct format, like name@example.com".to_owned()],
            ..control(Kind::Email, "email", "ada@")
        },
        ControlView { optional: true, ..control(Kind::Url, "website", "https://example.com/") },
        ControlView { optional: true, ..control(Kind::Date, "due", "2026-11-20") },
        ControlView {
            optional: true,
            hint: Some("In UTC.".to_owned()),
            ..control(Kind::DateTime, "placedAt", "2026-11-14T09:30")
        },
        ControlView {
            optional: true,
            errors: vec!["Enter a day, like 2026-03-01".to_owned()],
            ..control(Kind::Date, "sent", "tomorrow")
        },
        ControlView { optional: true, ..control(Kind::Textarea, "note", "\nHandle with care.") },
        control(Kind::Checkbox, "gift", "true"),
        ControlView { optional: true, options: choices(2), ..control(Kind::Checkboxes, "labelIds", "") },
        ControlView {
            children: vec![street, city],
            hint: Some("Where it goes.".to_owned()),
            ..control(Kind::Group, "address", "")
        },
        ControlView {
            children: vec![group(1), group(2)],
            more: Some(pair("_more", "lines")),
            ..control(Kind::Groups, "lines", "")
        },
        children(),
        ControlView {
            hint: Some("There are too many visits for this form.".to_owned()),
            add_label: Some("Add visit".to_owned()),
            link: Some(link("All visits", "/orders/1/visits")),
            ..control(Kind::Groups, "visits", "")
        },
    ]
}

/// A stored record that belongs to the edited one.
fn children() -> ControlView {
    use ControlKind as Kind;
    let name = |part: &str| format!("parcels.0.{part}");
    let row = ControlView {
        label: "Parcel 1".to_owned(),
        children: vec![
            control(Kind::Hidden, &name("-id"), "7"),
            ControlView { focus: true, ..control(Kind::Text, &name("code"), "P1") },
            control(Kind::Hidden, &name("-version"), "1"),
            control(Kind::Checkbox, &name("-delete"), "false"),
        ],
        ..control(Kind::Group, "parcels.0", "")
    };
    ControlView {
        children: vec![row],
        more: Some(pair("-add", "parcels")),
        add_label: Some("Add parcel".to_owned()),
        ..control(Kind::Groups, "parcels", "")
    }
}

pub fn form() -> FormView {
    FormView {
        heading: "Edit Analytical engine".to_owned(),
        action: "/orders/1".to_owned(),
        submit: "Save order".to_owned(),
        cancel: "/orders/1".to_owned(),
        key: "0192f0c1-7b2e".to_owned(),
        version: Some(3),
        base: Some("item:1a2b3c4d".to_owned()),
        controls: controls(),
        complaints: vec![
            link("Quantity must be 1 or more", "#f-quantity"),
            link("Enter an email address in the correct format, like name@example.com", "#f-email"),
        ],
        conflict: None,
    }
}

pub fn bare_form() -> FormView {
    let controls = controls().into_iter().filter(|control| control.children.is_empty());
    let plain = |control| ControlView { errors: Vec::new(), theirs: None, find: None, hint: None, ..control };
    let controls = controls.map(plain).take(3).collect();
    FormView {
        version: None,
        base: None,
        controls,
        complaints: Vec::new(),
        heading: "New order".to_owned(),
        submit: "Create order".to_owned(),
        ..form()
    }
}

pub fn conflict() -> FormView {
    let conflict = ConflictView {
        text: "This order was changed meanwhile. What is saved now stands beside what you typed.".to_owned(),
        theirs: link("Keep what is saved", "/orders/1"),
    };
    FormView {
        complaints: Vec::new(),
        conflict: Some(conflict),
        submit: "Save my changes anyway".to_owned(),
        ..form()
    }
}
