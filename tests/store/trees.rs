//! Nested records: right at any depth, with one statement per level and thousand parents.

use trefoil_engine::{
    AggregateQuery, GroupKey, GroupMeasure, ListSlice, NestedWrite, RecordInput, RelatedInput,
};

use super::*;

both![
    each_level_costs_one_statement,
    referenced_id_costs_no_statement,
    self_reference_nests_both_ways,
    two_thousand_parents_cost_two_statements_per_level,
    each_parent_has_its_own_order_filter_and_slice,
    links_nest_in_both_directions,
    nested_writes_cost_few_statements,
    groups_of_all_parents_cost_one_statement,
];

/// Users 1 to 3, user 1 above the others; user `u` has `u` orders, each with two parts.
async fn shop(bench: &Bench) {
    let boss = bench.user("u1").await;
    for name in ["u2", "u3"] {
        bench.make("User", &[("name", text(name)), ("manager", int(boss))]).await;
    }
    for user in 1..=3 {
        for n in 0..user {
            let fields = [("user", int(user)), ("item", text(&format!("i{user}{n}")))];
            let order = bench.make("Order", &fields).await;
            for part in ["a", "b"] {
                bench.make("OrderPart", &[("order", int(order)), ("label", text(part))]).await;
            }
        }
    }
}

async fn each_level_costs_one_statement(bench: Bench) {
    shop(&bench).await;
    let all = |select: &str| bench.list("User", Listing::default(), select);
    let rows = bench.rows(all("name orders(item parts(label order(user(name))))")).await;
    assert_eq!(rows.len(), 3);
    assert_eq!(
        rows[1].to_string(),
        "u2 [i20 [a [[u2]] | b [[u2]]] | i21 [a [[u2]] | b [[u2]]]]",
        "four levels below the first"
    );
    assert_eq!(bench.cost(all("name orders(item parts(label order(user(name))))")).await, 5);
    assert_eq!(bench.cost(all("name")).await, 1);
    assert_eq!(bench.cost(all("name orders(id) reports(id) manager(name)")).await, 4);
    assert_eq!(bench.cost(bench.get("User", 1, "name orders(parts(id))")).await, 3);
}

async fn referenced_id_costs_no_statement(bench: Bench) {
    shop(&bench).await;
    let list = |select: &str| bench.list("Order", Listing::default(), select);
    assert_eq!(
        show(&bench.rows(list("item user(id)")).await),
        "i10 [1] | i20 [2] | i21 [2] | i30 [3] | i31 [3] | i32 [3]"
    );
    assert_eq!(bench.cost(list("item user(id)")).await, 1);
    assert_eq!(bench.cost(bench.get("User", 2, "manager(id)")).await, 1);
    assert_eq!(show(&bench.rows(bench.get("User", 1, "manager(id)")).await), "[]");
    let fields = [("name", text("new")), ("manager", int(3))];
    let create = async |select: &str| bench.cost(bench.create("User", &fields, select)).await;
    // SQLite is asked again for what it wrote.
    let cost = match bench.place {
        Place::Folder(_) => 2,
        Place::Server(_) => 1,
    };
    assert_eq!(create("name").await, cost);
    assert_eq!(create("name manager(id)").await, cost);
}

async fn self_reference_nests_both_ways(bench: Bench) {
    shop(&bench).await;
    let rows = bench
        .rows(bench.list("User", Listing::default(), "name manager(name reports(name manager(name)))"))
        .await;
    assert_eq!(show(&rows), "u1 [] | u2 [u1 [u2 [u1] | u3 [u1]]] | u3 [u1 [u2 [u1] | u3 [u1]]]");
}

async fn two_thousand_parents_cost_two_statements_per_level(bench: Bench) {
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) \
                INSERT INTO users (name, price) SELECT CAST(i AS text), 0 FROM n";
    bench.outside(fill).await;
    for _ in 0..2 {
        bench.outside("INSERT INTO orders (\"userId\", item) SELECT id, name FROM users").await;
    }
    let list = || bench.list("User", Listing::default(), "name orders(item user(name))");
    let rows = bench.rows(list()).await;
    assert_eq!(rows.len(), 2_500);
    for (i, row) in rows.iter().enumerate() {
        let name = i + 1;
        assert_eq!(row.to_string(), format!("{name} [{name} [{name}] | {name} [{name}]]"));
    }
    assert_eq!(bench.cost(list()).await, 1 + 3 + 3, "two levels below, three thousands of parents each");
}

