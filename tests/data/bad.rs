//! Invalid import files and arguments: the error names the location, and the store is unchanged.

use std::process::Stdio;

use super::{Bench, Kind, Said, both};

both![
    every_bad_row_is_reported,
    dangling_reference_is_reported,
    skip_bad_leaves_out_bad_rows,
    duplicate_id_is_reported,
    highest_possible_id_is_refused,
    full_disk_fails_import_and_export
];

/// A store with something in it, to be found unchanged.
fn filled(bench: &Bench) -> (super::Store, String) {
    let store = bench.store();
    let people = "{\"id\":1,\"name\":\"Ann\",\"nick\":\"a\"}\n{\"id\":2,\"name\":\"Bob\",\"nick\":\"b\"}\n";
    let said = bench.pipe(&store, &["--resource", "people"], people);
    assert!(said.succeeded, "{}", said.err);
    let all = bench.all(&store);
    (store, all)
}

fn every_bad_row_is_reported(kind: Kind) {
    let bench = Bench::new(kind);
    let (store, before) = filled(&bench);
    let rows = concat!(
        r#"{"name":"fine"}"#,
        "\n",
        r#"{"name":"  "}"#,
        "\n",
        "\n",
        r#"{"id":1,"name":"again"}"#,
        "\n",
        r#"{"id":"x","name":"no id"}"#,
        "\n",
        r#"{"name":"taken","nick":"b"}"#,
        "\n",
        r#"{"name":"twice","nick":"t"}"#,
        "\n",
        r#"{"name":"twice","nick":"t"}"#,
        "\n",
        r#"{"nmae":"wrong"}"#,
        "\n",
        r#"[1]"#,
        "\n",
        r#"{"name":7}"#,
        "\n",
        r#"{"name":"cut o"#,
    );
    let said = bench.pipe(&store, &["--resource", "people"], rows);
    said.refused(&[
        "standard input:2: Name must not be blank",
        "standard input:4: Id is already taken",
        "standard input:5: an id must be a positive 64-bit integer",
        "standard input:6: Nick is already taken (also on line 8)",
        "standard input:9: `people` has no field `nmae`; did you mean `name`?",
        "standard input:10: a record must be a JSON object",
        "standard input:11: Name must be text",
        "standard input:12: unexpected end of the JSON; is the file truncated?",
        "error: nothing was imported",
    ]);
    assert_eq!((said.err.lines().count(), said.code), (9, Some(1)), "{}", said.err);
    assert_eq!(bench.all(&store), before);

    let many: String = (0..3_000).map(|_| "{\"name\":\"\"}\n").collect();
    let said = bench.pipe(&store, &["--resource", "people", "--max-errors", "3"], many);
    said.refused(&[
        "standard input:1: Name must not be blank (also on lines 2, 3)",
        "there may be more: the import stops after 3 invalid rows (--max-errors)",
    ]);
    let many: String = (0..3_000).map(|_| "{\"name\":\"\"}\n").collect();
    let said = bench.pipe(&store, &["--resource", "people", "--max-errors", "2000"], many);
    said.refused(&["standard input:1: Name must not be blank (also on lines 2, 3, 4, 5, 6 and 1,994 more)"]);
    assert_eq!(bench.all(&store), before);
}

fn dangling_reference_is_reported(kind: Kind) {
    let bench = Bench::new(kind);
    let (store, before) = filled(&bench);
    let rows = "{\"name\":\"x\",\"bossId\":1}\n{\"name\":\"y\",\"bossId\":99,\"homeId\":\"98\"}\n{\"id\":50,\"name\":\"\"}\n{\"name\":\"z\",\"bossId\":50}\n";
    let said = bench.pipe(&store, &["--resource", "people"], rows);
    said.refused(&[
        "standard input:2: `bossId`: there is no person with the id 99",
        "standard input:3: Name must",
    ]);
    // Who refers to a row that is told already is not to blame.
    assert!(!said.err.contains("standard input:4"), "{}", said.err);
    bench.write("students.csv", "name,courseIds\nS,[]\nT,\"[7]\"\n");
    let said = bench.run("import", &store, &["--resource", "students", "--from", "students.csv"]);
    said.refused(&["students.csv:3: `courseIds`: there is no course with the id 7"]);
    assert_eq!(bench.all(&store), before);
}

