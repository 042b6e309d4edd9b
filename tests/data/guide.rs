//! Runs the commands of the page on moving data, and compares their output with the documented one.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

/// Times and speeds differ from run to run.
fn steady(line: &str) -> String {
    match line.split_once(" in ") {
        Some((before, rest)) if line.starts_with("imported") || line.starts_with("exported") => {
            let after = rest.split_once("rows/s").map_or("", |(_, after)| after);
            format!("{before} in …{after}")
        }
        _ => line.to_owned(),
    }
}

#[test]
fn data_page_commands_print_the_documented_output() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_trefoil"), folder.path().join("bin/trefoil")).unwrap();
    let path = format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
    let page = fs::read_to_string("docs/data.md").unwrap();
    let mut compared = 0;
    for block in page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for step in block.split("$ ").filter(|step| !step.is_empty()) {
            let (line, said) = step.split_once('\n').unwrap();
            let run = Command::new("sh")
                .args(["-c", &format!("exec 2>&1; {line}")])
                .current_dir(folder.path())
                .env_clear()
                .env("PATH", &path)
                .output()
                .unwrap();
            let out = String::from_utf8(run.stdout).unwrap().replace(['\u{feff}', '\r'], "");
            // Told wherever no folder is named; the page says once that it leaves it out.
            let is_about_sample =
                |line: &&str| line.starts_with("application: Sample Resource API, the built-in");
            assert_eq!(
                out.lines().filter(is_about_sample).count(),
                line.matches("trefoil ").count(),
                "{line}: {out}"
            );
            let found: Vec<String> = out.lines().filter(|line| !is_about_sample(line)).map(steady).collect();
            let expected: Vec<String> = said.lines().map(steady).collect();
            assert_eq!(found, expected, "{line}");
            compared += 1;
        }
    }
    assert!(compared >= 8, "the page shows {compared} commands");
}
