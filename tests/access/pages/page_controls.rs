//! The controls of forms: which fields they are for, what is chosen in them, and which records they offer.

use std::collections::BTreeSet;

use super::page_tree::PageElement;
use crate::access::shape::{Content, Kind};

fn controls(form: &PageElement) -> Vec<&PageElement> {
    ["input", "select", "textarea"].into_iter().flat_map(|name| form.all(name)).collect()
}

/// `spot` for `spot.city`.
pub fn base_name(name: &str) -> String {
    name.split(['.', '_']).next().unwrap_or_default().to_owned()
}

/// The fields that have controls; names that begin with a hyphen are of the form itself.
pub fn control_names(form: &PageElement) -> BTreeSet<String> {
    let names = controls(form).into_iter().filter_map(|control| control.attribute("name"));
    names.filter(|name| !name.starts_with('-')).map(base_name).collect()
}

/// What is chosen or typed in the controls of a field.
pub fn chosen_texts(form: &PageElement, field: &str, content: Content) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let own = controls(form).into_iter();
    for control in
        own.filter(|control| control.attribute("name").is_some_and(|name| base_name(name) == field))
    {
        let value = |element: &PageElement| element.attribute("value").unwrap_or_default().to_owned();
        match (control.name.as_str(), control.attribute("type")) {
            ("select", _) => {
                let options = control.all("option").into_iter();
                texts.extend(options.filter(|option| option.attribute("selected").is_some()).map(value));
            }
            ("textarea", _) => texts.extend(control.lines()),
            (_, Some("hidden")) => {}
            (_, Some("checkbox" | "radio")) if control.attribute("checked").is_none() => {}
            _ => drop(texts.insert(value(control))),
        }
    }
    let plain = |text: String| match content {
        // Of a moment, the minutes.
        Content::Value(Kind::Moment) => text.chars().take(16).collect(),
        _ => text,
    };
    let is_unticked = |text: &String| content == Content::Value(Kind::Flag) && text == "false";
    texts.into_iter().filter(|text| !text.is_empty() && !is_unticked(text)).map(plain).collect()
}

/// The records that a control offers, in its order; `None` without such a control.
pub fn offered_records(form: &PageElement, name: &str) -> Option<Vec<(i64, String)>> {
    let is_own = |control: &&PageElement| control.attribute("name") == Some(name);
    let mut own = controls(form).into_iter().filter(is_own).peekable();
    own.peek()?;
    let id = |element: &PageElement| element.attribute("value").and_then(|value| value.parse().ok());
    let mut found = Vec::new();
    for control in own {
        if control.name == "select" {
            let options = control.all("option").into_iter();
            found.extend(options.filter_map(|option| Some((id(option)?, option.text()))));
        }
    }
    // A box stands in its label.
    let labels = form.all("label").into_iter();
    let ticks = labels.filter_map(|label| {
        let input = label.first("input").filter(|input| input.attribute("name") == Some(name))?;
        Some((id(input)?, label.text()))
    });
    found.extend(ticks);
    Some(found)
}