fn duplicate_id_is_reported(kind: Kind) {
    let bench = Bench::new(kind);
    let (store, before) = filled(&bench);
    let twice = "{\"id\":7,\"name\":\"x\"}\n{\"id\":8,\"name\":\"y\"}\n{\"id\":\"7\",\"name\":\"z\"}\n";
    let said = bench.pipe(&store, &["--resource", "people"], twice);
    said.refused(&["standard input:3: Id is already taken", "nothing was imported"]);
    assert_eq!(said.err.lines().count(), 2, "{}", said.err);
    bench.write("people.csv", "id,name\n7,x\n7,y\n");
    let said = bench.run("import", &store, &["--resource", "people", "--from", "people.csv"]);
    said.refused(&["people.csv:3: Id is already taken", "nothing was imported"]);
    assert_eq!(bench.all(&store), before);
}

/// The encoding of NDJSON is checked like that of CSV.
#[test]
fn ndjson_that_is_not_utf8_is_refused() {
    let bench = Bench::new(Kind::File);
    let (store, before) = filled(&bench);
    let check = |bytes: &[u8], words: &str| {
        bench.pipe(&store, &["--resource", "people"], bytes).refused(&[words, "nothing was imported"]);
        assert_eq!(bench.all(&store), before);
    };
    check(b"{\"name\":\"a\"}\n{\"name\":\"Zo\xeb\"}\n", "standard input:2: the file is not valid UTF-8");
    check(b"\xff\xfe{\0\"\0n\0a\0m\0e\0\"\0", "standard input:1: the file is UTF-16");
    check(b"{\"name\":\"a\\u0000b\"}\n", "standard input:1: Name ");
    check(
        b"[\n  {\"name\":\"a\"}\n]\n",
        "standard input:1: the file is a JSON array, but NDJSON has one record per line",
    );
    check(b"[{\"name\":\"a\"}]", "standard input:1: the file is a JSON array");
}

/// Also rows that refer to a skipped row, and rows that refer to those.
fn skip_bad_leaves_out_bad_rows(kind: Kind) {
    let bench = Bench::new(kind);
    let (store, _) = filled(&bench);
    let rows = concat!(
        r#"{"id":10,"name":"ten","bossId":11}"#,
        "\n",
        r#"{"id":11,"name":"eleven","bossId":12}"#,
        "\n",
        r#"{"id":12,"name":"","bossId":1}"#,
        "\n",
        r#"{"id":13,"name":"thirteen","bossId":1}"#,
        "\n",
        r#"{"id":14,"name":"#,
        "\n",
    );
    let said = bench.pipe(&store, &["--resource", "people", "--skip-bad"], rows);
    assert!(said.succeeded, "{}", said.err);
    for words in [
        "skipped: standard input:1: `bossId`: there is no person with the id 11",
        "skipped: standard input:2: `bossId`: there is no person with the id 12",
        "skipped: standard input:3: Name must not be blank",
        "skipped: standard input:5: unexpected end of the JSON",
        "imported 1 row in ",
        "people 1; 4 skipped",
    ] {
        assert!(said.err.contains(words), "no {words:?} in\n{}", said.err);
    }
    let csv = bench.csv(&store, "people");
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let many: String =
        (0..2_000).map(|i| format!("{{\"name\":\"{}\"}}\n", if i % 2 == 0 { "" } else { "n" })).collect();
    let said = bench.pipe(&store, &["--resource", "people", "--skip-bad", "--max-errors", "5"], many);
    assert!(said.succeeded, "{}", said.err);
    assert!(
        said.err.contains("skipped: and 995 more; only the first 5 are shown (--max-errors)"),
        "{}",
        said.err
    );
    assert!(said.err.contains("people 1,000; 1,000 skipped"), "{}", said.err);
}

