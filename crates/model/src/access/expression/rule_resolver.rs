//! Looks up the names in a rule and checks its types.

use std::ops::Range;
use std::rc::Rc;

use crate::access::access_rule::{AccessAction, ClaimValue, RecordPath, RuleTest, RuleValue};
use crate::access::expression::rule_error::RuleError;
use crate::access::expression::rule_mistakes::{
    compared_condition, constant_comparison, list_misuse, no_condition, path_span,
};
use crate::access::expression::rule_paths::PathMeaning;
use crate::access::expression::rule_scope::{
    MAX_COMPARISONS, MAX_LIST_TESTS, Resolved, RuleNames, RulePlace, RuleResolutionError, RuleResolver,
    RuleVariable, WORDS,
};
use crate::access::expression::rule_sources::RuleSource;
use crate::access::expression::rule_syntax::{PathName, SyntaxKind, SyntaxNode};
use crate::access::expression::syntax_part::SyntaxPart;
use crate::access::expression::value_kind::{TypedOperand, TypedValue, ValueKind};
use crate::naming::names;
use crate::{ComparisonOp, RecordType, RecordTypeId, StoredValue, Value, ValueType};

/// Of a claim that is compared with another one.
const UNKNOWN_TYPE: &str =
    "the type of this comparison is unknown: compare a claim with a field or a literal";

/// Resolves a rule about a record of this type.
pub fn resolve_rule(
    names: RuleNames<'_>,
    record: RecordTypeId,
    rule: &RuleSource,
    place: RulePlace,
) -> Resolved<SyntaxPart> {
    let allows_old = matches!(place, RulePlace::Action(_, AccessAction::UpdateTo));
    let variables = vec![RuleVariable { name: None, record }];
    let mut resolver = RuleResolver {
        names,
        variables,
        first_visible: 0,
        expanding: vec![place],
        list_tests: 0,
        comparisons: 0,
        allows_old,
        literal: None,
        parts: Vec::new(),
    };
    resolver.resolve_whole(rule)
}

/// Resolves a rule about the actor alone.
pub fn resolve_actor_rule(names: RuleNames<'_>, rule: &RuleSource) -> Resolved<SyntaxPart> {
    RuleResolver::about_actor(names).resolve_whole(rule)
}

/// Resolves a value of the actor or of the time of the request.
pub fn resolve_actor_value(names: RuleNames<'_>, syntax: &SyntaxNode) -> Resolved<(RuleValue, ValueKind)> {
    let mut resolver = RuleResolver::about_actor(names);
    let typed = match &syntax.kind {
        SyntaxKind::Path(path) => match resolver.resolve_path(path)? {
            PathMeaning::Value(typed) => Some(typed),
            PathMeaning::Test(_) | PathMeaning::RecordList { .. } => None,
        },
        SyntaxKind::Claim(_) => Some(resolver.resolve_value(syntax)?),
        SyntaxKind::Or(_)
        | SyntaxKind::And(_)
        | SyntaxKind::Not(_)
        | SyntaxKind::Compare { .. }
        | SyntaxKind::In { .. }
        | SyntaxKind::Exists { .. }
        | SyntaxKind::Role(_)
        | SyntaxKind::Can { .. }
        | SyntaxKind::Number(_)
        | SyntaxKind::Text(_)
        | SyntaxKind::List(_) => None,
    };
    match typed {
        Some(TypedValue { value: TypedOperand::Value(value), kind }) => Ok((value, kind)),
        Some(_) | None => {
            let help = "write `me`, a path of references from it, `claim('…')`, `now` or `today`";
            Err(RuleError::new(
                syntax.span.clone(),
                "DEFAULT",
                "this is no value of the actor or of the time",
            )
            .label("no such value")
            .help(help)
            .into())
        }
    }
}

impl<'a> RuleResolver<'a> {
    fn about_actor(names: RuleNames<'a>) -> RuleResolver<'a> {
        RuleResolver {
            names,
            variables: Vec::new(),
            first_visible: 0,
            expanding: vec![RulePlace::Alone],
            list_tests: 0,
            comparisons: 0,
            allows_old: false,
            literal: None,
            parts: Vec::new(),
        }
    }

    pub(super) fn record(&self, id: RecordTypeId) -> &'a RecordType {
        &self.names.records[id.0]
    }

