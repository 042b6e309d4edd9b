//! Flags over environment over `trefoil.toml` over defaults, settled into one [`Config`].

use std::fmt;
use std::path::Path;

use crate::{Config, PostgresUrl, SETTINGS, Setting};
use trefoil_model::naming::names::nearest_name;

const DATABASE_URL: &str = "DATABASE_URL";

/// A setting as it stands in `trefoil.toml`.
#[derive(Debug, Clone)]
pub struct FileSetting {
    pub setting: &'static Setting,
    pub text: String,
    pub line: usize,
}

/// What was said where.
pub struct SettingLayers<'a> {
    pub flags: Vec<(&'static Setting, String)>,
    /// The environment; names that neither begin with `TREFOIL_` nor are `DATABASE_URL` are passed over.
    pub variables: Vec<(String, String)>,
    pub file: &'a [FileSetting],
    /// Where `trefoil.toml` is: a path written in it is meant from there.
    pub folder: &'a Path,
}

/// The layer whose word counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingOrigin {
    Default,
    File {
        line: usize,
    },
    /// `DATABASE_URL`, which other programs read as well.
    DatabaseUrl,
    Variable,
    Flag,
}

/// A configuration, and where each of its values came from.
#[derive(Debug)]
pub struct ResolvedConfig {
    pub config: Config,
    /// One for each of [`SETTINGS`], in their order.
    origins: Vec<SettingOrigin>,
}

impl SettingLayers<'_> {
    /// The one configuration, or every reason why there is none, a line each.
    pub fn resolve(self) -> Result<ResolvedConfig, Vec<String>> {
        let mut settled = ResolvedConfig {
            config: Config::default(),
            origins: vec![SettingOrigin::Default; SETTINGS.len()],
        };
        let mut mistakes = Vec::new();
        for written in self.file {
            let text = self.file_value(written);
            mistakes.extend(settled.apply(
                written.setting,
                &text,
                SettingOrigin::File { line: written.line },
            ));
        }
        if let Some((setting, url)) = self.database_url() {
            mistakes.extend(settled.apply(setting, url, SettingOrigin::DatabaseUrl));
        }
        for (name, text) in &self.variables {
            match setting_of_variable(name) {
                Ok(Some(setting)) => mistakes.extend(settled.apply(setting, text, SettingOrigin::Variable)),
                Ok(None) => {}
                Err(mistake) => mistakes.push(mistake),
            }
        }
        for (setting, text) in &self.flags {
            mistakes.extend(settled.apply(setting, text, SettingOrigin::Flag));
        }
        if mistakes.is_empty() {
            mistakes.extend(contradicting_settings(&settled.config));
        }
        if mistakes.is_empty() { Ok(settled) } else { Err(mistakes) }
    }

    /// What hosting platforms set. It counts when it names a PostgreSQL and nothing of Trefoil's own says otherwise,
    /// so one that is meant for another program can always be set aside.
    fn database_url(&self) -> Option<(&'static Setting, &str)> {
        let setting = Setting::find("database")?;
        let own = setting.variable();
        let is_said = self.flags.iter().any(|(flag, _)| flag.name == setting.name)
            || self.variables.iter().any(|(name, _)| *name == own);
        let (_, url) = self.variables.iter().find(|(name, _)| name == DATABASE_URL)?;
        (!is_said && PostgresUrl::has_postgres_scheme(url)).then_some((setting, url))
    }

    fn file_value(&self, written: &FileSetting) -> String {
        if written.setting.name == "data" {
            return self.folder.join(&written.text).display().to_string();
        }
        written.text.clone()
    }
}

/// The setting that an environment variable names; none when the variable is somebody else's.
fn setting_of_variable(name: &str) -> Result<Option<&'static Setting>, String> {
    if !name.starts_with("TREFOIL_") {
        return Ok(None);
    }
    if let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) {
        return Ok(Some(setting));
    }
    if name.starts_with("TREFOIL_AUTH") {
        return Err(format!("{name}: authentication does not exist yet"));
    }
    let known: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    let hint = match nearest_name(name, known.iter().map(String::as_str)) {
        Some(close) => format!("did you mean {close}?"),
        None => "`trefoil serve --print-config` lists them".into(),
    };
    Err(format!("{name}: no such setting; {hint}"))
}

