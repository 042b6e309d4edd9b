//! Makes the parser's complaints readable: one a stumble instead of a cascade, in words a schema author knows.

use apollo_compiler::diagnostic::ToCliReport;
use apollo_compiler::validation::DiagnosticList;

use crate::SourceFile;
use crate::naming::names;
use crate::sdl::diagnostic_log::DiagnosticLog;

/// What a definition can begin with.
const DEFINITION_KEYWORDS: &[&str] =
    &["type", "extend", "input", "enum", "interface", "union", "scalar", "directive", "schema"];

/// The stumbles of one file.
pub(crate) fn report_syntax_errors(log: &mut DiagnosticLog, text: &str, errors: &DiagnosticList) {
    let mut last = None;
    let mut all: Vec<_> =
        errors.iter().filter_map(|found| Some((found.error.location()?, found.error.to_string()))).collect();
    all.sort_by_key(|(span, _)| span.offset());
    for (span, message) in all {
        let at = span.offset().min(text.len());
        // After a stumble the parser is lost until the next definition begins.
        if last.is_some_and(|last| !has_definition_between(text, last, at)) {
            continue;
        }
        last = Some(at);
        let word = text.get(at..span.end_offset()).unwrap_or_default();
        let (message, help) = readable_message(&message, word, text, at);
        let found = log.error(Some(span), "SYNTAX", message);
        found.label(if text[at..].trim().is_empty() { "the file ends here" } else { "not understood" });
        found.help = help;
    }
}

/// Whether a text looks as if it defined a name, be it in a part that cannot be read.
pub(crate) fn seems_to_define(files: &[SourceFile], name: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '@');
    files.iter().any(|file| {
        let mut words = file.text.split(|letter| !is_name(letter)).filter(|word| !word.is_empty()).peekable();
        std::iter::from_fn(|| Some((words.next()?, words.peek().copied())))
            .any(|(word, next)| DEFINITION_KEYWORDS.contains(&word) && next == Some(name))
    })
}

/// Whether a line between the two begins with a definition.
fn has_definition_between(text: &str, from: usize, to: usize) -> bool {
    text[from..to].match_indices('\n').any(|(at, _)| starts_definition(&text[from + at + 1..]))
}

fn starts_definition(line: &str) -> bool {
    let word = line.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    DEFINITION_KEYWORDS.contains(&word)
}

fn readable_message(message: &str, word: &str, text: &str, at: usize) -> (String, Option<String>) {
    let message = message.strip_prefix("syntax error: ").unwrap_or(message);
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    if open_braces(&text[..line]) > 0 && starts_definition(&text[line..]) {
        return (
            "a definition begins before the last one has ended".into(),
            Some("is a `}` missing above?".into()),
        );
    }
    match message {
        "expected definition"
        | "expected a definition"
        | "expected a StringValue, Name or OperationDefinition" => (
            format!("expected a definition, found `{word}`"),
            Some(match names::nearest_name(word, DEFINITION_KEYWORDS.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("definitions begin with one of {}", DEFINITION_KEYWORDS.join(", ")),
            }),
        ),
        "expected a type" => (
            format!("expected `:` and a type, found `{word}`"),
            Some("fields are written `name: Type`".into()),
        ),
        "expected a Type" | "expected item type" => (
            format!("expected a type, found `{word}`"),
            Some("name one, such as `String` or `[User!]!`".into()),
        ),
        "unexpected variable value in a Const context" => {
            ("a schema has no variables".into(), Some("write the value itself".into()))
        }
        "parser recursion limit reached" => ("this is nested too deep".into(), None),
        "expected Enum Value Definition" => {
            ("an enum needs a value".into(), Some("add one, or remove the enum".into()))
        }
        _ if message.starts_with("Unexpected character") => match word {
            "'" => ("a text begins with `'`".into(), Some("write texts in double quotes: `\"…\"`".into())),
            "/" => ("a `/` means nothing here".into(), Some("comments begin with `#`".into())),
            _ => (format!("`{word}` means nothing here"), None),
        },
        "expected R_CURLY, got =" => (
            "expected `}`, found `=`".into(),
            Some("a field's default is written `@default(value: …)`".into()),
        ),
        "unterminated string value" => ("a text that never ends".into(), Some("is a `\"` missing?".into())),
        _ => (replace_token_names(message), None),
    }
}

/// How many braces are open; strings and comments are close enough to text here.
fn open_braces(text: &str) -> i64 {
    text.bytes().fold(0, |open, byte| match byte {
        b'{' => open + 1,
        b'}' => open - 1,
        _ => open,
    })
}

/// `R_CURLY` and the like as they are typed.
fn replace_token_names(message: &str) -> String {
    let mut message = message.to_owned();
    for (name, symbol) in [
        ("R_CURLY", "`}`"),
        ("L_CURLY", "`{`"),
        ("R_BRACK", "`]`"),
        ("L_BRACK", "`[`"),
        ("R_PAREN", "`)`"),
        ("L_PAREN", "`(`"),
        ("got EOF", "found the end of the file"),
        ("exptected", "expected"),
        ("StringValue", "description"),
    ] {
        message = message.replace(name, symbol);
    }
    match message.split_once(", got ") {
        Some((wanted, found)) => format!("{wanted}, found `{found}`"),
        None => message,
    }
}
