//! A mistake in the text of a rule.

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// Bytes of the rule's text.
    pub span: Range<usize>,
    pub code: &'static str,
    pub message: String,
    /// Text beside the underline.
    pub label: String,
    pub help: Option<String>,
}

impl RuleError {
    pub fn new(span: Range<usize>, code: &'static str, message: impl Into<String>) -> RuleError {
        RuleError { span, code, message: message.into(), label: String::new(), help: None }
    }

    pub fn syntax(span: Range<usize>, message: impl Into<String>) -> RuleError {
        RuleError::new(span, "RULE_SYNTAX", message)
    }

    pub fn label(mut self, label: impl Into<String>) -> RuleError {
        self.label = label.into();
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> RuleError {
        self.help = Some(help.into());
        self
    }
}
