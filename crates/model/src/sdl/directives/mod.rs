//! The directives of Trefoil: their SDL definitions and the code that reads them.

// Where they may stand, and what is suggested or done where they may not.
pub(crate) mod declaration;
pub(crate) mod foreign_directives;
mod literals;
pub(crate) mod misplaced;

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use apollo_compiler::ast::{self, Directive, DirectiveDefinition, DirectiveList};
use apollo_compiler::parser::Parser;
use apollo_compiler::validation::Valid;
use apollo_compiler::{Name, Node, Schema};
use regex::{Regex, RegexBuilder};

use crate::sdl::diagnostic_log::{DiagnosticLog, suggest_or_else};
use crate::sdl::directives::literals::{NumberSyntax, literal_noun, number_digits};
use crate::values::decimal;
use crate::{FieldDisplay, FieldKind, FieldRule, OnDelete, Scalar};

/// A directive that a schema may use without declaring it.
#[derive(Debug)]
pub struct BuiltinDirective {
    pub name: &'static str,
    pub sdl: &'static str,
    pub doc: &'static str,
}

pub const BUILTIN_DIRECTIVES: &[BuiltinDirective] = &[
    BuiltinDirective {
        name: "resource",
        sdl: "directive @resource(path: String!) on OBJECT",
        doc: "Serves the records of this type at the given path instead of the plural of its name.",
    },
    BuiltinDirective {
        name: "embedded",
        sdl: "directive @embedded on OBJECT",
        doc: "Stores the values of a type inside their owners, whatever its fields are called.",
    },
    BuiltinDirective {
        name: "key",
        sdl: "directive @key(kind: _KeyKind!) on FIELD_DEFINITION",
        doc: "Makes the field the key: counted up, a UUID that the server generates, or a text that clients give.",
    },
    BuiltinDirective {
        name: "generate",
        sdl: "directive @generate(queries: Boolean = true, mutations: Boolean = true, subscriptions: Boolean = true, aggregates: Boolean = true) on SCHEMA | OBJECT",
        doc: "Generates the operations of this type, or of all record types, that the schema does not declare.",
    },
    BuiltinDirective {
        name: "notBlank",
        sdl: "directive @notBlank on FIELD_DEFINITION",
        doc: "Rejects text that is empty or only whitespace.",
    },
    BuiltinDirective {
        name: "unique",
        sdl: "directive @unique(ignoreCase: Boolean = false) on FIELD_DEFINITION",
        doc: "No two records may have the same value, or one that differs only in case.",
    },
    BuiltinDirective {
        name: "length",
        sdl: "directive @length(min: Int, max: Int) on FIELD_DEFINITION",
        doc: "Limits the number of characters of a text or elements of a list.",
    },
    BuiltinDirective {
        name: "range",
        sdl: "directive @range(min: _Value, max: _Value) on FIELD_DEFINITION",
        doc: "Limits a number, compared exactly. Large or fractional limits may be given as strings.",
    },
    BuiltinDirective {
        name: "pattern",
        sdl: "directive @pattern(regex: String!) on FIELD_DEFINITION",
        doc: "The whole text must match the regular expression.",
    },
    BuiltinDirective {
        name: "email",
        sdl: "directive @email on FIELD_DEFINITION",
        doc: "The text must be an email address, by the rules of HTML forms.",
    },
    BuiltinDirective {
        name: "default",
        sdl: "directive @default(value: _Value) on FIELD_DEFINITION",
        doc: "The value of the field when none is given.",
    },
    BuiltinDirective {
        name: "index",
        sdl: "directive @index(fields: [String!]!) repeatable on OBJECT",
        doc: "Creates an index on these fields, in this order.",
    },
    BuiltinDirective {
        name: "search",
        sdl: "directive @search(weight: Int = 1) on FIELD_DEFINITION",
        doc: "Searches look for words in this field, with a full-text index. Occurrences count by their weight.",
    },
    BuiltinDirective {
        name: "display",
        sdl: "directive @display(sum: Boolean = false) on FIELD_DEFINITION",
        doc: "How pages show the field: with `sum`, the sum of its values stands below lists.",
    },
    BuiltinDirective {
        name: "createdAt",
        sdl: "directive @createdAt on FIELD_DEFINITION",
        doc: "Set to the time of creation; clients cannot set it.",
    },
    BuiltinDirective {
        name: "updatedAt",
        sdl: "directive @updatedAt on FIELD_DEFINITION",
        doc: "Set to the time of the last change; clients cannot set it.",
    },
    BuiltinDirective {
        name: "version",
        sdl: "directive @version on FIELD_DEFINITION",
        doc: "The version of the record, which increases by one with each change.",
    },
    BuiltinDirective {
        name: "reference",
        sdl: "directive @reference(onDelete: _OnDelete, inverse: String) on FIELD_DEFINITION",
        doc: "What happens when the referenced record is deleted, and which field is the inverse.",
    },
    BuiltinDirective {
        name: "renamedFrom",
        sdl: "directive @renamedFrom(name: String!) on OBJECT | FIELD_DEFINITION",
        doc: "The previous name of a type or field, so that a migration keeps its data.",
    },
    BuiltinDirective {
        name: "resolver",
        sdl: "directive @resolver(name: String!) on FIELD_DEFINITION",
        doc: "Binds the field to the resolver with this name.",
    },
];