    pub(super) fn resolve_node(&mut self, node: &SyntaxNode) -> Resolved<RuleTest> {
        if !matches!(node.kind, SyntaxKind::Or(_) | SyntaxKind::And(_) | SyntaxKind::Not(_)) {
            self.comparisons += 1;
        }
        if self.comparisons > MAX_COMPARISONS {
            let message = format!(
                "with those of the rules that it uses, this rule makes more than {MAX_COMPARISONS} comparisons"
            );
            return Err(RuleError::new(node.span.clone(), "RULE_LENGTH", message)
                .label("one too many")
                .into());
        }
        let all = |resolver: &mut Self, nodes: &[SyntaxNode]| -> Resolved<Vec<RuleTest>> {
            nodes.iter().map(|node| resolver.resolve_test(node)).collect()
        };
        match &node.kind {
            SyntaxKind::Or(nodes) => Ok(RuleTest::Any(all(self, nodes)?)),
            SyntaxKind::And(nodes) => Ok(RuleTest::All(all(self, nodes)?)),
            SyntaxKind::Not(inner) => Ok(self.resolve_test(inner)?.negated()),
            SyntaxKind::Compare { left, op, right } => self.resolve_comparison(left, *op, right),
            SyntaxKind::In { item, list } => self.resolve_membership(item, list),
            SyntaxKind::Role(roles) => self.resolve_roles(roles),
            SyntaxKind::Can { action, record } => self.resolve_can(action, record),
            SyntaxKind::Exists { list, variable, test } => self.resolve_exists(list, variable, test),
            SyntaxKind::Path(path) => match self.resolve_path(path)? {
                PathMeaning::Test(test) => Ok(test),
                PathMeaning::Value(TypedValue { value: TypedOperand::Value(value), kind })
                    if kind.is_boolean() =>
                {
                    Ok(RuleTest::IsTrue(value))
                }
                PathMeaning::Value(typed) => Err(no_condition(node, &typed).into()),
                PathMeaning::RecordList { .. } => Err(list_misuse(path).into()),
            },
            SyntaxKind::Claim(_) | SyntaxKind::Number(_) | SyntaxKind::Text(_) | SyntaxKind::List(_) => {
                Err(RuleError::new(node.span.clone(), "RULE_TYPE", "this is a value, not a condition")
                    .label("compared with nothing")
                    .help("compare it with `==`, `!=`, `<` or `in`")
                    .into())
            }
        }
    }

    fn resolve_comparison(
        &mut self,
        left: &SyntaxNode,
        op: ComparisonOp,
        right: &SyntaxNode,
    ) -> Resolved<RuleTest> {
        let [one, other] = [self.resolve_value(left)?, self.resolve_value(right)?];
        let span = left.span.start..right.span.end;
        let is_null = |typed: &TypedValue| matches!(typed.value, TypedOperand::Null);
        if is_null(&one) || is_null(&other) {
            let (typed, node) = if is_null(&one) { (other, right) } else { (one, left) };
            let TypedOperand::Value(value) = typed.value else {
                return Err(constant_comparison(span).into());
            };
            let absent = RuleTest::IsAbsent(value);
            return match op {
                ComparisonOp::Eq => Ok(absent),
                ComparisonOp::Ne => Ok(absent.negated()),
                ComparisonOp::Lt | ComparisonOp::Lte | ComparisonOp::Gt | ComparisonOp::Gte => {
                    Err(RuleError::new(node.span.clone(), "RULE_TYPE", "null is neither less nor greater")
                        .help("ask with `== null` or `!= null`")
                        .into())
                }
            };
        }
        let (one_kind, other_kind) = (one.kind.clone(), other.kind.clone());
        let [one, other] = [one.with_clock_of(&other_kind), other.with_clock_of(&one_kind)];
        if !one.kind.fits(&other.kind) {
            let message = format!("{} cannot be compared with {}", one.kind, other.kind);
            return Err(RuleError::new(span, "RULE_TYPE", message).label("of different types").into());
        }
        let literal_kind = [&one.value, &other.value].into_iter().find_map(TypedOperand::literal_kind);
        let kind = match (&one.kind, &other.kind) {
            (ValueKind::Open, ValueKind::Open) => literal_kind.as_ref().unwrap_or(&ValueKind::Open),
            (ValueKind::Open, kind) | (kind, _) => kind,
        };
        if !kind.allows(op) {
            let message = format!("values of type {kind} have no order");
            return Err(RuleError::new(span, "RULE_TYPE", message).help("compare with `==` or `!=`").into());
        }
        let kind = kind.clone();
        if kind.value_type().is_some_and(ValueType::is_json) {
            let message = format!("values of type {kind} cannot be compared");
            return Err(RuleError::new(span, "RULE_TYPE", message).into());
        }
        let [one, other] =
            [(one, left), (other, right)].map(|(typed, node)| self.typed_operand(typed, &kind, node));
        Ok(RuleTest::Compare { left: one?, op, right: other? })
    }

