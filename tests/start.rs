//! Start, refused start, reload and shutdown of a server, with the real binary.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Process, command, postgres};

fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let Output { status, stderr, .. } = command(folder, arguments).output().expect("the binary runs");
    (status.code().expect("an exit code"), String::from_utf8(stderr).expect("UTF-8"))
}

/// One line that says this, behind the one about the application where none was named, and a non-zero exit.
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let (code, said) = run(folder, arguments);
    assert_ne!(code, 0, "{said}");
    let lines =
        said.lines().filter(|line| !line.contains("\"message\":\"application: Sample Resource API, "));
    assert_eq!(lines.count(), 1, "one clear line, not\n{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` in {said}");
    }
}

fn application(folder: &Path, schema: &str) {
    fs::create_dir_all(folder.join("app/graphql")).expect("a folder");
    fs::write(folder.join("app/graphql/schema.graphqls"), schema).expect("a schema");
}

#[test]
fn port_in_use_error_suggests_a_free_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    refused(folder.path(), &["--port", &port], &[&port, "is already in use", "--port"]);
    assert!(!folder.path().join("trefoil-data").exists(), "nothing was written");
}

#[test]
fn unreadable_folder_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    refused(folder.path(), &["serve", "nowhere"], &["nowhere", "folder not found", "trefoil new"]);
}

#[test]
fn schema_error_shows_its_location() {
    let folder = tempfile::tempdir().expect("a folder");
    application(
        folder.path(),
        "type Book { id: ID!  author: Autor }\ntype Author { id: ID! }\ntype Query { books: [Book] }",
    );
    let (code, said) = run(folder.path(), &["serve", "app", "--port", "0"]);
    assert_ne!(code, 0);
    for words in ["graphql/schema.graphqls:1:30", "Autor", "^^^^^", "did you mean `Author`"] {
        assert!(said.contains(words), "`{words}` in\n{said}");
    }
}

#[test]
fn data_folder_is_locked_by_one_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let _first = Process::start(folder.path(), &["serve"]);
    refused(folder.path(), &["--port", "0"], &["trefoil-data", "another server"]);
}

#[test]
fn data_folder_that_cannot_be_created_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("trefoil-data"), "a file").expect("written");
    refused(folder.path(), &["--port", "0"], &["trefoil-data"]);
}

#[test]
fn restart_keeps_records_and_loads_seeds_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = |process: &Process| {
        let answer = process.client().graphql("{ getAllUsers { id name } }");
        answer["data"]["getAllUsers"].as_array().expect("users").len()
    };
    let first = Process::start(folder.path(), &["serve"]);
    let seeded = count(&first);
    assert!(seeded >= 3, "the sample has users");
    let made = first.client().graphql(r#"mutation { createUser(name: "Zoë", email: "") { name } }"#);
    assert_eq!(made["data"]["createUser"]["name"], "Zoë");
    drop(first);
    assert_eq!(count(&Process::start(folder.path(), &["serve"])), seeded + 1);
}

#[test]
fn seeds_that_failed_are_loaded_after_a_fix() {
    let folder = tempfile::tempdir().expect("a folder");
    application(
        folder.path(),
        "type Book { id: ID! title: String! }\ntype Query { books: [Book!]! }\n\
         type Mutation { deleteBook(id: ID!): ID }",
    );
    let seed = |text: &str| {
        fs::create_dir_all(folder.path().join("app/seed")).expect("a folder");
        fs::write(folder.path().join("app/seed/books.json"), text).expect("a seed");
    };
    seed("[{\"id\": 1, \"title\": \"One\"},\n{\"id\": 2}]");
    refused(folder.path(), &["serve", "app", "--port", "0"], &["seed/books.json:2", "Title is required"]);
    seed("[{\"id\": 1, \"title\": \"One\"}]");
    let process = Process::start(folder.path(), &["serve", "app"]);
    assert_eq!(process.client().graphql("{ books { title } }")["data"]["books"][0]["title"], "One");
    process.client().graphql("mutation { deleteBook(id: 1) }");
    drop(process);
    // Emptied is not the same as never used.
    let process = Process::start(folder.path(), &["serve", "app"]);
    assert_eq!(process.client().graphql("{ books { title } }"), json!({ "data": { "books": [] } }));
}

