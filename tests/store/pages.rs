//! Queries of HTML pages: limited counts, slices of plain lists, and long lists that cost what short ones do.

use trefoil_engine::{Authority, ListSlice, PlainListAction, PlainListOperation};
use trefoil_model::CellValue;
use trefoil_sql::statements::compile::{Program, compile_plan};
use trefoil_sql::statements::dialect::Dialect;
use trefoil_sql::statements::select::{count_parameters, listing_parameters};
use trefoil_sql::statements::sql_parameter::SqlParameter;

use super::*;

both![
    count_stops_at_its_limit,
    plain_list_slice_is_found_by_its_index,
    record_and_its_references_cost_two_statements,
];

async fn count_stops_at_its_limit(bench: Bench) {
    for number in 0..30 {
        bench.user(if number % 3 == 0 { "Ada" } else { "Bob" }).await;
    }
    let ada = vec![bench.condition("User", "name", "eq", text("Ada"))];
    for (conditions, count, total) in [
        (vec![], CountMode::UpTo(10), Some(11)),
        (vec![], CountMode::UpTo(29), Some(30)),
        (vec![], CountMode::UpTo(30), Some(30)),
        (vec![], CountMode::UpTo(1_000), Some(30)),
        (vec![], CountMode::UpTo(u32::MAX), Some(30)),
        (vec![], CountMode::UpTo(0), Some(1)),
        (vec![], CountMode::UpTo(14), Some(15)),
        (vec![], CountMode::UpTo(15), Some(16)),
        (ada.clone(), CountMode::UpTo(5), Some(6)),
        (ada.clone(), CountMode::UpTo(50), Some(10)),
        (ada.clone(), CountMode::Exact, Some(10)),
        (ada, CountMode::Skip, None),
    ] {
        for (slice, more) in [
            (ListSlice::First { first: 0, after: None }, true),
            (ListSlice::Page { page: 1, size: 4 }, true),
            (ListSlice::Page { page: 99, size: 4 }, false),
        ] {
            let listing = Listing { conditions: conditions.clone(), count, slice, ..Listing::default() };
            let (outcome, _) = bench.one(bench.list("User", listing, "id")).await.unwrap();
            assert_eq!(outcome, Outcome::Listed { has_more: more, total }, "{count:?}");
        }
    }
    // The highest id says little where many are gone.
    bench.outside("DELETE FROM users WHERE id > 3 AND id < 30").await;
    for (count, total) in [(CountMode::UpTo(2), 3), (CountMode::UpTo(3), 4), (CountMode::UpTo(10), 4)] {
        let listing = Listing { count, slice: ListSlice::Page { page: 1, size: 1 }, ..Listing::default() };
        let (outcome, _) = bench.one(bench.list("User", listing, "id")).await.unwrap();
        assert_eq!(outcome, Outcome::Listed { has_more: true, total: Some(total) }, "{count:?}");
    }
}

async fn plain_list_slice_is_found_by_its_index(bench: Bench) {
    let on = |act| Operation::PlainList(PlainListOperation { list: "items".into(), action: act });
    for number in 0..200 {
        bench.one(on(PlainListAction::Append { value: format!("v{number}"), expected: None })).await.unwrap();
    }
    for index in [150, 20, 0] {
        bench.one(on(PlainListAction::Remove { index, expected: None })).await.unwrap();
    }
    for (index, count, expected) in [
        (0, 2, "v1 | v2"),
        (18, 3, "v19 | v21 | v22"),
        (147, 2, "v149 | v151"),
        (195, 9, "v198 | v199"),
        (197, 9, ""),
        (i64::MAX, i64::MAX, ""),
        (-1, 5, ""),
        (5, 0, ""),
    ] {
        let (outcome, rows) = bench.one(on(PlainListAction::Slice { index, count })).await.unwrap();
        assert_eq!(show(&rows), expected, "{count} from {index}");
        assert!(matches!(outcome, Outcome::PlainList { length: 197, remaining: None, .. }), "{outcome:?}");
    }
}

/// However many rows: never a statement for each.
async fn record_and_its_references_cost_two_statements(bench: Bench) {
    for _ in 0..30 {
        let user = bench.user("Ada").await;
        bench.make("Order", &[("user", int(user))]).await;
    }
    let listing = |size| Listing {
        slice: ListSlice::Page { page: 1, size },
        count: CountMode::UpTo(1_000),
        with_cursors: true,
        ..Listing::default()
    };
    // Rows that end where the list does are a count themselves.
    for (size, statements) in [(1, 3), (29, 3), (30, 2)] {
        let cost = bench.cost(bench.list("Order", listing(size), "id item user(id name)")).await;
        assert_eq!(cost, statements, "the rows, their users and the count, for {size}");
    }
}

