//! How a kind of setting is spelled as text in both directions: switches, folders, databases, log formats.

pub(crate) mod amounts;
pub(crate) mod network;

use std::path::PathBuf;

use crate::{Database, LogFormat, PostgresUrl};

pub use crate::setting_syntax::amounts::{Amount, Count, Delay, Rate, Room, Size, Time};
pub use crate::setting_syntax::network::{Host, HostNames, Networks, Origins, Port};

/// A way of writing values of one type: what `show` writes, `read` takes, and so do flag, variable and file.
pub trait Kind {
    type Value;
    /// What stands for the value in a usage line.
    const HINT: &'static str;
    /// As a flag it needs no value.
    const STANDS_ALONE: bool = false;
    fn read(text: &str) -> Result<Self::Value, String>;
    fn show(value: &Self::Value) -> String;
}

/// A yes or no; as a flag it may stand alone.
pub struct Switch;

impl Kind for Switch {
    type Value = bool;
    const HINT: &'static str = "BOOL";
    const STANDS_ALONE: bool = true;

    fn read(text: &str) -> Result<bool, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Ok(true),
            "false" | "off" | "no" | "0" => Ok(false),
            _ => Err(format!("{text:?} is neither true nor false")),
        }
    }

    fn show(value: &bool) -> String {
        value.to_string()
    }
}

pub struct Folder;

impl Kind for Folder {
    type Value = PathBuf;
    const HINT: &'static str = "FOLDER";

    fn read(text: &str) -> Result<PathBuf, String> {
        if text.is_empty() { Err("a folder must be named".into()) } else { Ok(PathBuf::from(text)) }
    }

    fn show(value: &PathBuf) -> String {
        value.display().to_string()
    }
}

pub struct DatabaseUrl;

impl Kind for DatabaseUrl {
    type Value = Database;
    const HINT: &'static str = "URL";

    fn read(text: &str) -> Result<Database, String> {
        match text {
            "sqlite:" => Ok(Database::Embedded),
            "memory:" => Ok(Database::Memory),
            _ if PostgresUrl::is_meant(text) => PostgresUrl::read(text).map(Database::Postgres),
            // The text is not repeated: it may hold a password.
            _ => {
                Err("no such database; use \"sqlite:\" (in the data folder), \"memory:\" or \"postgres://…\""
                    .into())
            }
        }
    }

    fn show(value: &Database) -> String {
        match value {
            Database::Embedded => "sqlite:".into(),
            Database::Memory => "memory:".into(),
            Database::Postgres(url) => url.to_string(),
        }
    }
}

pub struct Format;

impl Kind for Format {
    type Value = LogFormat;
    const HINT: &'static str = "FORMAT";

    fn read(text: &str) -> Result<LogFormat, String> {
        match text {
            "auto" => Ok(LogFormat::Auto),
            "pretty" => Ok(LogFormat::Pretty),
            "json" => Ok(LogFormat::Json),
            _ => Err(format!("{text:?} is no log format; use auto, pretty or json")),
        }
    }

    fn show(value: &LogFormat) -> String {
        match value {
            LogFormat::Auto => "auto".into(),
            LogFormat::Pretty => "pretty".into(),
            LogFormat::Json => "json".into(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `text` is read and written again as `shown`.
    pub(crate) fn reads<K: Kind>(text: &str, shown: &str) {
        let value = K::read(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(K::show(&value), shown, "{text:?}");
        assert_eq!(K::show(&K::read(shown).unwrap()), shown, "what is shown can be written");
    }

    pub(crate) fn refuses<K: Kind>(text: &str, because: &str) {
        match K::read(text) {
            Ok(value) => panic!("{text:?} was taken as {}", K::show(&value)),
            Err(error) => assert!(error.contains(because), "{text:?}: {error}"),
        }
    }

    #[test]
    fn switches_folders_databases_and_formats() {
        reads::<Switch>("ON", "true");
        refuses::<Switch>("maybe", "neither true nor false");
        reads::<DatabaseUrl>("memory:", "memory:");
        reads::<DatabaseUrl>("postgresql://u:secret@h/db", "postgres://u:***@h/db");
        refuses::<DatabaseUrl>("postgres:h", "begins with postgres://");
        refuses::<DatabaseUrl>("mysql://u:secret@h/db", "no such database");
        assert!(!DatabaseUrl::read("mysql://u:secret@h/db").unwrap_err().contains("secret"));
        reads::<Format>("json", "json");
        refuses::<Format>("xml", "auto, pretty or json");
        refuses::<Folder>("", "must be named");
    }
}
