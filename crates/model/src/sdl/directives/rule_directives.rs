//! Reads the rules of a field: `@length`, `@range` and `@pattern`.

use apollo_compiler::Node;
use apollo_compiler::ast::Directive;
use regex::{Regex, RegexBuilder};

use crate::FieldRule;
use crate::sdl::directives::directive_reader::{DirectiveReader, directive_argument};
use crate::sdl::directives::literals::{NumberSyntax, number_digits};
use crate::values::decimal;

/// Maximum size in bytes of a compiled `@pattern`.
const MAX_PATTERN_SIZE: usize = 1 << 20;

impl<'s> DirectiveReader<'_> {
    pub(super) fn read_length(&mut self, directive: &'s Node<Directive>) -> Option<FieldRule> {
        let min = self.count_argument(directive, "min");
        let max = self.count_argument(directive, "max");
        self.check_bounds(directive, min.zip(max).is_none_or(|(min, max)| min <= max));
        Some(FieldRule::Length { min, max })
    }

    fn count_argument(&mut self, directive: &'s Directive, name: &str) -> Option<u64> {
        let value = directive_argument(directive, name)?;
        let count = number_digits(value, NumberSyntax::NumberOnly).and_then(|digits| digits.parse().ok());
        if count.is_none() {
            self.report_wrong_argument(directive, name, value, "a whole number of at least 0");
        }
        count
    }

    pub(super) fn read_range(&mut self, directive: &'s Node<Directive>) -> Option<FieldRule> {
        let min = self.decimal_argument(directive, "min");
        let max = self.decimal_argument(directive, "max");
        let ordered = |(min, max): (&String, &String)| decimal::compare(min, max).is_le();
        self.check_bounds(directive, min.as_ref().zip(max.as_ref()).is_none_or(ordered));
        Some(FieldRule::Range { min, max })
    }

    fn decimal_argument(&mut self, directive: &'s Directive, name: &str) -> Option<String> {
        let value = directive_argument(directive, name)?;
        let digits = number_digits(value, NumberSyntax::NumberOrText);
        let decimal = digits.and_then(|digits| decimal::normalise(digits).ok());
        if decimal.is_none() {
            self.report_wrong_argument(directive, name, value, "a number");
        }
        decimal
    }

    /// Requires at least one bound, and `min` not above `max`.
    fn check_bounds(&mut self, directive: &Node<Directive>, ordered: bool) {
        let name = &directive.name;
        if directive.arguments.iter().all(|argument| argument.name == "message") {
            self.log
                .error(
                    directive.location(),
                    "DIRECTIVE_ARGUMENT",
                    format!("`@{name}` has neither `min` nor `max`"),
                )
                .label("limits nothing")
                .help(format!("write `@{name}(min: 1)`, `@{name}(max: 100)` or both"));
        } else if !ordered {
            self.log
                .error(
                    directive.location(),
                    "DIRECTIVE_ARGUMENT",
                    format!("`min` of `@{name}` is greater than `max`"),
                )
                .label("no value can satisfy this")
                .help("swap `min` and `max`");
        }
    }

    pub(super) fn read_pattern(&mut self, directive: &'s Directive) -> Option<FieldRule> {
        let source = self.text_argument(directive, "regex")?;
        match compile_pattern(source) {
            Ok(regex) => Some(FieldRule::Pattern { pattern: source.to_owned(), regex }),
            Err(reason) => {
                let span = directive_argument(directive, "regex").and_then(|value| value.location());
                self.log
                    .error(span, "PATTERN", format!("invalid regular expression: {reason}"))
                    .label("invalid pattern")
                    .help("patterns use the syntax of the Rust crate `regex`, without look-around and backreferences");
                None
            }
        }
    }
}

/// Compiles a pattern anchored to the whole text; the size limit bounds the memory.
pub fn compile_pattern(source: &str) -> Result<Regex, String> {
    let build = |text: &str| RegexBuilder::new(text).size_limit(MAX_PATTERN_SIZE).build();
    // The pattern alone first, so that the error message does not mention the anchors.
    build(source).and_then(|_| build(&format!(r"\A(?:{source})\z"))).map_err(|error| {
        error.to_string().lines().last().unwrap_or("unreadable").trim().replace("error: ", "")
    })
}
