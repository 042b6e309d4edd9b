//! The directives that a schema may use without declaring them.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use apollo_compiler::ast::{Directive, DirectiveDefinition};
use apollo_compiler::parser::Parser;
use apollo_compiler::validation::Valid;
use apollo_compiler::{Name, Node, Schema};

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
        sdl: "directive @notBlank(message: String) on FIELD_DEFINITION",
        doc: "Rejects text that is empty or only whitespace.",
    },
    BuiltinDirective {
        name: "unique",
        sdl: "directive @unique(ignoreCase: Boolean = false, within: String) on FIELD_DEFINITION",
        doc: "No two records may have the same value, or one that differs only in case; with `within`, no two that refer to the same record there.",
    },
    BuiltinDirective {
        name: "length",
        sdl: "directive @length(min: Int, max: Int, message: String) on FIELD_DEFINITION",
        doc: "Limits the number of characters of a text or elements of a list.",
    },
    BuiltinDirective {
        name: "range",
        sdl: "directive @range(min: _Value, max: _Value, message: String) on FIELD_DEFINITION",
        doc: "Limits a number, compared exactly. Large or fractional limits may be given as strings.",
    },
    BuiltinDirective {
        name: "pattern",
        sdl: "directive @pattern(regex: String!, message: String) on FIELD_DEFINITION",
        doc: "The whole text must match the regular expression.",
    },
    BuiltinDirective {
        name: "email",
        sdl: "directive @email on FIELD_DEFINITION",
        doc: "The text must be an email address, by the rules of HTML forms.",
    },
    BuiltinDirective {
        name: "default",
        sdl: "directive @default(value: _Value, from: String) on FIELD_DEFINITION",
        doc: "The value of the field when none is given, or where it comes from: `\"me.team\"`, `\"claim('org')\"`, `\"now\"`, `\"today\"`.",
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
        name: "title",
        sdl: "directive @title(template: String) on OBJECT | FIELD_DEFINITION",
        doc: "What records are called on pages: by this field, or by a template such as `\"{lastName}, {firstName}\"`.",
    },
    BuiltinDirective {
        name: "display",
        sdl: "directive @display(label: String, hint: String, placeholder: String, order: Int, group: String, list: Boolean = true, form: Boolean = true, detail: Boolean = true, filter: Boolean = true, sum: Boolean = false, format: _Format, readOnly: Boolean = false, width: _Width, plural: String, navigation: Boolean = true, columns: [String!], sort: [String!], pageSize: Int, tone: _Tone) on OBJECT | FIELD_DEFINITION | ENUM_VALUE",
        doc: "The words for a type, a field or an enum value, and where and how pages show it.",
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
        name: "createdBy",
        sdl: "directive @createdBy on FIELD_DEFINITION",
        doc: "Set to the account of who creates the record; clients cannot set it.",
    },
    BuiltinDirective {
        name: "updatedBy",
        sdl: "directive @updatedBy on FIELD_DEFINITION",
        doc: "Set to the account of who last changed the record; clients cannot set it.",
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
        name: "allow",
        sdl: "directive @allow(read: _Rule, create: _Rule, update: _Rule, updateTo: _Rule, delete: _Rule, write: _Rule, all: _Rule, call: _Rule) on SCHEMA | OBJECT | FIELD_DEFINITION",
        doc: "Who may do what: true, false or an expression such as `\"owner == me\"`. What no rule allows is refused.",
    },
    BuiltinDirective {
        name: "rule",
        sdl: "directive @rule(name: String!, is: String!) repeatable on OBJECT",
        doc: "Names an expression, for use in the rules of this type and of types that refer to it.",
    },
    BuiltinDirective {
        name: "account",
        sdl: "directive @account(login: String!, roles: String, if: String, manage: _Rule, signUp: Boolean = false) on OBJECT",
        doc: "The records of this type are accounts, found by their login.",
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
    ("_Rule", "\"True, false or an expression.\"\nscalar _Rule"),
    ("_KeyKind", "\"The keys of a record type.\"\nenum _KeyKind { COUNT UUID TEXT }"),
    ("_Format", "\"How pages write a value.\"\nenum _Format { CURRENCY PERCENT CODE COLOR LINK MULTILINE }"),
    ("_Width", "\"The width of a control.\"\nenum _Width { NARROW MEDIUM WIDE }"),
    ("_Tone", "\"The colour of an enum value.\"\nenum _Tone { BLUE GREEN PURPLE YELLOW RED TEAL GREY }"),
    (
        "_OnDelete",
        "\"What happens to a reference when the referenced record is deleted.\"\nenum _OnDelete { REFUSE CASCADE SET_NULL }",
    ),
];

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

/// Directives that are never left without effect: records would be open that someone meant to protect.
pub(crate) const ACCESS_DIRECTIVES: [&str; 3] = ["allow", "account", "rule"];

pub fn find_directive(name: &str) -> Option<&'static BuiltinDirective> {
    BUILTIN_DIRECTIVES.iter().find(|definition| definition.name == name)
}

pub(crate) fn is_builtin_directive(redeclared: &HashSet<String>, directive: &Directive) -> bool {
    find_directive(&directive.name).is_some() && !redeclared.contains(directive.name.as_str())
}
