//! Cursors that are forged, or taken from another list: they reveal nothing that the list would not show.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use trefoil_engine::Authority;
use trefoil_engine::ListSlice;

use super::*;

both![
    forged_cursor_does_not_locate_hidden_records,
    forged_cursor_does_not_reveal_others_children,
    cursor_works_in_a_filtered_list,
    cursor_of_another_list_is_refused,
    cursor_in_the_older_format_works,
];

fn forged(parts: serde_json::Value) -> String {
    URL_SAFE_NO_PAD.encode(parts.to_string())
}

fn after(order: &[SortKey], cursor: String) -> Listing {
    let slice = ListSlice::First { first: 100, after: Some(cursor) };
    Listing { sort_keys: order.to_vec(), slice, ..Listing::default() }
}

async fn labelled(bench: &Bench, label: &str, rank: i64) -> i64 {
    let long = format!("{label}{}", "x".repeat(2_000));
    bench.make("Thing", &[("label", text(&long)), ("rank", int(rank))]).await
}

async fn forged_cursor_does_not_locate_hidden_records(bench: Bench) {
    let hidden = labelled(&bench, "m", 0).await;
    for label in ["a", "h", "ma", "mz", "r", "z"] {
        labelled(&bench, label, 1).await;
    }
    for word in ["label", "-label"] {
        let order = bench.order("Thing", &[word]);
        for beginning in ["", "h", "m", "mx", "mxx", "r"] {
            let mut found = Vec::new();
            for id in [hidden, 9_999] {
                let cursor = forged(json!([format!("Thing:{word}"), { "b": beginning }, id]));
                let conditions = vec![bench.condition("Thing", "rank", "eq", int(1))];
                let listing = Listing { conditions, ..after(&order, cursor) };
                found.push(show(&bench.rows(bench.list("Thing", listing, "id")).await));
            }
            assert_eq!(
                found[0], found[1],
                "{word} {beginning:?}: the hidden record is told from none at all"
            );
        }
    }
}

async fn forged_cursor_does_not_reveal_others_children(bench: Bench) {
    let (own, other) = (bench.user("Ada").await, bench.user("Bob").await);
    let item = |user: i64, item: &str| {
        [("user", int(user)), ("item", text(&format!("{item}{}", "x".repeat(2_000))))]
    };
    let hidden = bench.make("Order", &item(other, "m")).await;
    for name in ["a", "z"] {
        bench.make("Order", &item(own, name)).await;
    }
    let order = bench.order("Order", &["item"]);
    let mut found = Vec::new();
    for id in [hidden, 9_999] {
        let listing = after(&order, forged(json!(["Order:item", { "b": "" }, id])));
        let selection = Selection::new(vec![bench.field("Order", "id")], Vec::new());
        let child = ChildSelection::new(bench.field("User", "orders"), listing, selection);
        let selection = PreparedSelection::new(Selection::new(vec![bench.field("User", "id")], vec![child]));
        let get = Operation::Get { record: bench.record("User").0, id: own.into(), selection };
        found.push(show(&bench.rows(get).await));
    }
    assert_eq!(found[0], found[1], "a hidden record is told from none at all");
    assert!(found[0].contains('2') && found[0].contains('3'), "{}", found[0]);
}

/// The record of a cursor is looked up with the filters of the list.
async fn cursor_works_in_a_filtered_list(bench: Bench) {
    for label in ["c", "a", "d", "b"] {
        labelled(&bench, label, 1).await;
        labelled(&bench, label, 0).await;
    }
    let order = bench.order("Thing", &["label"]);
    let conditions = vec![bench.condition("Thing", "rank", "eq", int(1))];
    let (mut found, mut place) = (Vec::new(), None);
    loop {
        let slice = ListSlice::First { first: 1, after: place.take() };
        let (conditions, order) = (conditions.clone(), order.clone());
        let listing =
            Listing { conditions, sort_keys: order.clone(), slice, with_cursors: true, ..Listing::default() };
        let rows = bench.rows(bench.list("Thing", listing, "id")).await;
        let Some(row) = rows.first() else { break };
        found.push(row.cells[0].clone());
        let StoredValue::Text(label) = &row.cells[1] else { panic!("no label") };
        let StoredValue::Int(id) = row.cells[2] else { panic!("no id") };
        place = Some(forged(json!(["Thing:label", { "b": &label[..128] }, id])));
    }
    assert_eq!(found, [3, 7, 1, 5].map(StoredValue::Int));
}

async fn cursor_of_another_list_is_refused(bench: Bench) {
    let student = bench.make("Student", &[("name", text("Ada"))]).await;
    let cursor = forged(json!(["Student:name", "A", student]));
    let list = |record: &str, word: &str, cursor: String| {
        bench.list(record, after(&bench.order(record, &[word]), cursor), "id")
    };
    assert_eq!(bench.rows(list("Student", "name", cursor.clone())).await.len(), 1);
    let wrong = [
        ("Course", "title", cursor.clone()),
        ("Student", "-name", cursor.clone()),
        ("Student", "id", cursor.clone()),
        ("Student", "name", cursor[1..].to_owned()),
        ("Student", "name", forged(json!(["Student:name", "A", "1"]))),
        ("Student", "name", forged(json!(["Student:name", "A"]))),
        ("Student", "name", forged(json!(["Student:name", "A", "B", 1]))),
        ("Student", "name", forged(json!(["Student:name", 5, 1]))),
        ("Student", "name", forged(json!(["Student:name", "A\0", 1]))),
        ("Student", "name", forged(json!(["Student:name", { "b": "\0" }, 1]))),
        ("Student", "name", forged(json!(["Student:name", { "f": 0 }, 1]))),
        ("Thing", "rank", forged(json!(["Thing:rank", "1", 1]))),
        ("Thing", "rank", forged(json!(["Thing:rank", { "f": 0 }, 1]))),
        ("Thing", "rank", forged(json!(["Thing:rank", { "b": "" }, 1]))),
        ("Thing", "day", forged(json!(["Thing:day", 1, 1]))),
        ("Thing", "flag", forged(json!(["Thing:flag", "true", 1]))),
        ("User", "score", forged(json!(["User:score", 1, 1]))),
        ("User", "score", forged(json!(["User:score", "1", 1]))),
    ];
    for (record, word, cursor) in wrong {
        let list = list(record, word, cursor.clone());
        let error = Plan::prove(
            &bench.model,
            &PlanLimits::default(),
            &Authority::operator(),
            list,
            &jiff::Timestamp::UNIX_EPOCH.into(),
        )
        .unwrap_err();
        let Error::Invalid(violations) = &error else { panic!("{record} {word} {cursor}: {error:?}") };
        assert_eq!(violations[0].code, "CURSOR", "{record} {word} {cursor}");
    }
}

async fn cursor_in_the_older_format_works(bench: Bench) {
    for name in ["Ada", "Bob", "Cleo"] {
        bench.make("Student", &[("name", text(name))]).await;
    }
    let order = bench.order("Student", &["-name"]);
    let older = forged(json!([format!("-{}", order[0].value.own_field().unwrap().0), "Bob", 2]));
    assert_eq!(show(&bench.rows(bench.list("Student", after(&order, older), "id")).await), "1");
    let older = forged(json!(["", 2]));
    assert_eq!(show(&bench.rows(bench.list("Student", after(&[], older), "id")).await), "3");
}
