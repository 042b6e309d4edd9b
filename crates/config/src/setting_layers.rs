//! Merges flags, environment, `trefoil.toml` and defaults, in this order of precedence, into one [`Config`].

use std::fmt;
use std::path::Path;

use trefoil_model::naming::names::nearest_name;

use crate::{Config, PostgresUrl, SETTINGS, Setting};

const DATABASE_URL: &str = "DATABASE_URL";

/// A setting in `trefoil.toml`.
#[derive(Debug, Clone)]
pub struct FileSetting {
    pub setting: &'static Setting,
    pub text: String,
    pub line: usize,
}

/// The settings of each source.
pub struct SettingLayers<'a> {
    pub flags: Vec<(&'static Setting, String)>,
    /// The environment; only `TREFOIL_*` and `DATABASE_URL` are used.
    pub variables: Vec<(String, String)>,
    pub file: &'a [FileSetting],
    /// The folder of `trefoil.toml`: paths in it are relative to it.
    pub folder: &'a Path,
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingOrigin {
    Default,
    File {
        line: usize,
    },
    /// `DATABASE_URL`, which other programs use as well.
    DatabaseUrl,
    Variable,
    Flag,
}

/// A configuration with the origin of each value.
#[derive(Debug)]
pub struct ResolvedConfig {
    pub config: Config,
    /// The origin of each of [`SETTINGS`], in their order.
    origins: Vec<SettingOrigin>,
}

impl SettingLayers<'_> {
    /// The configuration, or every mistake, one line each.
    pub fn resolve(self) -> Result<ResolvedConfig, Vec<String>> {
        let mut resolved = ResolvedConfig {
            config: Config::default(),
            origins: vec![SettingOrigin::Default; SETTINGS.len()],
        };
        let mut mistakes = Vec::new();
        for file_setting in self.file {
            let text = self.file_value(file_setting);
            mistakes.extend(resolved.apply(
                file_setting.setting,
                &text,
                SettingOrigin::File { line: file_setting.line },
            ));
        }
        if let Some((setting, url)) = self.database_url() {
            mistakes.extend(resolved.apply(setting, url, SettingOrigin::DatabaseUrl));
        }
        for (name, text) in &self.variables {
            match setting_of_variable(name) {
                Ok(Some(setting)) => mistakes.extend(resolved.apply(setting, text, SettingOrigin::Variable)),
                Ok(None) => {}
                Err(mistake) => mistakes.push(mistake),
            }
        }
        for (setting, text) in &self.flags {
            mistakes.extend(resolved.apply(setting, text, SettingOrigin::Flag));
        }
        resolved.config.see_metrics_place = resolved.given_place("auth-see-metrics");
        resolved.config.see_audit_place = resolved.given_place("auth-see-audit");
        if mistakes.is_empty() {
            mistakes.extend(contradicting_settings(&resolved.config));
        }
        if mistakes.is_empty() { Ok(resolved) } else { Err(mistakes) }
    }

    /// The `DATABASE_URL` that hosting platforms set. Used only if it names PostgreSQL and no setting of Trefoil
    /// overrides it, so one that is meant for another program can be overridden.
    fn database_url(&self) -> Option<(&'static Setting, &str)> {
        let setting = Setting::find("database")?;
        let variable = setting.variable();
        let is_overridden = self.flags.iter().any(|(flag, _)| flag.name == setting.name)
            || self.variables.iter().any(|(name, _)| *name == variable);
        let (_, url) = self.variables.iter().find(|(name, _)| name == DATABASE_URL)?;
        (!is_overridden && PostgresUrl::has_postgres_scheme(url)).then_some((setting, url))
    }

    fn file_value(&self, file_setting: &FileSetting) -> String {
        let is_path = match file_setting.setting.name {
            "data" => true,
            "tls-cert" | "tls-key" => file_setting.text != "off",
            _ => false,
        };
        if is_path {
            return self.folder.join(&file_setting.text).display().to_string();
        }
        file_setting.text.clone()
    }
}

/// The setting of an environment variable; `None` if the variable is not Trefoil's.
fn setting_of_variable(name: &str) -> Result<Option<&'static Setting>, String> {
    if !name.starts_with("TREFOIL_") {
        return Ok(None);
    }
    if let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) {
        return Ok(Some(setting));
    }
    if name.starts_with("TREFOIL_AUTH") {
        return Err(format!("{name}: issuers of tokens are in trefoil.toml alone, as [[auth.jwt]]"));
    }
    let known: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    let hint = match nearest_name(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near}?"),
        None => "`trefoil serve --print-config` lists them".into(),
    };
    Err(format!("{name}: unknown setting; {hint}"))
}

