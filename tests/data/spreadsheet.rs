//! CSV in the forms that spreadsheets read and write.

use super::{Bench, Kind};

#[test]
fn csv_formulas_are_escaped_numbers_are_not() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    let rows = concat!(
        r#"{"id":1,"count":-5,"price":"-1.5","text":"=1+1","label":"+49 30"}"#,
        "\n",
        r#"{"id":2,"text":"@x","label":"-","url":"https://e.org","tags":["=a"]}"#,
        "\n",
        r#"{"id":3,"text":"'tis","label":"'"}"#,
        "\n",
        r#"{"id":4,"text":"＝1+1","label":"＠x"}"#,
        "\n",
    );
    assert!(bench.pipe(&store, &["--resource", "things"], rows).succeeded);
    let csv = bench.csv(&store, "things");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "id,flag,count,big,ratio,price,day,at,uuid,url,email,json,color,tags,place,label,text"
    );
    assert_eq!(lines[1], "1,,-5,,,-1.5,,,,,,,,,,'+49 30,'=1+1");
    assert_eq!(lines[2], "2,,,,,,,,,https://e.org,,,,\"[\"\"=a\"\"]\",,'-,'@x");
    assert_eq!(lines[3], "3,,,,,,,,,,,,,,,'','tis");
    assert_eq!(lines[4], "4,,,,,,,,,,,,,,,'＠x,'＝1+1");
    assert!(csv.ends_with("\r\n"));
}

#[test]
fn csv_null_differs_from_empty_text() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    let said = bench.pipe(&store, &["--resource", "teams"], "{\"id\":1,\"title\":\"\"}\n");
    assert!(said.succeeded, "{}", said.err);
    let people = "{\"id\":1,\"name\":\"a\",\"note\":\"\"}\n{\"id\":2,\"name\":\"b\",\"note\":null}\n";
    assert!(bench.pipe(&store, &["--resource", "people"], people).succeeded);
    // A title is never null, so an empty cell is the empty title; a note may be, so an empty note has a mark.
    assert_eq!(bench.csv(&store, "teams"), "id,title,leadId\r\n1,,\r\n");
    let csv = bench.csv(&store, "people");
    assert!(csv.contains("\r\n1,a,,',,") && csv.contains("\r\n2,b,,,,"), "{csv}");
}

/// Any order of columns, semicolons, a comma in numbers, capitals, quoted line breaks, no last line end.
#[test]
fn csv_import_reads_spreadsheet_dialects() {
    let bench = Bench::new(Kind::File);
    let sheets: [(&str, &str); 5] = [
        (
            "semicolons",
            "\u{feff}text;id;flag;price;ratio;tags\r\n\"a;\r\nb\";1;TRUE;1,50;0,5;\"[\"\"x\"\"]\"\r\n",
        ),
        ("commas", "ratio,price,flag,id,text,tags\n0.5,1.50,true,1,\"a;\r\nb\",\"[\"\"x\"\"]\""),
        ("tabs", "id\ttext\tflag\tprice\tratio\ttags\n1\t\"a;\r\nb\"\tTrue\t1.50\t0.5\t[\"x\"]\n"),
        (
            "said tab",
            "sep=\t\r\nid\ttext\tflag\tprice\tratio\ttags\n1\t\"a;\r\nb\"\tTrue\t1.50\t0.5\t[\"x\"]\n",
        ),
        ("said", "sep=;\nid;text;flag;price;ratio;tags;\n1;\"a;\r\nb\";TRUE;1.50;0.5;[\"x\"];\n\n"),
    ];
    for (name, sheet) in sheets {
        let store = bench.store();
        bench.write("things.csv", sheet);
        let said = bench.run("import", &store, &["--resource", "things", "--from", "things.csv"]);
        assert!(said.succeeded, "{name}: {}", said.err);
        let out = bench.run("export", &store, &["--resource", "things"]).out;
        for part in [
            r#""id":"1","flag":true"#,
            r#""ratio":0.5,"price":"1.50""#,
            r#""tags":["x"]"#,
            r#""text":"a;\r\nb""#,
        ] {
            assert!(out.contains(part), "{name}: {part}\n{out}");
        }
    }
}

/// Names as people write them, as long as one field alone can be meant.
#[test]
fn csv_header_names_fields_in_any_case() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    bench.write("people.csv", "ID,Name,BOSS_ID,home id\n1,Ann,,\n2,Bob,1,\n");
    bench.import(&store, &["--resource", "people", "--from", "people.csv"]);
    assert!(bench.csv(&store, "people").contains("\r\n2,Bob,,,,1,,"), "{}", bench.csv(&store, "people"));
    bench.write("people.csv", "Name,name\nAnn,Bob\n");
    let said = bench.run("import", &store, &["--resource", "people", "--from", "people.csv"]);
    said.refused(&["people.csv:1: the columns `Name` and `name` mean the same field"]);
    bench.write("people.csv", "Nmae\nAnn\n");
    let said = bench.run("import", &store, &["--resource", "people", "--from", "people.csv"]);
    said.refused(&["people.csv:1: `people` has no field `Nmae`; did you mean `name`?"]);
}

