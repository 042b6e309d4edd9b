//! Fields whose type changes: every value is converted, or counted as one that does not fit.

use super::*;

on_both!(
    values_are_converted_where_they_fit,
    number_becomes_a_reference_if_the_record_exists,
    unfit_required_values_block_without_a_default,
    unused_enum_value_can_be_removed,
    embedded_values_follow_their_type,
);

/// Values of one type as another; `null` for those that do not fit.
fn check(on: On, from: &str, to: &str, values: &[(&str, &str)]) {
    let old = format!("enum E {{ A B }} type Owner {{ id: ID! }} type T {{ id: ID! v: {from} }}");
    let new = format!("enum E {{ A B }} type Owner {{ id: ID! }} type T {{ id: ID! v: {to} }}");
    let store = Store::with(on, &old, "INSERT INTO owners DEFAULT VALUES");
    for (value, _) in values {
        store.run(&format!("INSERT INTO ts (v) VALUES ({value})"));
    }
    let unfit = values.iter().filter(|(_, wanted)| *wanted == "null").count();
    let plan = store.plan(&new);
    let drops: &[&str] = if unfit == 0 { &[] } else { &["T.v"] };
    let says = match unfit {
        0 => format!("converted: {} value", values.len()),
        unfit => format!("invalid: {unfit} of {} values, to become null  [LOSS", values.len()),
    };
    assert!(plan.contains(&says), "{from} -> {to}: {says:?} is not in\n{plan}");
    assert!(store.start(&new).is_err(), "{from} -> {to}");
    if unfit > 0 {
        assert!(matches!(store.apply(&new, &[]), Err(MigrateError::Refused(_))), "{from} -> {to}");
    }
    store.apply(&new, drops).expect(&new);
    let wanted: Vec<&str> = values.iter().map(|(_, wanted)| *wanted).collect();
    assert_eq!(store.rows("SELECT v FROM ts ORDER BY id"), wanted, "{from} -> {to}");
    let images = store.rows("SELECT image ->> 'v' FROM trefoil_changes WHERE resource = 'T' ORDER BY number");
    assert_eq!(images, wanted, "{from} -> {to}");
}

fn values_are_converted_where_they_fit(on: On) {
    check(on, "Int", "Long", &[("1", "1"), ("-5", "-5")]);
    check(on, "Int", "Float", &[("1", "1.0")]);
    check(on, "Int", "String", &[("12", "12")]);
    check(on, "Int", "Decimal", &[("12", "12")]);
    check(on, "Int", "[Int!]", &[("12", "[12]")]);
    check(on, "Long", "Int", &[("12", "12"), ("99999999999", "null")]);
    check(on, "Long", "Float", &[("9007199254740993", "null"), ("9007199254740992", "9007199254740992.0")]);
    check(on, "Float", "Int", &[("3.0", "3"), ("3.5", "null")]);
    check(on, "Float", "Decimal", &[("0.1", "0.1")]);
    check(on, "Decimal", "Float", &[("'0.10'", "0.1"), ("'0.1000000000000000055'", "null")]);
    check(on, "Decimal", "String", &[("'12.50'", "12.50")]);
    check(on, "String", "Int", &[("'12'", "12"), ("'x'", "null"), ("''", "null")]);
    check(on, "String", "Decimal", &[("'12.50'", "12.50"), ("'1,5'", "null")]);
    check(on, "String", "Boolean", &[("'true'", "1"), ("'no'", "null")]);
    check(on, "String", "E", &[("'A'", "A"), ("'C'", "null")]);
    check(on, "E", "String", &[("'A'", "A")]);
    check(on, "String", "Date", &[("'2026-02-03'", "2026-02-03"), ("'2026-02-30'", "null")]);
    check(on, "Date", "DateTime", &[("'2026-02-03'", "2026-02-03T00:00:00.000000Z")]);
    check(on, "DateTime", "String", &[("'2026-02-03T04:05:06.700000Z'", "2026-02-03T04:05:06.7Z")]);
    check(on, "Boolean", "String", &[("'1'", "true"), ("'0'", "false")]);
    check(on, "String", "[String!]", &[("'a'", "[\"a\"]")]);
    check(on, "[Int!]", "[String!]", &[("'[1,2]'", "[\"1\",\"2\"]")]);
    check(on, "[String!]", "[Int!]", &[("'[\"1\"]'", "[1]"), ("'[\"x\"]'", "null")]);
}

