//! `trefoil new`: writes a small commented application folder to start from.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use trefoil_application::shell_quoting;

use crate::command_error::CommandError;
use crate::commands::resolver_skeleton::write_skeleton;
use crate::terminal_output::{print_output, write_file};

const STARTER_FILES: [(&str, &str); 5] = [
    ("graphql/library.graphqls", include_str!("starter/graphql/library.graphqls")),
    ("trefoil.toml", include_str!("starter/trefoil.toml")),
    ("seed/authors.json", include_str!("starter/seed/authors.json")),
    ("seed/books.json", include_str!("starter/seed/books.json")),
    (".gitignore", include_str!("starter/gitignore")),
];

pub fn command() -> Command {
    let folder = Arg::new("folder").value_name("FOLDER").required(true).value_parser(value_parser!(PathBuf));
    Command::new("new")
        .about("Create a small application folder with comments, to start from")
        .arg(folder.help("The folder to create; it must be empty or not exist"))
        .arg(Arg::new("resolvers").long("resolvers").action(ArgAction::SetTrue).help(
            "In an existing application folder, write a Rust program for the operations that nothing binds",
        ))
}

pub fn run(matches: &ArgMatches) -> Result<(), CommandError> {
    let folder = matches.get_one::<PathBuf>("folder").expect("clap requires it");
    if matches.get_flag("resolvers") {
        return write_skeleton(folder);
    }
    let shown = folder.display();
    if !is_empty_folder(folder).map_err(|error| CommandError::failed(format!("{shown}: {error}")))? {
        return Err(CommandError::usage(format!(
            "{shown} is not empty; choose a folder that is empty or does not exist"
        )));
    }
    for (name, text) in STARTER_FILES {
        write_file(&folder.join(name), text)
            .map_err(|error| CommandError::failed(format!("{shown}/{name}: {error}")))?;
    }
    print_output(&next_steps(folder))
}

/// Whether the folder is missing or empty; a new git repository counts as empty.
fn is_empty_folder(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
        Ok(entries) => {
            for entry in entries {
                if entry?.file_name() != ".git" {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn next_steps(folder: &Path) -> String {
    let shown = folder.display();
    let path = folder.to_string_lossy();
    let argument = shell_quoting::word(&path);
    let files: String = STARTER_FILES.iter().map(|(name, _)| format!("  {shown}/{name}\n")).collect();
    format!(
        "wrote\n{files}\nnext\n  trefoil check {argument}             check the schema and show its operations\n  \
         trefoil serve {argument} --watch     serve it, and reload when graphql/library.graphqls changes\n  \
         trefoil views {argument}             list the page templates, which you can override\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use trefoil_application::Manifest;
    use trefoil_config::SETTINGS;

    /// The starter manifest with its settings in use: `#key` is a setting, `# word` a remark.
    fn uncommented() -> String {
        let text = STARTER_FILES.iter().find(|(name, _)| *name == "trefoil.toml").unwrap().1;
        let uncomment = |line: &str| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
            Some(_) | None => format!("{line}\n"),
        };
        text.lines().map(uncomment).collect()
    }

    #[test]
    fn every_line_of_the_starter_is_valid() {
        let (manifest, mistakes) = Manifest::parse(&uncommented());
        assert_eq!(mistakes, []);
        assert_eq!(
            (manifest.text_endpoints.len(), manifest.plain_lists.len(), manifest.resources.len()),
            (2, 1, 1)
        );
    }

    #[test]
    fn starter_shows_every_setting_with_its_default() {
        let (manifest, _) = Manifest::parse(&uncommented());
        for setting in SETTINGS {
            let written = manifest.settings.iter().find(|written| written.setting.name == setting.name);
            let written = written.unwrap_or_else(|| panic!("{} is not shown", setting.name));
            let is_example =
                ["data", "trusted-proxies", "allowed-hosts", "cors-origins"].contains(&setting.name);
            assert!(is_example || written.text == setting.default(), "{}: {}", setting.name, written.text);
        }
    }
}