/// The highest id would leave none for the next record, even if the import that chose it was refused.
fn highest_possible_id_is_refused(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let said = bench.pipe(&store, &["--resource", "teams"], r#"{"id":"9223372036854775807","title":"x"}"#);
    said.refused(&[
        "standard input:1: Id must not be 9223372036854775807: it leaves no id for the next record",
    ]);
    let said = bench.pipe(&store, &["--resource", "teams"], r#"{"id":"9000000000000000000","title":"x"}"#);
    assert!(said.succeeded, "{}", said.err);
    let said = bench.pipe(&store, &["--resource", "teams"], r#"{"title":"next"}"#);
    assert!(said.succeeded, "{}", said.err);
    assert!(bench.csv(&store, "teams").contains("\r\n9000000000000000001,next,"));
    // What one store has given another takes.
    let other = bench.store();
    let said = bench.pipe(&other, &["--resource", "teams"], r#"{"id":"9000000000000000001","title":"next"}"#);
    assert!(said.succeeded, "{}", said.err);
}

/// A line that names an unknown resource counts for no resource, also in a schema without record types.
#[test]
fn line_for_an_unknown_resource_is_reported() {
    let bench = Bench::new(Kind::File);
    bench.write("app/graphql/schema.graphqls", "type Query { hello: String }");
    let store = bench.store();
    let lines = "{\"resource\":\"nope\"}\n{\"resource\":\"items\",\"value\":\"x\"}\n";
    bench.pipe(&store, &[], lines).refused(&["standard input:1: unknown resource `nope`"]);
    let said = bench.pipe(&store, &["--skip-bad"], lines);
    assert!(said.err.contains(": items 1; 1 skipped"), "{}", said.err);
}

#[test]
fn csv_that_is_no_table_is_refused() {
    let bench = Bench::new(Kind::File);
    let (store, before) = filled(&bench);
    let check = |bytes: &[u8], words: &[&str]| {
        bench.write("people.csv", bytes);
        let said = bench.run("import", &store, &["--resource", "people", "--from", "people.csv"]);
        said.refused(words);
        said.refused(&["nothing was imported"]);
        assert_eq!(bench.all(&store), before);
    };
    check(b"", &["people.csv:1: the header line with the column names is missing"]);
    check(b"name,nik\nx,y\n", &["people.csv:1: `people` has no field `nik`; did you mean `nick`?"]);
    check(b"name,name\nx,y\n", &["people.csv:1: duplicate column `name`"]);
    check(
        b"name,nick\nx\nx,y,z\n",
        &["people.csv:2: 1 cell, but the header has 2 columns", "people.csv:3: 3 cells"],
    );
    check(b"name,nick\nfine,f\n\"cut,off\n", &["people.csv:3: unclosed quote"]);
    check(b"name,nick\n\"a\"b,c\n", &["people.csv:2: unexpected text after a closing quote"]);
    check(b"name,nick\nZo\xeb,z\n", &["people.csv:2: the file is not valid UTF-8; save it as UTF-8"]);
    check(b"\xff\xfen\0a\0m\0e\0", &["people.csv:1: the file is UTF-16; save it as UTF-8"]);
    check(b"name,rank\nx,1.2.3\ny,abc\n", &["people.csv:2: Rank ", "(also on line 3)"]);
    check(b"name,\nx,stray\n", &["people.csv:2: `stray` is in a column without a name"]);
    let long = format!("name\n{}\n", "x".repeat(2_000));
    bench.write("people.csv", &long);
    let said =
        bench.run("import", &store, &["--resource", "people", "--from", "people.csv", "--max-row", "1 KiB"]);
    said.refused(&["people.csv:2: the row is longer than 1024 bytes (--max-row)"]);
    let said = bench.pipe(
        &store,
        &["--resource", "people", "--max-row", "1KiB"],
        format!("\n{{\"name\":\"{}", "x".repeat(2_000)),
    );
    said.refused(&["standard input:2: the row is longer than 1024 bytes (--max-row)"]);
    assert_eq!(bench.all(&store), before);
}

#[test]
fn unknown_names_in_arguments_are_refused() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    let wrong = |verb: &str, arguments: &[&str], code, words: &str| {
        let said = bench.run(verb, &store, arguments);
        said.refused(&[words]);
        assert_eq!(said.code, Some(code), "{}", said.err);
    };
    wrong("import", &["--resource", "poeple", "--from", "app/trefoil.toml"], 2, "did you mean `people`?");
    wrong(
        "import",
        &["--resource", "people", "--by", "name", "--from", "app/trefoil.toml"],
        2,
        "not @unique",
    );
    // A wrong command line makes no store.
    wrong("export", &[], 1, "no store found in ");
    assert!(!bench.path("trefoil-data").exists());
    assert!(bench.pipe(&store, &[], "").succeeded);
    wrong("export", &["--resource", "poeple"], 2, "unknown resource `poeple`; did you mean `people`?");
    wrong("export", &["--format", "csv"], 2, "a CSV file holds one resource");
    wrong("export", &["--resource", "people", "--to", "app"], 1, "app is a folder; give a file");
    wrong("export", &["--to", "no/such/place"], 1, "No such file or directory");
    wrong("import", &["--from", "nowhere"], 2, "nowhere does not exist");
    wrong(
        "import",
        &["--from", "app"],
        2,
        "app/trefoil.toml: the file name must end in .ndjson, .csv or .tsv",
    );
    bench.write("in/peopel.csv", "name\n");
    wrong("import", &["--from", "in"], 2, "in/peopel.csv: unknown resource `peopel`; did you mean `people`?");
    bench.write("two/people.csv", "name\n");
    bench.write("two/people.ndjson", "");
    wrong("import", &["--from", "two"], 2, "two/people.ndjson: two/people.csv contains the same resource");
    assert!(bench.run("import", &store, &["--from", "two", "--format", "csv"]).succeeded);
    bench.write("two/teams.jsonl", "");
    wrong(
        "import",
        &["--from", "two", "--format", "csv"],
        2,
        "two/teams.jsonl: the file has another format than --format",
    );
    bench.write("some.csv", "name\n");
    wrong("import", &["--from", "some.csv"], 2, "a CSV file holds one resource: name it with --resource");
    bench
        .pipe(&store, &[], "{\"name\":\"x\"}\n")
        .refused(&["standard input:1: each line must be {\"resource\""]);
    bench.pipe(&store, &[], "{\"resource\":\"peple\",\"record\":{}}").refused(&["did you mean `people`?"]);
    let memory = super::Store { flags: vec!["--database".into(), "memory:".into()] };
    bench.pipe(&memory, &[], "").refused(&["memory: cannot be used here"]);
}

/// Files may grow to a size and no further, which programs see as a disk that takes no more.
fn limited(bench: &Bench, verb: &str, store: &super::Store, arguments: &[&str], kilobytes: u32) -> Said {
    let inner = bench.command(verb, store, arguments);
    let mut outer = std::process::Command::new("bash");
    outer.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$@\"")).arg("bash");
    outer
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(bench.folder.path())
        .stdin(Stdio::null());
    Said::of(outer.output().unwrap())
}

/// The journal holds nothing but the rows of the import, so that it can be discarded when the disk is full.
#[test]
fn new_store_tables_do_not_wait_in_the_wal() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    let mut import = bench.command("import", &store, &["--resource", "people"]);
    let mut import = import.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let file = std::path::Path::new(&store.flags[1]).join("trefoil.db");
    let begin = std::time::Instant::now();
    while file.metadata().map_or(0, |found| found.len()) < 40_960 {
        assert!(begin.elapsed().as_secs() < 20, "{:?}", file.metadata());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(import.stdin.take());
    assert!(import.wait().unwrap().success());
}

#[test]
fn full_temporary_folder_is_named() {
    let bench = Bench::new(Kind::File);
    let (store, _) = filled(&bench);
    let mut import = bench.command("import", &store, &["--resource", "people", "--skip-bad"]);
    let import = import.env("TMPDIR", bench.path("nowhere")).stdin(Stdio::null());
    let said = Said::of(import.output().unwrap());
    said.refused(&["standard input: temporary file in ", "nowhere (TMPDIR): No such file"]);
}

fn full_disk_fails_import_and_export(kind: Kind) {
    let bench = Bench::new(kind);
    let (store, before) = filled(&bench);
    let many: String =
        (0..8_000).map(|i| format!("{{\"name\":\"{}\",\"nick\":\"n{i}\"}}\n", "x".repeat(200))).collect();
    bench.write("many.ndjson", &many);
    if kind == Kind::File {
        let said =
            limited(&bench, "import", &store, &["--resource", "people", "--from", "many.ndjson"], 1_000);
        said.refused(&["nothing was imported: the disk"]);
        assert_eq!(bench.all(&store), before);
    }
    bench.import(&store, &["--resource", "people", "--from", "many.ndjson"]);
    bench.write("out.ndjson", "from before");
    let said = limited(&bench, "export", &store, &["--resource", "people", "--to", "out.ndjson"], 100);
    said.refused(&["out.ndjson: File too large"]);
    assert_eq!(bench.read("out.ndjson"), "from before");
    let said = limited(&bench, "export", &store, &["--to", "out"], 100);
    said.refused(&["out: File too large"]);
    assert!(!bench.path("out").exists() && !bench.path("out.partial").exists());
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let said = Said::of(bench.command("export", &store, &[]).stdout(full).output().unwrap());
    said.refused(&["standard output: No space left on device"]);
    // A reader that has seen enough is no failure.
    let mut child = bench.command("export", &store, &[]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
