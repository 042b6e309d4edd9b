//! Lists: filters, order, pages and cursors, exact for every kind of value and with nulls last.

use proptest::prelude::*;
use trefoil_engine::ListSlice;

use super::*;

both![
    sort_is_exact_with_nulls_last_both_ways,
    filters_compare_exactly,
    page_reports_whether_there_is_more,
    statement_cache_is_keyed_by_plan_and_model,
    list_and_count_are_one_snapshot,
    cursor_stays_short_for_long_text,
    pages_through_references_keep_the_order,
    long_texts_behind_references_are_paged,
];

async fn people(bench: &Bench) {
    let rows = [
        ("Ada", Some("10.0"), Some(3), Some("0.1")),
        ("bob", Some("9.99"), None, None),
        ("Cleo", None, Some(1), Some("0.30000000000000004")),
        ("\u{1F33F}", Some("-2"), Some(2), Some("-1.5")),
        ("\u{FF5E}", Some("100000000000000000000.1"), Some(2), Some("1e300")),
        ("", Some("100000000000000000000"), Some(-5), Some("0.3")),
    ];
    for (name, balance, age, score) in rows {
        let mut fields = vec![("name", text(name)), ("big", int(i64::MAX - name.len() as i64))];
        fields.extend(balance.map(|balance| ("balance", text(balance))));
        fields.extend(age.map(|age| ("age", int(age))));
        fields.extend(score.map(|score| ("score", Value::number(score).expect("a number"))));
        bench.make("User", &fields).await;
    }
}

async fn ids(bench: &Bench, listing: Listing) -> String {
    show(&bench.rows(bench.list("User", listing, "id")).await).replace(" | ", " ")
}

async fn sort_is_exact_with_nulls_last_both_ways(bench: Bench) {
    people(&bench).await;
    for (words, expected) in [
        (&["balance"][..], "4 2 1 6 5 3"),
        (&["-balance"], "5 6 1 2 4 3"),
        (&["name"], "6 1 3 2 5 4"),
        (&["-name"], "4 5 2 3 1 6"),
        (&["age"], "6 3 4 5 1 2"),
        (&["-age", "-name"], "1 4 5 3 6 2"),
        (&["score"], "4 1 6 3 5 2"),
        (&["-id"], "6 5 4 3 2 1"),
        (&[], "1 2 3 4 5 6"),
    ] {
        let listing = Listing { sort_keys: bench.order("User", words), ..Listing::default() };
        assert_eq!(ids(&bench, listing).await, expected, "{words:?}");
    }
}

async fn filters_compare_exactly(bench: Bench) {
    people(&bench).await;
    let number = |text: &str| Value::number(text).expect("a number");
    let list = |items: &[Value]| Value::List(items.to_vec());
    for (field, op, value, expected) in [
        ("balance", "eq", text("10.00"), "1"),
        ("balance", "gt", text("100000000000000000000.0"), "5"),
        ("balance", "lte", text("9.990"), "2 4"),
        ("balance", "in", list(&[text("-2.0"), text("100000000000000000000")]), "4 6"),
        ("balance", "ne", text("10"), "2 3 4 5 6"),
        ("balance", "eq", Value::Null, "3"),
        ("balance", "ne", Value::Null, "1 2 4 5 6"),
        ("age", "in", list(&[int(2), int(3)]), "1 4 5"),
        ("age", "in", list(&[]), ""),
        ("age", "lt", int(2), "3 6"),
        ("big", "eq", int(i64::MAX), "6"),
        ("big", "in", list(&[int(i64::MAX), int(i64::MAX - 1)]), "6"),
        ("score", "in", list(&[number("0.30000000000000004"), number("1e300")]), "3 5"),
        ("score", "eq", number("0.3"), "6"),
        ("name", "contains", text("b"), "2"),
        ("name", "contains", text(""), "1 2 3 4 5 6"),
        ("name", "in", list(&[text("Ada"), text("\u{1F33F}"), text("\"")]), "1 4"),
        ("name", "eq", text("ada"), ""),
        ("id", "gte", int(5), "5 6"),
    ] {
        let shown = format!("{field} {op:?} {value:?}");
        let conditions = vec![bench.condition("User", field, op, value)];
        let found = ids(&bench, Listing { conditions: conditions.clone(), ..Listing::default() }).await;
        assert_eq!(found, expected, "{shown}");
        let counted = Listing {
            conditions,
            count: CountMode::Exact,
            slice: ListSlice::Page { page: 9, size: 5 },
            ..Listing::default()
        };
        let (outcome, rows) = bench.one(bench.list("User", counted, "id")).await.unwrap();
        let total = Some(expected.split_whitespace().count() as u64);
        assert_eq!((outcome, rows), (Outcome::Listed { has_more: false, total }, vec![]), "{shown}");
    }
}

