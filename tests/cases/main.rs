//! Runs `tests/cases/**/*.case`: requests and the responses they must get, added without Rust.
//!
//! A file is one server and the steps that talk to it, in order:
//!
//! ```text
//! # A comment. Without `schema` the sample is served.
//! schema
//!     type User { id: ID! name: String! }
//!     type Query { users: [User!]! }
//! set limit-depth 3
//! manifest
//!     [[list]]
//!     path = "/notes"
//!
//! > GET /graphql?query={users{id}}
//! accept: application/json
//! < 200
//! content-type: application/json*
//! {"data": {"users": []}}
//!
//! > graphql {"id": 1}
//! query($id: ID!) { user(id: $id) { name } }
//! < 200
//! {"data": {"user": null}}
//! ```
//!
//! Every file is a test on SQLite and one on PostgreSQL, `cases::sqlite::rest::lists` and `cases::postgres::rest::lists`:
//!
//! ```text
//! cargo test --test cases                        every file, on both
//! cargo test --test cases sqlite                 every file on SQLite; PostgreSQL is not needed
//! cargo test --test cases sqlite::rest           those of a folder
//! CASE=rest/lists cargo test --test cases        one file or folder, on both
//! BLESS=1 CASE=rest/lists cargo test --test cases     writes its answers anew, from SQLite
//! ```
//!
//! BLESS=1 keeps what still fits, `*` and comments included, and writes an answer under a request that has none. Look at
//! the difference before committing it.
//!
//! `set` takes a name of the settings table and a value, as a flag would. A line `# sqlite only: REASON` keeps it from the latter, and `# row: NAME`
//! above a step says which row of `rows.txt` it shows.
//!
//! `{etag}` in a request's header is the last ETag that was answered, `{event}` the last id of an event. JSON is compared with
//! its key order. `*` in a text stands for anything, and the key `"*"` at the end of an object for any more keys. A stream
//! of events is read until it says what is expected.
//!
//! Beside the steps something can be done, and then the server is a process of its own, on a file or on PostgreSQL:
//!
//! ```text
//! ! outside DROP TABLE users      another program does this to the store
//! ! away                          nothing can be written to the store any more
//! ! prints Someone called         this line, and no other, was printed since the last such line
//! ! stop                          the server is told to end
//! ```

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod apart;
mod bless;
mod file;
mod judge;
mod rows;
mod run;
#[allow(dead_code, unused_imports, reason = "the other tests need more of it")]
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use self::file::CaseFile;
use self::run::{CaseStore, StepResult, take_steps};
use self::support::postgres;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let chosen = std::env::var("CASE").ok();
    let mut files = files();
    assert!(files.len() >= 10, "{} case files found", files.len());
    if let Some(chosen) = &chosen {
        files.retain(|file| is_chosen(&short_name(file), chosen));
        assert!(!files.is_empty(), "CASE={chosen}: there is no tests/cases/{chosen}.case and no such folder");
    }
    let mut trials: Vec<Trial> = files.iter().flat_map(|file| trials(file)).collect();
    if chosen.is_none() {
        trials.push(own_trial("rows::every_promise_is_shown", rows::every_promise_is_shown));
        trials.push(own_trial("bless::keeps_what_still_fits", bless::keeps_what_still_fits));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// `CASE` is a file or a folder; how a path ends or begins does not matter.
fn is_chosen(name: &str, chosen: &str) -> bool {
    let chosen = chosen.trim_start_matches("tests/cases/").trim_end_matches(".case").trim_end_matches('/');
    name.strip_prefix(chosen).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn own_trial(name: &str, check: fn()) -> Trial {
    Trial::test(format!("cases::{name}"), move || {
        check();
        Ok(())
    })
}

/// One test for each store that the file is for; only SQLite writes answers anew.
fn trials(file: &Path) -> Vec<Trial> {
    let text = std::fs::read_to_string(file).expect("a readable case");
    let only_sqlite = text.lines().find_map(|line| line.strip_prefix("# sqlite only"));
    if let Some(reason) = only_sqlite {
        let is_reason = reason.strip_prefix(": ").is_some_and(|reason| reason.len() > 10);
        assert!(is_reason, "{}: `# sqlite only` needs a reason", file.display());
    }
    let name = short_name(file).replace('/', "::");
    let is_blessing = std::env::var_os("BLESS").is_some();
    let (own_file, own_text) = (file.to_owned(), text.clone());
    let mut trials = vec![Trial::test(format!("cases::sqlite::{name}"), move || match is_blessing {
        true => bless(&own_file, &own_text),
        false => check(&own_file, &own_text, &CaseStore::Sqlite),
    })];
    if only_sqlite.is_none() && !is_blessing {
        let own_file = file.to_owned();
        trials.push(Trial::test(format!("cases::postgres::{name}"), move || {
            check(&own_file, &text, &CaseStore::Postgres(postgres::database()))
        }));
    }
    trials
}

fn check(file: &Path, text: &str, store: &CaseStore) -> Result<(), Failed> {
    let case = file::parse(file, text);
    assert!(!case.steps.is_empty(), "there are no steps");
    verdict(file, &case, &take_steps(&case, store))
}

/// Everything that is wrong with the answers to a file.
fn verdict(file: &Path, case: &CaseFile, results: &[StepResult]) -> Result<(), Failed> {
    let mut failures = Vec::new();
    for (step, result) in case.steps.iter().zip(results) {
        let place = format!("tests/cases/{}.case:{}", short_name(file), step.line);
        match result {
            StepResult::Done => {}
            StepResult::Failed(why) => failures.push(format!("{place}: {why}")),
            StepResult::Answered(reply) => {
                if let Err(why) = judge::judge(step, reply) {
                    let answered = String::from_utf8_lossy(&reply.body);
                    failures.push(format!("{place}: {why}\nanswered {} {answered}", reply.status));
                }
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n\n").into()) }
}

/// Writes the answers anew; what cannot be written stays a failure.
fn bless(file: &Path, text: &str) -> Result<(), Failed> {
    let case = file::parse(file, text);
    let results = take_steps(&case, &CaseStore::Sqlite);
    if verdict(file, &case, &results).is_ok() {
        return Ok(());
    }
    let runs = [results, take_steps(&case, &CaseStore::Sqlite)];
    let renewed = bless::blessed(text, &case, &runs);
    std::fs::write(file, &renewed)?;
    runs.iter().try_for_each(|results| verdict(file, &file::parse(file, &renewed), results))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// `rest/lists` for `tests/cases/rest/lists.case`.
fn short_name(file: &Path) -> String {
    let path = file.strip_prefix(folder()).expect("below the folder of cases").with_extension("");
    path.to_str().expect("UTF-8").to_owned()
}

fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    find(&folder(), &mut files);
    files
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "case") {
            files.push(path);
        }
    }
}
