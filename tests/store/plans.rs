//! The plan of every form of condition and of an order through references on SQLite: related records are found by indexes.

use trefoil_engine::ListSlice;

use super::indexes::way;
use super::*;

impl Bench {
    /// At least one record that the relation leads to meets the condition.
    fn some(&self, record: &str, relation: &str, condition: Condition) -> Condition {
        Condition::Related { relation: self.field(record, relation), conditions: vec![condition] }
    }
}

fn not(condition: Condition) -> Condition {
    Condition::Not(Box::new(condition))
}

/// The tables of related records that a plan reads from end to end.
fn scanned(way: &str) -> Vec<&str> {
    let names = way.split("; ").filter_map(|step| step.strip_prefix("SCAN ")?.split(' ').next());
    let is_related = |name: &&str| {
        let is_list = name.strip_prefix('k').is_some_and(|number| number.parse::<u8>().is_ok());
        !is_list && !["t", "a", "b", "json_each"].contains(name)
    };
    names.filter(is_related).collect()
}

#[test]
fn related_records_are_found_by_indexes() {
    let bench = Bench::new();
    let is = |record: &str, field: &str, operator: &str, value: &str| {
        bench.condition(record, field, operator, text(value))
    };
    let named = || is("User", "name", "eq", "A");
    let of_item = || is("Order", "item", "eq", "A");
    let titled = || is("Course", "title", "eq", "A");
    let some_order = |condition: Condition| bench.some("User", "orders", condition);
    let ids = || bench.condition("Course", "id", "in", Value::List(vec![Value::Int(1), Value::Int(2)]));
    let labelled = || is("OrderPart", "label", "eq", "A");
    let deep_order = || bench.some("Order", "user", named());
    let deep = || bench.some("OrderPart", "order", bench.some("Order", "user", named()));
    // With the tables that are read once, because the field that is compared has no index.
    let table: [(&str, &str, Vec<Condition>, &[&str]); 18] = [
        ("equal", "User", vec![named()], &[]),
        (
            "one of",
            "User",
            vec![bench.condition("User", "name", "in", Value::List(vec![text("A"), text("B")]))],
            &[],
        ),
        ("beginning", "User", vec![is("User", "name", "startsWith", "A")], &[]),
        ("range", "User", vec![is("User", "name", "gte", "A")], &[]),
        ("either", "User", vec![Condition::Any(vec![named(), is("User", "email", "eq", "a")])], &[]),
        ("neither", "User", vec![not(Condition::Any(vec![named(), is("User", "email", "eq", "a")]))], &[]),
        ("through a reference", "Order", vec![bench.some("Order", "user", named())], &[]),
        ("through a reference to itself", "User", vec![bench.some("User", "manager", named())], &[]),
        ("through two references", "OrderPart", vec![deep()], &[]),
        ("not through a reference", "OrderPart", vec![not(deep())], &[]),
        ("some of a list", "User", vec![some_order(of_item())], &["r1"]),
        ("none of a list", "User", vec![not(some_order(of_item()))], &[]),
        ("every one of a list", "User", vec![not(some_order(not(of_item())))], &[]),
        (
            "some of a list of lists",
            "User",
            vec![some_order(bench.some("Order", "parts", labelled()))],
            &["r2"],
        ),
        ("some of a link", "Student", vec![bench.some("Student", "courses", titled())], &["r1"]),
        ("ids of a link", "Student", vec![bench.some("Student", "courses", ids())], &[]),
        ("none of a link", "Student", vec![not(bench.some("Student", "courses", titled()))], &[]),
        (
            "two of one kind",
            "User",
            vec![some_order(deep_order()), bench.some("User", "reports", named())],
            &[],
        ),
    ];
    for (what, record, conditions, expected) in table {
        for slice in [ListSlice::All, ListSlice::First { first: 5, after: None }] {
            let listing = Listing { conditions: conditions.clone(), slice, ..Listing::default() };
            let way = way(&bench, bench.list(record, listing, "id"));
            assert_eq!(scanned(&way), expected, "{what}: {way}");
            // Nothing is read whole for each record of the list.
            let for_each = way.split_once("CORRELATED").map_or("", |(_, rest)| rest);
            assert!(scanned(for_each).is_empty(), "{what}: {way}");
        }
    }
    for (what, record, field) in [
        ("equal", "User", named()),
        ("beginning", "User", is("User", "name", "startsWith", "A")),
        ("either", "User", Condition::Any(vec![named(), is("User", "email", "eq", "a")])),
        ("through a reference", "Order", bench.some("Order", "user", named())),
        ("through two references", "OrderPart", deep()),
    ] {
        let listing = Listing { conditions: vec![field], ..Listing::default() };
        let way = way(&bench, bench.list(record, listing, "id"));
        assert!(!way.contains("SCAN t"), "{what}: {way}");
    }
}

#[test]
fn order_joins_by_key() {
    let bench = Bench::new();
    for (record, order, joined) in [
        ("Order", "user.name", &["s1"][..]),
        ("OrderPart", "-order.user.name", &["s1", "s1_1"]),
        ("Thing", "place.city", &[]),
    ] {
        let slice = ListSlice::First { first: 5, after: None };
        let listing = Listing { sort_keys: bench.order(record, &[order]), slice, ..Listing::default() };
        let way = way(&bench, bench.list(record, listing, "id"));
        assert_eq!(scanned(&way), [""; 0], "{order}: {way}");
        for alias in joined {
            let by_key = format!("SEARCH {alias} USING INTEGER PRIMARY KEY (rowid=?)");
            assert!(way.contains(&by_key), "{order}: {way}");
        }
    }
}