    fn resolve_membership(&mut self, item: &SyntaxNode, list: &SyntaxNode) -> Resolved<RuleTest> {
        let typed = self.resolve_value(item)?;
        if let SyntaxKind::List(choices) = &list.kind {
            let choices = choices.iter().map(|choice| Ok((self.resolve_value(choice)?, choice)));
            let choices = choices.collect::<Resolved<Vec<_>>>()?;
            // A claim has the type of the first choice that has one.
            let kind = match typed.kind.clone() {
                ValueKind::Open => {
                    let kinds = choices.iter().map(|(choice, _)| match &choice.kind {
                        ValueKind::Open => choice.value.literal_kind(),
                        kind @ (ValueKind::Record { .. } | ValueKind::Value(_)) => Some(kind.clone()),
                    });
                    kinds.flatten().next().unwrap_or(ValueKind::Open)
                }
                kind @ (ValueKind::Record { .. } | ValueKind::Value(_)) => kind,
            };
            let choices = choices.into_iter().map(|(typed, choice)| {
                let typed = typed.with_clock_of(&kind);
                if !typed.kind.fits(&kind) || matches!(typed.value, TypedOperand::Null) {
                    let message = format!("{} is compared with values of type {}", kind, typed.kind);
                    return Err(RuleError::new(choice.span.clone(), "RULE_TYPE", message).into());
                }
                self.typed_operand(typed, &kind, choice)
            });
            let choices = choices.collect::<Resolved<Vec<_>>>()?;
            let value = self.typed_operand(typed, &kind, item)?;
            return Ok(RuleTest::OneOf { value, choices });
        }
        let of_list = self.resolve_value(list)?;
        let (ValueKind::Value(ValueType::List(list_item)), TypedOperand::Value(list_value)) =
            (&of_list.kind, of_list.value)
        else {
            let message = "`in` needs a list: `[A, B]`, or a field with a list of values";
            return Err(RuleError::new(list.span.clone(), "RULE_TYPE", message).label("no list").into());
        };
        let kind = ValueKind::Value(list_item.value_type.clone());
        let typed = typed.with_clock_of(&kind);
        if !typed.kind.fits(&kind) {
            let message = format!("the list has items of type {kind}, not {}", typed.kind);
            return Err(RuleError::new(item.span.clone(), "RULE_TYPE", message).into());
        }
        let item = self.typed_operand(typed, &kind, item)?;
        Ok(RuleTest::HasItem { list: list_value, item })
    }