async fn page_reports_whether_there_is_more(bench: Bench) {
    people(&bench).await;
    for (page, size, expected, more) in [
        (1, 4, "1 2 3 4", true),
        (2, 4, "5 6", false),
        (2, 3, "4 5 6", false),
        (3, 3, "", false),
        (i64::MAX, 1_000, "", false),
        (1, i64::MAX, "1 2 3 4 5 6", false),
    ] {
        let listing = Listing { slice: ListSlice::Page { page, size }, ..Listing::default() };
        let (outcome, rows) = bench.one(bench.list("User", listing, "id")).await.unwrap();
        assert_eq!(outcome, Outcome::Listed { has_more: more, total: None }, "page {page} of {size}");
        assert_eq!(show(&rows).replace(" | ", " "), expected);
    }
}

async fn statement_cache_is_keyed_by_plan_and_model(bench: Bench) {
    people(&bench).await;
    let first = |first: i64| Listing { slice: ListSlice::First { first, after: None }, ..Listing::default() };
    assert_eq!(ids(&bench, first(2)).await, "1 2");
    assert_eq!(ids(&bench, first(3)).await, "1 2 3");
    assert_eq!(ids(&bench, Listing::default()).await, "1 2 3 4 5 6");
    let swapped = model();
    let bench = Bench { model: swapped, ..bench };
    assert_eq!(ids(&bench, first(1)).await, "1", "a reloaded model has programs of its own");
}

async fn list_and_count_are_one_snapshot(bench: Bench) {
    people(&bench).await;
    let bench = Arc::new(bench);
    let writer = tokio::spawn({
        let bench = bench.clone();
        async move {
            for _ in 0..200 {
                bench.user("more").await;
            }
        }
    });
    while !writer.is_finished() {
        let listing = Listing { count: CountMode::Exact, ..Listing::default() };
        let (outcome, rows) = bench.one(bench.list("User", listing, "id orders(id)")).await.unwrap();
        assert_eq!(outcome, Outcome::Listed { has_more: false, total: Some(rows.len() as u64) });
    }
    writer.await.unwrap();
}

fn by_cursor(bench: &Bench, record: &str, order: &[SortKey], first: i64, after: Option<String>) -> Operation {
    let slice = ListSlice::First { first, after };
    bench.list(
        record,
        Listing { sort_keys: order.to_vec(), slice, with_cursors: true, ..Listing::default() },
        "id",
    )
}

/// All ids, page by page.
async fn paged(bench: &Bench, record: &str, order: &[SortKey], first: i64) -> Vec<StoredValue> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let (outcome, rows) = bench.one(by_cursor(bench, record, order, first, after)).await.unwrap();
        let Outcome::Listed { has_more: more, .. } = outcome else { panic!("{outcome:?}") };
        assert!(rows.len() as i64 <= first && (!more || rows.len() as i64 == first));
        all.extend(rows.iter().map(|row| row.cells[0].clone()));
        let Some(last) = rows.last().filter(|_| more) else { return all };
        let place = bench.cursor(record, order, &Shown(last), 1);
        assert!(place.len() < 1_500 * (1 + order.len()), "{place}");
        after = Some(place);
    }
}

