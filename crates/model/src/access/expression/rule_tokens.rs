//! The tokens of a rule's text.

use std::ops::Range;

use crate::access::expression::rule_error::RuleError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleTokenKind {
    Name(String),
    /// Digits, with a minus sign, a fraction and an exponent where they are written.
    Number(String),
    /// Text in single or double quotes.
    Text(String),
    Symbol(RuleSymbol),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSymbol {
    Or,
    And,
    Not,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Dot,
    Comma,
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
}

/// Longer ones first, because the first that fits is taken.
const SYMBOLS: [(&str, RuleSymbol); 15] = [
    ("||", RuleSymbol::Or),
    ("&&", RuleSymbol::And),
    ("==", RuleSymbol::Equal),
    ("!=", RuleSymbol::NotEqual),
    ("<=", RuleSymbol::LessOrEqual),
    (">=", RuleSymbol::GreaterOrEqual),
    ("<", RuleSymbol::Less),
    (">", RuleSymbol::Greater),
    ("!", RuleSymbol::Not),
    (".", RuleSymbol::Dot),
    (",", RuleSymbol::Comma),
    ("(", RuleSymbol::OpenParenthesis),
    (")", RuleSymbol::CloseParenthesis),
    ("[", RuleSymbol::OpenBracket),
    ("]", RuleSymbol::CloseBracket),
];

/// Operators that people write from habit, with those of the language.
const HABITS: [(&str, &str); 4] = [("|", "||"), ("&", "&&"), ("=", "=="), ("<>", "!=")];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleToken {
    pub kind: RuleTokenKind,
    /// Bytes of the rule's text.
    pub span: Range<usize>,
}

/// The tokens of a text; the last one is [`RuleTokenKind::End`].
pub fn read_tokens(text: &str) -> Result<Vec<RuleToken>, RuleError> {
    let mut tokens = Vec::new();
    let mut start = 0;
    loop {
        start += text[start..].len() - text[start..].trim_start().len();
        let rest = &text[start..];
        let Some(first) = rest.chars().next() else { break };
        let (kind, length) = if first.is_ascii_alphabetic() || first == '_' {
            let length = name_length(rest);
            (RuleTokenKind::Name(rest[..length].to_owned()), length)
        } else if first.is_ascii_digit()
            || (first == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            let length = number_length(rest);
            (RuleTokenKind::Number(rest[..length].to_owned()), length)
        } else if first == '\'' || first == '"' {
            let (content, length) =
                read_text(rest, first).ok_or_else(|| unfinished_text(text, start, first))?;
            (RuleTokenKind::Text(content), length)
        } else {
            read_symbol(rest, start)?
        };
        tokens.push(RuleToken { kind, span: start..start + length });
        start += length;
    }
    tokens.push(RuleToken { kind: RuleTokenKind::End, span: text.len()..text.len() });
    Ok(tokens)
}

fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

fn number_length(text: &str) -> usize {
    let digits = |from: usize| {
        let rest = &text[from..];
        from + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())
    };
    let mut end = digits(usize::from(text.starts_with('-')));
    if text[end..].starts_with('.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    let exponent = text[end..].strip_prefix(['e', 'E']);
    if let Some(exponent) = exponent {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        if digits(end + 1 + sign) > end + 1 + sign {
            end = digits(end + 1 + sign);
        }
    }
    end
}

/// The text in quotes and its length with them. A backslash stands before a quote or another backslash.
fn read_text(text: &str, quote: char) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((position, letter)) = letters.next() {
        match letter {
            '\\' => content.push(letters.next()?.1),
            _ if letter == quote => return Some((content, position + 1)),
            _ => content.push(letter),
        }
    }
    None
}

fn unfinished_text(text: &str, start: usize, quote: char) -> RuleError {
    RuleError::syntax(start..text.len(), format!("this text has no closing {quote}"))
        .label("begins here")
        .help(format!("end the text with {quote}"))
}

fn read_symbol(rest: &str, start: usize) -> Result<(RuleTokenKind, usize), RuleError> {
    let habit = HABITS.iter().find(|(written, _)| rest.starts_with(written));
    let symbol = SYMBOLS.iter().find(|(written, _)| rest.starts_with(written));
    match (symbol, habit) {
        (Some((written, symbol)), None) => Ok((RuleTokenKind::Symbol(*symbol), written.len())),
        (Some((written, symbol)), Some((habit, _))) if written.len() > habit.len() || *habit == "=" => {
            Ok((RuleTokenKind::Symbol(*symbol), written.len()))
        }
        (_, Some((written, meant))) => {
            Err(RuleError::syntax(start..start + written.len(), format!("`{written}` is not an operator"))
                .label("unknown operator")
                .help(format!("write `{meant}`")))
        }
        (None, None) => {
            let letter = rest.chars().next().unwrap_or_default();
            Err(RuleError::syntax(
                start..start + letter.len_utf8(),
                format!("`{letter}` has no meaning in a rule"),
            )
            .label("unexpected character"))
        }
    }
}
