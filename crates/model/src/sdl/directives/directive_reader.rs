//! Reads the directives of a field and the arguments of directives, and reports wrong ones.

use std::collections::HashSet;

use apollo_compiler::Node;
use apollo_compiler::ast::{self, Directive, DirectiveList};

use crate::sdl::diagnostic_log::{DiagnosticLog, suggest_or_else};
use crate::sdl::directives::definitions::{find_directive, is_builtin_directive};
use crate::sdl::directives::literals::{NumberSyntax, literal_noun, number_digits};
use crate::{FieldDisplay, FieldKind, FieldRule, OnDelete, Scalar};

/// The greatest weight of `@search`.
const MAX_WEIGHT: u32 = 100;

/// Reads directives and reports wrong ones.
pub(crate) struct DirectiveReader<'a> {
    pub log: &'a mut DiagnosticLog,
    /// Names of our directives that the schema declares with another meaning; their uses are not read.
    pub redeclared: &'a HashSet<String>,
}

/// The directives of one field.
#[derive(Default)]
pub(crate) struct FieldDirectives<'a> {
    pub directives: Vec<&'a Node<Directive>>,
    pub unique: bool,
    /// `@unique(ignoreCase: true)`.
    pub ignores_case: Option<&'a Node<Directive>>,
    /// `@search` with its weight.
    pub search: Option<(u32, &'a Node<Directive>)>,
    /// `@display`.
    pub display: FieldDisplay,
    pub rules: Vec<FieldRule>,
    /// The `message` of rules, by the code of their violations.
    pub messages: Vec<(&'static str, String)>,
    pub value_sources: Vec<&'a Node<Directive>>,
    pub renamed_from: Option<String>,
    pub reference: Option<ReferenceDirective<'a>>,
    pub resolver: Option<String>,
}

pub(crate) struct ReferenceDirective<'a> {
    pub on_delete: Option<OnDelete>,
    pub inverse: Option<(&'a str, &'a Node<ast::Value>)>,
    pub directive: &'a Node<Directive>,
}

