//! `trefoil new --resolvers`: writes a Rust program with a function for each operation that the schema alone does not bind.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use heck::{ToKebabCase, ToSnakeCase};

use trefoil_application::{App, shell_quoting};
use trefoil_engine::{ResolverBinding, ResolverRegistry};
use trefoil_model::diagnostic::render_all;
use trefoil_model::{Argument, RootField, RootType};
use trefoil_server::load_application::load_application;

use crate::command_error::CommandError;
use crate::terminal_output::{print_output, write_file};

/// The folder of the program, inside the application folder.
const PROGRAM_FOLDER: &str = "resolvers";

pub fn write_skeleton(folder: &Path) -> Result<(), CommandError> {
    let shown = folder.display();
    let (app, mistakes) = App::load_with_diagnostics(folder);
    if app.schema.is_empty() || !mistakes.is_empty() {
        return Err(CommandError::usage(format!(
            "{shown}: `trefoil check` says what is wrong with this folder"
        )));
    }
    let application = load_application(&app, &ResolverRegistry::default())
        .map_err(|mistakes| CommandError::failed(render_all(&app.schema, &mistakes)))?;
    let roots = application.model.root_fields.iter().zip(&application.bindings);
    let unbound = roots.filter(|(_, binding)| matches!(binding, ResolverBinding::Missing(_)));
    // A resolver gives one answer and cannot follow changes.
    let (subscriptions, custom): (Vec<&RootField>, Vec<&RootField>) =
        unbound.map(|(root, _)| root).partition(|root| root.root_kind == RootType::Subscription);
    let left_out = left_out_text(&subscriptions);
    if custom.is_empty() {
        let text = match subscriptions.as_slice() {
            [] => "every operation has a resolver; nothing was written\n".to_owned(),
            _ => format!("nothing was written{left_out}\n"),
        };
        return print_output(&text);
    }
    let program = folder.join(PROGRAM_FOLDER);
    if fs::exists(&program).map_err(CommandError::failed)? {
        return Err(CommandError::usage(format!(
            "{} exists; rename it first, and take over what you have written there",
            program.display()
        )));
    }
    let files = [("Cargo.toml", cargo_manifest(folder)), ("src/main.rs", program_source(&custom))];
    for (name, text) in &files {
        write_file(&program.join(name), text)
            .map_err(|error| CommandError::failed(format!("{}: {error}", program.join(name).display())))?;
    }
    let manifest = program.join("Cargo.toml").to_string_lossy().into_owned();
    print_output(&format!(
        "wrote\n  {0}/Cargo.toml\n  {0}/src/main.rs, with {1} to write{left_out}\n\nnext\n  cargo run --manifest-path {2}\n",
        program.display(),
        if custom.len() == 1 { "1 function".to_owned() } else { format!("{} functions", custom.len()) },
        shell_quoting::word(&manifest),
    ))
}

fn cargo_manifest(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().to_kebab_case()).unwrap_or_default();
    let name =
        if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name } else { "app".to_owned() };
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "[package]\nname = \"{name}-resolvers\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\ntrefoil = \"{version}\"\n\n\
         # It is a program of its own, also inside another workspace.\n[workspace]\n"
    )
}

/// `; left out, because no resolver can follow changes: bookSold`.
fn left_out_text(subscriptions: &[&RootField]) -> String {
    let names: Vec<&str> = subscriptions.iter().map(|root| root.name.as_str()).collect();
    let names = names.join(", ");
    if names.is_empty() {
        String::new()
    } else {
        format!("; left out, because no resolver can follow changes: {names}")
    }
}

fn program_source(custom: &[&RootField]) -> String {
    let mut registrations = String::new();
    let mut functions = String::new();
    let mut taken = HashSet::new();
    for root in custom {
        let field = format!("{}.{}", root.root_kind.default_name(), root.name);
        let function = free_name(&field.replace('.', "_").to_snake_case(), &mut taken);
        let _ = writeln!(registrations, "        .resolver(\"{field}\", {function})");
        functions.push_str(&resolver_function(root, &field, &function));
    }
    format!(
        "//! Serves the application of the parent folder, with what its schema alone does not say.\n\n\
         use trefoil::{{Error, ResolverCall, ResolverResult, StartError, Trefoil}};\n\n\
         #[tokio::main]\nasync fn main() -> Result<(), StartError> {{\n    \
         Trefoil::folder(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/..\"))\n{registrations}        .serve()\n        .await\n}}\n\
         {functions}\n\
         fn not_written(field: &str) -> Error {{\n    \
         Error::Resolver {{ message: format!(\"`{{field}}` is not written yet\"), code: \"NOT_WRITTEN\".into() }}\n}}\n"
    )
}

/// `query_get_book_2` for `get_book` beside `getBook`, which are one name in Rust.
fn free_name(wanted: &str, taken: &mut HashSet<String>) -> String {
    let mut names = (2..).map(|number| format!("{wanted}_{number}"));
    let mut name = wanted.to_owned();
    while !taken.insert(name.clone()) {
        name = names.next().expect("there is always another number");
    }
    name
}

fn resolver_function(root: &RootField, field: &str, function: &str) -> String {
    let typed = |argument: &Argument| format!("{}: {}", argument.name, argument.ty);
    let arguments: Vec<String> = root.arguments.iter().map(typed).collect();
    let arguments = if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) };
    let mut body = String::new();
    for argument in &root.arguments {
        let name = argument.name.to_snake_case();
        let _ = writeln!(body, "    let _{name} = call.arguments.get(\"{}\");", argument.name);
    }
    let call = if root.arguments.is_empty() { "_call" } else { "call" };
    format!(
        "\n/// `{}{arguments}: {}`\nasync fn {function}({call}: ResolverCall) -> Result<ResolverResult, Error> {{\n\
         {body}    Err(not_written(\"{field}\"))\n}}\n",
        root.name, root.ty
    )
}