/// All ids, page by page from the end.
async fn paged_backward(bench: &Bench, record: &str, order: &[SortKey], count: i64) -> Vec<StoredValue> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let slice = ListSlice::Between { after: None, before, count, from_end: true };
        let listing = Listing { sort_keys: order.to_vec(), slice, with_cursors: true, ..Listing::default() };
        let (outcome, rows) = bench.one(bench.list(record, listing, "id")).await.unwrap();
        let Outcome::Listed { has_more: more, .. } = outcome else { panic!("{outcome:?}") };
        assert!(rows.len() as i64 <= count && (!more || rows.len() as i64 == count));
        all.splice(0..0, rows.iter().map(|row| row.cells[0].clone()));
        let Some(first) = rows.first().filter(|_| more) else { return all };
        before = Some(bench.cursor(record, order, &Shown(first), 1));
    }
}

/// Long texts that begin alike, in no order; one that is told whole and one that is missing among them.
async fn long_texts(bench: &Bench) {
    for number in [7, 2, 9, 4, 1, 8, 3, 6, 5] {
        let long = format!("{}{number}{}", "ä😀\"\u{1}".repeat(200), "y".repeat(200_000));
        let fields = [("label", text(&long)), ("rank", int(number % 2))];
        bench.make("Thing", &fields).await;
    }
    bench.make("Thing", &[("label", text("ä"))]).await;
    bench.make("Thing", &[("rank", int(1))]).await;
}

async fn cursor_stays_short_for_long_text(bench: Bench) {
    long_texts(&bench).await;
    for words in [&["label"][..], &["-label"], &["rank", "-label"], &["label", "rank"]] {
        let order = bench.order("Thing", words);
        let whole = Listing { sort_keys: order.clone(), ..Listing::default() };
        let whole = bench.rows(bench.list("Thing", whole, "id")).await;
        let whole: Vec<StoredValue> = whole.into_iter().map(|row| row.cells[0].clone()).collect();
        for first in [1, 2, 5] {
            assert_eq!(paged(&bench, "Thing", &order, first).await, whole, "{words:?}");
            assert_eq!(paged_backward(&bench, "Thing", &order, first).await, whole, "{words:?}");
        }
        // What the cursor stands for changes or goes away: what comes after it still comes.
        let (_, rows) = bench.one(by_cursor(&bench, "Thing", &order, 4, None)).await.unwrap();
        let after = Some(bench.cursor("Thing", &order, &Shown(&rows[3]), 1));
        let StoredValue::Int(id) = rows[3].cells[0] else { panic!("no id") };
        let StoredValue::Text(label) = &rows[3].cells[1 + order
            .iter()
            .position(|by| by.value.own_field() == Some(bench.field("Thing", "label")))
            .unwrap()]
        else {
            panic!("no text")
        };
        for other in ["zzz", "A"] {
            bench.one(bench.update("Thing", id, &[("label", text(other))], None)).await.unwrap();
            let rest = bench.rows(by_cursor(&bench, "Thing", &order, 100, after.clone())).await;
            let has_all = |ids: &[StoredValue], rows: &[ReadRow]| {
                ids.iter().all(|id| rows.iter().any(|row| row.cells[0] == *id))
            };
            assert!(has_all(&whole[4..], &rest), "{words:?} {other}");
            let slice = ListSlice::Between { after: None, before: after.clone(), count: 100, from_end: true };
            let listing = Listing { sort_keys: order.clone(), slice, ..Listing::default() };
            let rest = bench.rows(bench.list("Thing", listing, "id")).await;
            assert!(has_all(&whole[..3], &rest), "{words:?} {other}");
        }
        bench.one(bench.update("Thing", id, &[("label", text(label))], None)).await.unwrap();
    }
    let order = bench.order("Thing", &["label"]);
    let (_, rows) = bench.one(by_cursor(&bench, "Thing", &order, 4, None)).await.unwrap();
    let after = Some(bench.cursor("Thing", &order, &Shown(&rows[3]), 1));
    let StoredValue::Int(id) = rows[3].cells[0] else { panic!("no id") };
    bench.one(bench.delete("Thing", id, "id")).await.unwrap();
    assert_eq!(bench.rows(by_cursor(&bench, "Thing", &order, 100, after)).await.len(), 10 - 1);
}

