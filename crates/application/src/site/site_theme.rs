//! `[theme]` of `trefoil.toml`: the logo and the colours of pages.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeTable;

use trefoil_model::Diagnostic;
use trefoil_model::diagnostic::Severity;
use trefoil_model::naming::names::name_suggestion;

use super::color_contrast::RgbColor;
use super::static_files::StaticFile;
use crate::manifest_reader::{MANIFEST_FILE, ManifestReader, TomlValue};

/// The colours of pages, for light and dark screens, as the built-in style sheet has them.
const COLORS: [(&str, [&str; 2]); 9] = [
    ("accent", ["#0b6b52", "#71d3b1"]),
    ("page", ["#f6f7f5", "#121614"]),
    ("surface", ["#ffffff", "#1a1f1c"]),
    ("text", ["#1a211d", "#e6ebe8"]),
    ("muted", ["#55605a", "#a5b0aa"]),
    ("line", ["#dde2de", "#323a36"]),
    ("edge", ["#77827c", "#7f8b85"]),
    ("danger", ["#ae1c28", "#ff9c9c"]),
    ("focus", ["#a85b00", "#ffc24d"]),
];

/// What must be told apart from what is behind it, and how well: texts 4.5, borders of controls 3 (WCAG 2, 1.4.3 and 1.4.11).
const CONTRASTS: [(&str, f64); 6] =
    [("accent", 4.5), ("text", 4.5), ("muted", 4.5), ("danger", 4.5), ("edge", 3.0), ("focus", 3.0)];

const SCREENS: [&str; 2] = ["light", "dark"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteTheme {
    /// The file below `static/`.
    logo: Option<Spanned<String>>,
    pub colors: Vec<ThemeColor>,
}

/// A colour that is not as built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThemeColor {
    /// `accent`: the custom property without its hyphens.
    pub name: &'static str,
    /// For light and for dark screens: `#0b6b52`.
    pub values: [String; 2],
    span: Range<usize>,
}

pub(crate) fn read_theme(reader: &mut ManifestReader, root: &DeTable) -> SiteTheme {
    let Some(table) = reader.table(root, "theme") else { return SiteTheme::default() };
    let known: Vec<&str> = std::iter::once("logo").chain(COLORS.map(|(name, _)| name)).collect();
    reader.refuse_unknown_keys(table, "[theme]", &known);
    let logo = reader.string(table, "logo");
    let colors = COLORS.iter().filter_map(|(name, _)| {
        let value = table.get(*name)?;
        let values = read_color(reader, name, value)?;
        Some(ThemeColor { name, values, span: value.span() })
    });
    SiteTheme { colors: colors.collect(), logo }
}

/// `"#0b6b52"` for all screens, or `["#0b6b52", "#71d3b1"]` for light and dark ones.
fn read_color(reader: &mut ManifestReader, name: &str, value: &TomlValue) -> Option<[String; 2]> {
    let items: Vec<&TomlValue> = match value.as_ref().as_array() {
        Some(items) => items.iter().collect(),
        None => vec![value, value],
    };
    let texts: Vec<&str> = items.iter().filter_map(|item| item.as_ref().as_str()).collect();
    let [light, dark] = texts[..] else {
        return reader.report_wrong_type(
            value,
            name,
            "a colour, or a list of two: for light and for dark screens",
        );
    };
    let mut read = |text: &str, item: &TomlValue| {
        let color = RgbColor::parse(text).map(RgbColor::hexadecimal);
        if color.is_none() {
            let mistake = reader.report(&item.span(), format!("`{name}`: `{text}` is not a colour"));
            mistake.help("write it as six hexadecimal digits: \"#0b6b52\"");
        }
        color
    };
    let light = read(light, items[0]);
    let dark = if items[0].span() == items[1].span() { light.clone() } else { read(dark, items[1]) };
    Some([light?, dark?])
}