/// Overwrites the first page of a table, as a bad disk might.
fn damage(file: &Path, table: &str) {
    let connection = rusqlite::Connection::open(file).expect("the store");
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number");
    let page = number(&format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}'"));
    let size = number("PRAGMA page_size");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("no journal");
    drop(connection);
    let mut bytes = fs::read(file).expect("the file");
    let begin = ((page - 1) * size) as usize;
    bytes[begin..begin + size as usize].fill(0xaa);
    fs::write(file, bytes).expect("written");
}

#[test]
fn unreadable_table_is_reported_at_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = Process::start(folder.path(), &["serve"]);
    assert_eq!(first.client().send("GET", "/health/ready", &[], b"").status, 200);
    first.signal("TERM");
    first.ended_within(Duration::from_secs(20));
    damage(&folder.path().join("trefoil-data/trefoil.db"), "products");

    let process = Process::start(folder.path(), &["serve"]);
    process.wait_for("the records of products cannot be read");
    process.wait_for("products cannot be read");
    assert!(process.log().contains("restore a backup (trefoil restore)"), "{}", process.log());
    let ready = process.client().send("GET", "/health/ready", &[], b"");
    assert_eq!(ready.status, 503, "{}", ready.text());
    assert!(ready.text().contains("the records of products cannot be read"), "{}", ready.text());
    assert!(ready.text().contains("restore a backup"), "{}", ready.text());
    assert_eq!(process.client().send("GET", "/health/live", &[], b"").status, 200);
    let users = process.client().send("GET", "/users", &[("Accept", "application/json")], b"");
    assert_eq!(users.status, 200, "what can be read is served: {}", users.text());
}

/// Writes the schema and the seeds of an application; gives what `trefoil check` says of them.
fn checked(folder: &Path, schema: &str, seeds: &[(&str, &str)]) -> (i32, String) {
    application(folder, schema);
    let seed = folder.join("app/seed");
    let _ = fs::remove_dir_all(&seed);
    fs::create_dir_all(&seed).expect("a folder");
    for (name, text) in seeds {
        fs::write(seed.join(name), text).expect("a seed");
    }
    let output = command(folder, &["check", "app"]).output().expect("the binary runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().expect("an exit code"), String::from_utf8(said).expect("UTF-8"))
}

const SCHOOL: &str = "
    type Student { id: ID! name: String! courses: [Course!]! friend: Student mentor: Teacher }
    type Course { id: ID! title: String! students: [Student!]! teacher: Teacher! }
    type Teacher { id: ID! name: String! favourite: Course }
    type Query { students: [Student!]! courses: [Course!]! teachers: [Teacher!]! }
";

/// In the order of names, each file refers to the next and the last to the first.
const SEEDS: [(&str, &str); 3] = [
    (
        "courses.json",
        r#"[{"id": 1, "title": "Maths", "teacherId": 2, "studentIds": [1]}, {"id": 2, "title": "Art", "teacherId": 1}]"#,
    ),
    (
        "students.json",
        r#"[{"id": 1, "name": "Ann", "courseIds": [1, 2], "friendId": 2, "mentorId": 2},
            {"id": 2, "name": "Bob", "courseIds": [1], "friendId": 2}]"#,
    ),
    ("teachers.json", r#"[{"id": 1, "name": "Cleo"}, {"id": 2, "name": "Dan", "favouriteId": 1}]"#),
];

fn seeded_school(folder: &Path, arguments: &[&str]) {
    let process = Process::start(folder, arguments);
    let found = process.client().graphql(
        "{ students { name courses { title } friend { name } mentor { name } }
           courses { title students { name } teacher { name } } teachers { favourite { title } } }",
    );
    let expected = json!({
        "students": [
            {"name": "Ann", "courses": [{"title": "Maths"}, {"title": "Art"}], "friend": {"name": "Bob"},
             "mentor": {"name": "Dan"}},
            {"name": "Bob", "courses": [{"title": "Maths"}], "friend": {"name": "Bob"}, "mentor": null},
        ],
        "courses": [
            {"title": "Maths", "students": [{"name": "Ann"}, {"name": "Bob"}], "teacher": {"name": "Dan"}},
            {"title": "Art", "students": [{"name": "Ann"}], "teacher": {"name": "Cleo"}},
        ],
        "teachers": [{"favourite": null}, {"favourite": {"title": "Maths"}}],
    });
    assert_eq!(found["data"], expected, "{found}");
}

