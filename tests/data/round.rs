//! An export that is imported elsewhere and exported again is the same bytes.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use super::{Bench, Kind, both, files};

both![
    every_value_round_trips,
    import_takes_references_in_any_order,
    lists_keep_their_order,
    next_id_follows_the_imported_ids,
    types_with_equal_fields_stay_apart,
    export_replaces_a_file_atomically,
    export_to_a_slow_reader_is_complete,
];

/// Values that something could stumble over.
const NASTY: &str = r#"
{"resource":"people","record":{"id":"3","name":"=SUM(A1)","nick":"","note":null,"rank":"1.50","made":"2001-02-03T04:05:06.789Z","touched":"2002-02-03T04:05:06Z"}}
{"resource":"people","record":{"id":"9","name":" two\r\nlines, \"quotes\"; and more ","nick":"'","note":"","rank":"-0.000000000000000000001"}}
{"resource":"people","record":{"id":"10","name":"'=1","nick":"-5","note":"\t@x","bossId":"3"}}
{"resource":"people","record":{"id":"11","name":"Zoë 你好 🌍","nick":"''","note":"null"}}
{"resource":"things","record":{"id":"1","flag":true,"count":-2147483648,"big":"9223372036854775807","ratio":0.1,"price":"12345678901234567890.123456789","day":"2024-02-29","at":"1999-12-31T23:59:59.999999Z","uuid":"0b0e7a3e-1f3a-4a52-9df0-1f6f3c7f0c11","url":"https://example.org/?a=1,2","email":"a@example.org","json":{"a":[1.50,null,"=x"]},"color":"GREEN","tags":["a,b","\"","=c"],"place":{"city":"X, Y","zip":1},"label":"007","text":""}}
{"resource":"things","record":{"id":"2","flag":false,"big":"-9223372036854775808","ratio":1e300,"price":"0","json":"text","tags":[],"text":"-1"}}
{"resource":"things","record":{"id":"3"}}
{"resource":"courses","record":{"id":"1","title":"A"}}
{"resource":"courses","record":{"id":"2","title":"B"}}
{"resource":"students","record":{"id":"1","name":"S","courseIds":["2","1"]}}
{"resource":"students","record":{"id":"2","name":"T","courseIds":[]}}
{"resource":"items","value":"=milk"}
{"resource":"items","value":"two\nlines"}
{"resource":"items","value":"'"}
"#;

