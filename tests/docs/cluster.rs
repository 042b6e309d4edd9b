//! The page on several nodes: its commands, and the systemd unit that it names.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use super::{Block, blocks};
use crate::support::command;

/// The commands for root: systemd accepts the unit, and curl waits until a node is ready.
#[test]
fn cluster_page_commands_work() {
    let blocks: Vec<Block> =
        blocks("docs/cluster.md").into_iter().filter(|block| block.language == "console").collect();
    let lines: Vec<&str> = blocks.iter().flat_map(|block| block.text.lines()).collect();
    let ["# systemctl restart trefoil", ask] = lines[..] else { panic!("other commands: {lines:?}") };

    // The port is free until the node has it, so curl meets nobody at first.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port().to_string();
    drop(free);
    let ask =
        ask.strip_prefix("# curl ").expect("curl").replace("10.0.0.11:8080", &format!("127.0.0.1:{port}"));
    let asking = Command::new("curl").args(ask.split(' ')).arg("--silent").stdout(Stdio::piped()).spawn();
    let asking = asking.expect("curl is installed");
    let folder = tempfile::tempdir().expect("a folder");
    let mut node = command(folder.path(), &["--port", &port]).stderr(Stdio::null()).spawn().expect("it runs");
    let ready = asking.wait_with_output().expect("curl ends");
    node.kill().and_then(|()| node.wait()).expect("it ends");
    assert_eq!((ready.status.success(), ready.stdout.as_slice()), (true, b"ok\n".as_slice()));
}

#[test]
fn cluster_page_systemd_unit_is_valid() {
    judge_unit("docs/cluster/trefoil.service", &["db.internal", "10.0.0.11", "10.0.0.5/32", "3s"]);
}

#[test]
fn operating_page_systemd_unit_is_valid() {
    judge_unit("docs/operating/trefoil.service", &["/var/lib/trefoil", "sqlite:"]);
}

/// Its command line and its environment are understood, and come to these settings.
fn judge_unit(path: &str, settings: &[&str]) {
    let unit = fs::read_to_string(path).expect("the unit");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    let folder = tempfile::tempdir().expect("a folder");
    assert!(command(folder.path(), &["new", "shop"]).status().expect("it runs").success());
    let mut arguments: Vec<&str> = start.split(' ').skip(1).collect();
    assert_eq!(std::mem::replace(&mut arguments[1], "shop"), "/srv/shop");
    arguments.push("--print-config");
    let environment = unit.lines().filter_map(|line| line.strip_prefix("#   ")?.split_once('='));
    let printed = command(folder.path(), &arguments).envs(environment).output().expect("it runs");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let printed = String::from_utf8(printed.stdout).expect("UTF-8");
    for part in settings {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    // Where there is systemd it has the last word.
    let file = folder.path().join("trefoil.service");
    fs::write(&file, unit.replace("/usr/local/bin/trefoil", env!("CARGO_BIN_EXE_trefoil"))).expect("written");
    if let Ok(judged) = Command::new("systemd-analyze").arg("verify").arg(&file).output() {
        assert_eq!(String::from_utf8_lossy(&judged.stderr), "");
    }
}