#[test]
fn seeds_refer_to_each_other_in_any_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, said) = checked(folder.path(), SCHOOL, &SEEDS);
    assert_eq!(code, 0, "{said}");
    seeded_school(folder.path(), &["serve", "app"]);
    seeded_school(folder.path(), &["serve", "app", "--database", &postgres::database()]);
}

#[test]
fn seeds_with_dangling_references_are_located() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = [
        (
            "courses.json",
            r#"[{"id": 1, "title": "Maths", "teacherId": 7},
 {"id": 2, "title": "Art", "teacherId": 1, "studentIds": [1, 9]}]"#,
        ),
        ("students.json", "[{\"id\": 1, \"name\": \"Ann\", \"friendId\": 3}, {\"id\": 3}]"),
        ("teachers.json", "[{\"id\": 1, \"name\": \"Cleo\"}]"),
    ];
    let (code, said) = checked(folder.path(), SCHOOL, &missing);
    assert_ne!(code, 0, "{said}");
    for words in [
        "`teacherId`: there is no teacher with the id 7\n --> seed/courses.json:1:30\n",
        "`studentIds`: there is no student with the id 9\n --> seed/courses.json:2:44\n",
        "Name is required\n --> seed/students.json:1:43\n",
    ] {
        assert!(said.contains(words), "`{words}` in\n{said}");
    }
    assert!(!said.contains("with the id 3"), "who refers to what did not fit is not to blame:\n{said}");
    assert!(!folder.path().join("trefoil-data").exists());
}

/// A write that has begun: the server waits for the rest of its body.
fn begin_write(process: &Process) -> (TcpStream, &'static [u8]) {
    let body = br#"{"query":"mutation { createUser(name: \"Late\", email: \"\") { id } }"}"#;
    let (begun, rest) = body.split_at(20);
    let mut stream = TcpStream::connect(process.address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    let head = format!(
        "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), begun].concat()).expect("sent");
    let mut asking = process.client();
    let begin = Instant::now();
    // Itself and the one before it.
    while !asking.send("GET", "/metrics", &[], b"").text().contains("http_server_active_requests 2\n") {
        assert!(begin.elapsed() < Duration::from_secs(10), "the request does not begin");
    }
    (stream, rest)
}

#[test]
fn sigterm_finishes_requests_and_exits() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(folder.path(), &["serve"]);
    let mut idle = process.client();
    assert_eq!(idle.send("GET", "/health/ready", &[], b"").status, 200);
    let (mut busy, rest) = begin_write(&process);
    process.signal("TERM");
    process.wait_for("stopping");
    assert!(idle.is_closed(), "an idle connection waits for nobody");
    busy.write_all(rest).expect("still read");
    let mut answer = String::new();
    busy.read_to_string(&mut answer).expect("an answer, then the end");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"createUser\":{\"id\":"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(process.ended_within(Duration::from_secs(5)).success());
    let again = Process::start(folder.path(), &["serve"]);
    let users = again.client().graphql("{ getAllUsers { name } }").to_string();
    assert!(users.contains("Late"), "what was acknowledged is kept: {users}");
}

#[test]
fn endless_request_does_not_block_shutdown() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(folder.path(), &["serve"]);
    let _busy = begin_write(&process);
    process.signal("TERM");
    assert!(process.ended_within(Duration::from_secs(10)).success());
}

#[test]
fn second_signal_exits_at_once() {
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = Process::start(folder.path(), &["serve"]);
        let _busy = begin_write(&process);
        process.signal("TERM");
        process.wait_for("stopping");
        process.signal(name);
        assert_eq!(process.ended_within(Duration::from_secs(2)).code(), Some(code));
    }
}