impl SiteTheme {
    /// The file of the logo, below `static/`.
    pub fn logo(&self) -> Option<&str> {
        self.logo.as_ref().map(|logo| logo.as_ref().as_str())
    }

    /// The mistake if the logo is none of the application's files; `text` is the manifest.
    pub(crate) fn missing_logo(&self, text: &str, files: &[StaticFile]) -> Option<Diagnostic> {
        let logo = self.logo.as_ref()?;
        let name = logo.as_ref();
        if files.iter().any(|file| file.name == *name) {
            return None;
        }
        let hint = name_suggestion(name, files.iter().map(|file| file.name.as_str()));
        let message = format!("there is no file `static/{name}` for the logo{hint}");
        let mistake = Diagnostic::in_file(MANIFEST_FILE, "MANIFEST", message);
        Some(mistake.with_span(MANIFEST_FILE, text, logo.span()))
    }

    /// A warning for each colour that is hard to tell from what is behind it; `text` is the manifest.
    pub(crate) fn contrast_warnings(&self, text: &str) -> Vec<Diagnostic> {
        let screens = || SCREENS.iter().enumerate();
        let pairs = screens().flat_map(|(screen, _)| CONTRASTS.map(|(name, least)| (screen, name, least)));
        pairs.filter_map(|(screen, name, least)| self.contrast_warning(text, screen, name, least)).collect()
    }

    fn contrast_warning(
        &self,
        text: &str,
        screen: usize,
        name: &'static str,
        least: f64,
    ) -> Option<Diagnostic> {
        if self.colors.is_empty() {
            return None;
        }
        let (page, surface) = (self.color("page", screen), self.color("surface", screen));
        // Notes and pills have some of the accent behind them.
        let backgrounds = |accent: RgbColor| {
            [("page", page), ("surface", surface), ("surface", surface.mixed(accent, 0.13))]
        };
        let (color, accent) = (self.color(name, screen), self.color("accent", screen));
        let is_low = |background: &RgbColor| color.contrast(*background) < least;
        let (behind, background) = backgrounds(accent).into_iter().find(|(_, it)| is_low(it))?;
        let at_fault = [name, behind, "accent"];
        let own = at_fault.iter().find_map(|name| self.colors.iter().find(|color| color.name == *name))?;
        let contrast = color.contrast(background);
        let shown = SCREENS[screen];
        let message = format!(
            "on {shown} screens `{name}` ({}) has a contrast of {contrast:.1} to `{behind}`, and {least} is the least that most people can read",
            color.hexadecimal()
        );
        let warning = Diagnostic::new(Severity::Warning, "THEME", message);
        let mut warning = warning.with_span(MANIFEST_FILE, text, own.span.clone());
        let far = RgbColor::parse(if screen == 0 { "#000000" } else { "#ffffff" })?;
        let passes = |color: &RgbColor| {
            let accent = if name == "accent" { *color } else { accent };
            backgrounds(accent).iter().all(|(_, behind)| color.contrast(*behind) >= least)
        };
        let nearest = (1..=100).map(|percent| color.mixed(far, f64::from(percent) / 100.0)).find(passes);
        if let Some(nearest) = nearest {
            let mut values = SCREENS.map(|_| String::new());
            for (position, value) in values.iter_mut().enumerate() {
                *value = self.color(name, position).hexadecimal();
            }
            values[screen] = nearest.hexadecimal();
            warning
                .help(format!("{name} = [\"{}\", \"{}\"] passes on {shown} screens", values[0], values[1]));
        }
        Some(warning)
    }