/// SQLite allows expressions of 1,000 levels. Each condition is one; half are left for the rest of the statement.
const MAX_CONDITIONS: usize = 500;

/// Values that are valid on their own but not together, or beyond what databases support.
fn contradicting_settings(config: &Config) -> Vec<String> {
    let mut mistakes = Vec::new();
    let (size, max) = (config.limits.page_size, config.limits.max_page_size);
    if size > max {
        mistakes.push(format!("limit-page-size ({size}) is greater than limit-max-page-size ({max})"));
    }
    let conditions = config.limits.conditions;
    if conditions > MAX_CONDITIONS {
        mistakes.push(format!("limit-conditions is {conditions}, but must be at most {MAX_CONDITIONS}"));
    }
    match (&config.tls_cert, &config.tls_key) {
        (Some(_), None) => mistakes.push("tls-cert needs tls-key, the file of its private key".to_owned()),
        (None, Some(_)) => mistakes.push("tls-key needs tls-cert, the file of the certificate".to_owned()),
        (Some(_), Some(_)) | (None, None) => {}
    }
    mistakes
}

impl ResolvedConfig {
    /// The flag or the variable that a setting has its value from.
    fn given_place(&self, name: &str) -> Option<String> {
        let (setting, origin) =
            SETTINGS.iter().zip(&self.origins).find(|(setting, _)| setting.name == name)?;
        match origin {
            SettingOrigin::Default | SettingOrigin::File { .. } => None,
            SettingOrigin::DatabaseUrl | SettingOrigin::Variable | SettingOrigin::Flag => {
                Some(origin.describe(setting))
            }
        }
    }

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
    /// The place for messages: `--port`, `TREFOIL_PORT`, `trefoil.toml:3`.
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

/// One line per setting: name, value, origin.
impl fmt::Display for ResolvedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> =
            SETTINGS.iter().map(|setting| value_or_none(&(setting.show)(&self.config))).collect();
        let name_width = SETTINGS.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
        let value_width = values.iter().map(|value| value.chars().count()).max().unwrap_or(0);
        for ((setting, value), origin) in SETTINGS.iter().zip(values).zip(&self.origins) {
            writeln!(f, "{:name_width$}  {value:value_width$}  {}", setting.name, origin.describe(setting))?;
        }
        Ok(())
    }
}

