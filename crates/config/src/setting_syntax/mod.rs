//! Reads and shows the values of settings: the trait, and switches, folders, databases, log formats and rules.

// Counts, sizes, times and rates.
pub(crate) mod quantities;

// Hosts, ports, networks and origins.
pub(crate) mod network;

use std::path::PathBuf;
use std::sync::Arc;

use trefoil_model::ZoneOffsets;

use crate::{AuditMode, DatabaseLocation, LogFormat, PostgresUrl};

pub use crate::setting_syntax::network::{
    HostListSyntax, HostSyntax, NetworkListSyntax, OriginListSyntax, PortSyntax,
};
pub use crate::setting_syntax::quantities::{
    CountOrZeroSyntax, CountSyntax, DurationOrOffSyntax, DurationSyntax, HashMemorySyntax, HashRoundsSyntax,
    PasswordLengthSyntax, RateLimitSyntax, SizeOrZeroSyntax, SizeSyntax,
};

/// The text form of a type of value: `read` accepts what `show` writes, as flag, variable and file key.
pub trait SettingSyntax {
    type Value;
    /// Placeholder of the value in a usage line.
    const HINT: &'static str;
    /// True if the flag needs no value.
    const IS_SWITCH: bool = false;
    fn read(text: &str) -> Result<Self::Value, String>;
    fn show(value: &Self::Value) -> String;
}

/// A boolean; the flag needs no value.
pub struct SwitchSyntax;

impl SettingSyntax for SwitchSyntax {
    type Value = bool;
    const HINT: &'static str = "BOOL";
    const IS_SWITCH: bool = true;

    fn read(text: &str) -> Result<bool, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Ok(true),
            "false" | "off" | "no" | "0" => Ok(false),
            _ => Err(format!("{text:?} is not true or false")),
        }
    }

    fn show(value: &bool) -> String {
        value.to_string()
    }
}

pub struct FolderSyntax;

impl SettingSyntax for FolderSyntax {
    type Value = PathBuf;
    const HINT: &'static str = "FOLDER";

    fn read(text: &str) -> Result<PathBuf, String> {
        if text.is_empty() { Err("the folder name is empty".into()) } else { Ok(PathBuf::from(text)) }
    }

    fn show(value: &PathBuf) -> String {
        value.display().to_string()
    }
}

pub struct OptionalFileSyntax;

impl SettingSyntax for OptionalFileSyntax {
    type Value = Option<PathBuf>;
    const HINT: &'static str = "FILE";

    fn read(text: &str) -> Result<Option<PathBuf>, String> {
        match text {
            "" => Err("the file name is empty; write off to use none".into()),
            "off" => Ok(None),
            _ => Ok(Some(PathBuf::from(text))),
        }
    }

    fn show(value: &Option<PathBuf>) -> String {
        value.as_ref().map_or_else(|| "off".into(), |path| path.display().to_string())
    }
}

pub struct DatabaseSyntax;

impl SettingSyntax for DatabaseSyntax {
    type Value = DatabaseLocation;
    const HINT: &'static str = "URL";

    fn read(text: &str) -> Result<DatabaseLocation, String> {
        match text {
            "sqlite:" => Ok(DatabaseLocation::Embedded),
            "memory:" => Ok(DatabaseLocation::Memory),
            _ if PostgresUrl::has_postgres_scheme(text) => {
                PostgresUrl::parse(text).map(DatabaseLocation::Postgres)
            }
            // The text is not quoted: it may contain a password.
            _ => {
                Err("unknown kind of database; use \"sqlite:\" (in the data folder), \"memory:\" or \"postgres://…\""
                    .into())
            }
        }
    }

    fn show(value: &DatabaseLocation) -> String {
        match value {
            DatabaseLocation::Embedded => "sqlite:".into(),
            DatabaseLocation::Memory => "memory:".into(),
            DatabaseLocation::Postgres(url) => url.to_string(),
        }
    }
}

pub struct LogFormatSyntax;

impl SettingSyntax for LogFormatSyntax {
    type Value = LogFormat;
    const HINT: &'static str = "FORMAT";

