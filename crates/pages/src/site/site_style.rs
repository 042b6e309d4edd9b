//! The colours of `[theme]` as a style sheet: the Content-Security-Policy forbids styles within pages.

use trefoil_application::SiteTheme;

/// The style sheet; `None` if all colours are as built in.
pub fn style_of(theme: &SiteTheme) -> Option<String> {
    let lines: String = { theme.colors.iter() }
        .map(|color| {
            let [light, dark] = &color.values;
            format!("  --{}: light-dark({light}, {dark});\n", color.name)
        })
        .collect();
    (!lines.is_empty()).then(|| format!(":root {{\n{lines}}}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_custom_properties() {
        let text = "[theme]\naccent = [\"#00539f\", \"#8fc7ff\"]\n";
        let theme = trefoil_application::Manifest::parse(text).0.theme;
        let style = style_of(&theme);
        assert_eq!(style.as_deref(), Some(":root {\n  --accent: light-dark(#00539f, #8fc7ff);\n}\n"));
        assert_eq!(style_of(&SiteTheme::default()), None);
    }
}