/// The place after a row with this name and id.
struct After(&'static str, i64);

impl Row for After {
    fn cell(&self, column: usize) -> CellValue<'_> {
        [CellValue::Text(self.0), CellValue::Int(self.1)][column]
    }
    fn each_child(&self, _: usize, _: &mut dyn FnMut(&dyn Row)) {}
}

/// How many steps of SQLite's machine a page takes: its rows and its count.
fn steps(bench: &Bench, listing: Listing) -> i64 {
    let plan = Plan::prove(
        &bench.model,
        &PlanLimits::default(),
        &Authority::operator(),
        bench.list("User", listing, "id name"),
        &jiff::Timestamp::UNIX_EPOCH.into(),
    )
    .unwrap();
    let Program::List { level, count } = compile_plan(Dialect::Sqlite, &bench.model, &plan).unwrap() else {
        panic!("no list")
    };
    let trefoil_engine::plan::PlanAction::List { listing: bounds, .. } = &plan.action else {
        panic!("no list")
    };
    let mut bound = Vec::new();
    listing_parameters(bounds, &mut bound);
    if bounds.has_limit_or_offset() {
        bound.extend([bounds.limit.unwrap() + 1, bounds.offset].map(SqlParameter::integer));
    }
    let statements =
        [(level.statement.sql, values(&bound)), (count.unwrap().sql, values(&count_parameters(bounds)))];
    let run = move |connection: &mut rusqlite::Connection| {
        let mut steps = 0;
        for (sql, values) in &statements {
            let mut statement = connection.prepare(sql)?;
            let mut rows = statement.query(rusqlite::params_from_iter(values))?;
            while rows.next()?.is_some() {}
            drop(rows);
            steps += i64::from(statement.get_status(rusqlite::StatementStatus::VmStep));
        }
        Ok::<_, rusqlite::Error>(steps)
    };
    bench.on_writer(run).unwrap().unwrap()
}

fn values(bound: &[SqlParameter<'_>]) -> Vec<rusqlite::types::Value> {
    let value = |parameter: &SqlParameter<'_>| match parameter {
        SqlParameter::Cell(CellValue::Int(number)) => (*number).into(),
        SqlParameter::Cell(CellValue::Text(text)) => (*text).to_owned().into(),
        other @ (SqlParameter::Cell(CellValue::Null | CellValue::Real(_) | CellValue::Unreadable)
        | SqlParameter::Owned(_)
        | SqlParameter::List(_)
        | SqlParameter::Keys(_)) => panic!("{other:?}"),
    };
    bound.iter().map(value).collect()
}

/// Of each name there are forty, whatever the length of the list.
async fn filled(rows: i64) -> Bench {
    let bench = Bench::new();
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
         INSERT INTO users (name, price) SELECT printf('n%07d', i % {}), '1' FROM n",
        rows / 40
    );
    bench.outside(&fill).await;
    bench
}

#[tokio::test]
async fn page_cost_does_not_grow_with_the_list() {
    let (long, short) = (filled(200_000).await, filled(4_000).await);
    let page = |bench: &Bench, filtered: bool, order: &[&str], after: Option<After>| {
        let order = bench.order("User", order);
        // Without an order a cursor is the id alone.
        let after = after.map(|after| bench.cursor("User", &order, &after, usize::from(order.is_empty())));
        let name = bench.condition("User", "name", "eq", text("n0000007"));
        Listing {
            conditions: if filtered { vec![name] } else { Vec::new() },
            sort_keys: order,
            slice: ListSlice::First { first: 20, after },
            count: CountMode::UpTo(1_000),
            with_cursors: true,
            ..Listing::default()
        }
    };
    for (what, filtered, order, after) in [
        ("the first page", false, &[][..], false),
        ("filtered by an index", true, &[], false),
        ("sorted by an index", false, &["name"], false),
        ("sorted the other way", false, &["-name"], false),
        ("a page on, by cursor", false, &[], true),
        ("sorted, a page on", false, &["name"], true),
        ("filtered, a page on", true, &["name"], true),
    ] {
        let cost = |bench: &Bench| {
            let after = after.then_some(After("n0000007", 700));
            steps(bench, page(bench, filtered, order, after))
        };
        let (long, short) = (cost(&long), cost(&short));
        assert!(
            short > 0 && long <= 2 * short,
            "{what}: {long} steps in the long list, {short} in the short"
        );
    }
}
