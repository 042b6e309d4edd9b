//! Reports directives for records on root types, and rules on the fields of interfaces: nobody would read them.

use std::collections::HashSet;

use apollo_compiler::Schema;

use crate::sdl::diagnostic_log::{DiagnosticLog, is_user_written};
use crate::sdl::directives::{ACCESS_DIRECTIVES, is_builtin_directive};

pub(crate) fn report_outside_records(
    schema: &Schema,
    roots: &HashSet<&str>,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
) {
    let written = schema.types.values().filter(|ty| is_user_written(ty.name().location(), None));
    for ty in written {
        let name = ty.name();
        if let Some(object) = ty.as_object().filter(|_| roots.contains(name.as_str())) {
            let directives = object.directives.iter();
            for directive in directives.filter(|directive| is_builtin_directive(redeclared, directive)) {
                let message =
                    format!("`@{}` is not allowed on `{name}`, whose fields are operations", directive.name);
                log.error(directive.location(), "DIRECTIVE_PLACE", message)
                    .label("not on a record type")
                    .help(help_at_root(&directive.name));
            }
        }
        for field in ty.as_interface().into_iter().flat_map(|interface| interface.fields.values()) {
            let rules = field.directives.iter();
            for directive in rules.filter(|directive| ACCESS_DIRECTIVES.contains(&directive.name.as_str())) {
                let message = format!(
                    "`@{}` is not allowed on `{name}.{}`, a field of an interface",
                    directive.name, field.name
                );
                log.error(directive.location(), "DIRECTIVE_PLACE", message)
                    .label("would protect nothing")
                    .help(format!(
                        "write it on the field `{}` of each type that implements `{name}`",
                        field.name
                    ));
            }
        }
    }
}

fn help_at_root(directive: &str) -> &'static str {
    match directive {
        "allow" => {
            "write it on the record types, where it holds on every face; `@allow(call: …)` is for a field that a registered \
             resolver answers"
        }
        "generate" => "write `extend schema @generate`, or put it on a record type",
        _ => "move it to a record type",
    }
}