async fn each_parent_has_its_own_order_filter_and_slice(bench: Bench) {
    shop(&bench).await;
    let selection = bench.select("User", "name orders(item)");
    let child = |listing: Listing| {
        let mut children = selection.children.clone();
        children[0].listing = listing;
        let selection = PreparedSelection::new(Selection::new(selection.columns.clone(), children));
        Operation::List { record: bench.record("User").0, listing: Listing::default(), selection }
    };
    let order = bench.order("Order", &["-item"]);
    let page = |page, size| ListSlice::Page { page, size };
    let listing = |slice| Listing { sort_keys: order.clone(), slice, ..Listing::default() };
    let show = async |operation| super::show(&bench.rows(operation).await);
    assert_eq!(
        show(child(listing(ListSlice::All))).await,
        "u1 [i10] | u2 [i21 | i20] | u3 [i32 | i31 | i30]"
    );
    assert_eq!(show(child(listing(page(1, 2)))).await, "u1 [i10] | u2 [i21 | i20] | u3 [i32 | i31]");
    assert_eq!(show(child(listing(page(2, 2)))).await, "u1 [] | u2 [] | u3 [i30]");
    let conditions = vec![bench.condition("Order", "item", "contains", text("1"))];
    let filtered = Listing { conditions, slice: page(1, 1), ..Listing::default() };
    assert_eq!(show(child(filtered)).await, "u1 [i10] | u2 [i21] | u3 [i31]");
}

async fn links_nest_in_both_directions(bench: Bench) {
    for title in ["c1", "c2"] {
        bench.make("Course", &[("title", text(title))]).await;
    }
    for (name, courses) in [("s1", vec![1, 2]), ("s2", vec![2]), ("s3", vec![])] {
        let courses = Value::List(courses.into_iter().map(int).collect());
        bench.make("Student", &[("name", text(name)), ("courses", courses)]).await;
    }
    let list = || bench.list("Student", Listing::default(), "name courses(title students(name courses(id)))");
    assert_eq!(
        show(&bench.rows(list()).await),
        "s1 [c1 [s1 [1 | 2]] | c2 [s1 [1 | 2] | s2 [2]]] | s2 [c2 [s1 [1 | 2] | s2 [2]]] | s3 []"
    );
    assert_eq!(bench.cost(list()).await, 4);
}

/// A user with orders that have parts each, in one operation.
fn user_with_orders(bench: &Bench, orders: usize, parts: usize) -> Operation {
    let field = |record: &str, name: &str| {
        let record = bench.model.record(bench.model.find_record(record).unwrap());
        record.find_field(name).unwrap()
    };
    let new = |name: FieldId, value: Value, relation: FieldId, create: Vec<RecordInput>| RecordInput {
        fields: vec![(name, value)],
        related: vec![RelatedInput { create, ..RelatedInput::new(relation) }],
        ..RecordInput::default()
    };
    let part = |n: usize| RecordInput {
        fields: vec![(field("OrderPart", "label"), text(&n.to_string()))],
        ..RecordInput::default()
    };
    let order = |n: usize| {
        let item = text(&format!("i{n}"));
        new(field("Order", "item"), item, field("Order", "parts"), (0..parts).map(part).collect())
    };
    let orders = (0..orders).map(order).collect();
    let user = new(field("User", "name"), text("ada"), field("User", "orders"), orders);
    let record = bench.model.find_record("User").unwrap();
    Operation::Nested { record, write: NestedWrite::Create(user), selection: Arc::default() }
}

/// PostgreSQL needs a statement for each type and power of two; SQLite one for each record, without a round trip. Both
/// read the result.
async fn nested_writes_cost_few_statements(bench: Bench) {
    // After the first write of a store what has expired is removed; the second one waits for that.
    bench.user("first").await;
    bench.user("second").await;
    let few = bench.cost(user_with_orders(&bench, 8, 4)).await;
    let many = bench.cost(user_with_orders(&bench, 64, 2)).await;
    let expected = if bench.is_sqlite() { (1 + 8 + 32 + 1, 1 + 64 + 128 + 1) } else { (3 + 2, 3 + 2) };
    assert_eq!((few, many), expected);
    let rows = bench.rows(bench.list("User", Listing::default(), "orders(item parts(label))")).await;
    assert_eq!(rows.len(), 4);
    assert!(rows[2].to_string().starts_with("[i0 [0 | 1 | 2 | 3] | i1 [0"), "{}", rows[2]);
}

async fn groups_of_all_parents_cost_one_statement(bench: Bench) {
    shop(&bench).await;
    let item = bench.field("Order", "item");
    let list = |group_keys: Vec<GroupKey>| {
        let measures = vec![GroupMeasure::Count];
        let query = AggregateQuery { group_keys, measures, ..AggregateQuery::default() };
        let groups = ChildSelection::groups(bench.field("User", "orders"), query);
        let name = bench.field("User", "name");
        let selection = PreparedSelection::new(Selection::new(vec![name], vec![groups]));
        Operation::List { record: bench.record("User").0, listing: Listing::default(), selection }
    };
    assert_eq!(show(&bench.rows(list(Vec::new())).await), "u1 [1] | u2 [2] | u3 [3]");
    let by_item = || vec![GroupKey { text: "item".to_owned(), path: item.into(), period: None }];
    let rows = show(&bench.rows(list(by_item())).await);
    assert_eq!(rows, "u1 [i10 1] | u2 [i20 1 | i21 1] | u3 [i30 1 | i31 1 | i32 1]");
    assert_eq!(bench.cost(list(by_item())).await, 2);
}
