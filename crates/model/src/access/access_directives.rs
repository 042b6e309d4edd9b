//! Reads `@allow`, `@account` and `@rule`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use apollo_compiler::ast::{self, Directive};
use apollo_compiler::parser::SourceSpan;
use apollo_compiler::{Node, Schema};

use crate::access::access_model::{AccessModel, AccessRule, AccountType, FieldAccess, TypeAccess};
use crate::access::access_rule::{AccessAction, PartJoin, RulePart, RuleTest};
use crate::access::access_warnings;
use crate::access::expression::rule_parser::parse_rule;
use crate::access::expression::rule_resolver::{resolve_actor_rule, resolve_rule};
use crate::access::expression::rule_scope::{Resolved, RuleNames, RulePlace, RuleResolutionError, WORDS};
use crate::access::expression::rule_sources::{AllowArguments, RuleSource, RuleSources, WrittenRule};
use crate::access::expression::syntax_part::SyntaxPart;
use crate::sdl::diagnostic_log::{DiagnosticLog, suggest_or_else, type_span};
use crate::sdl::directives::directive_argument;
use crate::sdl::record_types::PartialModel;
use crate::sdl::root_fields::root_types;
use crate::{Field, FieldId, RecordType, RecordTypeId, RootField, ValueType};

/// The arguments of `@allow` on a type or the schema.
const TYPE_ARGUMENTS: [&str; 7] = ["read", "create", "update", "updateTo", "delete", "write", "all"];
/// The arguments of `@allow` on a field.
const FIELD_ARGUMENTS: [&str; 4] = ["read", "create", "update", "write"];
/// The arguments of `@allow` on a list of links. Its records are hidden by the rules of their own type.
const LINK_ARGUMENTS: [&str; 3] = ["create", "update", "write"];
/// The argument of `@allow` on an operation.
const CALL_ARGUMENTS: [&str; 1] = ["call"];

/// The rules of a schema; `None` if it has none and nothing else protects the application, so that everything is allowed.
pub(crate) fn read_access(
    schema: &Schema,
    partial_model: &PartialModel,
    root_fields: &[RootField],
    is_protected: bool,
    log: &mut DiagnosticLog,
) -> Option<AccessModel> {
    let records = &partial_model.records;
    let is_used = |directives: &ast::DirectiveList| {
        ["allow", "account", "rule"].iter().any(|name| directives.has(name))
    };
    let on_schema = schema.schema_definition.directives.has("allow");
    let on_types = records.iter().filter_map(|record| schema.get_object(&record.name)).any(|ty| {
        ["allow", "account", "rule"].iter().any(|name| ty.directives.has(name))
            || ty.fields.values().any(|field| is_used(&field.directives))
    });
    let calls: Vec<(usize, &Node<Directive>)> = call_directives(schema, root_fields).collect();
    if !is_protected && !on_schema && !on_types && calls.is_empty() {
        return None;
    }
    let (sources, calls_read) = (RuleSources::default(), Vec::new());
    let mut reader = AccessReader { schema, partial_model, log, sources, calls: calls_read };
    reader.read_sources();
    reader.read_calls(calls);
    Some(reader.read_model())
}

struct AccessReader<'a> {
    schema: &'a Schema,
    partial_model: &'a PartialModel,
    log: &'a mut DiagnosticLog,
    sources: RuleSources,
    /// Of operations, by their position.
    calls: Vec<(usize, Rc<RuleSource>)>,
}

/// `@allow` on operations, by their position.
fn call_directives<'s>(
    schema: &'s Schema,
    root_fields: &[RootField],
) -> impl Iterator<Item = (usize, &'s Node<Directive>)> {
    let types = root_types(schema);
    root_fields.iter().enumerate().filter_map(move |(position, root)| {
        let (_, name) = types.iter().find(|(kind, _)| *kind == root.root_kind)?;
        let declared = schema.get_object(name)?.fields.get(root.name.as_str())?;
        Some((position, declared.directives.get("allow")?))
    })
}