/// SQLite takes expressions of a thousand levels, and each condition is one.
const MAX_CONDITIONS: usize = 500;

/// Values that are right one by one and wrong together, or wrong with what they are for.
fn contradicting_settings(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    let (size, most) = (config.limits.page_size, config.limits.max_page_size);
    if size > most {
        found.push(format!("limit-page-size is {size} and limit-max-page-size only {most}"));
    }
    let conditions = config.limits.conditions;
    if conditions > MAX_CONDITIONS {
        found.push(format!(
            "limit-conditions is {conditions}, more than the {MAX_CONDITIONS} that every database takes"
        ));
    }
    found
}

impl ResolvedConfig {
    fn apply(&mut self, setting: &Setting, text: &str, origin: SettingOrigin) -> Option<String> {
        let index = SETTINGS
            .iter()
            .position(|known| known.name == setting.name)
            .expect("settings come from the table");
        self.origins[index] = origin;
        let mistake = (setting.read)(&mut self.config, text).err()?;
        Some(format!("{}: {mistake}", origin.describe(setting)))
    }
}

impl SettingOrigin {
    /// How a person finds the place: `--port`, `TREFOIL_PORT`, `trefoil.toml:3`.
    fn describe(self, setting: &Setting) -> String {
        match self {
            SettingOrigin::Default => "default".into(),
            SettingOrigin::File { line } => format!("trefoil.toml:{line}"),
            SettingOrigin::DatabaseUrl => DATABASE_URL.into(),
            SettingOrigin::Variable => setting.variable(),
            SettingOrigin::Flag => setting.flag(),
        }
    }
}

/// Every setting on a line: name, value, where it came from.
impl fmt::Display for ResolvedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> =
            SETTINGS.iter().map(|setting| value_or_none(&(setting.show)(&self.config))).collect();
        let wide = SETTINGS.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
        let value_wide = values.iter().map(|value| value.chars().count()).max().unwrap_or(0);
        for ((setting, value), origin) in SETTINGS.iter().zip(values).zip(&self.origins) {
            writeln!(f, "{:wide$}  {value:value_wide$}  {}", setting.name, origin.describe(setting))?;
        }
        Ok(())
    }
}