/// Shows an empty list as `none`, so that its column is not blank.
fn value_or_none(value: &str) -> String {
    if value.is_empty() { "none".into() } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str) -> &'static Setting {
        Setting::find(name).unwrap()
    }

    fn resolve_test_layers(
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
    fn precedence_of_layers() {
        let check = |resolved: ResolvedConfig, port: u16, origin: SettingOrigin| {
            assert_eq!(resolved.config.port, port);
            let index = SETTINGS.iter().position(|setting| setting.name == "port").unwrap();
            assert_eq!(resolved.origins[index], origin);
        };
        let (file, variable, flag) = ([("port", "1")], [("TREFOIL_PORT", "2")], [("port", "3")]);
        check(resolve_test_layers(&file, &variable, &flag).unwrap(), 3, SettingOrigin::Flag);
        check(resolve_test_layers(&file, &variable, &[]).unwrap(), 2, SettingOrigin::Variable);
        check(resolve_test_layers(&file, &[], &[]).unwrap(), 1, SettingOrigin::File { line: 1 });
        check(resolve_test_layers(&[], &[], &[]).unwrap(), 8080, SettingOrigin::Default);
    }

    #[test]
    fn the_rule_for_metrics_knows_who_gave_it() {
        let place = |file: &[(&str, &str)], variables: &[(&str, &str)], flags: &[(&str, &str)]| {
            resolve_test_layers(file, variables, flags).unwrap().config.see_metrics_place
        };
        let rule = ("auth-see-metrics", "true");
        assert_eq!(place(&[], &[], &[]), None);
        assert_eq!(place(&[rule], &[], &[]), None);
        let variable = [("TREFOIL_AUTH_SEE_METRICS", "true")];
        assert_eq!(place(&[rule], &variable, &[]).as_deref(), Some("TREFOIL_AUTH_SEE_METRICS"));
        assert_eq!(place(&[rule], &variable, &[rule]).as_deref(), Some("--auth-see-metrics"));
    }

    #[test]
    fn precedence_of_database_url() {
        let origin = |resolved: ResolvedConfig| {
            let text = resolved.to_string();
            assert!(!text.contains("s3cret"), "{text}");
            let line = text.lines().find(|line| line.starts_with("database ")).unwrap();
            line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let url = ("DATABASE_URL", "postgres://me:s3cret@db/shop");
        let file = [("database", "memory:")];
        assert_eq!(
            origin(resolve_test_layers(&file, &[url], &[]).unwrap()),
            "postgres://me:***@db/shop DATABASE_URL"
        );
        let own = ("TREFOIL_DATABASE", "sqlite:");
        assert_eq!(origin(resolve_test_layers(&file, &[own, url], &[]).unwrap()), "sqlite: TREFOIL_DATABASE");
        let flag = [("database", "postgres://me:s3cret@db")];
        assert_eq!(
            origin(resolve_test_layers(&file, &[url], &flag).unwrap()),
            "postgres://me:***@db/ --database"
        );
        let other = ("DATABASE_URL", "mysql://me:s3cret@db/shop");
        assert_eq!(origin(resolve_test_layers(&file, &[other], &[]).unwrap()), "memory: trefoil.toml:1");
        let wrong = ("DATABASE_URL", "postgres://me:s3cret@db:x/shop");
        let mistakes = resolve_test_layers(&[], &[wrong], &[]).unwrap_err();
        assert!(mistakes[0].starts_with("DATABASE_URL: invalid port"), "{mistakes:?}");
        assert!(resolve_test_layers(&[], &[wrong, own], &[]).is_ok(), "nobody reads it");
    }

    #[test]
    fn mistakes_name_their_place() {
        let variables =
            [("TREFOIL_PROT", "1"), ("TREFOIL_PORT", "x"), ("HOME", "x"), ("TREFOIL_AUTH_URL", "x")];
        let mistakes =
            resolve_test_layers(&[("limit-body", "big")], &variables, &[("host", "a:1")]).unwrap_err();
        assert_eq!(mistakes.len(), 5, "{mistakes:?}");
        assert!(mistakes[0].starts_with("trefoil.toml:1: \"big\" is not a size"), "{}", mistakes[0]);
        assert_eq!(mistakes[1], "TREFOIL_PROT: unknown setting; did you mean TREFOIL_PORT?");
        assert!(mistakes[2].starts_with("TREFOIL_PORT: \"x\" is not a port"), "{}", mistakes[2]);
        assert!(mistakes[3].contains("[[auth.jwt]]"), "{}", mistakes[3]);
        assert!(mistakes[4].starts_with("--host: "), "{}", mistakes[4]);
    }

    #[test]
    fn contradicting_limits_are_refused() {
        let mistakes = resolve_test_layers(&[], &[("TREFOIL_LIMIT_CONDITIONS", "501")], &[]).unwrap_err();
        assert_eq!(mistakes, ["limit-conditions is 501, but must be at most 500"]);
        let mistakes = resolve_test_layers(&[], &[("TREFOIL_LIMIT_PAGE_SIZE", "2000")], &[]).unwrap_err();
        assert_eq!(mistakes, ["limit-page-size (2000) is greater than limit-max-page-size (1000)"]);
    }

    #[test]
    fn paths_in_the_file_are_relative_to_it() {
        let data = |resolved: ResolvedConfig| resolved.config.data;
        assert_eq!(
            data(resolve_test_layers(&[("data", "kept")], &[], &[]).unwrap()),
            Path::new("my-app/kept")
        );
        assert_eq!(data(resolve_test_layers(&[("data", "/kept")], &[], &[]).unwrap()), Path::new("/kept"));
        assert_eq!(
            data(resolve_test_layers(&[], &[("TREFOIL_DATA", "kept")], &[]).unwrap()),
            Path::new("kept")
        );
    }

    #[test]
    fn display_lists_every_setting() {
        let text = resolve_test_layers(&[("limit-body", "2 MiB")], &[("TREFOIL_PORT", "9000")], &[])
            .unwrap()
            .to_string();
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