impl<'a> AccessReader<'a> {
    fn records(&self) -> impl Iterator<Item = (RecordTypeId, &'a RecordType)> + use<'a> {
        self.partial_model
            .records
            .iter()
            .enumerate()
            .map(|(position, record)| (RecordTypeId(position), record))
    }

    /// Reads the texts of all rules of types: they may use each other.
    fn read_sources(&mut self) {
        let schema = self.schema;
        let of_schema =
            schema.schema_definition.directives.iter().find(|directive| directive.name == "allow");
        if let Some(directive) = of_schema {
            self.sources.schema = self.read_allow(directive, &TYPE_ARGUMENTS);
        }
        for (id, record) in self.records() {
            let Some(ty) = schema.get_object(&record.name) else { continue };
            for directive in ty.directives.iter() {
                match directive.name.as_str() {
                    "allow" => {
                        let arguments = self.read_allow(directive, &TYPE_ARGUMENTS);
                        self.sources.types.insert(id, arguments);
                    }
                    "rule" => self.read_named_rule(id, record, directive),
                    _ => {}
                }
            }
            for (position, field) in record.fields.iter().enumerate() {
                let directives = ty.fields.get(field.name.as_str()).map(|def| &def.directives);
                let Some(directive) = directives.and_then(|directives| directives.get("allow")) else {
                    continue;
                };
                if field.kind.is_id() {
                    let message = "`@allow` is not allowed on the key of a record";
                    let diagnostic = self.log.error(directive.location(), "DIRECTIVE_PLACE", message);
                    diagnostic.label("who sees a record sees its key").help("put the rule on the type");
                    continue;
                }
                if field.kind.inverse().is_some() {
                    let message = format!(
                        "`@allow` is not allowed on `{}.{}`, a list of records",
                        record.name, field.name
                    );
                    let diagnostic = self.log.error(directive.location(), "DIRECTIVE_PLACE", message);
                    diagnostic
                        .label("a list of records stores no value")
                        .help("put the rule on the reference at the other end");
                    continue;
                }
                if field.kind.is_unstored() {
                    self.report_unstored(record, field, directive);
                    continue;
                }
                let known: &[&str] = if field.kind.is_link() { &LINK_ARGUMENTS } else { &FIELD_ARGUMENTS };
                let arguments = self.read_allow(directive, known);
                self.sources.fields.insert((id, FieldId(position)), arguments);
            }
        }
    }

    /// What is not stored is read from other fields, or answered by a resolver.
    fn report_unstored(&mut self, record: &RecordType, field: &Field, directive: &Node<Directive>) {
        let message =
            format!("`@allow` is not allowed on `{}.{}`, which is not stored", record.name, field.name);
        let help = match record.find_shown_reference(&field.name) {
            Some(shown) => format!("put the rule on the reference `{}`", record.field(shown).name),
            None => "put the rule on the fields that it is made of, or ask `call.actor` in its resolver"
                .to_owned(),
        };
        self.log
            .error(directive.location(), "DIRECTIVE_PLACE", message)
            .label("would protect nothing")
            .help(help);
    }

    fn read_calls(&mut self, directives: Vec<(usize, &'a Node<Directive>)>) {
        for (position, directive) in directives {
            let arguments = self.read_allow(directive, &CALL_ARGUMENTS);
            self.calls.extend(arguments.0.get("call").map(|rule| (position, rule.clone())));
        }
    }

    fn read_allow(&mut self, directive: &Node<Directive>, arguments: &[&'static str]) -> AllowArguments {
        let mut allowed = AllowArguments::default();
        for argument in &directive.arguments {
            match arguments.iter().find(|name| argument.name == **name) {
                Some(name) => {
                    if let Some(rule) = self.read_source(&argument.value) {
                        allowed.0.insert(name, Rc::new(rule));
                    }
                }
                // What no `@allow` has is reported with all unknown arguments.
                None if !TYPE_ARGUMENTS
                    .iter()
                    .chain(&CALL_ARGUMENTS)
                    .any(|known| argument.name == **known) => {}
                None => {
                    let message = format!("`@allow` has no argument `{}` here", argument.name);
                    let known = format!("it has {}", arguments.join(", "));
                    let help = suggest_or_else(&argument.name, arguments.iter().copied(), || known);
                    self.log
                        .error(argument.location(), "DIRECTIVE_ARGUMENT", message)
                        .label("unknown argument")
                        .help(help);
                }
            }
        }
        if directive.arguments.is_empty() {
            self.log
                .error(directive.location(), "DIRECTIVE_ARGUMENT", "`@allow` says nothing")
                .label("no action is named")
                .help(match arguments {
                    ["call"] => {
                        "write `@allow(call: true)`, or an expression such as `@allow(call: \"signedIn\")`"
                    }
                    _ => {
                        "write `@allow(read: true)`, or an expression such as `@allow(read: \"owner == me\")`"
                    }
                });
        }
        allowed
    }

    /// A rule: true, false or an expression in quotes.
    fn read_source(&mut self, value: &Node<ast::Value>) -> Option<RuleSource> {
        let literal = value.location();
        let rule = match (value.to_bool(), value.as_str()) {
            (Some(constant), _) => WrittenRule::Constant(constant),
            (None, Some(text)) => match parse_rule(text) {
                Ok(syntax) => WrittenRule::Expression(syntax),
                Err(error) => {
                    self.log.rule_error(literal, error);
                    return None;
                }
            },
            (None, None) => {
                self.log
                    .error(literal, "DIRECTIVE_ARGUMENT", "a rule is true, false or an expression in quotes")
                    .label("no rule");
                return None;
            }
        };
        Some(RuleSource { rule, literal })
    }

    fn read_named_rule(&mut self, id: RecordTypeId, record: &RecordType, directive: &Node<Directive>) {
        let name = directive_argument(directive, "name");
        let (Some(name), Some(is)) = (name, directive_argument(directive, "is")) else { return };
        let (Some(name_text), location) = (name.as_str(), name.location()) else { return };
        let clash = if WORDS.contains(&name_text) {
            Some(format!("`{name_text}` is a word of the language of rules"))
        } else if record.find_field(name_text).is_some() {
            Some(format!("`{}` has a field `{name_text}`", record.name))
        } else if self.sources.named_rule(id, name_text).is_some() {
            Some(format!("`{}` has two rules called `{name_text}`", record.name))
        } else {
            None
        };
        if let Some(message) = clash {
            self.log
                .error(location, "RULE_NAME", message)
                .label("taken")
                .help("choose another name for the rule");
            return;
        }
        if let Some(source) = self.read_source(is) {
            self.sources.named.insert((id, name_text.to_owned()), Rc::new(source));
        }
    }

    fn read_model(mut self) -> AccessModel {
        let account = self.read_account();
        let account_id = account.as_ref().map(|found| found.record);
        let roles = account.as_ref().and_then(|found| self.role_names(found));
        let sources = std::mem::take(&mut self.sources);
        let partial_model = self.partial_model;
        let names = RuleNames {
            records: &partial_model.records,
            enums: &partial_model.enums,
            embedded: &partial_model.embedded,
            sources: &sources,
            account: account_id,
            roles: roles.as_deref(),
        };
        let mut resolver =
            ModelResolver { schema: self.schema, names, log: self.log, roles: BTreeSet::new() };
        resolver.check_named_rules();
        let mut types = Vec::new();
        for (position, record) in partial_model.records.iter().enumerate() {
            types.push(resolver.type_access(RecordTypeId(position), record));
        }
        let calls =
            self.calls.iter().map(|(position, source)| (*position, resolver.actor_rule(source))).collect();
        let account = account.map(|found| resolver.account_type(found));
        let found_roles = std::mem::take(&mut resolver.roles);
        let roles = roles.unwrap_or_else(|| found_roles.into_iter().collect());
        let (lists, texts) = (BTreeMap::new(), BTreeMap::new());
        let model = AccessModel {
            account,
            types,
            roles,
            default_paths: Vec::new(),
            calls,
            lists,
            texts,
            see_metrics: None,
            see_audit: None,
        };
        access_warnings::warn_about_rules(self.schema, partial_model, &model, self.log);
        model
    }

    /// The fields that `@account` names.
    fn read_account(&mut self) -> Option<DeclaredAccount> {
        let schema = self.schema;
        let mut found: Option<DeclaredAccount> = None;
        for (id, record) in self.records() {
            let directive = schema.get_object(&record.name).and_then(|ty| ty.directives.get("account"));
            let Some(directive) = directive else { continue };
            if found.is_some() {
                let message = "only one type of a schema can have `@account`";
                self.log.error(directive.location(), "ACCOUNT", message).label("a second one");
                continue;
            }
            let login = self.account_field(record, directive, "login", |field| {
                (!(field.required && field.unique && field.kind.is_text()))
                    .then_some("a required text with `@unique`")
            });
            let roles = self.account_field(record, directive, "roles", |field| {
                (!is_role_field(field)).then_some("an enum, a text, or a list of either")
            });
            let rule = |reader: &mut Self, name: &str| {
                directive_argument(directive, name).and_then(|value| reader.read_source(value)).map(Rc::new)
            };
            let usable = rule(self, "if");
            let manage = rule(self, "manage");
            let has_sign_up =
                directive_argument(directive, "signUp").and_then(|value| value.to_bool()) == Some(true);
            let Some(login) = login else { continue };
            found = Some(DeclaredAccount { record: id, login, roles, usable, manage, has_sign_up });
        }
        found
    }

    fn account_field(
        &mut self,
        record: &RecordType,
        directive: &Node<Directive>,
        argument: &str,
        misfit: impl Fn(&Field) -> Option<&'static str>,
    ) -> Option<FieldId> {
        let value = directive_argument(directive, argument)?;
        let name = value.as_str()?;
        let Some(found) = record.find_field(name) else {
            let known = record.fields.iter().map(|field| field.name.as_str());
            let help = suggest_or_else(name, known, || format!("name a field of `{}`", record.name));
            let message = format!("`{}` has no field `{name}`", record.name);
            self.log.error(value.location(), "ACCOUNT", message).label("unknown field").help(help);
            return None;
        };
        if let Some(expected) = misfit(record.field(found)) {
            let message = format!("`{argument}` of `@account` must name {expected}");
            self.log.error(value.location(), "ACCOUNT", message).label(format!("`{name}` is something else"));
            return None;
        }
        Some(found)
    }

    /// The values of the enum of roles.
    fn role_names(&self, account: &DeclaredAccount) -> Option<Vec<String>> {
        let record = &self.partial_model.records[account.record.0];
        let value_type = record.field(account.roles?).kind.value_type()?.innermost();
        Some(self.partial_model.enums.get(value_type.enum_name()?)?.values.clone())
    }
}

/// `@account` before its rules are resolved.
struct DeclaredAccount {
    record: RecordTypeId,
    login: FieldId,
    roles: Option<FieldId>,
    usable: Option<Rc<RuleSource>>,
    manage: Option<Rc<RuleSource>>,
    has_sign_up: bool,
}

fn is_role_field(field: &Field) -> bool {
    let innermost = field.kind.value_type().map(ValueType::innermost);
    innermost.is_some_and(|value_type| value_type.is_text() || value_type.enum_name().is_some())
}

/// Resolves the rules of all types.
struct ModelResolver<'a, 'l> {
    schema: &'a Schema,
    names: RuleNames<'a>,
    log: &'l mut DiagnosticLog,
    /// The roles that rules name.
    roles: BTreeSet<String>,
}

impl ModelResolver<'_, '_> {
    /// Mistakes in named rules are reported once, whoever uses them.
    fn check_named_rules(&mut self) {
        let sources = self.names.sources;
        let mut named: Vec<_> = sources.named.iter().collect();
        named.sort_by_key(|((record, name), _)| (*record, name.clone()));
        for ((record, name), source) in named {
            self.resolve(*record, source, RulePlace::Named(*record, name.clone()));
        }
    }

    /// The test of a rule; one with a mistake allows nothing.
    fn resolve(&mut self, record: RecordTypeId, source: &RuleSource, place: RulePlace) -> SyntaxPart {
        let resolved = resolve_rule(self.names, record, source, place);
        self.accepted(resolved, source)
    }

    fn accepted(&mut self, resolved: Resolved<SyntaxPart>, source: &RuleSource) -> SyntaxPart {
        match resolved {
            Ok(part) => {
                part.test.collect_roles(&mut self.roles);
                return part;
            }
            Err(RuleResolutionError::Mistake(error)) => self.log.rule_error(source.literal, error),
            Err(RuleResolutionError::Elsewhere) => {}
        }
        SyntaxPart {
            literal: source.literal,
            span: None,
            join: PartJoin::Whole,
            test: RuleTest::Constant(false),
            parts: Vec::new(),
        }
    }

    fn actor_rule(&mut self, source: &RuleSource) -> AccessRule {
        let resolved = resolve_actor_rule(self.names, source);
        let part = self.accepted(resolved, source);
        self.single_rule(part, source)
    }

    fn single_rule(&self, part: SyntaxPart, source: &RuleSource) -> AccessRule {
        let location = self.log.location(source.literal);
        AccessRule { test: part.test.clone(), location, parts: vec![self.located(part)] }
    }

    fn located(&self, part: SyntaxPart) -> RulePart {
        let (location, bytes) = self.log.rule_place(part.literal, part.span);
        let parts = part.parts.into_iter().map(|part| self.located(part)).collect();
        RulePart { location, bytes, join: part.join, test: part.test, parts }
    }

    fn type_access(&mut self, id: RecordTypeId, record: &RecordType) -> TypeAccess {
        let sources = self.names.sources;
        let [read, create, update, delete] =
            [AccessAction::Read, AccessAction::Create, AccessAction::Update, AccessAction::Delete]
                .map(|action| self.type_rule(id, action));
        let own = sources.types.get(&id);
        let has_update_to = own.is_some_and(|arguments| arguments.rule(AccessAction::UpdateTo).is_some());
        let update_to = has_update_to.then(|| self.type_rule(id, AccessAction::UpdateTo));
        let fields = (0..record.fields.len()).map(|position| {
            let arguments = sources.fields.get(&(id, FieldId(position)));
            arguments.map(|arguments| self.field_access(id, arguments)).unwrap_or_default()
        });
        TypeAccess { read, create, update, update_to, delete, fields: fields.collect() }
    }

    fn type_rule(&mut self, id: RecordTypeId, action: AccessAction) -> AccessRule {
        let sources = self.names.sources;
        let rules = sources.rules_for(id, action);
        let parts: Vec<SyntaxPart> =
            rules.iter().map(|source| self.resolve(id, source, RulePlace::Action(id, action))).collect();
        // A literal `false` is where the action is refused.
        let own = sources.types.get(&id).and_then(|arguments| arguments.rule(action));
        let written = own.or(rules.first()).and_then(|rule| rule.literal);
        let location = self.log.location(written.or_else(|| self.type_span(id)));
        let test = RuleTest::Any(parts.iter().map(|part| part.test.clone()).collect());
        AccessRule { test, location, parts: parts.into_iter().map(|part| self.located(part)).collect() }
    }

    fn type_span(&self, id: RecordTypeId) -> Option<SourceSpan> {
        type_span(self.schema, &self.names.records[id.0])
    }

    fn field_access(&mut self, id: RecordTypeId, arguments: &AllowArguments) -> FieldAccess {
        let mut rule = |names: &[&str]| {
            let source = names.iter().find_map(|name| arguments.0.get(name))?;
            let part = self.resolve(id, source, RulePlace::Alone);
            Some(self.single_rule(part, source))
        };
        FieldAccess {
            read: rule(&["read"]),
            create: rule(&["create", "write"]),
            update: rule(&["update", "write"]),
        }
    }

    fn account_type(&mut self, declared: DeclaredAccount) -> AccountType {
        let DeclaredAccount { record, login, roles, usable, manage, has_sign_up } = declared;
        let usable = usable
            .map_or(RuleTest::Constant(true), |rule| self.resolve(record, &rule, RulePlace::Alone).test);
        let manage = manage
            .map_or(RuleTest::Constant(false), |rule| self.resolve(record, &rule, RulePlace::Alone).test);
        AccountType { record, login, roles, usable, manage, has_sign_up }
    }
}
