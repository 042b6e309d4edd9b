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
