//! The SQL statements let SQLite use the existing indexes.

use trefoil_engine::Authority;
use trefoil_engine::ListSlice;
use trefoil_sql::statements::compile::{Program, compile_plan};
use trefoil_sql::statements::dialect::Dialect;
use trefoil_sql::statements::select::{ChildBranch, SelectLevel};

use super::*;

/// How SQLite would go about the deepest level of a list.
pub fn way(bench: &Bench, operation: Operation) -> String {
    let plan = Plan::prove(
        &bench.model,
        &PlanLimits::default(),
        &Authority::operator(),
        operation,
        &jiff::Timestamp::UNIX_EPOCH.into(),
    )
    .unwrap();
    let Program::List { level, .. } = compile_plan(Dialect::Sqlite, &bench.model, &plan).unwrap() else {
        panic!("no list")
    };
    let sql = format!("EXPLAIN QUERY PLAN {}", deepest(&level).statement.sql);
    let steps = move |connection: &mut rusqlite::Connection| {
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next()? {
            steps.push(row.get::<_, String>(3)?);
        }
        Ok::<_, rusqlite::Error>(steps.join("; "))
    };
    bench.on_writer(steps).unwrap().unwrap()
}

fn deepest(level: &SelectLevel) -> &SelectLevel {
    let below = level.branches.iter().find_map(|branch| match branch {
        ChildBranch::Rows { level, .. } => Some(level),
        ChildBranch::KeyOnly { .. } => None,
    });
    below.map_or(level, deepest)
}

#[test]
fn cursor_seeks_in_the_index() {
    let bench = Bench::new();
    let order = bench.order("User", &["name"]);
    let after = {
        struct At;
        impl Row for At {
            fn cell(&self, column: usize) -> trefoil_model::CellValue<'_> {
                [trefoil_model::CellValue::Text("x"), trefoil_model::CellValue::Int(1)][column]
            }
            fn each_child(&self, _: usize, _: &mut dyn FnMut(&dyn Row)) {}
        }
        Some(bench.cursor("User", &order, &At, 0))
    };
    let before = after.clone();
    for (slice, range) in [
        (ListSlice::First { first: 5, after }, "name>?"),
        (ListSlice::Between { after: None, before, count: 5, from_end: true }, "name<?"),
    ] {
        let by_name = Listing { sort_keys: order.clone(), slice, ..Listing::default() };
        let way = way(&bench, bench.list("User", by_name, "id"));
        let is_range = way.contains(&format!("users_name_index ({range})"));
        assert!(way.contains("SEARCH t USING") && is_range, "{way}");
        assert!(!way.contains("TEMP B-TREE"), "{way}");
    }
}

#[test]
fn unique_decimal_is_looked_up_by_index() {
    let bench = Bench::new();
    for (op, value) in [("eq", text("1.50")), ("in", Value::List(vec![text("1"), text("2.0")]))] {
        let conditions = vec![bench.condition("User", "balance", op, value)];
        let way = way(&bench, bench.list("User", Listing { conditions, ..Listing::default() }, "id"));
        assert!(way.contains("users_balance_unique (<expr>=?)"), "{way}");
    }
}

#[test]
fn children_are_found_by_parent_index() {
    let bench = Bench::new();
    let list = |select: &str| bench.list("User", Listing::default(), select);
    let way1 = way(&bench, list("id orders(item)"));
    assert!(way1.contains("SEARCH t USING INDEX orders_userId_index (userId=?)"), "{way1}");
    assert!(!way1.contains("TEMP B-TREE"), "{way1}");
    let way2 = way(&bench, list("id manager(name)"));
    assert!(way2.contains("SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"), "{way2}");
    assert!(!way2.contains("TEMP B-TREE"), "{way2}");
    let way3 = way(&bench, bench.list("Course", Listing::default(), "id students(name)"));
    assert!(way3.contains("SEARCH l USING") && way3.contains("SEARCH t USING INTEGER PRIMARY KEY"), "{way3}");
}

#[test]
fn child_limit_reads_no_more_rows() {
    let bench = Bench::new();
    let mut children = bench.select("User", "id orders(item)").children.clone();
    children[0].listing.slice = ListSlice::First { first: 3, after: None };
    let selection = PreparedSelection::new(Selection::new(vec![], children));
    let record = bench.record("User").0;
    let way = way(&bench, Operation::List { record, listing: Listing::default(), selection });
    assert!(way.contains("SEARCH o USING INTEGER PRIMARY KEY (rowid=?)"), "{way}");
    assert!(way.contains("SEARCH t USING COVERING INDEX orders_userId_index (userId=?)"), "{way}");
}

/// A list of all orders with tea would be made for a few users.
#[test]
fn related_records_of_given_ids_are_looked_up() {
    let bench = Bench::new();
    let tea = vec![bench.condition("Order", "item", "eq", text("tea"))];
    let related = Condition::some_related(bench.field("User", "orders"), tea);
    for ids in [Condition::HasId(vec![1.into(), 2.into()]), bench.condition("User", "id", "eq", int(1))] {
        let conditions = vec![ids, related.clone()];
        let way = way(&bench, bench.list("User", Listing { conditions, ..Listing::default() }, "id"));
        assert!(way.contains("SEARCH t USING INTEGER PRIMARY KEY"), "{way}");
        assert!(way.contains("orders_userId_index (userId=?)") && !way.contains("SCAN r1"), "{way}");
    }
}
