//! Checks that type names are unique within a crate.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Names that a crate gives to more than one type. The list may only get shorter.
const REPEATED: &[(&str, &str)] = &[("sql", "RowVisitor"), ("sql", "RowsRead")];

/// The names of the structs, enums, traits and aliases that a crate defines outside of its tests, each with its files.
pub fn types_of(crate_name: &str) -> BTreeMap<String, Vec<PathBuf>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in super::modules::files_of(crate_name) {
        for name in defined(&file.code) {
            found.entry(name).or_default().push(file.path.clone());
        }
    }
    found
}

pub fn repeated_of(crate_name: &str) -> BTreeMap<String, Vec<PathBuf>> {
    types_of(crate_name).into_iter().filter(|(_, files)| files.len() > 1).collect()
}

fn defined(code: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    // For every open brace whether it is that of an impl or a trait: a type in there belongs to the trait.
    let (mut blocks, mut opens_block) = (Vec::new(), false);
    for (at, token) in code.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| code[before].as_str());
        match token.as_str() {
            "impl" => opens_block |= matches!(before, None | Some("}" | "{" | ";" | "]" | "unsafe")),
            "trait" => opens_block = true,
            "{" => blocks.push(std::mem::take(&mut opens_block)),
            "}" => drop(blocks.pop()),
            _ => {}
        }
        let is_alias = token == "type" && blocks.last() != Some(&true);
        if is_alias || matches!(token.as_str(), "struct" | "enum" | "trait") {
            let name = code.get(at + 1).filter(|name| name.starts_with(char::is_uppercase));
            names.extend(name.cloned());
        }
    }
    names
}

#[test]
fn type_names_are_unique_within_a_crate() {
    let mut wrong = Vec::new();
    let (mut now, mut known) = (Vec::new(), REPEATED.to_vec());
    for crate_name in super::crates() {
        for (name, files) in repeated_of(&crate_name) {
            let listed = known.iter().position(|entry| *entry == (crate_name.as_str(), name.as_str()));
            if listed.map(|at| known.remove(at)).is_none() {
                let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
                wrong.push(format!("`{name}` is defined in {}", files.join(", ")));
            }
            now.push(format!("    ({crate_name:?}, {name:?}),\n"));
        }
    }
    wrong.extend(
        known.iter().map(|(crate_name, name)| format!("`{name}` is no longer repeated in {crate_name}")),
    );
    assert!(
        wrong.is_empty(),
        "{}\n\nGive each type a name of its own. What is repeated now, for tests/tidy/types.rs:\n\n\
        const REPEATED: &[(&str, &str)] = &[\n{}];\n",
        wrong.join("\n"),
        now.concat()
    );
}

#[test]
fn type_definitions_are_found() {
    let text = "
        pub struct A<'a>(&'a str); pub(crate) enum B { C } trait D { type E; fn f() {} } type G = A<'static>;
        impl D for B { type E = u8; fn f() { struct H; } }
        fn i() -> impl Iterator<Item = u8> { type J = u8; loop {} }
        macro_rules! k { ($name:ident) => { struct $name; }; }
    ";
    assert_eq!(defined(&super::tokens::tokens(text)), ["A", "B", "D", "G", "H", "J"]);
}