    /// A colour as it is on a light (0) or dark (1) screen.
    fn color(&self, name: &str, screen: usize) -> RgbColor {
        let own = self.colors.iter().find(|color| color.name == name);
        let text = own.map(|color| color.values[screen].as_str()).or_else(|| {
            let built_in = COLORS.iter().find(|(known, _)| *known == name);
            built_in.map(|(_, values)| values[screen])
        });
        text.and_then(RgbColor::parse).expect("a colour of the table, or one that was read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Manifest;

    fn warnings(text: &str) -> Vec<String> {
        let (manifest, mistakes) = Manifest::parse(text);
        assert_eq!(mistakes, []);
        manifest.theme.contrast_warnings(text).iter().map(Diagnostic::to_string).collect()
    }

    /// The colours that contrast is judged by are those of the style sheet.
    #[test]
    fn colours_are_those_of_the_style_sheet() {
        let style = include_str!("../../../pages/src/assets/app.css");
        for (name, [light, dark]) in COLORS {
            let short = |color: &str| if color == "#ffffff" { "#fff".to_owned() } else { color.to_owned() };
            let rule = format!("--{name}: light-dark({}, {});", short(light), short(dark));
            assert!(style.contains(&rule), "{rule}");
        }
    }

    #[test]
    fn theme_is_read() {
        let text = "[theme]\nlogo = \"a.svg\"\naccent = [\"#00539f\", \"#8fc7ff\"]\nline = \"#ABC\"\n";
        let (manifest, mistakes) = Manifest::parse(text);
        assert_eq!(mistakes, []);
        assert_eq!(manifest.theme.logo(), Some("a.svg"));
        let colors: Vec<_> = manifest.theme.colors.iter().map(|color| (color.name, &color.values)).collect();
        let strings = |one: &str, two: &str| [one.to_owned(), two.to_owned()];
        assert_eq!(
            colors,
            [("accent", &strings("#00539f", "#8fc7ff")), ("line", &strings("#aabbcc", "#aabbcc"))]
        );
        assert_eq!(warnings(text), Vec::<String>::new());
        let files = [StaticFile { name: "b.svg".into(), bytes: Vec::new() }];
        let missing = manifest.theme.missing_logo(text, &files).unwrap().to_string();
        assert!(missing.starts_with("trefoil.toml:2:8: there is no file `static/a.svg`"), "{missing}");
    }

    #[test]
    fn wrong_colours_are_mistakes() {
        for (line, expected) in [
            ("accent = \"green\"", "2:10: `accent`: `green` is not a colour"),
            ("accent = [\"#fff\", \"#ff\"]", "2:19: `accent`: `#ff` is not a colour"),
            ("accent = [\"#fff\"]", "2:10: `accent` must be a colour, or a list of two"),
            ("accent = 1", "2:10: `accent` must be a colour, or a list of two"),
            ("acent = \"#fff\"", "2:1: unknown key `acent` in [theme]; did you mean `accent`?"),
        ] {
            let found = Manifest::parse(&format!("[theme]\n{line}")).1;
            let [mistake] = found.as_slice() else { panic!("{line}: {found:?}") };
            assert!(mistake.to_string().starts_with(&format!("trefoil.toml:{expected}")), "{mistake}");
        }
    }

    #[test]
    fn low_contrast_is_a_warning_with_a_colour_that_passes() {
        let [warning] = &warnings("[theme]\naccent = \"#0b6b52\"\n")[..] else { panic!("one warning") };
        let expected =
            "trefoil.toml:2:10: on dark screens `accent` (#0b6b52) has a contrast of 2.8 to `page`";
        assert!(warning.starts_with(expected), "{warning}");
        let (_, help) = warning.split_once("; ").unwrap();
        let (line, _) = help.split_once(" passes").unwrap();
        assert_eq!(warnings(&format!("[theme]\n{line}\n")), Vec::<String>::new(), "{line}");
        // The colour behind may be at fault.
        let dark = warnings("[theme]\nsurface = [\"#333333\", \"#1a1f1c\"]\n");
        assert!(dark.iter().any(|warning| warning.contains("`text` (#1a211d)")), "{dark:?}");
        assert_eq!(warnings(""), Vec::<String>::new());
    }
}
