//! Progress and questions of commands: shown on a terminal, and nowhere else.

use std::process::{Command, Stdio};

use super::{Bench, Kind, Said, Store};

/// Runs the command after it on a terminal of its own, types what comes from standard input, and ends as it ends.
const TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

fn on_terminal(bench: &Bench, verb: &str, store: &Store, arguments: &[&str], typed: &str) -> Said {
    let inner = bench.command(verb, store, arguments);
    bench.write("typed", typed);
    let output = Command::new("python3")
        .args(["-c", TERMINAL])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(bench.folder.path())
        .stdin(Stdio::from(std::fs::File::open(bench.path("typed")).unwrap()))
        .output()
        .unwrap();
    Said::of(output)
}

/// The lines that were written over each other, without their ends.
fn drawn(said: &Said) -> Vec<&str> {
    assert!(said.succeeded, "{}{}", said.out, said.err);
    said.out
        .split(['\r', '\n'])
        .filter_map(|line| line.strip_suffix("\x1b[K"))
        .filter(|line| !line.is_empty())
        .collect()
}

/// Each of these tasks has a bar with what is done, how fast, and how long it will take.
fn has_bar(said: &Said, tasks: &[&str], unit: &str) {
    let lines = drawn(said);
    for task in tasks {
        let is_bar = |line: &&&str| {
            let parts = [format!("{task}["), " %, ".to_owned(), format!(" {unit}, "), format!(" {unit}/s, ")];
            line.starts_with(&parts[0])
                && parts.iter().all(|part| line.contains(part))
                && line.ends_with(" left")
        };
        assert!(lines.iter().any(|line| is_bar(&line)), "no {task:?} of {unit} in {lines:?}");
    }
    // The last line is taken away before the end is told.
    let end = said.out.trim_end();
    assert!(!end.rsplit("\x1b[K").next().unwrap().contains("rows/s, "), "{end:?}");
}

#[test]
fn progress_is_shown_only_on_a_terminal() {
    let bench = Bench::new(Kind::File);
    let (store, other) = (bench.store(), Bench::new(Kind::Server).store());
    let said = on_terminal(&bench, "seed", &store, &["--fake", "3000"], "");
    has_bar(&said, &["generating "], "records");
    has_bar(&on_terminal(&bench, "export", &store, &["--to", "all.ndjson"], ""), &[""], "rows");
    let copy = bench.store();
    has_bar(&on_terminal(&bench, "import", &copy, &["--from", "all.ndjson"], ""), &[""], "rows");
    let said = on_terminal(&bench, "backup", &store, &["--to", "aside.db"], "");
    has_bar(&said, &["copying "], "pages");
    let said = on_terminal(&bench, "move", &store, &["--to", &other.flags[1]], "");
    has_bar(&said, &["copying ", "verifying "], "rows");
    assert!(drawn(&said).contains(&"creating indexes and triggers …"), "{:?}", said.out);

    for (verb, arguments) in [("export", ["--to", "again.ndjson"]), ("backup", ["--to", "again.db"])] {
        let said = bench.run(verb, &copy, &arguments);
        assert!(said.succeeded && !said.err.contains(['\r', '[', '\x1b']), "{verb}: {:?}", said.err);
        assert!(!said.out.contains(['\r', '[', '\x1b']), "{verb}: {:?}", said.out);
    }
    assert_eq!(bench.read("again.ndjson"), bench.read("all.ndjson"));
}

#[test]
fn reset_asks_for_confirmation_only_on_a_terminal() {
    let bench = Bench::new(Kind::File);
    let store = bench.store();
    assert!(bench.pipe(&store, &["--resource", "teams"], "{\"title\":\"t\"}\n").succeeded);
    let before = bench.all(&store);
    bench.run("reset", &store, &[]).refused(&["reset deletes all records; use --yes to confirm"]);
    let said = on_terminal(&bench, "reset", &store, &[], "y\n");
    assert!(
        said.out.contains("This deletes 1 record of app in sqlite:")
            && said.out.contains(". Type yes to continue: ")
            && said.out.contains("nothing was changed"),
        "{}",
        said.out
    );
    assert_eq!(bench.all(&store), before);
    let said = on_terminal(&bench, "reset", &store, &[], "yes\n");
    assert!(said.succeeded, "{}", said.out);
    assert_eq!(bench.all(&store), "");
}
