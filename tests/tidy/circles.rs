//! Checks that the files of a crate have no import cycles.

use std::collections::BTreeSet;

use super::modules::{File, Graph, files_of};

/// Files of a crate that need each other, by the names of their modules. The list may only get shorter.
const CIRCLES: &[(&str, &[&str])] = &[];

/// Where a file can come to and back again: every such group, and why each of its files belongs to it.
pub fn circles(graph: &Graph) -> Vec<Circle> {
    let edges = graph.edges();
    let reached: Vec<BTreeSet<usize>> = (0..edges.len()).map(|at| reached_from(at, &edges)).collect();
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for at in 0..edges.len() {
        let group: BTreeSet<usize> =
            reached[at].iter().copied().filter(|other| reached[*other].contains(&at)).collect();
        if group.len() < 2 || !seen.insert(group.clone()) {
            continue;
        }
        let name = |at: &usize| module_name(&graph.files[*at]);
        let uses = |at: &usize| {
            let used: Vec<String> = edges[*at].intersection(&group).map(name).collect();
            format!("{} names {}", name(at), used.join(", "))
        };
        let mut modules: Vec<String> = group.iter().map(name).collect();
        modules.sort();
        found.push(Circle { modules, why: group.iter().map(uses).collect() });
    }
    found.sort_by(|one, other| one.modules.cmp(&other.modules));
    found
}

pub struct Circle {
    pub modules: Vec<String>,
    why: Vec<String>,
}

fn reached_from(start: usize, edges: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![start];
    while let Some(at) = next.pop() {
        next.extend(edges[at].iter().copied().filter(|other| reached.insert(*other)));
    }
    reached
}

fn module_name(file: &File) -> String {
    if file.module.is_empty() { "lib".to_owned() } else { file.module.join("::") }
}

#[test]
fn crate_files_have_no_import_cycles() {
    let mut wrong = Vec::new();
    let mut now = Vec::new();
    let mut known: Vec<(&str, BTreeSet<&str>)> =
        CIRCLES.iter().map(|(name, modules)| (*name, modules.iter().copied().collect())).collect();
    for crate_name in super::crates() {
        for circle in circles(&Graph::of(files_of(&crate_name))) {
            let modules: BTreeSet<&str> = circle.modules.iter().map(String::as_str).collect();
            let same = |(name, listed): &(&str, BTreeSet<&str>)| *name == crate_name && *listed == modules;
            match known.iter().position(same) {
                Some(at) => drop(known.remove(at)),
                None => wrong.push(format!("{crate_name}:\n    {}", circle.why.join("\n    "))),
            }
            now.push(format!("    ({crate_name:?}, &{:?}),\n", circle.modules));
        }
    }
    let gone = known
        .iter()
        .map(|(name, modules)| format!("{name}: no longer a circle as it is listed: {modules:?}"));
    wrong.extend(gone);
    assert!(
        wrong.is_empty(),
        "{}\n\nMove what both need into a file that needs neither. What there is now, for tests/tidy/circles.rs:\n\n\
        const CIRCLES: &[(&str, &[&str])] = &[\n{}];\n",
        wrong.join("\n"),
        now.concat()
    );
}

/// A crate of these modules and texts.
fn crate_of(files: &[(&str, &str)]) -> Graph {
    Graph::of(files.iter().map(|(path, text)| File::new(path.into(), path.as_ref(), text).0).collect())
}

fn modules_in_circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    circles(&crate_of(files)).into_iter().map(|circle| circle.modules).collect()
}

#[test]
fn cycles_are_found_through_every_kind_of_path() {
    let lib = "mod a; pub mod b; pub use crate::b::Item; pub use b::Other as Renamed;";
    let circle = [["a", "b"]];
    for a in [
        "use crate::b::Item;",
        "use crate::Item;",
        "use crate::{Renamed};",
        "use crate::b; fn f() { b::g() }",
        "use crate::b::{self as other}; fn f() { other::g() }",
        "use super::b::Item;",
        "fn f(x: crate::b::Item) {}",
        "fn f(x: super::Item) {}",
        "use crate::b; fn f() { b() }",
    ] {
        assert_eq!(
            modules_in_circles(&[("lib.rs", lib), ("a.rs", a), ("b.rs", "use crate::a::X;")]),
            circle,
            "{a}"
        );
    }
}

#[test]
fn parent_that_only_declares_children_is_no_cycle() {
    let circle_of = |lib| {
        modules_in_circles(&[
            ("lib.rs", lib),
            ("a/mod.rs", "pub use crate::a::c::X;"),
            ("a/c.rs", "use crate::Item;"),
        ])
    };
    assert_eq!(circle_of("pub mod a; pub use crate::a::X; pub struct Item;"), [[""; 0]; 0]);
    assert_eq!(circle_of("pub mod a; pub use other::Item; fn f(x: crate::a::X) {}"), [[""; 0]; 0]);
    assert_eq!(circle_of("pub mod a; use crate::a::X; pub struct Item;"), [["a::c", "lib"]]);
    assert_eq!(circle_of("pub mod a; pub struct Item; fn f(x: a::X) {}"), [["a::c", "lib"]]);
    assert_eq!(circle_of("pub mod a; pub use crate::a::X; pub struct Item(X);"), [["a::c", "lib"]]);
    assert_eq!(
        circle_of("pub mod a; pub struct Item; #[cfg(test)] mod tests { use crate::a::X; }"),
        [[""; 0]; 0]
    );
}