    /// A value, with literals coerced to the type of the other side.
    fn typed_operand(&self, typed: TypedValue, kind: &ValueKind, node: &SyntaxNode) -> Resolved<RuleValue> {
        let mistake = |message: String| RuleError::new(node.span.clone(), "RULE_TYPE", message);
        let unknown = |name: &str, known: Vec<&str>| {
            let nearest = names::nearest_name(name, known.iter().copied());
            let help = nearest.map(|near| format!("did you mean `{near}`?"));
            let error = RuleError::new(node.span.clone(), "RULE_NAME", format!("there is no `{name}`"));
            RuleError { help, ..error.label("unknown name") }
        };
        match typed.value {
            TypedOperand::Value(RuleValue::Claim(claim)) => match kind.value_type() {
                Some(value_type) => {
                    let value_type = Some(value_type.clone());
                    Ok(RuleValue::Claim(ClaimValue { value_type, ..claim }))
                }
                None => Err(mistake(UNKNOWN_TYPE.to_owned()).into()),
            },
            TypedOperand::Value(value) => Ok(value),
            TypedOperand::Null => Err(mistake("null is not a value here".to_owned()).into()),
            TypedOperand::Name(name) => match kind.value_type() {
                Some(ValueType::Enum(enum_name)) => {
                    let values =
                        self.names.enums.get(enum_name).map(|ty| ty.values.as_slice()).unwrap_or_default();
                    if values.contains(&name) {
                        return Ok(RuleValue::Literal(StoredValue::Text(name)));
                    }
                    let known = values.iter().map(String::as_str).chain(self.visible_names()).collect();
                    Err(unknown(&name, known).into())
                }
                Some(_) | None => Err(unknown(&name, self.visible_names().collect()).into()),
            },
            TypedOperand::Literal(value) => {
                let Some(value_type) = kind.value_type() else {
                    return Err(mistake(UNKNOWN_TYPE.to_owned()).into());
                };
                let coerced = self.names.coerce(value_type, &value);
                coerced.map(RuleValue::Literal).map_err(|message| mistake(message).into())
            }
        }
    }

    fn resolve_value(&mut self, node: &SyntaxNode) -> Resolved<TypedValue> {
        // The type of a literal is that of the other side.
        let literal = |value| TypedValue { value: TypedOperand::Literal(value), kind: ValueKind::Open };
        match &node.kind {
            SyntaxKind::Text(text) => Ok(literal(Value::String(text.clone()))),
            SyntaxKind::Number(digits) => {
                let value = Value::number(digits);
                let value =
                    value.ok_or_else(|| RuleError::syntax(node.span.clone(), "this is not a number"))?;
                Ok(literal(value))
            }
            SyntaxKind::Claim(path) => Ok(TypedValue {
                value: TypedOperand::Value(RuleValue::Claim(ClaimValue {
                    path: path.clone(),
                    value_type: None,
                })),
                kind: ValueKind::Open,
            }),
            SyntaxKind::Path(path) => match self.resolve_path(path)? {
                PathMeaning::Value(typed) => Ok(typed),
                PathMeaning::Test(RuleTest::Constant(value)) => Ok(literal(Value::Bool(value))),
                PathMeaning::Test(_) => Err(compared_condition(node).into()),
                PathMeaning::RecordList { .. } => Err(list_misuse(path).into()),
            },
            SyntaxKind::List(_) => {
                Err(RuleError::new(node.span.clone(), "RULE_TYPE", "a list can only stand after `in`").into())
            }
            SyntaxKind::Or(_)
            | SyntaxKind::And(_)
            | SyntaxKind::Not(_)
            | SyntaxKind::Compare { .. }
            | SyntaxKind::In { .. }
            | SyntaxKind::Exists { .. }
            | SyntaxKind::Role(_)
            | SyntaxKind::Can { .. } => Err(compared_condition(node).into()),
        }
    }

    fn resolve_roles(&self, roles: &[PathName]) -> Resolved<RuleTest> {
        for role in roles {
            let Some(known) = self.names.roles else { break };
            if known.contains(&role.name) {
                continue;
            }
            let mut error =
                RuleError::new(role.span.clone(), "RULE_ROLE", format!("there is no role `{}`", role.name))
                    .label("unknown role");
            let nearest = names::nearest_name(&role.name, known.iter().map(String::as_str));
            error.help = Some(match nearest {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the roles are {}", known.join(", ")),
            });
            return Err(error.into());
        }
        Ok(RuleTest::HasRole(roles.iter().map(|role| role.name.clone()).collect()))
    }

    fn resolve_can(&mut self, action: &PathName, record: &[PathName]) -> Resolved<RuleTest> {
        let known = AccessAction::ALL.into_iter().filter(|action| *action != AccessAction::UpdateTo);
        let Some(found) = known.clone().find(|known| known.name() == action.name) else {
            let message = format!("there is no action `{}`", action.name);
            return Err(RuleError::new(action.span.clone(), "RULE_NAME", message)
                .label("unknown action")
                .help("the actions are read, create, update and delete")
                .into());
        };
        let span = path_span(record);
        let (path, target) = self.resolve_record(record)?;
        let rules = self.names.sources.rules_for(target, found);
        self.expand(path, target, RulePlace::Action(target, found), &rules, span)
    }

