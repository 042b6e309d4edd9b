//! The operator, for whom no rules apply, stands in for an actor only in the places of this table.

use std::collections::BTreeMap;
use std::path::Path;

use super::tokens::tokens;

/// How often each file makes one, and for what.
const OPERATORS: &[(&str, usize, &str)] = &[
    (
        "crates/engine/src/engine.rs",
        4,
        "where it is made: on request, and for everybody and new accounts where there are no rules",
    ),
    (
        "crates/credentials/src/account_reader.rs",
        1,
        "the account of an actor, before it is known what the actor may do",
    ),
    (
        "crates/credentials/src/accounts/account_service.rs",
        1,
        "accounts as they sign in, before anybody is known: their record, its login, and the record of a new one",
    ),
    (
        "crates/credentials/src/accounts/new_accounts.rs",
        1,
        "whether there is an account, which an answer tells only to whom the log showed a link",
    ),
    (
        "crates/server/src/accounts/links.rs",
        2,
        "the form of the first account and what it makes, for whom the log showed its link",
    ),
    (
        "crates/engine/src/measure_relation_lengths.rs",
        1,
        "the average lengths of lists, which no answer shows",
    ),
    ("crates/engine/src/plan/actor_values.rs", 1, "the test of the file itself, with and without rules"),
    ("crates/engine/src/plan/mod.rs", 2, "imports and other bulk writes of commands"),
    (
        "crates/server/src/routes/batch_routes.rs",
        1,
        "whether a record that a repeated batch asks for is out of sight or gone, which changes nothing",
    ),
    ("crates/sql/src/statements/compile.rs", 1, "the test of the file itself, of statements without rules"),
    ("crates/server/src/command_store.rs", 1, "commands on the machine: export and import"),
    (
        "crates/server/src/lifecycle.rs",
        4,
        "the seed, the counts of the start, and commands that write as a server would",
    ),
];

fn is_operator(words: &[String]) -> bool {
    match words {
        [before, name, ..] if name == "as_operator" => before != "fn",
        [first, colons, second, ..] => first == "Authority" && colons == "::" && second == "operator",
        _ => false,
    }
}

#[test]
fn only_listed_places_act_as_the_operator() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for folder in ["src", "crates"] {
        for path in super::rust_files(Path::new(folder)) {
            let name = path.to_str().expect("UTF-8").replace('\\', "/");
            if name.contains("_tests/") || name.contains("/tests/") {
                continue;
            }
            let words = tokens(&std::fs::read_to_string(&path).expect("readable"));
            let count = (0..words.len()).filter(|at| is_operator(&words[*at..])).count();
            if count > 0 {
                found.insert(name, count);
            }
        }
    }
    let listed: BTreeMap<String, usize> =
        OPERATORS.iter().map(|(name, count, _)| ((*name).to_owned(), *count)).collect();
    assert_eq!(found, listed, "an engine on behalf of an actor is `for_actor`; see tests/tidy/operators.rs");
}