impl<'s> DirectiveReader<'_> {
    pub fn read_field(&mut self, directives: &'s DirectiveList) -> FieldDirectives<'s> {
        let mut found = FieldDirectives::default();
        let redeclared = self.redeclared;
        for directive in directives.iter().filter(|directive| is_builtin_directive(redeclared, directive)) {
            found.directives.push(directive);
            match directive.name.as_str() {
                "notBlank" => found.rules.push(FieldRule::NotBlank),
                "email" => found.rules.push(FieldRule::Email),
                "unique" => {
                    found.unique = directive_argument(directive, "within").is_none();
                    let ignores_case = self.flag_argument(directive, "ignoreCase") == Some(true);
                    found.ignores_case = ignores_case.then_some(directive);
                }
                "search" => found.search = Some((self.read_weight(directive), directive)),
                "display" => found.display = self.read_field_display(directive),
                "length" => found.rules.extend(self.read_length(directive)),
                "range" => found.rules.extend(self.read_range(directive)),
                "pattern" => found.rules.extend(self.read_pattern(directive)),
                "default" => self.check_default(directive),
                "createdAt" | "updatedAt" | "version" | "createdBy" | "updatedBy" => {
                    found.value_sources.push(directive)
                }
                "reference" => found.reference = Some(self.read_reference(directive)),
                "renamedFrom" => {
                    found.renamed_from = self.text_argument(directive, "name").map(str::to_owned)
                }
                "resolver" => found.resolver = self.text_argument(directive, "name").map(str::to_owned),
                _ => {}
            }
            if let Some(code) = violation_code(&directive.name)
                && let Some(message) = self.text_argument(directive, "message")
            {
                found.messages.push((code, message.to_owned()));
            }
            self.report_unknown_arguments(directive);
        }
        found
    }

    /// A text argument; anything else is reported.
    pub fn text_argument(&mut self, directive: &'s Directive, name: &str) -> Option<&'s str> {
        let value = directive_argument(directive, name)?;
        let text = value.as_str();
        if text.is_none() {
            self.report_wrong_argument(directive, name, value, "a quoted string");
        }
        text
    }

    /// True or false; anything else is reported.
    pub fn flag_argument(&mut self, directive: &'s Directive, name: &str) -> Option<bool> {
        let value = directive_argument(directive, name)?;
        let flag = value.to_bool();
        if flag.is_none() {
            self.report_wrong_argument(directive, name, value, "true or false");
        }
        flag
    }

    /// A list of texts; one text alone counts as a list, as everywhere in GraphQL.
    pub fn text_list_argument(
        &mut self,
        directive: &'s Directive,
        name: &str,
    ) -> Vec<(&'s str, &'s Node<ast::Value>)> {
        let Some(value) = directive_argument(directive, name) else { return Vec::new() };
        let items = value.as_list().map_or_else(|| vec![value], |items| items.iter().collect());
        let mut texts = Vec::new();
        for item in items {
            match item.as_str() {
                Some(text) => texts.push((text, item)),
                None => self.report_wrong_argument(directive, name, item, "a quoted string"),
            }
        }
        texts
    }

    /// Only checks that there is one value; its type is checked once all types are known.
    fn check_default(&mut self, directive: &'s Node<Directive>) {
        let has_value = directive_argument(directive, "value").is_some_and(|value| !value.is_null());
        let has_source = self.text_argument(directive, "from").is_some();
        if has_value && has_source {
            self.log
                .error(directive.location(), "DEFAULT", "`@default` has a value and says where it comes from")
                .label("one too many")
                .help("keep `value` or `from`");
        } else if !has_value && directive_argument(directive, "from").is_none() {
            self.log
                .error(directive.location(), "DEFAULT", "`@default` needs a value")
                .label("no value given")
                .help("write `@default(value: …)`, `@default(from: …)` or remove the directive");
        }
    }

    fn read_weight(&mut self, directive: &'s Node<Directive>) -> u32 {
        let Some(value) = directive_argument(directive, "weight") else { return 1 };
        let weight = number_digits(value, NumberSyntax::NumberOnly).and_then(|digits| digits.parse().ok());
        let weight = weight.filter(|weight| (1..=MAX_WEIGHT).contains(weight));
        if weight.is_none() {
            let expected = format!("a whole number from 1 to {MAX_WEIGHT}");
            self.report_wrong_argument(directive, "weight", value, &expected);
        }
        weight.unwrap_or(1)
    }

    fn read_reference(&mut self, directive: &'s Node<Directive>) -> ReferenceDirective<'s> {
        let on_delete =
            directive_argument(directive, "onDelete").and_then(|value| self.read_on_delete(directive, value));
        let inverse = self.text_argument(directive, "inverse").zip(directive_argument(directive, "inverse"));
        ReferenceDirective { on_delete, inverse, directive }
    }

    fn read_on_delete(&mut self, directive: &Directive, value: &Node<ast::Value>) -> Option<OnDelete> {
        match value.as_enum().map(|name| name.as_str()) {
            Some("REFUSE") => Some(OnDelete::Refuse),
            Some("CASCADE") => Some(OnDelete::Cascade),
            Some("SET_NULL") => Some(OnDelete::SetNull),
            _ => {
                self.report_wrong_argument(
                    directive,
                    "onDelete",
                    value,
                    "REFUSE, CASCADE or SET_NULL, without quotes",
                );
                None
            }
        }
    }

    pub(super) fn report_wrong_argument(
        &mut self,
        directive: &Directive,
        argument: &str,
        value: &Node<ast::Value>,
        expected: &str,
    ) {
        let message = format!("`{argument}` of `@{}` must be {expected}", directive.name);
        self.log
            .error(value.location(), "DIRECTIVE_ARGUMENT", message)
            .label(format!("this is {}", literal_noun(value)));
    }

    /// Reports unknown arguments, with the one that was probably meant.
    pub fn report_unknown_arguments(&mut self, directive: &Directive) {
        let Some(builtin) = find_directive(&directive.name) else { return };
        let definition = builtin.definition();
        for argument in &directive.arguments {
            if definition.argument_by_name(&argument.name).is_some() {
                continue;
            }
            let message = format!("`@{}` has no argument `{}`", directive.name, argument.name);
            let known = definition.arguments.iter().map(|known| known.name.as_str());
            let otherwise = || format!("its definition is `{}`", builtin.sdl);
            let help = suggest_or_else(&argument.name, known, otherwise);
            self.log
                .error(argument.name.location().or(argument.location()), "DIRECTIVE_ARGUMENT", message)
                .label("unknown argument")
                .help(help);
        }
    }
}

/// The code of what violates the rule of a directive that may have a `message`.
fn violation_code(directive: &str) -> Option<&'static str> {
    match directive {
        "notBlank" => Some("NOT_BLANK"),
        "length" => Some("LENGTH"),
        "range" => Some("RANGE"),
        "pattern" => Some("PATTERN"),
        _ => None,
    }
}

/// The fields that a directive is for, if this kind of field is not one of them.
pub(crate) fn expected_kind(directive: &str, kind: &FieldKind) -> Option<&'static str> {
    let is_time = kind.scalar().is_some_and(Scalar::has_clock);
    let is_whole = matches!(kind.scalar(), Some(Scalar::Int | Scalar::Long));
    let (fits, purpose) = match directive {
        "notBlank" | "pattern" | "email" => (kind.is_text(), "text"),
        "length" => (kind.is_text() || kind.list_item().is_some(), "text and lists"),
        "range" => (kind.is_number(), "numbers"),
        "unique" => (kind.is_comparable(), "single values"),
        "title" => (kind.is_comparable() && !kind.is_reference(), "single values of the record itself"),
        "default" => (kind.own_value().is_some(), "fields that store a value"),
        "createdAt" | "updatedAt" => (is_time, "DateTime fields"),
        "version" => (is_whole, "Int and Long fields"),
        "createdBy" | "updatedBy" => (kind.is_reference(), "references to accounts"),
        _ => (true, ""),
    };
    (!fits).then_some(purpose)
}

/// The fields that this use of a directive is for, if this kind of field is not one of them.
pub(crate) fn expected_kind_of_use(directive: &Directive, kind: &FieldKind) -> Option<&'static str> {
    let is_actor_default = directive.name == "default" && directive_argument(directive, "from").is_some();
    if is_actor_default && kind.is_reference() {
        return None;
    }
    expected_kind(&directive.name, kind)
}

pub(crate) fn directive_argument<'a>(directive: &'a Directive, name: &str) -> Option<&'a Node<ast::Value>> {
    directive.arguments.iter().find(|argument| argument.name == name).map(|argument| &argument.value)
}
