//! Static files, `theme.css` and `[theme]`: what is served, what is linked, and what is not let out.

use std::fs;

use super::{check, folder, get, put};
use crate::support::Process;

const SCHEMA: (&str, &str) =
    ("graphql/a.graphqls", "type Note { id: ID! text: String! }\ntype Query { notes: [Note!]! }");

const THEME: (&str, &str) =
    ("trefoil.toml", "[theme]\nlogo = \"img/logo.svg\"\naccent = [\"#00539f\", \"#8fc7ff\"]\n");

const LOGO: (&str, &str) = ("static/img/logo.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>");

/// The addresses in the order of the page: of `attribute="…"`.
fn addresses(page: &str, attribute: &str) -> Vec<String> {
    let begin = format!("{attribute}=\"/_/");
    let found = page.split(&begin).skip(1).filter_map(|rest| rest.split('"').next());
    found.map(|address| format!("/_/{address}")).collect()
}

#[test]
fn theme_is_on_every_page_after_the_built_in_style() {
    let folder = folder(&[SCHEMA, THEME, LOGO, ("static/theme.css", "h1 { color: teal }")]);
    assert_eq!(check(&folder).0, 0);
    let process = Process::start(folder.path(), &["serve", "app"]);
    for path in ["/", "/notes", "/notes/new", "/nowhere"] {
        let page = get(&process, path).text();
        let links = addresses(&page, "href");
        let styles: Vec<&String> = links.iter().filter(|address| address.ends_with(".css")).collect();
        let [built_in, colors, own] = styles[..] else { panic!("{path}: {styles:?}") };
        assert!(built_in.starts_with("/_/pages/app."), "{path}: {built_in}");
        let sent = get(&process, colors);
        assert_eq!(sent.header("content-type"), Some("text/css; charset=utf-8"));
        assert_eq!(sent.text(), ":root {\n  --accent: light-dark(#00539f, #8fc7ff);\n}\n");
        assert_eq!(get(&process, own).text(), "h1 { color: teal }");
        let [logo] = &addresses(&page, "src")[1..] else { panic!("{path}: no logo in {page}") };
        let sent = get(&process, logo);
        assert_eq!((sent.status, sent.header("content-type")), (200, Some("image/svg+xml")));
        assert!(sent.header("cache-control").expect("caching").contains("immutable"));
        assert_eq!(sent.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn static_files_are_served_by_name_and_nothing_else_is() {
    let folder = folder(&[
        SCHEMA,
        LOGO,
        ("static/a b.txt", "spaces"),
        ("static/data.bin", "bytes"),
        ("static/.env", "secret"),
        ("static/.git/config", "secret"),
        ("views/secret.html", "secret"),
        ("trefoil.toml", "[[text]]\npath = \"/secret\"\n"),
    ]);
    let process = Process::start(folder.path(), &["serve", "app"]);
    let sent = get(&process, "/_/static/img/logo.svg");
    assert_eq!((sent.status, sent.header("cache-control")), (200, Some("no-cache")));
    let tag = sent.header("etag").expect("a tag").to_owned();
    let known = process.client().send("GET", "/_/static/img/logo.svg", &[("if-none-match", &tag)], b"");
    assert_eq!(known.status, 304);
    assert_eq!(get(&process, "/_/static/a%20b.txt").text(), "spaces");
    assert_eq!(get(&process, "/_/static/data.bin").header("content-type"), Some("application/octet-stream"));
    for missing in [
        "/_/static/",
        "/_/static/img",
        "/_/static/img/",
        "/_/static/.env",
        "/_/static/.git/config",
        "/_/static/../trefoil.toml",
        "/_/static/..%2ftrefoil.toml",
        "/_/static/%2e%2e/trefoil.toml",
        "/_/static/img/../../views/secret.html",
        "/_/static/%2Fetc/passwd",
        "/_/static//img/logo.svg",
        "/_/static/IMG/logo.svg",
        "/_/static/.theme.css",
    ] {
        let reply = get(&process, missing);
        assert!([400, 404].contains(&reply.status), "{missing}: {}", reply.status);
        assert!(!reply.text().contains("secret</p>") && !reply.text().contains("[[text]]"), "{missing}");
    }
    assert_eq!(process.client().send("POST", "/_/static/data.bin", &[], b"x").status, 405);
}

#[cfg(unix)]
#[test]
fn check_names_links_out_and_files_that_are_not_there() {
    let view =
        "{% extends \"trefoil/layout.html\" %}\n{% block head %}{{ static(\"img/lgoo.svg\") }}{% endblock %}";
    let manifest = "[theme]\nlogo = \"img/logo.png\"\naccent = \"#cccccc\"\n";
    let folder = folder(&[SCHEMA, LOGO, ("views/layout.html", view), ("trefoil.toml", manifest)]);
    let (code, text) = check(&folder);
    assert_eq!(code, 1);
    for expected in [
        "views/layout.html:2:27",
        "there is no file `static/img/lgoo.svg`; did you mean `img/logo.svg`?",
        "trefoil.toml:2:8",
        "there is no file `static/img/logo.png` for the logo; did you mean `img/logo.svg`?",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    std::os::unix::fs::symlink("../trefoil.toml", folder.path().join("app/static/all.txt")).expect("a link");
    let (_, text) = check(&folder);
    assert!(text.contains("static/all.txt") && text.contains("leads out of the folder `static`"), "{text}");
    put(folder.path(), "trefoil.toml", "[theme]\naccent = \"#cccccc\"\n");
    fs::remove_file(folder.path().join("app/static/all.txt")).expect("removed");
    fs::remove_file(folder.path().join("app/views/layout.html")).expect("removed");
    let (code, text) = check(&folder);
    assert_eq!(code, 1, "a warning, which --strict counts: {text}");
    assert!(
        text.contains("on light screens `accent` (#cccccc) has a contrast of 1.") && text.contains("passes"),
        "{text}"
    );
}

#[test]
fn watch_reloads_static_files() {
    let folder = folder(&[SCHEMA, ("static/theme.css", "h1 { color: teal }")]);
    let process = Process::start(folder.path(), &["serve", "app", "--watch"]);
    let style = |page: &str| addresses(page, "href").into_iter().rfind(|link| link.ends_with(".css"));
    let before = style(&get(&process, "/notes").text()).expect("a style");
    put(folder.path(), "static/theme.css", "h1 { color: maroon }");
    process.wait_for("reloaded the schema");
    let after = style(&get(&process, "/notes").text()).expect("a style");
    assert_ne!(before, after);
    assert_eq!(get(&process, &after).text(), "h1 { color: maroon }");
    assert_eq!(get(&process, &before).status, 404);
}

/// The page of the guide, put together into an application.
#[test]
fn guide_to_theming_works() {
    let folder = folder(&[SCHEMA, ("static/logo.svg", LOGO.1), ("static/fonts/text.woff2", "font")]);
    let page = fs::read_to_string("docs/theming.md").expect("the page");
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let mut written = Vec::new();
    for (_, text) in blocks {
        let mut words = text.split_whitespace();
        let name = words.nth(1).expect("a comment with the name");
        put(folder.path(), name, text);
        written.push(name);
    }
    assert_eq!(written, ["trefoil.toml", "views/layout.html", "static/theme.css"]);
    assert_eq!(check(&folder), (0, check(&folder).1));
    let process = Process::start(folder.path(), &["serve", "app"]);
    let links = addresses(&get(&process, "/notes").text(), "href");
    assert!(links.iter().any(|link| link.starts_with("/_/static/fonts/text.")), "{links:?}");
    for link in links {
        assert_eq!(get(&process, &link).status, 200, "{link}");
    }
    let said = page.lines().find(|line| line.starts_with("    trefoil.toml:4")).expect("a warning");
    put(folder.path(), "trefoil.toml", "# Colours.\n[theme]\nlogo = \"logo.svg\"\naccent = \"#00539f\"\n");
    let warnings = check(&folder).1;
    for part in said.trim().split(", …; ").map(|part| part.trim_start_matches("trefoil.toml:4:10: ")) {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
}
