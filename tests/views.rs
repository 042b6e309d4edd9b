//! Views of an application: its own pages, templates that replace built-in ones, and what a broken one breaks.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::{Process, Reply, command};

const SCHEMA: &str = "type Note { id: ID! text: String! }\ntype Query { notes: [Note!]! }";

/// `app/` with these files beside a small schema.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    put(folder.path(), "app/graphql/schema.graphqls", SCHEMA);
    for (name, text) in files {
        put(folder.path(), &format!("app/{name}"), text);
    }
    folder
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
    fs::write(path, text).expect("written");
}

fn get(process: &Process, path: &str) -> Reply {
    process.client().send("GET", path, &[("accept", "text/html")], b"")
}

fn run(folder: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    let ran = command(folder.path(), arguments).output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (ran.status.code().expect("a code"), text(ran.stdout), text(ran.stderr))
}

const ABOUT: &str =
    "{% extends \"layout.html\" %}{% block content %}<h1>About {{ site.name }}</h1>{% endblock %}";

#[test]
fn declared_page_uses_the_common_layout() {
    let manifest = "name = \"<Notes>\"\n[[text]]\npath = \"/about\"\n[[text]]\npath = \"/team/all\"\n\
                    [[text]]\npath = \"/say\"\nmethod = \"POST\"\nview = \"about\"\ncache = \"max-age=9\"\n\
                    [[text]]\npath = \"/gone\"\n";
    let files = [
        ("trefoil.toml", manifest),
        ("views/about.html", ABOUT),
        ("views/team/all.html", "{{ head.title }}"),
    ];
    let folder = folder(&files);
    let process = Process::start(folder.path(), &["serve", "app"]);
    let about = get(&process, "/about");
    assert_eq!((about.status, about.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(about.text().contains("<h1>About &lt;Notes&gt;</h1>"), "{}", about.text());
    assert!(about.text().contains("href=\"/notes\""), "the navigation is there");
    assert!(about.text().contains("<a href=\"/about\" aria-current=\"page\">About</a>"), "{}", about.text());
    let tag = about.header("etag").expect("a tag").to_owned();
    let known = process.client().send("GET", "/about", &[("if-none-match", &tag)], b"");
    assert_eq!(known.status, 304);
    assert_eq!(get(&process, "/team/all").text().trim(), "All");
    let said = process.client().send("POST", "/say", &[("if-none-match", &tag)], b"x");
    assert_eq!((said.status, said.header("cache-control")), (200, Some("max-age=9")));
    assert_eq!(process.client().send("POST", "/about", &[], b"").status, 405);
    let home = get(&process, "/").text();
    assert!(home.contains("href=\"/about\"") && !home.contains("href=\"/say\""), "{home}");
    let gone = get(&process, "/gone");
    assert_eq!((gone.status, gone.header("content-type")), (500, Some("text/plain; charset=utf-8")));
    assert!(gone.text().starts_with("template not found: gone\n"), "{}", gone.text());
    let document = process.client().send("GET", "/openapi.json", &[], b"").json();
    assert!(document["paths"]["/about"]["get"]["responses"]["200"]["content"].get("text/html").is_some());
}

#[test]
fn view_may_have_the_name_of_a_layout_part() {
    let manifest = "[[text]]\npath = \"/site\"\ncache = \"max-age=9\"\n[[text]]\npath = \"/head\"\n";
    let files = [("trefoil.toml", manifest), ("views/site.html", ABOUT), ("views/head.html", ABOUT)];
    let folder = folder(&files);
    let process = Process::start(folder.path(), &["serve", "app"]);
    for path in ["/site", "/head"] {
        let shown = get(&process, path);
        assert_eq!(shown.status, 200, "{path}: {}", shown.text());
        assert!(shown.text().contains("<h1>About app</h1>"), "{path}: {}", shown.text());
    }
    let told = process.client().send("GET", "/site", &[("cookie", "flash=created.notes.1")], b"");
    assert_eq!((told.status, told.header("cache-control")), (200, Some("no-store")));
    assert_eq!(get(&process, "/site").header("cache-control"), Some("max-age=9"));
}

#[test]
fn broken_view_fails_only_its_own_pages() {
    let list =
        "{% extends \"layout.html\" %}\n{% block content %}\n{{ list.nothing.at.all }}\n{% endblock %}";
    let files = [("views/list.html", list), ("views/form.html", "<p>\n{% if %}\n")];
    let folder = folder(&files);
    let process = Process::start(folder.path(), &["serve", "app"]);
    let broken = get(&process, "/notes");
    assert_eq!((broken.status, broken.header("content-type")), (500, Some("text/html; charset=utf-8")));
    let text = broken.text();
    assert!(text.contains("views/list.html:3: "), "{text}");
    assert!(text.contains("<nav"), "the rest of the page is whole");
    process.wait_for("views/list.html:3: ");
    assert!(get(&process, "/notes/new").text().contains("views/form.html:2: "));
    assert_eq!(get(&process, "/").status, 200);
    let json = process.client().send("GET", "/notes", &[("accept", "application/json")], b"");
    assert_eq!((json.status, json.text().trim()), (200, "[]"));
}

#[test]
fn error_page_works_with_a_broken_error_view() {
    for broken in ["{% if %}", "{{ error.nothing.at.all }}", "{% include \"layout.html\" %}{{ 1 / 0 }}"] {
        let folder = folder(&[("views/error.html", broken), ("views/layout.html", broken)]);
        let process = Process::start(folder.path(), &["serve", "app"]);
        let missing = get(&process, "/notes/7");
        assert_eq!(missing.status, 404, "{broken}");
        let (text, id) = (missing.text(), missing.header("x-request-id").expect("an id").to_owned());
        assert!(text.contains("<h1>Not found</h1>") && text.contains(&id), "{broken}: {text}");
        assert!(text.contains("Note 7 not found") && text.contains("href=\"/\""), "{broken}: {text}");
    }
}

#[test]
fn error_pages_say_what_to_do_next() {
    let manifest = "default-format = \"page\"\n[[text]]\npath = \"/hello\"\ntext = \"Hello\"\n";
    let folder = folder(&[("trefoil.toml", manifest)]);
    let process = Process::start(folder.path(), &["serve", "app", "--limit-body", "2KiB"]);
    for (path, near) in [
        ("/note", "/notes"),
        ("/Notes", "/notes"),
        ("/notes/", "/notes"),
        ("/nots/3/edit", "/notes/3/edit"),
        ("/graphq", "/graphql"),
        ("/helo", "/hello"),
    ] {
        let text = get(&process, path).text();
        assert!(text.contains(&format!("Did you mean <a href=\"{near}\">")), "{path}: {text}");
    }
    let nothing = get(&process, "/somewhere/else/%3Cb%3E");
    assert_eq!(nothing.status, 404);
    assert!(
        !nothing.text().contains("Did you mean") && !nothing.text().contains("<b>"),
        "{}",
        nothing.text()
    );
    let html = ("accept", "text/html");
    let form = ("content-type", "application/x-www-form-urlencoded");
    let mut client = process.client();
    type Row<'r> = (&'r str, &'r str, Vec<(&'r str, &'r str)>, String, u16, &'r str);
    let table: [Row<'_>; 7] = [
        ("GET", "/notes/x", vec![html], String::new(), 400, "Check the address"),
        (
            "POST",
            "/notes",
            vec![html, form, ("sec-fetch-site", "cross-site")],
            "a=b".into(),
            403,
            "on this site",
        ),
        ("PUT", "/notes/new", vec![html], String::new(), 405, "links and buttons"),
        ("GET", "/notes", vec![("accept", "image/png")], String::new(), 406, "in a browser"),
        ("POST", "/notes", vec![html, form], "x".repeat(4000), 413, "send less"),
        ("POST", "/notes", vec![html, ("content-type", "image/png")], "x".into(), 415, "Send a form or JSON"),
        (
            "PATCH",
            "/notes/1",
            vec![html, ("content-type", "text/plain")],
            "x".into(),
            415,
            "Send a form or JSON",
        ),
    ];
    for (method, path, headers, body, status, advice) in table {
        let reply = client.send(method, path, &headers, body.as_bytes());
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{method} {path}");
        let id = reply.header("x-request-id").expect("an id").to_owned();
        assert!(reply.text().contains(advice) && reply.text().contains(&id), "{}", reply.text());
        client = process.client();
    }
}

#[test]
fn watch_reloads_views() {
    let folder = folder(&[]);
    let process = Process::start(folder.path(), &["serve", "app", "--watch"]);
    assert!(!get(&process, "/").text().contains("a new footer"));
    let footer = "{% extends \"trefoil/layout.html\" %}{% block footer %}a new footer{% endblock %}";
    put(folder.path(), "app/views/layout.html", footer);
    process.wait_for("reloaded the schema");
    assert!(get(&process, "/").text().contains("a new footer"));
}

#[test]
fn views_command_lists_and_copies() {
    let folder = folder(&[
        ("views/list.html", "x"),
        ("views/about.html", ABOUT),
        ("trefoil.toml", "[[text]]\npath = \"/about\"\n"),
    ]);
    let (code, out, _) = run(&folder, &["views", "app"]);
    assert_eq!(code, 0);
    let has = |name: &str, what: &str| {
        out.lines().any(|line| line.split_once(' ').is_some_and(|(n, rest)| n == name && rest.trim() == what))
    };
    assert!(has("layout.html", "built in"), "{out}");
    assert!(has("list.html", "overridden by views/list.html"), "{out}");
    assert!(has("about.html", "added, at /about"), "{out}");
    let (code, out, _) = run(&folder, &["views", "eject", "detail", "app"]);
    assert_eq!((code, out.contains("detail.html")), (0, true), "{out}");
    let copied = fs::read_to_string(folder.path().join("app/views/detail.html")).expect("a copy");
    assert!(copied.contains("{% extends"), "{copied}");
    let (code, _, err) = run(&folder, &["views", "eject", "detail.html", "app"]);
    assert_eq!((code, err.contains("already exists")), (2, true), "{err}");
    let (code, _, err) = run(&folder, &["views", "eject", "lsit", "app"]);
    assert_eq!((code, err.contains("did you mean `list`?")), (2, true), "{err}");
    assert_eq!(run(&folder, &["views", "eject", "list", "nowhere"]).0, 2);
    assert_eq!(run(&folder, &["check", "app"]).0, 0, "what was copied out compiles");
}

#[test]
fn check_reports_errors_in_views() {
    let folder = folder(&[
        ("views/form.html", "<p>\n  {% if %}\n"),
        ("views/lsit.html", "x"),
        ("views/_mine.html", "x"),
        ("views/delete.html", "{% include \"_mine.html\" %}"),
        ("trefoil.toml", "[[text]]\npath = \"/gone\"\n"),
    ]);
    let (code, out, _) = run(&folder, &["check", "app"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("views/form.html:2:3") && out.contains("^^^"), "{out}");
    assert!(out.contains("the view `lsit.html` is not used") && out.contains("`list.html`?"), "{out}");
    assert!(out.contains("`/gone` shows the view `gone`"), "{out}");
    assert!(out.contains("1 mistake, 2 warnings"), "{out}");
}

/// Another program locks the database: the error is shown as a page that does not need the store.
#[test]
fn error_page_works_without_the_store() {
    let folder = folder(&[]);
    let process = Process::start(folder.path(), &["serve", "app", "--data", "kept"]);
    let outsider = rusqlite::Connection::open(folder.path().join("kept/trefoil.db")).expect("the store");
    outsider.execute_batch("BEGIN IMMEDIATE").expect("held");
    let headers = [("accept", "text/html"), ("content-type", "application/x-www-form-urlencoded")];
    let reply = process.client().send("POST", "/notes", &headers, b"text=x");
    assert_eq!((reply.status, reply.header("content-type")), (503, Some("text/html; charset=utf-8")));
    let (text, wait) = (reply.text(), reply.header("retry-after").expect("a time").to_owned());
    assert!(text.contains("<nav") && text.contains("Try again in"), "{wait}: {text}");
    assert!(!text.contains(">Try again</a>"), "a link would not send it: {text}");
}