/// An empty list would leave a hole in its column.
fn value_or_none(value: &str) -> String {
    if value.is_empty() { "none".into() } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str) -> &'static Setting {
        Setting::find(name).unwrap()
    }

    fn settle(
        file: &[(&str, &str)],
        variables: &[(&str, &str)],
        flags: &[(&str, &str)],
    ) -> Result<ResolvedConfig, Vec<String>> {
        let file: Vec<FileSetting> = (1..)
            .zip(file)
            .map(|(line, (name, text))| FileSetting { setting: setting(name), text: (*text).into(), line })
            .collect();
        SettingLayers {
            flags: flags.iter().map(|(name, text)| (setting(name), (*text).into())).collect(),
            variables: variables.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect(),
            file: &file,
            folder: Path::new("my-app"),
        }
        .resolve()
    }

    #[test]
    fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
        let check = |settled: ResolvedConfig, port: u16, origin: SettingOrigin| {
            assert_eq!(settled.config.port, port);
            let index = SETTINGS.iter().position(|setting| setting.name == "port").unwrap();
            assert_eq!(settled.origins[index], origin);
        };
        let (file, variable, flag) = ([("port", "1")], [("TREFOIL_PORT", "2")], [("port", "3")]);
        check(settle(&file, &variable, &flag).unwrap(), 3, SettingOrigin::Flag);
        check(settle(&file, &variable, &[]).unwrap(), 2, SettingOrigin::Variable);
        check(settle(&file, &[], &[]).unwrap(), 1, SettingOrigin::File { line: 1 });
        check(settle(&[], &[], &[]).unwrap(), 8080, SettingOrigin::Default);
    }

    #[test]
    fn database_url_goes_before_the_file_and_behind_everything_of_our_own() {
        let origin = |settled: ResolvedConfig| {
            let text = settled.to_string();
            assert!(!text.contains("s3cret"), "{text}");
            let line = text.lines().find(|line| line.starts_with("database ")).unwrap();
            line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let url = ("DATABASE_URL", "postgres://me:s3cret@db/shop");
        let file = [("database", "memory:")];
        assert_eq!(origin(settle(&file, &[url], &[]).unwrap()), "postgres://me:***@db/shop DATABASE_URL");
        let own = ("TREFOIL_DATABASE", "sqlite:");
        assert_eq!(origin(settle(&file, &[own, url], &[]).unwrap()), "sqlite: TREFOIL_DATABASE");
        let flag = [("database", "postgres://me:s3cret@db")];
        assert_eq!(origin(settle(&file, &[url], &flag).unwrap()), "postgres://me:***@db/ --database");
        let other = ("DATABASE_URL", "mysql://me:s3cret@db/shop");
        assert_eq!(origin(settle(&file, &[other], &[]).unwrap()), "memory: trefoil.toml:1");
        let wrong = ("DATABASE_URL", "postgres://me:s3cret@db:x/shop");
        let mistakes = settle(&[], &[wrong], &[]).unwrap_err();
        assert!(mistakes[0].starts_with("DATABASE_URL: the port"), "{mistakes:?}");
        assert!(settle(&[], &[wrong, own], &[]).is_ok(), "nobody reads it");
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let variables =
            [("TREFOIL_PROT", "1"), ("TREFOIL_PORT", "x"), ("HOME", "x"), ("TREFOIL_AUTH_URL", "x")];
        let mistakes = settle(&[("limit-body", "big")], &variables, &[("host", "a:1")]).unwrap_err();
        assert_eq!(mistakes.len(), 5, "{mistakes:?}");
        assert!(mistakes[0].starts_with("trefoil.toml:1: \"big\" is no size"), "{}", mistakes[0]);
        assert_eq!(mistakes[1], "TREFOIL_PROT: no such setting; did you mean TREFOIL_PORT?");
        assert!(mistakes[2].starts_with("TREFOIL_PORT: \"x\" is no port"), "{}", mistakes[2]);
        assert!(mistakes[3].contains("does not exist yet"), "{}", mistakes[3]);
        assert!(mistakes[4].starts_with("--host: "), "{}", mistakes[4]);
    }

    #[test]
    fn a_page_is_not_larger_than_the_largest() {
        let mistakes = settle(&[], &[("TREFOIL_LIMIT_CONDITIONS", "501")], &[]).unwrap_err();
        assert_eq!(mistakes, ["limit-conditions is 501, more than the 500 that every database takes"]);
        let mistakes = settle(&[], &[("TREFOIL_LIMIT_PAGE_SIZE", "2000")], &[]).unwrap_err();
        assert_eq!(mistakes, ["limit-page-size is 2000 and limit-max-page-size only 1000"]);
    }

    #[test]
    fn a_folder_in_the_file_is_meant_from_the_file() {
        let data = |settled: ResolvedConfig| settled.config.data;
        assert_eq!(data(settle(&[("data", "kept")], &[], &[]).unwrap()), Path::new("my-app/kept"));
        assert_eq!(data(settle(&[("data", "/kept")], &[], &[]).unwrap()), Path::new("/kept"));
        assert_eq!(data(settle(&[], &[("TREFOIL_DATA", "kept")], &[]).unwrap()), Path::new("kept"));
    }

    #[test]
    fn the_printed_table_has_every_setting_with_value_and_origin() {
        let text = settle(&[("limit-body", "2 MiB")], &[("TREFOIL_PORT", "9000")], &[]).unwrap().to_string();
        assert_eq!(text.lines().count(), SETTINGS.len());
        let line = |name: &str| {
            let found = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
            found.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(line("port"), ["port", "9000", "TREFOIL_PORT"]);
        assert_eq!(line("limit-body"), ["limit-body", "2 MiB", "trefoil.toml:1"]);
        assert_eq!(line("cors-origins"), ["cors-origins", "none", "default"]);
    }
}
