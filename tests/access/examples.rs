//! The applications of `examples/apps`: they load with their seeds, and who may do what is as committed.

use std::path::Path;

use crate::support::command;

const APPS: [&str; 3] = ["blog", "crm", "gradebook"];

/// `BLESS=1 cargo test --test tests access::examples` writes the tables anew.
#[test]
fn examples_say_who_may_do_what() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for app in APPS {
        let folder = format!("examples/apps/{app}");
        let ran = command(root, &["check", &folder, "--rules", "--strict"]).output().expect("it runs");
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{app}: {out}{err}");
        let rows = out.lines().filter(|line| line.starts_with("  ")).map(|line| format!("{line}\n"));
        let table: String = rows.collect();
        let path = root.join(&folder).join("rules.txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &table).expect("writable");
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if expected != table {
            wrong.push(format!("{app}: {} says\n{expected}instead of\n{table}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