/// The directive of documents that makes a mutation one transaction. Every schema with mutations has it.
pub const ATOMIC_DIRECTIVE: &str = "atomic";

const ATOMIC_SDL: &str = "\"All fields of the mutation are one transaction: an error undoes all of them.\"\n\
                          directive @atomic on MUTATION";

/// Adds [`ATOMIC_DIRECTIVE`] to a schema with mutations that does not declare it. Returns the SDL without it, too, which
/// is the same for a schema and for what is printed of it.
pub(crate) fn add_atomic_directive(schema: Valid<Schema>) -> (Valid<Schema>, String) {
    let mut schema = schema.into_inner();
    let declared = schema.directive_definitions.shift_remove(ATOMIC_DIRECTIVE);
    let plain_sdl = schema.to_string();
    schema.directive_definitions.extend(declared.map(|definition| (definition.name.clone(), definition)));
    if schema.schema_definition.mutation.is_some()
        && !schema.directive_definitions.contains_key(ATOMIC_DIRECTIVE)
    {
        let document = Parser::new().parse_ast(ATOMIC_SDL, "trefoil.graphqls");
        let document = document.unwrap_or_else(|failed| failed.partial);
        let definitions = document.definitions.iter().filter_map(|one| one.as_directive_definition());
        for definition in definitions {
            schema.directive_definitions.insert(definition.name.clone(), definition.clone());
        }
    }
    (Valid::assume_valid(schema), plain_sdl)
}

/// Types used only by the directives above, as name and SDL.
pub const HELPER_TYPES: &[(&str, &str)] = &[
    ("_Value", "\"Any value.\"\nscalar _Value"),
    ("_KeyKind", "\"The keys of a record type.\"\nenum _KeyKind { COUNT UUID TEXT }"),
    (
        "_OnDelete",
        "\"What happens to a reference when the referenced record is deleted.\"\nenum _OnDelete { REFUSE CASCADE SET_NULL }",
    ),
];

/// The greatest weight of `@search`.
const MAX_WEIGHT: u32 = 100;

/// Maximum size in bytes of a compiled `@pattern`.
const MAX_PATTERN_SIZE: usize = 1 << 20;

impl BuiltinDirective {
    /// Its definition, parsed once.
    pub(crate) fn definition(&self) -> &'static DirectiveDefinition {
        static DEFINITIONS: LazyLock<HashMap<Name, Node<DirectiveDefinition>>> = LazyLock::new(|| {
            let sdl: Vec<&str> = BUILTIN_DIRECTIVES.iter().map(|builtin| builtin.sdl).collect();
            let document = Parser::new().parse_ast(sdl.join("\n"), "trefoil.graphqls");
            let document = document.unwrap_or_else(|failed| failed.partial);
            let definitions = document.definitions.iter().filter_map(|one| one.as_directive_definition());
            definitions.map(|definition| (definition.name.clone(), definition.clone())).collect()
        });
        &DEFINITIONS[self.name]
    }
}

