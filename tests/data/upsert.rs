//! `import --by FIELD`: rows whose record exists already update it.

use super::{Bench, Kind, both};

both![
    existing_records_are_updated,
    id_means_the_key_of_each_type,
    key_is_compared_by_field_type,
    key_that_ignores_case_finds_its_record,
    new_existing_and_bad_rows_may_be_mixed
];

fn existing_records_are_updated(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let first = "{\"id\":1,\"name\":\"Ann\",\"nick\":\"a\",\"note\":\"kept\"}\n{\"id\":2,\"name\":\"Bob\",\"nick\":\"b\"}\n";
    assert!(bench.pipe(&store, &["--resource", "people"], first).succeeded);
    // A part of the fields, a new one, and one that is new in its first row and there in its second.
    bench.write("more.csv", "nick,name\na,Anna\nc,Cleo\nd,Dan\nd,Dana\n,Nobody\n");
    let said = bench.run("import", &store, &["--resource", "people", "--from", "more.csv", "--by", "nick"]);
    assert!(said.succeeded && said.err.contains("imported 5 rows"), "{}", said.err);
    let csv = bench.csv(&store, "people");
    let found: Vec<String> =
        csv.lines().skip(1).map(|line| line.split(',').take(4).collect::<Vec<_>>().join(",")).collect();
    assert_eq!(found, ["1,Anna,a,kept", "2,Bob,b,", "3,Cleo,c,", "4,Dana,d,", "5,Nobody,,"]);
    // By id, with everything that the export had; again changes nothing that can be seen.
    let people = bench.run("export", &store, &["--resource", "people"]).out;
    let said = bench.pipe(&store, &["--resource", "people", "--by", "id"], &people);
    assert!(said.succeeded, "{}", said.err);
    let again = bench.run("export", &store, &["--resource", "people"]).out;
    let without_time = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split("\"touched\"").next().unwrap().to_owned()).collect()
    };
    assert_eq!(without_time(&again), without_time(&people));
    let refused = [
        ("name", "--by name: the field is not @unique in `people`; use one of `id`, `nick`, `rank`"),
        ("nix", "--by nix: `people` has no field with this name; use one of `id`, `nick`, `rank`"),
    ];
    for (by, words) in refused {
        let said = bench.pipe(&store, &["--resource", "people", "--by", by], "");
        said.refused(&[words]);
        assert_eq!(said.code, Some(2));
    }
    bench.pipe(&store, &["--by", "nick"], "").refused(&["--by needs one resource: add --resource"]);
    let moved = "{\"id\":77,\"name\":\"Ann\",\"nick\":\"a\"}\n";
    let said = bench.pipe(&store, &["--resource", "people", "--by", "nick"], moved);
    said.refused(&["standard input:1: this record exists with the id 1, and its id cannot be changed to 77"]);
}

/// Decimals are equal by value, and a whole application can be imported again by its ids, except for its lists.
fn key_is_compared_by_field_type(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    assert!(bench.pipe(&store, &["--resource", "people"], "{\"name\":\"A\",\"rank\":\"1.50\"}\n").succeeded);
    let said =
        bench.pipe(&store, &["--resource", "people", "--by", "rank"], "{\"name\":\"B\",\"rank\":1.5}\n");
    assert!(said.succeeded, "{}", said.err);
    let out = bench.run("export", &store, &["--resource", "people"]).out;
    assert!(out.lines().count() == 1 && out.contains("\"name\":\"B\""), "{out}");
    let said = bench.pipe(&store, &["--by", "id"], bench.all(&store));
    assert!(said.succeeded, "{}", said.err);
    assert!(bench.pipe(&store, &["--resource", "items"], "\"x\"\n").succeeded);
    let said = bench.pipe(&store, &["--by", "id"], bench.all(&store));
    said.refused(&["the plain list `items` already has values", "nothing was imported"]);
}