/// Sort keys through references and embedded values: the order of the list, and every way to page through it.
async fn pages_through_references_keep_the_order(bench: Bench) {
    for (name, age, manager) in [
        ("Cem", Some(3), None),
        ("Ada", None, Some(1)),
        ("Bob", Some(1), Some(2)),
        ("Ada", Some(3), Some(1)),
        ("Eve", Some(2), None),
    ] {
        let mut fields = vec![("name", text(name)), ("price", text(&format!("{}.50", name.len() + 8)))];
        fields.extend(age.map(|age| ("age", int(age))));
        fields.extend(manager.map(|id| ("manager", int(id))));
        bench.make("User", &fields).await;
    }
    for user in [Some(3), Some(1), None, Some(4), Some(5), Some(2), Some(3), Some(1)] {
        let fields: Vec<_> = user.map(|id| ("user", int(id))).into_iter().collect();
        bench.make("Order", &fields).await;
    }
    for (order, label) in [(3, "x"), (1, "y"), (8, "x"), (6, "z"), (4, "y")] {
        bench.make("OrderPart", &[("order", int(order)), ("label", text(label))]).await;
    }
    for (city, zip) in [("Rom", Some(2)), ("Ulm", None), ("Bonn", Some(10)), ("Rom", Some(1))] {
        let town = [("city", text(city))].into_iter().chain(zip.map(|zip| ("zip", int(zip))));
        let town = Value::Object(town.map(|(name, value)| (name.to_owned(), value)).collect());
        bench.make("Thing", &[("place", town)]).await;
    }
    bench.make("Thing", &[("rank", int(1))]).await;
    for (record, words, expected) in [
        ("Order", &["user.name"][..], "4 6 1 7 2 8 5 3"),
        ("Order", &["-user.name"], "5 2 8 1 7 4 6 3"),
        ("Order", &["user.name", "-user.age"], "4 6 1 7 2 8 5 3"),
        ("Order", &["-user.age", "item", "user.name"], "4 2 8 5 1 7 6 3"),
        ("Order", &["user.manager.name", "-user.name"], "1 7 4 6 5 2 8 3"),
        ("Order", &["user.price", "user.manager.manager.name"], "1 7 2 4 5 6 8 3"),
        ("OrderPart", &["order.user.name", "label"], "5 4 2 3 1"),
        ("OrderPart", &["-order.user.manager.name", "-label"], "4 5 2 1 3"),
        ("Thing", &["place.zip"], "4 1 3 2 5"),
        ("Thing", &["-place.city", "place.zip"], "2 4 1 3 5"),
        ("Thing", &["place.city", "-place.zip"], "3 1 4 2 5"),
    ] {
        let order = bench.order(record, words);
        let whole = Listing { sort_keys: order.clone(), ..Listing::default() };
        let rows = bench.rows(bench.list(record, whole, "id")).await;
        assert_eq!(show(&rows).replace(" | ", " "), expected, "{record} {words:?}");
        let ids: Vec<StoredValue> = rows.into_iter().map(|row| row.cells[0].clone()).collect();
        for first in [1, 2, 3] {
            assert_eq!(paged(&bench, record, &order, first).await, ids, "{record} {words:?}");
            assert_eq!(paged_backward(&bench, record, &order, first).await, ids, "{record} {words:?}");
        }
    }
}

