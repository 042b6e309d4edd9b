//! What `trefoil can` found out, as text.

use std::fmt::Write as _;

use trefoil_engine::{AccessQuestion, PartExplanation, RuleExplanation};
use trefoil_model::SourceFile;
use trefoil_model::access::{AccessAction, AccessVerdict, PartJoin};
use trefoil_model::diagnostic::{Diagnostic, Severity};

use crate::commands::can::asked_access::{AskedAccess, question_words};
use crate::commands::can::explained_access::{ExplainedAccess, part_text, rest_of_rule};
use crate::commands::rules_table::verdict_word;

/// The verdict, then each rule with a caret, and what its parts come to.
pub fn explained_text(explained: &ExplainedAccess, sources: &[SourceFile]) -> String {
    let mut text = verdict_text(explained, sources);
    let Some(found) = &explained.found else { return text };
    for rule in &found.rules {
        text += "\n";
        text += &rule_text(explained, rule, sources);
    }
    text
}

fn verdict_text(explained: &ExplainedAccess, sources: &[SourceFile]) -> String {
    let (title, words) = (&explained.actor.title, explained.asked.words(&explained.model));
    let mut text = match explained.verdict() {
        AccessVerdict::Yes => format!("yes: {title} may {words}\n"),
        AccessVerdict::Some => format!("some: {title} may {words} where this holds\n"),
        AccessVerdict::No => {
            let answer = match explained.refusal_code() {
                Some("UNAUTHENTICATED") => "401 UNAUTHENTICATED",
                Some("NOT_FOUND") => "404 NOT_FOUND, as if there were no such record",
                Some(_) => "403 FORBIDDEN",
                None => "it is null",
            };
            format!("no: {title} may not {words} ({answer})\n")
        }
    };
    if let Err(reason) = &explained.actor.identity {
        let _ = writeln!(text, "  {reason}");
    }
    let Some(found) = &explained.found else { return text };
    for refusal in &found.refusals {
        let _ = writeln!(text, "  {refusal}");
    }
    if found.verdict == AccessVerdict::Some {
        for rule in &found.rules {
            let Some(rest) = rest_of_rule(rule, sources) else { continue };
            let _ = writeln!(text, "  {}: {rest}", rule_words(explained, rule));
        }
    }
    if let AskedAccess::Record(AccessQuestion { action: AccessAction::Update, .. }) = &explained.asked
        && found.verdict != AccessVerdict::No
        && let Some(update) = found.rules.iter().find(|rule| is_action(rule, AccessAction::Update))
        && update.of_actor == AccessVerdict::Some
        && !found.rules.iter().any(|rule| is_action(rule, AccessAction::UpdateTo))
    {
        text += "  the rule for `update` must hold for the changed record, too\n";
    }
    text
}

fn is_action(rule: &RuleExplanation, action: AccessAction) -> bool {
    rule.asked.as_ref().is_some_and(|asked| asked.action == action && asked.field.is_none())
}

fn rule_words(explained: &ExplainedAccess, rule: &RuleExplanation) -> String {
    match &rule.asked {
        Some(asked) => question_words(asked, &explained.model),
        None => explained.asked.words(&explained.model),
    }
}

fn rule_text(explained: &ExplainedAccess, rule: &RuleExplanation, sources: &[SourceFile]) -> String {
    let title = format!("{}: {}", rule_words(explained, rule), verdict_word(rule.verdict));
    if rule.parts.is_empty() {
        let location = &rule.location;
        let place = format!("{}:{}:{}", location.file, location.line, location.column);
        return format!("{title}\n --> {place}\n  no rule allows it\n");
    }
    let mut text = String::new();
    for (position, part) in rule.parts.iter().enumerate() {
        let title = if position == 0 { title.as_str() } else { "or by the rule of the schema" };
        let mut snippet = Diagnostic::new(Severity::Warning, "", title);
        if let Some(source) = sources.iter().find(|source| source.name == part.part.location.file) {
            snippet = snippet.with_span(&source.name, &source.text, part.part.bytes.clone());
        }
        snippet.label(verdict_word(part.verdict));
        let _ = writeln!(text, "{}", snippet.render_note(sources).trim_end());
        write_parts(&mut text, part, 0, sources);
    }
    text
}

/// The parts of a part, each on a line of its own.
fn write_parts(text: &mut String, explained: &PartExplanation, depth: usize, sources: &[SourceFile]) {
    // What a rule by name stands for is written elsewhere.
    let is_elsewhere = explained.part.join == PartJoin::Whole;
    if is_plain_negation(explained) {
        return;
    }
    for part in &explained.parts {
        let place = match is_elsewhere {
            true => format!("   ({}:{})", part.part.location.file, part.part.location.line),
            false => String::new(),
        };
        let (verdict, indent) = (verdict_word(part.verdict), "  ".repeat(depth));
        let _ = writeln!(text, "  {verdict:<5} {indent}{}{place}", part_text(part, sources));
        write_parts(text, part, depth + 1, sources);
    }
}

/// `!published`: what `published` comes to needs no line.
fn is_plain_negation(explained: &PartExplanation) -> bool {
    explained.part.join == PartJoin::Not && explained.parts.iter().all(|part| part.parts.is_empty())
}