#[test]
fn tsv_file_is_a_table() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    bench.write("teams.tsv", "id\ttitle\n1\tA, B\n");
    bench.import(&store, &["--resource", "teams", "--from", "teams.tsv"]);
    assert_eq!(bench.csv(&store, "teams"), "id,title,leadId\r\n1,\"A, B\",\r\n");
    bench.write("folder/teams.tsv", "id\ttitle\n2\tC\n");
    bench.import(&store, &["--from", "folder"]);
    assert_eq!(bench.csv(&store, "teams"), "id,title,leadId\r\n1,\"A, B\",\r\n2,C,\r\n");
}

#[test]
fn csv_booleans_are_read_as_people_write_them() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    bench.write("things.csv", "id,flag\n1,yes\n2,N\n3,On\n4,0\n5,t\n6,FALSE\n");
    bench.import(&store, &["--resource", "things", "--from", "things.csv"]);
    let out = bench.run("export", &store, &["--resource", "things"]).out;
    let flags: Vec<bool> = out.lines().map(|line| line.contains("\"flag\":true")).collect();
    assert_eq!(flags, [true, false, true, false, true, false], "{out}");
    bench.write("things.csv", "id,flag\n7,perhaps\n");
    let said = bench.run("import", &store, &["--resource", "things", "--from", "things.csv"]);
    said.refused(&["things.csv:2: Flag must be true or false"]);
}

/// A time without a zone is UTC, which is said once.
#[test]
fn dates_and_times_of_databases_and_spreadsheets_are_read() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    bench.write(
        "things.csv",
        "id,day,at\n1,31.01.2026,2026-01-31 09:30:00+00\n2,2026/01/31,2026-01-31 10:30:00.123456789+01\n\
         3,01/31/2026,2026-01-31 09:30:00\n4,,31.01.2026 09:30\n",
    );
    let said = bench.run("import", &store, &["--resource", "things", "--from", "things.csv"]);
    assert!(said.succeeded, "{}", said.err);
    assert_eq!(said.err.matches("without a zone were taken as UTC").count(), 1, "{}", said.err);
    assert!(said.err.contains("note: things.csv:4: times without a zone"), "{}", said.err);
    let said = bench.pipe(&store, &["--resource", "things"], "{\"id\":5,\"at\":\"2026-01-31 09:30:00\"}\n");
    assert!(said.succeeded, "{}", said.err);
    let out = bench.run("export", &store, &["--resource", "things"]).out;
    assert_eq!(out.matches("\"day\":\"2026-01-31\"").count(), 3, "{out}");
    assert_eq!(out.matches("\"at\":\"2026-01-31T09:30:00Z\"").count(), 4, "{out}");
    assert!(out.contains("\"at\":\"2026-01-31T09:30:00.123456Z\""), "{out}");
    bench.write("things.csv", "day\n01/02/2026\n");
    let said = bench.run("import", &store, &["--resource", "things", "--from", "things.csv"]);
    said.refused(&["things.csv:2: day: the date `01/02/2026` is ambiguous: write 2026-02-01 or 2026-01-02"]);
}

#[test]
fn file_in_another_encoding_is_read_if_it_is_named() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    bench.write("teams.csv", b"id,title\n1,Zo\xeb\n");
    let said = bench.run("import", &store, &["--resource", "teams", "--from", "teams.csv"]);
    said.refused(&["teams.csv:2: the file is not valid UTF-8", "--encoding latin1"]);
    bench.import(&store, &["--resource", "teams", "--from", "teams.csv", "--encoding", "latin1"]);
    assert_eq!(bench.csv(&store, "teams"), "id,title,leadId\r\n1,Zoë,\r\n");
    let said = bench.run("import", &store, &["--resource", "teams", "--encoding", "latin9000"]);
    said.refused(&["no such encoding"]);
}

/// An empty line is no row; a line with an empty cell in quotes is one.
#[test]
fn csv_quoted_empty_cell_is_a_row() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    bench.write("teams.csv", "title\n\"\"\n\nx\n");
    bench.import(&store, &["--resource", "teams", "--from", "teams.csv"]);
    assert_eq!(bench.csv(&store, "teams"), "id,title,leadId\r\n1,,\r\n2,x,\r\n");
}

#[test]
fn csv_plain_list_is_one_column() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    bench.write("items.csv", "value\nmilk\n\"two\nlines\"\n'=x\n");
    bench.import(&store, &["--resource", "items", "--from", "items.csv"]);
    assert_eq!(
        bench.run("export", &store, &["--resource", "items"]).out,
        "\"milk\"\n\"two\\nlines\"\n\"=x\"\n"
    );
    assert_eq!(bench.csv(&store, "items"), "value\r\nmilk\r\n\"two\nlines\"\r\n'=x\r\n");
}
