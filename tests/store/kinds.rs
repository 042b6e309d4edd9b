//! Every kind of value: stored exactly, filtered, sorted and paged alike on both stores.

use trefoil_engine::ListSlice;
use trefoil_model::CellValue;

use super::*;

both![
    every_kind_round_trips,
    every_kind_filters_and_sorts,
    forged_cursor_value_fails_only_its_own_list,
    unique_conflict_is_named_for_every_kind,
];

fn object(pairs: &[(&str, Value)]) -> Value {
    Value::Object(pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

const KINDS: &str = "flag day at uuid url email json color tags place rank label";

async fn things(bench: &Bench) {
    let rows = [
        [
            ("flag", Value::Bool(true)),
            ("day", text("2024-02-29")),
            ("at", text("2024-02-29T23:59:59.123456Z")),
            ("uuid", text("6BA7B810-9DAD-11D1-80B4-00C04FD430C8")),
            ("url", text("https://example.org/a?b=c")),
            ("email", text("a@example.org")),
            ("json", object(&[("z", int(1)), ("a", Value::List(vec![Value::Null, text("\"\\\u{1F33F}")]))])),
            ("color", text("RED")),
            ("tags", Value::List(vec![text("x"), text("y,\"{z}")])),
            ("place", object(&[("city", text("Ulm")), ("zip", int(89073))])),
            ("rank", int(-7)),
            ("label", text("b")),
        ],
        [
            ("flag", Value::Bool(false)),
            ("day", text("1999-12-31")),
            ("at", text("1999-12-31T00:00:00+01:00")),
            ("uuid", text("00000000-0000-0000-0000-000000000001")),
            ("url", text("http://b.example/")),
            ("email", text("b@example.org")),
            ("json", Value::number("1.10").expect("a number")),
            ("color", text("GREEN")),
            ("tags", Value::List(vec![])),
            ("place", object(&[("city", text("")), ("zip", Value::Null)])),
            ("rank", int(7)),
            ("label", text("a{,}\\\"")),
        ],
    ];
    for fields in rows {
        bench.make("Thing", &fields).await;
    }
    bench.make("Thing", &[]).await;
}

async fn every_kind_round_trips(bench: Bench) {
    things(&bench).await;
    let all = bench.rows(bench.list("Thing", Listing::default(), KINDS)).await;
    assert_eq!(
        all[0].to_string(),
        "1 2024-02-29 2024-02-29T23:59:59.123456Z 6ba7b810-9dad-11d1-80b4-00c04fd430c8 \
         https://example.org/a?b=c a@example.org {\"z\":1,\"a\":[null,\"\\\"\\\\\u{1F33F}\"]} RED \
         [\"x\",\"y,\\\"{z}\"] {\"city\":\"Ulm\",\"zip\":89073} -7 b"
    );
    assert_eq!(
        all[1].to_string(),
        "0 1999-12-31 1999-12-30T23:00:00.000000Z 00000000-0000-0000-0000-000000000001 http://b.example/ \
         b@example.org 1.10 GREEN [] {\"city\":\"\",\"zip\":null} 7 a{,}\\\""
    );
    assert_eq!(all[2].to_string(), ["null"; 12].join(" "));
    // What a write returns is what is read.
    for (id, row) in (1..).zip(&all) {
        assert_eq!(&bench.rows(bench.get("Thing", id, KINDS)).await[0], row);
        assert_eq!(&bench.rows(bench.delete("Thing", id, KINDS)).await[0], row);
    }
}

async fn every_kind_filters_and_sorts(bench: Bench) {
    things(&bench).await;
    let values = [
        ("flag", Value::Bool(true), "2 1 3"),
        ("day", text("2024-02-29"), "2 1 3"),
        ("at", text("2024-03-01T00:59:59.123456+01:00"), "2 1 3"),
        ("uuid", text("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), "2 1 3"),
        ("url", text("https://example.org/a?b=c"), "2 1 3"),
        ("email", text("a@example.org"), "1 2 3"),
        ("color", text("RED"), "2 1 3"),
        ("rank", int(-7), "1 2 3"),
        ("label", text("b"), "2 1 3"),
    ];
    let ids = async |listing| show(&bench.rows(bench.list("Thing", listing, "id")).await).replace(" | ", " ");
    for (field, value, ascending) in values {
        for (op, given, expected) in [
            ("eq", value.clone(), "1"),
            ("ne", value.clone(), "2 3"),
            ("in", Value::List(vec![value.clone()]), "1"),
            ("in", Value::List(vec![Value::Null, value.clone()]), "1 3"),
            ("gte", value.clone(), if ascending == "1 2 3" { "1 2" } else { "1" }),
            ("lt", value, if ascending == "1 2 3" { "" } else { "2" }),
        ] {
            let conditions = vec![bench.condition("Thing", field, op, given)];
            assert_eq!(ids(Listing { conditions, ..Listing::default() }).await, expected, "{field} {op:?}");
        }
        let order = bench.order("Thing", &[field]);
        assert_eq!(
            ids(Listing { sort_keys: order.clone(), ..Listing::default() }).await,
            ascending,
            "{field}"
        );
        // Page by page, each beginning where the cursor of the last one points.
        let (mut found, mut after) = (Vec::new(), None);
        for _ in 0..3 {
            let slice = ListSlice::First { first: 1, after: after.take() };
            let listing =
                Listing { sort_keys: order.clone(), slice, with_cursors: true, ..Listing::default() };
            let rows = bench.rows(bench.list("Thing", listing, "id")).await;
            found.push(show(&rows[..1]).split(' ').next().unwrap().to_owned());
            after = Some(bench.cursor("Thing", &order, &Shown(&rows[0]), 1));
        }
        assert_eq!(found.join(" "), ascending, "{field}");
    }
    let listing = Listing { sort_keys: bench.order("Thing", &["-at", "day"]), ..Listing::default() };
    assert_eq!(ids(listing).await, "1 2 3");
}

struct Shown<'a>(&'a ReadRow);

impl Row for Shown<'_> {
    fn cell(&self, column: usize) -> CellValue<'_> {
        self.0.cells[column].as_cell()
    }
    fn each_child(&self, _: usize, _: &mut dyn FnMut(&dyn Row)) {}
}

/// A client can forge a cursor: at worst its own list fails.
async fn forged_cursor_value_fails_only_its_own_list(bench: Bench) {
    things(&bench).await;
    let order = bench.order("Thing", &["day"]);
    let forged =
        ReadRow { cells: vec![StoredValue::Text("no day".into()), StoredValue::Int(1)], children: vec![] };
    let after = Some(bench.cursor("Thing", &order, &Shown(&forged), 0));
    let listing = || Listing {
        sort_keys: order.clone(),
        slice: ListSlice::First { first: 2, after: after.clone() },
        ..Listing::default()
    };
    let list = || bench.list("Thing", listing(), "id");
    match bench.one(list()).await {
        Ok(_) => assert!(bench.is_sqlite(), "PostgreSQL reads what it compares"),
        Err(error) => assert!(matches!(error, Error::Invalid(_)), "{error:?}"),
    }
    let told = bench.all(vec![bench.get("Thing", 1, "id"), list(), bench.get("Thing", 2, "id")]).await;
    assert!(matches!(told.outcomes[&0], Ok(Outcome::Found)));
    assert!(matches!(told.outcomes[&2], Ok(Outcome::Found)));
    assert_eq!((show(&told.rows[&0]), show(&told.rows[&2])), ("1".into(), "2".into()));
}

async fn unique_conflict_is_named_for_every_kind(bench: Bench) {
    let fields = [
        ("count", int(5)),
        ("ratio", Value::number("0.1").expect("a number")),
        ("amount", text("1.50")),
        ("day", text("2024-02-29")),
        ("at", text("2024-02-29T00:00:00Z")),
        ("uuid", text("00000000-0000-0000-0000-000000000001")),
        ("color", text("RED")),
    ];
    bench.make("Only", &fields).await;
    let error = bench.one(bench.create("Only", &fields, "id")).await.unwrap_err();
    let expected = ["Count", "Ratio", "Amount", "Day", "At", "Uuid", "Color"]
        .map(|name| format!("{} UNIQUE: {name} is already taken", name.to_lowercase()));
    assert_eq!(complaints(&error), expected);
}