fn types_with_equal_fields_stay_apart(kind: Kind) {
    let bench = Bench::new(kind);
    bench.write(
        "app/graphql/schema.graphqls",
        "type Cat { id: ID!  name: String! }  type Dog { id: ID!  name: String! }  type Query { cats: [Cat] }",
    );
    let lines = |cat: &str, dog: &str| {
        let line = |resource: &str, id: u32, name: &str| {
            format!(r#"{{"resource":"{resource}","record":{{"id":"{id}","name":"{name}"}}}}"#) + "\n"
        };
        line("cats", 1, cat) + &line("dogs", 1, dog) + &line("dogs", 2, dog)
    };
    let store = bench.store();
    for (content, arguments) in [(lines("Tom", "Rex"), &[][..]), (lines("Kit", "Max"), &["--by", "id"][..])] {
        let said = bench.pipe(&store, arguments, &content);
        assert!(said.succeeded, "{}", said.err);
        let mut records: Vec<String> = bench.all(&store).lines().map(|line| line.to_owned() + "\n").collect();
        records.retain(|line| line.contains("\"record\""));
        assert_eq!(records.concat(), content);
    }
}

fn every_value_round_trips(kind: Kind) {
    let bench = Bench::new(kind);
    let first = bench.store();
    let said = bench.pipe(&first, &[], NASTY);
    assert!(said.succeeded, "{}", said.err);
    assert!(said.err.contains("imported 14 rows in "), "{}", said.err);
    let all = bench.all(&first);
    for line in NASTY.lines().filter(|line| line.contains("\"items\"") || line.contains("\"courses\"")) {
        assert!(all.contains(line), "{line}\n{all}");
    }
    let whole = r#""big":"9223372036854775807","ratio":0.1,"price":"12345678901234567890.123456789","day":"2024-02-29""#;
    assert!(all.contains(whole), "{all}");
    assert!(all.contains(r#""made":"2001-02-03T04:05:06.789Z","touched":"2002-02-03T04:05:06Z"}"#), "{all}");
    assert!(all.contains(r#""name":"S","courseIds":["1","2"]}"#), "{all}");
    for format in ["ndjson", "csv"] {
        let said = bench.run("export", &first, &["--to", format, "--format", format]);
        assert!(said.succeeded, "{}", said.err);
        let names = ["courses", "items", "people", "students", "teams", "things"];
        assert_eq!(files(&bench.path(format)), names.map(|name| format!("{name}.{format}")));
        // Into a store of each kind: what they say is the same, too.
        for second in [bench.store(), bench.file_store()] {
            bench.import(&second, &["--from", format]);
            assert_eq!(bench.all(&second), all, "through {format}");
        }
    }
    assert!(!bench.path("csv.partial").exists());
}

/// Two people who are each other's boss, a team led by its own member, and rows before those they refer to.
fn import_takes_references_in_any_order(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    bench.write(
        "in/people.ndjson",
        concat!(
            r#"{"id":1,"name":"A","bossId":2,"homeId":1}"#,
            "\n",
            r#"{"id":2,"name":"B","bossId":1}"#,
            "\n",
            r#"{"id":3,"name":"C","bossId":3}"#,
            "\n",
        ),
    );
    bench.write("in/teams.ndjson", "{\"id\":1,\"title\":\"T\",\"leadId\":1}\n");
    bench.write("in/students.csv", "id,name,courseIds\n1,S,\"[\"\"5\"\"]\"\n");
    bench.write("in/courses.csv", "id,title\n5,X\n");
    bench.import(&store, &["--from", "in"]);
    let all = bench.all(&store);
    for part in [
        r#""id":"1","name":"A","nick":null,"note":null,"rank":null,"bossId":"2","homeId":"1""#,
        r#""id":"2","name":"B","nick":null,"note":null,"rank":null,"bossId":"1""#,
        r#""leadId":"1""#,
        r#""courseIds":["5"]"#,
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    // Nobody was changed on the way.
    let reversed: Vec<&str> = all.lines().rev().collect();
    let second = bench.store();
    let said = bench.pipe(&second, &[], reversed.join("\n"));
    assert!(said.succeeded, "{}", said.err);
    assert_eq!(bench.all(&second), all);
}

fn lists_keep_their_order(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let values: String = (0..5_000).map(|i| format!("\"value {i}\"\n")).collect();
    bench.write("items.ndjson", &values);
    bench.import(&store, &["--resource", "items", "--from", "items.ndjson"]);
    bench.import(&store, &["--resource", "/items", "--from", "items.ndjson"]);
    let said = bench.run("export", &store, &["--resource", "items"]);
    assert_eq!(said.out, format!("{values}{values}"));
    let said = bench.pipe(&store, &["--resource", "items"], "\"last\"\n\"  \"\n");
    said.refused(&["standard input:2: the value must not be blank", "nothing was imported"]);
    assert_eq!(bench.run("export", &store, &["--resource", "items"]).out, said_twice(&values));
}

fn said_twice(text: &str) -> String {
    format!("{text}{text}")
}

/// Imported ids are never given to new records.
fn next_id_follows_the_imported_ids(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let chosen: String =
        [7_i64, 3, 5_000, 20_000_000_000].map(|id| format!("{{\"id\":{id},\"title\":\"t\"}}\n")).concat();
    let said = bench.pipe(&store, &["--resource", "teams"], &chosen);
    assert!(said.succeeded, "{}", said.err);
    let said =
        bench.pipe(&store, &["--resource", "teams"], "{\"title\":\"next\"}\n{\"title\":\"one more\"}\n");
    assert!(said.succeeded, "{}", said.err);
    let out = bench.run("export", &store, &["--resource", "teams"]).out;
    let last: Vec<&str> = out.lines().skip(4).collect();
    assert_eq!(
        last,
        [
            r#"{"id":"20000000001","title":"next","leadId":null}"#,
            r#"{"id":"20000000002","title":"one more","leadId":null}"#
        ]
    );
}

fn export_replaces_a_file_atomically(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let said = bench.pipe(&store, &["--resource", "teams"], "{\"title\":\"a\"}\n");
    assert!(said.succeeded, "{}", said.err);
    bench.write("teams.csv", "what was there before");
    bench.write("teams.csv.partial", "what a run left that was killed");
    let said = bench.run("export", &store, &["--resource", "teams", "--to", "teams.csv"]);
    assert!(said.succeeded && said.err.contains("exported 1 row in "), "{}", said.err);
    assert_eq!(bench.read("teams.csv"), "\u{feff}id,title,leadId\r\n1,a,\r\n");
    assert!(!bench.path("teams.csv.partial").exists());
    let said = bench.run("export", &store, &["--to", "app"]);
    said.refused(&["app is not empty; choose a folder that is empty or does not exist"]);
    fs::create_dir(bench.path("empty")).unwrap();
    assert!(bench.run("export", &store, &["--to", "empty"]).succeeded);
    assert_eq!(files(&bench.path("empty")).len(), 6);
    let said = bench.run("export", &store, &["--to", "all.ndjson"]);
    assert!(said.succeeded, "{}", said.err);
    assert_eq!(bench.read("all.ndjson"), bench.all(&store));
}

/// More than lies in the buffers on the way, and a reader that takes its time: neither the store's snapshot nor its
/// connection waits for it.
fn export_to_a_slow_reader_is_complete(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let rows: String = (1..=8_000).map(|i| format!("{{\"title\":\"{i} {}\"}}\n", "x".repeat(200))).collect();
    assert!(bench.pipe(&store, &["--resource", "teams"], rows).succeeded);
    let mut child = bench.command("export", &store, &[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut text = vec![0; 100];
    out.read_exact(&mut text).unwrap();
    std::thread::sleep(Duration::from_secs(10));
    out.read_to_end(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(String::from_utf8(text).unwrap() == bench.all(&store));
}

/// In a stream of several resources a record is nested one level deeper than alone.
#[test]
fn deeply_nested_json_round_trips() {
    let bench = Bench::new(Kind::File);
    let (first, second) = (bench.store(), bench.store());
    let deep = format!("{{\"json\":{}{}}}\n", "[".repeat(126), "]".repeat(126));
    assert!(bench.pipe(&first, &["--resource", "things"], &deep).succeeded);
    let all = bench.all(&first);
    let said = bench.pipe(&second, &[], &all);
    assert!(said.succeeded, "{}", said.err);
    assert_eq!(bench.all(&second), all);
    let wrong = "{\"resource\":\"things\",\"record\":{\"text\":\"\\ud800\"}}\n";
    bench.pipe(&second, &[], wrong).refused(&["standard input:1: invalid JSON: ", "(column 46)"]);
}

/// Pipes and devices are written to; a file must not take their place.
#[test]
fn export_to_a_pipe_or_device_does_not_replace_it() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    assert!(bench.pipe(&store, &[], NASTY).succeeded);
    let pipe = bench.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    let said = bench.run("export", &store, &["--to", "pipe"]);
    assert!(said.succeeded, "{}", said.err);
    assert_eq!(reader.join().unwrap(), bench.all(&store));
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&fs::metadata(&pipe).unwrap().file_type()));
    let said = bench.run("export", &store, &["--resource", "people", "--to", "/dev/null"]);
    assert!(said.succeeded && said.err.contains(" to /dev/null"), "{}", said.err);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

/// A name without a known extension means a folder, and a database is never replaced, whatever its name.
#[test]
fn export_never_overwrites_a_database_or_odd_file() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    assert!(bench.pipe(&store, &[], NASTY).succeeded);
    let own = format!("{}/trefoil.db", store.flags[1]);
    let (log, lock) = (format!("{own}-wal"), format!("{}/trefoil.lock", store.flags[1]));
    fs::copy(&own, bench.path("copy.ndjson")).unwrap();
    bench.write("notes.txt", "mine");
    for (arguments, why) in [
        (vec!["--to", &own], "trefoil.db is a file; give a folder, or a file name ending in .ndjson"),
        (vec!["--to", "notes.txt"], "notes.txt is a file; give a folder"),
        (vec!["--to", "copy.ndjson"], "copy.ndjson is a database; choose another file"),
        (vec!["--resource", "people", "--to", &own], "trefoil.db is a database; choose another file"),
        (vec!["--resource", "people", "--to", &log], "trefoil.db-wal belongs to the database"),
        (vec!["--resource", "people", "--to", &lock], "trefoil.lock is the lock file of a data folder"),
    ] {
        bench.run("export", &store, &arguments).refused(&[why]);
    }
    assert_eq!(bench.read("notes.txt"), "mine");
    assert!(bench.all(&store).contains("\"resource\""));
    let said = bench.run("export", &store, &["--resource", "people", "--to", "notes.txt"]);
    assert!(said.succeeded, "{}", said.err);
}

/// Two at once would write into the same partial file.
#[test]
fn export_file_has_one_writer_at_a_time() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    assert!(bench.pipe(&store, &[], NASTY).succeeded);
    bench.write("out.ndjson", "from before");
    bench.write("out.ndjson.partial", "half of another export");
    fs::create_dir(bench.path("out.partial")).unwrap();
    for (held, to) in [("out.ndjson.partial", "out.ndjson"), ("out.partial", "out")] {
        let other = fs::File::open(bench.path(held)).unwrap();
        other.lock().unwrap();
        let said = bench.run("export", &store, &["--to", to]);
        said.refused(&[&format!("{to}: another command is writing it")]);
        assert!(bench.path(held).exists());
        drop(other);
    }
    assert_eq!(bench.read("out.ndjson"), "from before");
    assert_eq!(bench.read("out.ndjson.partial"), "half of another export");
    for (to, held) in [("out.ndjson", "out.ndjson.partial"), ("out", "out.partial")] {
        let said = bench.run("export", &store, &["--to", to]);
        assert!(said.succeeded && !bench.path(held).exists(), "{}", said.err);
    }
    assert_eq!(bench.read("out.ndjson"), bench.all(&store));
}