    fn read(text: &str) -> Result<LogFormat, String> {
        match text {
            "auto" => Ok(LogFormat::Auto),
            "pretty" => Ok(LogFormat::Pretty),
            "json" => Ok(LogFormat::Json),
            _ => Err(format!("{text:?} is not a log format; use auto, pretty or json")),
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

pub struct AuditModeSyntax;

impl SettingSyntax for AuditModeSyntax {
    type Value = AuditMode;
    const HINT: &'static str = "MODE";

    fn read(text: &str) -> Result<AuditMode, String> {
        match text {
            "writes" => Ok(AuditMode::Writes),
            "trust" => Ok(AuditMode::Trust),
            "off" | "false" => Ok(AuditMode::Off),
            _ => Err(format!("{text:?} is not what an audit notes; use writes, trust or off")),
        }
    }

    fn show(value: &AuditMode) -> String {
        match value {
            AuditMode::Writes => "writes".into(),
            AuditMode::Trust => "trust".into(),
            AuditMode::Off => "off".into(),
        }
    }
}

pub struct TimeZoneSyntax;

impl SettingSyntax for TimeZoneSyntax {
    type Value = Arc<ZoneOffsets>;
    const HINT: &'static str = "ZONE";

    fn read(text: &str) -> Result<Arc<ZoneOffsets>, String> {
        ZoneOffsets::load(text)
    }

    fn show(value: &Arc<ZoneOffsets>) -> String {
        value.to_string()
    }
}

/// A rule about the actor alone, as it is written: what it names depends on the schema.
pub struct RuleSyntax;

impl SettingSyntax for RuleSyntax {
    type Value = String;
    const HINT: &'static str = "RULE";

    fn read(text: &str) -> Result<String, String> {
        match text.trim() {
            "" => Err("the rule is empty; write true, false or an expression such as role(ADMIN)".into()),
            rule => Ok(rule.to_owned()),
        }
    }

    fn show(value: &String) -> String {
        value.clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Asserts that `text` is read, and shown as `shown`.
    pub(crate) fn assert_reads<K: SettingSyntax>(text: &str, shown: &str) {
        let value = K::read(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(K::show(&value), shown, "{text:?}");
        assert_eq!(K::show(&K::read(shown).unwrap()), shown, "what is shown can be written");
    }

    pub(crate) fn assert_refuses<K: SettingSyntax>(text: &str, expected: &str) {
        match K::read(text) {
            Ok(value) => panic!("{text:?} was accepted as {}", K::show(&value)),
            Err(error) => assert!(error.contains(expected), "{text:?}: {error}"),
        }
    }

    #[test]
    fn switches_folders_databases_and_log_formats() {
        assert_reads::<SwitchSyntax>("ON", "true");
        assert_refuses::<SwitchSyntax>("maybe", "is not true or false");
        assert_reads::<DatabaseSyntax>("memory:", "memory:");
        assert_reads::<DatabaseSyntax>("postgresql://u:secret@h/db", "postgres://u:***@h/db");
        assert_refuses::<DatabaseSyntax>("postgres:h", "must start with postgres://");
        assert_refuses::<DatabaseSyntax>("mysql://u:secret@h/db", "unknown kind of database");
        assert!(!DatabaseSyntax::read("mysql://u:secret@h/db").unwrap_err().contains("secret"));
        assert_reads::<AuditModeSyntax>("trust", "trust");
        assert_refuses::<AuditModeSyntax>("all", "writes, trust or off");
        assert_reads::<LogFormatSyntax>("json", "json");
        assert_refuses::<LogFormatSyntax>("xml", "auto, pretty or json");
        assert_refuses::<FolderSyntax>("", "is empty");
        assert_reads::<TimeZoneSyntax>("Europe/Berlin", "Europe/Berlin");
        assert_refuses::<TimeZoneSyntax>("Berlin", "is not a time zone");
        assert_reads::<RuleSyntax>(" role(OPS) ", "role(OPS)");
        assert_refuses::<RuleSyntax>(" ", "the rule is empty");
    }
}
