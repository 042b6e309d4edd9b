//! Tests that render every template with full and empty data: nothing is undefined, everything is escaped.

use std::collections::BTreeSet;

use minijinja::Value;
use minijinja::value::ValueKind;

use crate::templates::{BUILT_IN_VIEWS, ROW_PLACEHOLDER, ViewTemplates};
use crate::tests::samples::all_pages;

const HOSTILE: &str = "<i id=\"x\" class='y'>&amp;";

/// Values that templates compare, which must not change.
const UNESCAPED_KEYS: [&str; 2] = ["kind", "now"];

/// The same data with markup at the end of every text.
fn hostile(key: &str, value: &Value) -> Value {
    let member = |name: Value| {
        let inner = value.get_item(&name).expect("a member");
        let inner = hostile(name.as_str().unwrap_or_default(), &inner);
        (name, inner)
    };
    let members = || value.try_iter().expect("members");
    let kind = value.kind();
    if kind == ValueKind::Seq {
        return members().map(|item| hostile(key, &item)).collect();
    }
    if kind == ValueKind::Map {
        return Value::from_pairs(members().map(member));
    }
    let is_text = kind == ValueKind::String && !UNESCAPED_KEYS.contains(&key);
    if is_text { Value::from(format!("{value}{HOSTILE}")) } else { value.clone() }
}

#[test]
fn every_template_renders_full_and_empty() {
    for (name, template, context) in all_pages() {
        let html = ViewTemplates::built_in()
            .render(template, context)
            .unwrap_or_else(|broken| panic!("{name}: {broken}"));
        assert!(
            html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"),
            "{name}: {html}"
        );
        for left in ["{{", "{%", "{#", "undefined", "id=\"\"", "href=\"\""] {
            assert!(!html.contains(left), "{name} has {left}: {html}");
        }
    }
    let rendered = all_pages().iter().map(|(_, template, _)| *template).collect::<BTreeSet<_>>();
    let pages = BUILT_IN_VIEWS.iter().map(|(name, _)| *name).filter(|name| !name.starts_with('_'));
    assert_eq!(
        pages.filter(|name| *name != "layout.html").filter(|name| !rendered.contains(name)).count(),
        0
    );
}

#[test]
fn every_text_is_escaped() {
    for (name, template, context) in all_pages() {
        let html = ViewTemplates::built_in().render(template, hostile("", &context)).expect("renders");
        for raw in ["<i ", "id=\"x\"", "class='y'", "'>&amp;\"", ">&amp;<"] {
            assert!(!html.contains(raw), "{name} has {raw}: {html}");
        }
        assert!(html.contains("&lt;i id=&quot;x&quot; class=&#39;y&#39;&gt;&amp;amp;"), "{name}: {html}");
    }
}

#[test]
fn frame_with_rows_equals_whole_page() {
    let views = ViewTemplates::built_in();
    let (_, template, context) = all_pages().into_iter().find(|(name, ..)| *name == "list").expect("a list");
    let table = context.get_attr("list").and_then(|list| list.get_attr("table")).expect("a table");
    let row = |row| {
        let context = Value::from_pairs([("row", row), ("table", table.clone())]);
        views.render("_row.html", context).expect("renders")
    };
    let rows = table.get_attr("rows").and_then(|rows| rows.try_iter()).expect("rows");
    let rows: Vec<String> = rows.map(row).collect();
    let frame = views.render_frame(template, context.clone()).expect("renders");
    let placeholders = ROW_PLACEHOLDER.to_string().repeat(rows.len());
    assert!(rows.len() > 1 && frame.contains(&placeholders), "{frame:?}");
    let whole = views.render(template, context).expect("renders");
    assert_eq!(frame.replace(&placeholders, &rows.concat()), whole);
}

#[test]
fn templates_have_no_inline_code_or_external_urls() {
    for (name, text) in BUILT_IN_VIEWS {
        let code = text.replace("(\"https://\")", "").replace("(\"http://\")", "");
        for wrong in ["|safe", "| safe", "autoescape", "style=", "<style", " on", "://"] {
            let found = match wrong {
                " on" => code.match_indices(wrong).any(|(at, _)| {
                    code[at..].find('=').is_some_and(|end| {
                        end < 14 && code[at + 1..at + end].chars().all(char::is_alphabetic)
                    })
                }),
                _ => code.contains(wrong),
            };
            assert!(!found, "{name} has {wrong}");
        }
    }
}

#[test]
fn textarea_keeps_leading_newline() {
    let form = all_pages().into_iter().find(|(name, ..)| *name == "form").expect("a form").2;
    let html = ViewTemplates::built_in().render("form.html", form).expect("renders");
    // Browsers drop the first newline of a textarea, so the template adds one.
    assert!(html.contains("dir=\"auto\">\n\nHandle with care.</textarea>"), "{html}");
}

#[test]
fn unsafe_url_scheme_is_not_a_link() {
    let detail = all_pages().into_iter().find(|(name, ..)| *name == "detail").expect("a detail").2;
    let html = ViewTemplates::built_in().render("detail.html", detail).expect("renders");
    assert!(html.contains("href=\"mailto:ada@example.com\"") && !html.contains("javascript:"), "{html}");
}
