//! `trefoil can`: on each application of `examples/apps` it says what the server does, and why.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Client, Process, command, postgres};

/// An application of `examples/apps` with a store that has its seed.
struct Example {
    app: String,
    store: Vec<String>,
    _folder: TempDir,
}

/// Application, login, role of the key, action, record, path, and the body of a change.
type Question =
    (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

const QUESTIONS: [Question; 26] = [
    ("blog", "", "", "read", "Post/1", "/posts/1", ""),
    ("blog", "", "", "read", "Post/3", "/posts/3", ""),
    ("blog", "", "", "read", "Comment/2", "/comments/2", ""),
    ("blog", "", "", "update", "Post/1", "/posts/1", r#"{"title": "A"}"#),
    ("blog", "arno@blog.example", "AUTHOR", "update", "Post/1", "/posts/1", r#"{"title": "B"}"#),
    ("blog", "arno@blog.example", "AUTHOR", "update", "Post/2", "/posts/2", r#"{"title": "C"}"#),
    ("blog", "arno@blog.example", "AUTHOR", "update", "Post/4", "/posts/4", r#"{"title": "D"}"#),
    ("blog", "arno@blog.example", "AUTHOR", "delete", "Post/1", "/posts/1", ""),
    ("blog", "edith@blog.example", "EDITOR", "update", "Post/4", "/posts/4", r#"{"note": "E"}"#),
    ("blog", "edith@blog.example", "EDITOR", "delete", "User/6", "/users/6", ""),
    ("blog", "ada@blog.example", "ADMIN", "delete", "Comment/2", "/comments/2", ""),
    ("crm", "", "", "read", "Team/1", "/teams/1", ""),
    ("crm", "mona@north.example", "MEMBER", "read", "Team/2", "/teams/2", ""),
    ("crm", "mona@north.example", "MEMBER", "read", "Deal/2", "/deals/2", ""),
    ("crm", "mark@north.example", "MEMBER", "read", "Deal/2", "/deals/2", ""),
    ("crm", "mark@north.example", "MEMBER", "update", "Deal/1", "/deals/1", r#"{"title": "F"}"#),
    ("crm", "mark@north.example", "MEMBER", "update", "Company/1", "/companies/1", r#"{"website": null}"#),
    ("crm", "mark@north.example", "MEMBER", "delete", "Call/2", "/calls/2", ""),
    ("crm", "olga@north.example", "OWNER", "delete", "Member/1", "/members/1", ""),
    ("gradebook", "paul@school.example", "PUPIL", "read", "Grade/1", "/grades/1", ""),
    ("gradebook", "paul@school.example", "PUPIL", "read", "Grade/2", "/grades/2", ""),
    ("gradebook", "gesa@home.example", "GUARDIAN", "read", "Course/3", "/courses/3", ""),
    ("gradebook", "tilda@school.example", "TEACHER", "update", "Grade/2", "/grades/2", r#"{"points": 8}"#),
    ("gradebook", "theo@school.example", "TEACHER", "update", "Grade/6", "/grades/6", r#"{"points": 8}"#),
    ("gradebook", "theo@school.example", "TEACHER", "delete", "Grade/4", "/grades/4", ""),
    ("gradebook", "olaf@school.example", "OFFICE", "update", "Grade/1", "/grades/1", r#"{"points": 1}"#),
];

impl Example {
    fn new(app: &str, store: &[&str]) -> Example {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data").to_str().expect("UTF-8").to_owned();
        let store = store.iter().map(|flag| (*flag).to_owned()).chain(["--data".to_owned(), data]);
        let app = format!("examples/apps/{app}");
        let example = Example { app, store: store.collect(), _folder: folder };
        assert!(example.run(&["reset", &example.app, "--yes"]).status.success());
        example
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let arguments: Vec<&str> =
            arguments.iter().copied().chain(self.store.iter().map(String::as_str)).collect();
        command(root, &arguments).output().expect("it runs")
    }

    /// What it prints and its exit code.
    fn can(&self, arguments: &[&str]) -> (String, i32) {
        let ran = self.run(&[&["can"], arguments, &[self.app.as_str()]].concat());
        let text = if ran.status.code() == Some(2) { ran.stderr } else { ran.stdout };
        (String::from_utf8(text).expect("UTF-8"), ran.status.code().expect("no signal"))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (text, code) = self.can(&[arguments, &["--format", "json"]].concat());
        let found: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{arguments:?}: {text}"));
        assert_eq!(code, i32::from(found["verdict"] == "no"), "{found:#}");
        found
    }

    fn key(&self, login: &str, role: &str) -> String {
        let ran = self.run(&["key", "add", role, &self.app, "--as", login, "--role", role]);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).expect("UTF-8").trim_end().to_owned()
    }

    fn serve(&self) -> Process {
        let arguments = ["serve", &self.app].into_iter().chain(self.store.iter().map(String::as_str));
        Process::start(Path::new(env!("CARGO_MANIFEST_DIR")), &arguments.collect::<Vec<_>>())
    }

    /// Asks `can` beside the running server, and the server itself.
    fn compare(&self, client: &mut Client, question: &Question) -> Result<(), String> {
        let (_, login, role, action, record, path, body) = *question;
        let (mut actor, mut headers) = (vec!["--anonymous"], Vec::new());
        let (key, name);
        if !login.is_empty() {
            key = format!("Bearer {}", self.key(login, role));
            name = role.to_owned();
            (actor, headers) = (vec!["--key", &name], vec![("authorization", key.as_str())]);
        }
        headers.push(("accept", "application/json"));
        let found = self.json(&[actor.as_slice(), &[action, record]].concat());
        let reply = match action {
            "read" => client.send("GET", path, &headers, b""),
            "update" => {
                headers.push(("content-type", "application/merge-patch+json"));
                client.send("PATCH", path, &headers, body.as_bytes())
            }
            _ => client.send("DELETE", path, &headers, b""),
        };
        if !login.is_empty() {
            assert!(self.run(&["key", "revoke", role, &self.app]).status.success());
        }
        let code = found["code"].as_str().unwrap_or("OK");
        let expected = match reply.status {
            200 | 204 => "OK",
            401 => "UNAUTHENTICATED",
            403 => "FORBIDDEN",
            404 => "NOT_FOUND",
            other => panic!("{question:?}: {other} {}", reply.text()),
        };
        if code == expected {
            Ok(())
        } else {
            Err(format!("{question:?}: {code}, got {expected}\n{found:#}"))
        }
    }
}

fn compare_all(app: &str, store: &[&str]) {
    let example = Example::new(app, store);
    let server = example.serve();
    let mut client = server.client();
    let questions = QUESTIONS.iter().filter(|question| question.0 == app);
    let wrong: Vec<String> =
        questions.filter_map(|question| example.compare(&mut client, question).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn can_says_what_the_blog_does() {
    compare_all("blog", &["--database", "sqlite:"]);
    compare_all("blog", &["--database", &postgres::database()]);
}

#[test]
fn can_says_what_the_crm_does() {
    compare_all("crm", &["--database", "sqlite:"]);
}

#[test]
fn can_says_what_the_gradebook_does() {
    compare_all("gradebook", &["--database", "sqlite:"]);
    compare_all("gradebook", &["--database", &postgres::database()]);
}

/// The parts of a rule with their verdicts: `yes mine`.
fn parts(found: &Value, rule: usize) -> Vec<String> {
    fn add(parts: &Value, into: &mut Vec<String>) {
        for part in parts.as_array().expect("parts") {
            let text = |name: &str| part[name].as_str().expect("a text").to_owned();
            into.push(format!("{} {}", text("verdict"), text("text")));
            add(&part["parts"], into);
        }
    }
    let mut found_parts = Vec::new();
    add(&found["rules"][rule]["rules"], &mut found_parts);
    found_parts
}

#[test]
fn can_explains_the_parts_of_rules() {
    let school = Example::new("gradebook", &["--database", "sqlite:"]);
    let found = school.json(&["--as", "paul@school.example", "read", "Grade/2"]);
    let expected = [
        "no teaches || published && enrolment.pupil.mine",
        "no teaches",
        "no enrolment.course.teaches",
        "no teacher == me",
        "no published && enrolment.pupil.mine",
        "no published",
        "yes enrolment.pupil.mine",
        "yes this == me || guardians.exists(g, g == me)",
        "yes this == me",
        "no guardians.exists(g, g == me)",
        "no role(OFFICE)",
    ];
    assert_eq!(parts(&found, 0), expected, "{found:#}");
    assert_eq!(found["rules"][0]["line"], 49);
    assert_eq!(found["rules"][0]["rules"][0]["parts"][0]["parts"][0]["line"], 46);

    // Without a record the rest is shown, as far as the actor does not decide.
    let found = school.json(&["--as", "paul@school.example", "read", "Grade"]);
    assert_eq!((&found["verdict"], &found["code"]), (&"some".into(), &Value::Null));
    assert_eq!(found["rules"][0]["rest"], "teaches || published && enrolment.pupil.mine");
    let found = school.json(&["--role", "TEACHER", "read", "Grade"]);
    assert_eq!(found["verdict"], "no", "a role is no account: {found:#}");

    let blog = Example::new("blog", &["--database", "sqlite:"]);
    let found = blog.json(&["--as", "anna@blog.example", "read", "Comment"]);
    assert_eq!(found["rules"][0]["rest"], "can(read, post) && (!held || author == me)");
    let found = blog.json(&["--as", "edith@blog.example", "read", "Comment"]);
    assert_eq!(found["rules"][0]["rest"], "can(read, post)");
}

#[test]
fn can_knows_fields_and_what_the_server_fills() {
    let blog = Example::new("blog", &["--database", "sqlite:"]);
    let first = |arguments: &[&str]| blog.can(arguments).0.lines().next().unwrap_or_default().to_owned();
    for (arguments, said) in [
        (
            &["--anonymous", "read", "User/3", "email"][..],
            "no: anonymous may not read `email` of User 3 (it is null)",
        ),
        (
            &["--as", "arno@blog.example", "read", "User/3", "email"],
            "yes: arno@blog.example may read `email` of User 3",
        ),
        (
            &["--as", "arno@blog.example", "update", "Post/3", "published"],
            "no: arno@blog.example may not update `published` of Post 3 (403 FORBIDDEN)",
        ),
        (
            &["--as", "arno@blog.example", "read", "Comment/3", "post"],
            "yes: arno@blog.example may read `post` of Comment 3",
        ),
        (
            &["--as", "ada@blog.example", "create", "Post", "author"],
            "no: ada@blog.example may not create `author` of Post (403 FORBIDDEN)",
        ),
        (&["--as", "arno@blog.example", "create", "Post"], "yes: arno@blog.example may create Post"),
        (
            &["--role", "AUTHOR", "create", "Post"],
            "no: somebody with role AUTHOR may not create Post (403 FORBIDDEN)",
        ),
        (&["--anonymous", "create", "Comment"], "no: anonymous may not create Comment (401 UNAUTHENTICATED)"),
        (
            &["--as", "troll@blog.example", "read", "Post"],
            "no: troll@blog.example may not read Post (401 UNAUTHENTICATED)",
        ),
        (
            &["--as", "arno@blog.example", "update", "Post/1"],
            "some: arno@blog.example may update Post 1 where this holds",
        ),
    ] {
        assert_eq!(first(arguments), said);
    }
    let (text, _) = blog.can(&["--role", "AUTHOR", "create", "Post"]);
    assert!(text.contains("`author` is filled in from the account"), "{text}");
    let (text, _) = blog.can(&["--role", "EDITOR", "delete", "User"]);
    assert!(text.contains("delete User: no\n  --> graphql/blog.graphqls:10:28"), "{text}");
    // What no rule names is refused by the type.
    let crm = Example::new("crm", &["--database", "sqlite:"]);
    let (text, code) = crm.can(&["--role", "OWNER", "delete", "Team"]);
    assert_eq!(code, 1);
    assert!(text.contains("delete Team: no\n --> graphql/crm.graphqls:17:6\n  no rule allows it"), "{text}");
    // What a default takes from the actor.
    let (text, _) = crm.can(&["--role", "OWNER", "create", "Company"]);
    assert!(text.contains("`team` is filled in from the account"), "{text}");
    let (text, code) = crm.can(&["--as", "mona@north.example", "create", "Company"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn can_says_what_it_does_not_know() {
    let blog = Example::new("blog", &["--database", "sqlite:"]);
    for (arguments, said) in [
        (&["--role", "AUTHR", "read", "Post"][..], "the schema has no role `AUTHR`; did you mean `AUTHOR`?"),
        (
            &["--as", "nobody@blog.example", "read", "Post"],
            "--as: there is no account \"nobody@blog.example\"",
        ),
        (&["--key", "ci", "read", "Post"], "there is no key `ci`"),
        (&["--anonymous", "crate", "Post"], "there is no action `crate`; did you mean `create`?"),
        (&["--anonymous", "read", "Pst"], "the schema has no type `Pst` with records; did you mean `Post`?"),
        (&["--anonymous", "read", "Post", "titel"], "`Post` has no field `titel`; did you mean `title`?"),
        (&["--anonymous", "read", "Post/99"], "there is no Post 99"),
        (&["--anonymous", "read", "Post/x"], "\"x\" is no id of Post: must be an id (a whole number)"),
        (&["--anonymous", "create", "Post/1"], "create is about no record that exists"),
        (&["--anonymous", "delete", "Post/1", "title"], "delete is about whole records: leave out the field"),
        (
            &["--anonymous", "call", "Query", "posts"],
            "the store answers `Query.posts`, by the rules of its types",
        ),
        (&["--anonymous", "call", "Query", "nothing"], "`Query` has no field `nothing`"),
        (&["--anonymous", "call", "Post"], "call is about operations"),
    ] {
        let (text, code) = blog.can(arguments);
        assert!(code == 2 && text.contains(said), "{arguments:?}: {code} {text}");
    }
    let sample = command(Path::new("/"), &["can", "--anonymous", "read", "User"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&sample.stderr).into_owned();
    assert!(sample.status.code() == Some(2) && text.contains("the application is open"), "{text}");
}

/// `BLESS=1 cargo test --test tests access::explaining` writes the examples of the guide anew.
#[test]
fn guide_shows_what_can_prints() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/access.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let blog = Example::new("blog", &["--database", "sqlite:"]);
    let (mut written, mut examples) = (String::new(), 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        written += &format!("{line}\n");
        let Some(arguments) = line.strip_prefix("$ trefoil can ") else { continue };
        let ran = blog.run(&[vec!["can"], arguments.split(' ').collect()].concat());
        written += &String::from_utf8(ran.stdout).expect("UTF-8");
        written += "```\n";
        examples += 1;
        lines.by_ref().take_while(|line| *line != "```").for_each(drop);
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, &written).expect("writable");
    } else {
        assert!(written == text, "docs/access.md shows something else than\n{written}");
    }
    assert_eq!(examples, 2);
}

#[test]
fn can_answers_for_lists_and_texts() {
    let app = "tests/access/coverage/desk";
    let can = |arguments: &[&str]| {
        let arguments = [&["can"], arguments, &[app]].concat();
        let ran = command(Path::new(env!("CARGO_MANIFEST_DIR")), &arguments).output().expect("it runs");
        let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        (ran.status.code(), text)
    };
    for (arguments, code, said) in [
        (["--anonymous", "read", "/hello"], 0, "yes: anonymous may read /hello\n"),
        (
            ["--anonymous", "read", "/internal"],
            1,
            "no: anonymous may not read /internal (401 UNAUTHENTICATED)\n",
        ),
        (["--anonymous", "read", "/words"], 0, "yes: anonymous may read /words\n"),
        (["--anonymous", "write", "/words"], 1, "no: anonymous may not write /words (401 UNAUTHENTICATED)\n"),
        (["--anonymous", "delete", "/words"], 2, "/words is a plain list: ask `read` or `write`"),
        (["--anonymous", "write", "/hello"], 2, "/hello is a text: ask `read`"),
        (
            ["--anonymous", "read", "/wrods"],
            2,
            "trefoil.toml has no list and no text at /wrods; did you mean `/words`?",
        ),
    ] {
        let (exit, text) = can(&arguments);
        assert_eq!(exit, Some(code), "{arguments:?}: {text}");
        assert!(
            if code == 2 { text.contains(said) } else { text.starts_with(said) },
            "{arguments:?}: {text}"
        );
        // Where the rule is, with a caret.
        if arguments[2] == "/internal" || arguments[1] == "write" && code == 1 {
            assert!(text.contains("--> trefoil.toml:") && text.contains("^^^"), "{text}");
        }
    }
}