/// The whole of a long text is read through the reference that the cursor is for.
async fn long_texts_behind_references_are_paged(bench: Bench) {
    for number in [3, 1, 2] {
        let name = format!("{}{number}", "n".repeat(2_000));
        bench.make("User", &[("name", text(&name))]).await;
    }
    for user in [1, 3, 2] {
        bench.make("Order", &[("user", int(user))]).await;
    }
    for words in [["user.name"], ["-user.name"]] {
        let order = bench.order("Order", &words);
        let whole = Listing { sort_keys: order.clone(), ..Listing::default() };
        let whole = bench.rows(bench.list("Order", whole, "id")).await;
        let whole: Vec<StoredValue> = whole.into_iter().map(|row| row.cells[0].clone()).collect();
        assert_eq!(paged(&bench, "Order", &order, 1).await, whole);
        assert_eq!(paged_backward(&bench, "Order", &order, 1).await, whole);
    }
}

struct Shown<'a>(&'a ReadRow);

impl Row for Shown<'_> {
    fn cell(&self, column: usize) -> trefoil_model::CellValue<'_> {
        self.0.cells[column].as_cell()
    }
    fn each_child(&self, _: usize, _: &mut dyn FnMut(&dyn Row)) {}
}

type Person = (u8, Option<i8>, Option<u8>, i16, u8);

type Sorted = (Vec<Person>, Vec<(&'static str, bool)>, i64);

fn sorted() -> impl Strategy<Value = Sorted> {
    let fields = prop::sample::select(vec!["name", "age", "score", "price", "nick", "id"]);
    let order = prop::collection::vec((fields, any::<bool>()), 0..4);
    (prop::collection::vec(any::<Person>(), 0..40), order, 1..9i64)
}

async fn is_the_whole_list(bench: &Bench, (people, order, first): &Sorted) {
    let given = people.iter().enumerate().map(|(i, (name, age, score, price, nick))| {
        let prices = ["-1.50", "0.3", "0.30", "12", "9.999"];
        let mut fields = vec![("name", text(&(name % 4).to_string()))];
        fields.push(("price", text(prices[price.unsigned_abs() as usize % 5])));
        fields.extend(age.map(|age| ("age", int(i64::from(age % 3)))));
        fields.extend(score.map(|score| ("score", Value::from(f64::from(score % 3) / 3.0))));
        fields.extend((nick % 2 == 0).then(|| ("nick", text(&i.to_string()))));
        bench.create("User", &fields, "id")
    });
    let given: Vec<_> = given.collect();
    if !given.is_empty() {
        bench.all(given).await;
    }
    let order =
        order.iter().map(|(name, descending)| SortKey::by_field(bench.field("User", name), *descending));
    let order: Vec<SortKey> = order.collect();
    let whole = Listing { sort_keys: order.clone(), ..Listing::default() };
    let whole: Vec<StoredValue> = bench
        .rows(bench.list("User", whole, "id"))
        .await
        .into_iter()
        .map(|row| row.cells[0].clone())
        .collect();
    assert_eq!(whole.len(), people.len());
    assert_eq!(paged(bench, "User", &order, *first).await, whole);
    assert_eq!(paged_backward(bench, "User", &order, *first).await, whole);
}

fn paging_through_is_the_whole_list(bench: impl AsyncFn() -> Bench) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = runtime.block_on(bench());
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) };
    let run = proptest::test_runner::TestRunner::new(config).run(&sorted(), |sorted| {
        runtime.block_on(async {
            let all = bench.rows(bench.list("User", Listing::default(), "id")).await;
            for row in all {
                let StoredValue::Int(id) = row.cells[0] else { panic!("no id") };
                bench.one(bench.delete("User", id, "id")).await.unwrap();
            }
            is_the_whole_list(&bench, &sorted).await;
        });
        Ok(())
    });
    run.unwrap();
}

#[test]
fn cursor_pages_cover_the_list_on_sqlite() {
    paging_through_is_the_whole_list(async || Bench::in_memory());
}

#[test]
fn cursor_pages_cover_the_list_on_postgres() {
    paging_through_is_the_whole_list(Bench::postgres);
}
