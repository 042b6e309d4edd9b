//! Nodes killed, the database killed, connections cut and silenced: no write and no event is lost or doubled.

use std::time::Duration;

use super::proxy::Mode;
use super::trial::Trial;
use crate::support::is_long;

const SHORT: Duration = Duration::from_millis(500);

#[test]
fn sqlite_node_killed_and_disconnected() {
    Trial::on_sqlite().run(2, |trial| {
        for _ in 0..if is_long() { 10 } else { 2 } {
            trial.sites[0].node.kill();
            trial.sites[0].node.launch();
            trial.recovers("a killed node");
            trial.pause(SHORT);
            trial.sites[0].front.set(Mode::Cut);
            trial.pause(SHORT);
            trial.sites[0].front.set(Mode::Pass);
            trial.recovers("cut clients");
            trial.pause(SHORT);
        }
    });
}

#[test]
fn three_postgres_nodes_through_every_fault() {
    let (rounds, hole) = if is_long() { (4, Duration::from_secs(30)) } else { (1, Duration::from_secs(4)) };
    Trial::on_postgres(3, &[]).run(2, |trial| {
        for round in 0..rounds {
            let (one, other) = (round % 3, (round + 1) % 3);
            killed_node(trial, one);
            killed_database(trial);
            cut(trial, other);
            swallowed(trial, one, hole);
            clients_in_the_dark(trial, other, hole);
            everything_swallowed(trial, hole);
        }
    });
}

fn killed_node(trial: &mut Trial, at: usize) {
    trial.sites[at].node.kill();
    trial.pause(SHORT);
    trial.sites[at].node.launch();
    trial.recovers("a killed node");
    trial.pause(SHORT);
}

fn killed_database(trial: &mut Trial) {
    let cluster = trial.cluster.as_ref().expect("PostgreSQL");
    cluster.kill();
    trial.pause(SHORT);
    cluster.again();
    trial.recovers("a killed PostgreSQL");
    trial.pause(SHORT);
}

fn cut(trial: &mut Trial, at: usize) {
    trial.sites[at].database(Mode::Cut);
    trial.pause(SHORT);
    trial.sites[at].database(Mode::Pass);
    trial.recovers("cut connections to PostgreSQL");
    trial.pause(SHORT);
}

fn swallowed(trial: &mut Trial, at: usize, hole: Duration) {
    trial.sites[at].database(Mode::BlackHole);
    trial.pause(hole);
    trial.sites[at].database(Mode::Pass);
    trial.recovers("a black hole before PostgreSQL");
    trial.pause(SHORT);
}

fn clients_in_the_dark(trial: &mut Trial, at: usize, hole: Duration) {
    trial.sites[at].front.set(Mode::BlackHole);
    trial.pause(hole);
    trial.sites[at].front.set(Mode::Cut);
    trial.pause(SHORT);
    trial.sites[at].front.set(Mode::Pass);
    trial.recovers("a black hole before a node");
    trial.pause(SHORT);
}

/// Then the connections break as well, as when a firewall forgets them.
fn everything_swallowed(trial: &mut Trial, hole: Duration) {
    trial.sites.iter().for_each(|site| site.database(Mode::BlackHole));
    trial.pause(hole);
    trial.sites.iter().for_each(|site| site.database(Mode::Cut));
    trial.pause(SHORT);
    trial.sites.iter().for_each(|site| site.database(Mode::Pass));
    trial.recovers("black holes before PostgreSQL on every node");
    trial.pause(SHORT);
}