pub fn find_directive(name: &str) -> Option<&'static BuiltinDirective> {
    BUILTIN_DIRECTIVES.iter().find(|definition| definition.name == name)
}

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
                    found.unique = true;
                    let ignores_case = self.flag_argument(directive, "ignoreCase") == Some(true);
                    found.ignores_case = ignores_case.then_some(directive);
                }
                "search" => found.search = Some((self.read_weight(directive), directive)),
                "display" => found.display.sum = self.flag_argument(directive, "sum") == Some(true),
                "length" => found.rules.extend(self.read_length(directive)),
                "range" => found.rules.extend(self.read_range(directive)),
                "pattern" => found.rules.extend(self.read_pattern(directive)),
                "default" => self.check_default(directive),
                "createdAt" | "updatedAt" | "version" => found.value_sources.push(directive),
                "reference" => found.reference = Some(self.read_reference(directive)),
                "renamedFrom" => {
                    found.renamed_from = self.text_argument(directive, "name").map(str::to_owned)
                }
                "resolver" => found.resolver = self.text_argument(directive, "name").map(str::to_owned),
                _ => {}
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

    /// Only checks that there is a value; its type is checked once all types are known.
    fn check_default(&mut self, directive: &'s Node<Directive>) {
        if directive_argument(directive, "value").is_none_or(|value| value.is_null()) {
            self.log
                .error(directive.location(), "DEFAULT", "`@default` needs a value")
                .label("no value given")
                .help("write `@default(value: …)` or remove the directive");
        }
    }

    fn read_length(&mut self, directive: &'s Node<Directive>) -> Option<FieldRule> {
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

    fn read_range(&mut self, directive: &'s Node<Directive>) -> Option<FieldRule> {
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
        if directive.arguments.is_empty() {
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

    fn read_pattern(&mut self, directive: &'s Directive) -> Option<FieldRule> {
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

    fn report_wrong_argument(
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

pub(crate) fn is_builtin_directive(redeclared: &HashSet<String>, directive: &Directive) -> bool {
    find_directive(&directive.name).is_some() && !redeclared.contains(directive.name.as_str())
}

/// Compiles a pattern anchored to the whole text; the size limit bounds the memory.
pub fn compile_pattern(source: &str) -> Result<Regex, String> {
    let build = |text: &str| RegexBuilder::new(text).size_limit(MAX_PATTERN_SIZE).build();
    // The pattern alone first, so that the error message does not mention the anchors.
    build(source).and_then(|_| build(&format!(r"\A(?:{source})\z"))).map_err(|error| {
        error.to_string().lines().last().unwrap_or("unreadable").trim().replace("error: ", "")
    })
}

/// The fields that a directive is for, if this kind of field is not one of them.
pub(crate) fn expected_kind(directive: &str, kind: &FieldKind) -> Option<&'static str> {
    let is_time = kind.scalar() == Some(Scalar::DateTime);
    let is_whole = matches!(kind.scalar(), Some(Scalar::Int | Scalar::Long));
    let (fits, purpose) = match directive {
        "notBlank" | "pattern" | "email" => (kind.is_text(), "text"),
        "length" => (kind.is_text() || kind.list_item().is_some(), "text and lists"),
        "range" => (kind.is_number(), "numbers"),
        "unique" => (kind.is_comparable(), "single values"),
        "default" => (kind.own_value().is_some(), "fields that store a value"),
        "createdAt" | "updatedAt" => (is_time, "DateTime fields"),
        "version" => (is_whole, "Int and Long fields"),
        _ => (true, ""),
    };
    (!fits).then_some(purpose)
}

pub(crate) fn directive_argument<'a>(directive: &'a Directive, name: &str) -> Option<&'a Node<ast::Value>> {
    directive.arguments.iter().find(|argument| argument.name == name).map(|argument| &argument.value)
}