    /// Inserts rules about another record, of which one must hold.
    pub(super) fn expand(
        &mut self,
        path: RecordPath,
        target: RecordTypeId,
        expanded: RulePlace,
        rules: &[Rc<RuleSource>],
        span: Range<usize>,
    ) -> Resolved<RuleTest> {
        if self.expanding.first() == Some(&expanded) {
            return Err(RuleError::new(span, "RULE_CIRCLE", "this rule uses itself")
                .label("in a circle")
                .into());
        }
        // A circle of other rules is reported where they are written.
        if self.expanding.contains(&expanded) || self.expanding.len() > MAX_COMPARISONS {
            return Err(RuleResolutionError::Elsewhere);
        }
        self.expanding.push(expanded);
        let owner = path.references.split_last();
        let variable = match owner {
            Some(_) => self.variables.len(),
            None => path.variable,
        };
        if owner.is_some() {
            self.variables.push(RuleVariable { name: None, record: target });
        }
        let outside = (self.first_visible, self.allows_old);
        (self.first_visible, self.allows_old) = (variable, false);
        let hidden_names = self.hide_names(variable);
        let first_part = self.parts.len();
        let tests: Resolved<Vec<RuleTest>> = rules.iter().map(|rule| self.resolve_source(rule)).collect();
        self.restore_names(hidden_names);
        (self.first_visible, self.allows_old) = outside;
        if owner.is_some() {
            self.variables.pop();
        }
        self.expanding.pop();
        let tests = tests.map_err(|failure| match failure {
            RuleResolutionError::Mistake(error) if ["RULE_CIRCLE", "RULE_LENGTH"].contains(&error.code) => {
                RuleResolutionError::Mistake(RuleError { span: span.clone(), ..error })
            }
            RuleResolutionError::Mistake(_) | RuleResolutionError::Elsewhere => {
                RuleResolutionError::Elsewhere
            }
        })?;
        let test = RuleTest::Any(tests);
        Ok(match owner {
            Some((relation, references)) => {
                let owner = RecordPath { variable: path.variable, references: references.to_vec() };
                for part in &mut self.parts[first_part..] {
                    part.lead_to(&owner, *relation);
                }
                RuleTest::Related { owner, relation: *relation, test: Box::new(test) }
            }
            None => test,
        })
    }

    /// A rule that is inserted cannot see the names that the rule around it gave to records.
    fn hide_names(&mut self, from: usize) -> Vec<Option<String>> {
        self.variables[from..].iter_mut().map(|variable| variable.name.take()).collect()
    }

    fn restore_names(&mut self, hidden: Vec<Option<String>>) {
        let from = self.variables.len() - hidden.len();
        self.variables[from..].iter_mut().zip(hidden).for_each(|(variable, name)| variable.name = name);
    }

    fn resolve_exists(
        &mut self,
        list: &[PathName],
        variable: &PathName,
        test: &SyntaxNode,
    ) -> Resolved<RuleTest> {
        let PathMeaning::RecordList { owner, relation, target } = self.resolve_path(list)? else {
            let message = "`exists` is for lists of records";
            return Err(RuleError::new(path_span(list), "RULE_TYPE", message)
                .label("no list of records")
                .into());
        };
        if self.list_tests == MAX_LIST_TESTS {
            let message = format!("at most {MAX_LIST_TESTS} `exists` may be inside each other");
            return Err(RuleError::new(path_span(list), "RULE_LENGTH", message).into());
        }
        if WORDS.contains(&variable.name.as_str()) {
            let message = format!("`{}` is a word of the language", variable.name);
            return Err(RuleError::new(variable.span.clone(), "RULE_NAME", message)
                .help("choose another name")
                .into());
        }
        self.list_tests += 1;
        self.variables.push(RuleVariable { name: Some(variable.name.clone()), record: target });
        let first_part = self.parts.len();
        let test = self.resolve_test(test);
        // What one record of a list meets and another does not says nothing of the whole.
        self.parts.truncate(first_part);
        self.variables.pop();
        self.list_tests -= 1;
        Ok(RuleTest::Related { owner, relation, test: Box::new(test?) })
    }
}
