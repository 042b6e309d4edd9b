//! A type that generated operations use, and its SDL.

use std::fmt::Write as _;

/// A type that generated operations use.
pub(super) struct GeneratedType {
    pub name: String,
    /// `input`, `type`, `enum` or `scalar`.
    pub keyword: &'static str,
    /// Name and type of each field; the values of an enum have no type.
    pub fields: Vec<(String, String)>,
}

/// `Book` for `[Book!]!`.
pub(super) fn inner_name(ty: &str) -> &str {
    ty.trim_matches(|letter| matches!(letter, '[' | ']' | '!'))
}

impl GeneratedType {
    pub fn to_sdl(&self) -> String {
        if self.keyword == "scalar" {
            return format!("\nscalar {}\n", self.name);
        }
        let mut sdl = format!("\n{} {} {{\n", self.keyword, self.name);
        for (name, ty) in &self.fields {
            let _ = match ty.as_str() {
                "" => writeln!(sdl, "  {name}"),
                ty => writeln!(sdl, "  {name}: {ty}"),
            };
        }
        sdl + "}\n"
    }
}