#[test]
fn watch_reloads_only_valid_schemas() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = "type Book { id: ID! title: String! }\ntype Query { books: [Book!]! }\n\
                 type Mutation { createBook(title: String!): Book }";
    application(folder.path(), first);
    let process = Process::start(folder.path(), &["serve", "app", "--watch"]);
    let mut client = process.client();
    client.graphql(r#"mutation { createBook(title: "One") { id } }"#);

    application(folder.path(), &first.replace("title: String! }", "title: String! pages: Int }"));
    process.wait_for("reloaded the schema");
    let books = client.graphql("{ books { title pages } }");
    assert_eq!(books, json!({ "data": { "books": [{ "title": "One", "pages": null }] } }));

    application(folder.path(), &first.replace("[Book!]!", "[Bok!]!"));
    process.wait_for("still serving the previous one");
    assert!(process.log().contains("did you mean"), "{}", process.log());
    assert_eq!(client.graphql("{ books { pages } }")["data"]["books"][0], json!({ "pages": null }));
}

#[test]
fn migration_with_data_loss_stops_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = "type Book { id: ID! title: String! pages: Int }\ntype Query { books: [Book!]! }\n\
                 type Mutation { createBook(title: String!, pages: Int): Book }";
    application(folder.path(), first);
    let data = ["--data", "data"];
    let process = Process::start(folder.path(), &["serve", "app", data[0], data[1]]);
    process.client().graphql(r#"mutation { createBook(title: "One", pages: 7) { id } }"#);
    drop(process);

    application(folder.path(), &first.replace(" pages: Int }", " }").replace(", pages: Int)", ")"));
    let (code, said) = run(folder.path(), &["serve", "app", "--port", "0", data[0], data[1]]);
    assert_ne!(code, 0);
    assert!(said.contains("Book.pages") && said.contains("trefoil migrate"), "{said}");
    let plan =
        command(folder.path(), &["migrate", "app", "--plan", data[0], data[1]]).output().expect("runs");
    let plan = String::from_utf8(plan.stdout).expect("UTF-8");
    assert!(plan.contains("Book.pages") && plan.contains("--allow-drop"), "{plan}");
    let (code, said) = run(folder.path(), &["migrate", "app", "--apply", data[0], data[1]]);
    assert_ne!(code, 0, "{said}");
    // A host that only `serve --open` may listen on is no concern of a migration.
    fs::write(folder.path().join("app/trefoil.toml"), "host = \"0.0.0.0\"").expect("written");
    let apply = ["migrate", "app", "--apply", "--allow-drop", "Book.pages", data[0], data[1]];
    let (code, said) = run(folder.path(), &apply);
    assert_eq!(code, 0, "{said}");
    let process = Process::start(folder.path(), &["serve", "app", "--open", data[0], data[1]]);
    assert_eq!(process.client().graphql("{ books { title } }")["data"]["books"][0]["title"], "One");
}

#[test]
fn migration_plan_creates_no_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = command(folder.path(), &["migrate", "--plan"]).output().expect("runs");
    let said = String::from_utf8(plan.stdout).expect("UTF-8");
    assert!(plan.status.success() && said.contains("The store is empty"), "{said}");
    assert!(!folder.path().join("trefoil-data").exists());
}

#[test]
fn sigterm_works_while_nobody_reads_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = command(folder.path(), &["--port", "0"]).stderr(writer).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(reader));
    assert!(lines.any(|line| line.unwrap().contains("listening on")));
    drop(lines);
    assert!(std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let begin = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(5) {
            child.kill().unwrap();
            panic!("still running");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn shutdown_delay_serves_on_while_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(folder.path(), &["--shutdown-delay", "1500ms"]);
    let mut client = process.client();
    assert_eq!(client.send("GET", "/health/ready", &[], b"").status, 200);
    process.signal("TERM");
    process.wait_for("stopping");
    let unready = process.client().send("GET", "/health/ready", &[], b"");
    assert_eq!((unready.status, unready.header("retry-after")), (503, Some("1")));
    let still = process.client().graphql(r#"mutation { createUser(name: "late", email: "") { name } }"#);
    assert_eq!(still["data"]["createUser"]["name"], "late");
    assert!(process.ended_within(Duration::from_secs(15)).success());
}