fn number_becomes_a_reference_if_the_record_exists(on: On) {
    let old = "type Owner { id: ID! } type T { id: ID! ownerId: Int }";
    let new =
        "type Owner { id: ID! ts: [T] } type T { id: ID! owner: Owner @renamedFrom(name: \"ownerId\") }";
    let store = Store::with(
        on,
        old,
        "INSERT INTO owners DEFAULT VALUES; INSERT INTO ts (\"ownerId\") VALUES (1), (7)",
    );
    let plan = store.plan(new);
    assert!(plan.contains("T.owner: changed from Int to Owner; invalid: 1 of 2 values"), "{plan}");
    store.apply(new, &["T.owner"]).unwrap();
    assert_eq!(store.rows("SELECT id, \"ownerId\" FROM ts ORDER BY id"), ["1|1", "2|null"]);
    store.refusal("UPDATE ts SET \"ownerId\" = 9");
}

fn unfit_required_values_block_without_a_default(on: On) {
    let store = Store::with(on, "type T { id: ID! v: String! }", "INSERT INTO ts (v) VALUES ('1'), ('x')");
    let without = "type T { id: ID! v: Int! }";
    assert!(matches!(store.apply(without, &[]), Err(MigrateError::Refused(_))));
    assert!(matches!(store.apply(without, &["T.v"]), Err(MigrateError::UnknownDrop { .. })));
    let with = "type T { id: ID! v: Int! @default(value: 9) }";
    assert!(store.plan(with).contains("invalid: 1 of 2 values, to become 9  [LOSS"), "{}", store.plan(with));
    store.apply(with, &["T.v"]).unwrap();
    assert_eq!(store.rows("SELECT v FROM ts ORDER BY id"), ["1", "9"]);
}

fn unused_enum_value_can_be_removed(on: On) {
    let schema = |values: &str| format!("enum E {{ {values} }} type T {{ id: ID! v: E! many: [E!] }}");
    let store = Store::with(on, &schema("A B C"), "INSERT INTO ts (v, many) VALUES ('A', '[\"B\"]')");
    assert_eq!(store.start(&schema("A B")).unwrap().steps.len(), 2);
    let plan = store.plan(&schema("A"));
    assert!(
        plan.contains("T.many: [enum E!] is more restrictive; invalid: 1 of 1 values, to become null"),
        "{plan}"
    );
    assert!(matches!(store.start(&schema("A")), Err(MigrateError::NeedsMigration(_))));
    assert!(store.plan(&schema("B")).contains("NOT POSSIBLE"));
    assert_eq!(store.start(&schema("A B D")).unwrap().steps, []);
    store.apply(&schema("A"), &["T.many"]).unwrap();
    assert_eq!(store.rows("SELECT v, many FROM ts"), ["A|null"]);
}

fn embedded_values_follow_their_type(on: On) {
    let schema = |parts: &str| format!("type Address {{ {parts} }} type T {{ id: ID! at: Address }}");
    let store = Store::with(
        on,
        &schema("street: String! zip: Int"),
        "INSERT INTO ts (at) VALUES ('{\"street\":\"s\",\"zip\":7}')",
    );
    assert_eq!(store.start(&schema("street: String! zip: Int city: String")).unwrap().steps, []);
    let less = schema("street: String! city: String");
    assert!(
        store.plan(&less).contains("lost: fields of 1 value that their type no longer has  [LOSS"),
        "{}",
        store.plan(&less)
    );
    store.apply(&less, &["T.at"]).unwrap();
    let kept = store.rows("SELECT at ->> 'street', at -> 'zip' FROM ts");
    assert_eq!(kept, ["s|null"]);
    let more = schema("street: String! city: String!");
    assert!(
        store.plan(&more).contains("invalid: 1 of 1 values, to become null  [LOSS"),
        "{}",
        store.plan(&more)
    );
}
