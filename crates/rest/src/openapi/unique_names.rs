//! Unique operation ids, made of type names and paths.

use std::collections::HashSet;

use heck::{ToLowerCamelCase, ToUpperCamelCase};

/// The names in use.
#[derive(Default)]
pub struct UniqueNames(HashSet<String>);

impl UniqueNames {
    /// The name or, if it is taken, the name with a number.
    pub fn reserve(&mut self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| !self.0.contains(name)).expect("numbers do not end");
        self.0.insert(free.clone());
        free
    }
}

/// `OrderLines` for `/order-lines`.
pub fn pascal_case(path: &str) -> String {
    path.to_upper_camel_case()
}

/// `orderLine` for `OrderLine`.
pub fn camel_case(name: &str) -> String {
    name.to_lower_camel_case()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names = UniqueNames::default();
        assert_eq!(
            ["getA", "getA", "getB", "getA"].map(|name| names.reserve(name)),
            ["getA", "getA2", "getB", "getA3"]
        );
        assert_eq!(pascal_case("/api/order-lines"), "ApiOrderLines");
    }
}
