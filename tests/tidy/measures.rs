//! Prints the size of every crate; `cargo test --test tests tidy::measures -- --nocapture --ignored` shows it.

use std::collections::BTreeMap;

use super::circles::circles;
use super::modules::{Graph, files_of};
use super::types::{repeated_of, types_of};

#[test]
#[ignore = "prints, and holds nothing"]
#[expect(clippy::print_stdout, reason = "what it is for")]
fn measures() {
    let head = ["files", "lines", "types", "one word", "repeated", "circles", "largest folder"];
    println!("{:<12}{}", "crate", head.map(|word| format!("{word:>15}")).concat());
    let mut total = [0; 6];
    for name in super::crates() {
        let files = files_of(&name);
        let types: Vec<String> = types_of(&name).into_keys().collect();
        let one_word = types.iter().filter(|name| name.matches(char::is_uppercase).count() == 1).count();
        let lines = files.iter().map(|file| file.lines).sum();
        let graph = Graph::of(files);
        let counts = [
            graph.files.len(),
            lines,
            types.len(),
            one_word,
            repeated_of(&name).len(),
            circles(&graph).len(),
        ];
        println!("{name:<12}{}  {}", columns(counts), largest_folder(&graph));
        total.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    println!("{:<12}{}", "all", columns(total));
}

fn columns([files, lines, types, one_word, repeated, circles]: [usize; 6]) -> String {
    let share = format!("{one_word} ({} %)", 100 * one_word / types.max(1));
    format!("{files:>15}{lines:>15}{types:>15}{share:>15}{repeated:>15}{circles:>15}")
}

fn largest_folder(graph: &Graph) -> String {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for folder in graph.files.iter().filter_map(|file| file.path.parent()) {
        *folders.entry(folder.display().to_string()).or_default() += 1;
    }
    let largest = folders.into_iter().max_by_key(|(_, files)| *files);
    largest.map(|(folder, files)| format!("{files} in {folder}")).unwrap_or_default()
}