fn key_that_ignores_case_finds_its_record(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let schema = "type User { id: ID! email: String @unique(ignoreCase: true) name: String } type Query { users: [User] }";
    bench.write("app/graphql/schema.graphqls", schema);
    bench.write("users.csv", "email,name\nAda@Example.org,Ada\nada@example.ORG,Ada L\nbob@example.org,Bob\n");
    bench.import(&store, &["--resource", "users", "--from", "users.csv", "--by", "email"]);
    bench.write("users.csv", "email,name\nBOB@example.org,Robert\n");
    bench.import(&store, &["--resource", "users", "--from", "users.csv", "--by", "email"]);
    let expected = "id,email,name\r\n1,ada@example.ORG,Ada L\r\n2,BOB@example.org,Robert\r\n";
    assert_eq!(bench.csv(&store, "users"), expected);
    let said = bench.run("import", &store, &["--resource", "users", "--from", "users.csv"]);
    said.refused(&["users.csv:2: Email is already taken"]);
}

/// More than one batch of existing, new and invalid rows, in an order that matters.
fn new_existing_and_bad_rows_may_be_mixed(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let first: String =
        (1..=600).map(|i| format!("{{\"id\":{i},\"name\":\"P{i}\",\"nick\":\"n{i}\"}}\n")).collect();
    assert!(bench.pipe(&store, &["--resource", "people"], first).succeeded);
    let row = |i: usize| match i {
        // Taken by a record that keeps it.
        700 => "{\"id\":700,\"name\":\"bad\",\"nick\":\"m1\"}\n".to_owned(),
        300 => "{\"id\":300,\"name\":\"bad\",\"nick\":\"m2\"}\n".to_owned(),
        // Free since the second row has let it go.
        900 => "{\"id\":900,\"name\":\"N900\",\"nick\":\"n2\"}\n".to_owned(),
        _ => format!("{{\"id\":{i},\"name\":\"N{i}\",\"nick\":\"m{i}\"}}\n"),
    };
    let more: String = (1..=1_500).map(row).collect();
    bench
        .pipe(&store, &["--resource", "people", "--by", "id"], &more)
        .refused(&["standard input:300: Nick is already taken (also on line 700)", "nothing was imported"]);
    let said = bench.pipe(&store, &["--resource", "people", "--by", "id", "--skip-bad"], &more);
    assert!(said.succeeded && said.err.contains("people 1,498; 2 skipped"), "{}", said.err);
    let csv = bench.csv(&store, "people");
    assert_eq!(csv.lines().count(), 1 + 1_500 - 1);
    for row in ["\r\n1,N1,m1,", "\r\n300,P300,n300,", "\r\n900,N900,n2,", "\r\n1500,N1500,m1500,"] {
        assert!(csv.contains(row), "{row}");
    }
}

/// Whatever a type calls its key, and with rows of several types at once.
fn id_means_the_key_of_each_type(kind: Kind) {
    let bench = Bench::new(kind);
    bench.write(
        "app/graphql/schema.graphqls",
        "type Pet { petId: ID! name: String } type Owner { id: Int! name: String } type Query { pets: [Pet] }",
    );
    let store = bench.store();
    let rows = |name: &str| {
        format!(
            "{{\"resource\":\"pets\",\"record\":{{\"petId\":\"1\",\"name\":\"{name}\"}}}}\n\
             {{\"resource\":\"owners\",\"record\":{{\"id\":1,\"name\":\"{name}\"}}}}\n"
        )
    };
    for name in ["Rex", "Max"] {
        let said = bench.pipe(&store, &["--by", "id"], rows(name));
        assert!(said.succeeded, "{name}: {}", said.err);
    }
    assert_eq!(bench.csv(&store, "pets").replace('\r', ""), "petId,name\n1,Max\n");
    assert_eq!(bench.csv(&store, "owners").replace('\r', ""), "id,name\n1,Max\n");
}
