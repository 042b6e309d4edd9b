//! Makes syntax errors readable: one per mistake instead of a cascade, in the words of schema authors. Empty braces are none.

use apollo_compiler::diagnostic::ToCliReport;
use apollo_compiler::validation::DiagnosticList;

use crate::SourceFile;
use crate::naming::names;
use crate::sdl::diagnostic_log::DiagnosticLog;

/// Keywords that begin a definition.
const DEFINITION_KEYWORDS: &[&str] =
    &["type", "extend", "input", "enum", "interface", "union", "scalar", "directive", "schema"];

/// Reports the syntax errors of one file.
pub(crate) fn report_syntax_errors(log: &mut DiagnosticLog, text: &str, errors: &DiagnosticList) {
    let mut last_reported = None;
    let mut located: Vec<_> =
        errors.iter().filter_map(|error| Some((error.error.location()?, error.error.to_string()))).collect();
    located.sort_by_key(|(span, _)| span.offset());
    for (span, message) in located {
        let offset = span.offset().min(text.len());
        // After a mistake the parser is lost until the next definition begins.
        if last_reported.is_some_and(|last_reported| !has_definition_between(text, last_reported, offset)) {
            continue;
        }
        last_reported = Some(offset);
        let word = text.get(offset..span.end_offset()).unwrap_or_default();
        let (message, help) = readable_message(&message, word, text, offset);
        let report = log.error(Some(span), "SYNTAX", message);
        report.label(if text[offset..].trim().is_empty() { "the file ends here" } else { "unexpected here" });
        report.help = help;
    }
}

/// True if a file seems to define the name, even in a part that cannot be parsed.
pub(crate) fn seems_to_define(files: &[SourceFile], name: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '@');
    files.iter().any(|file| {
        let mut words = file.text.split(|letter| !is_name(letter)).filter(|word| !word.is_empty()).peekable();
        std::iter::from_fn(|| Some((words.next()?, words.peek().copied())))
            .any(|(word, next)| DEFINITION_KEYWORDS.contains(&word) && next == Some(name))
    })
}

/// True if a line between the two offsets begins a definition.
fn has_definition_between(text: &str, from: usize, to: usize) -> bool {
    text[from..to].match_indices('\n').any(|(newline, _)| starts_definition(&text[from + newline + 1..]))
}

fn starts_definition(line: &str) -> bool {
    let word = line.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    DEFINITION_KEYWORDS.contains(&word)
}

fn readable_message(message: &str, word: &str, text: &str, offset: usize) -> (String, Option<String>) {
    let message = message.strip_prefix("syntax error: ").unwrap_or(message);
    let line_start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    if open_braces(&text[..line_start]) > 0 && starts_definition(&text[line_start..]) {
        return (
            "a definition starts before the previous one is closed".into(),
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
                None => format!("a definition starts with one of {}", DEFINITION_KEYWORDS.join(", ")),
            }),
        ),
        "expected a type" => {
            (format!("expected `:` and a type, found `{word}`"), Some("write fields as `name: Type`".into()))
        }
        "expected a Type" | "expected item type" => (
            format!("expected a type, found `{word}`"),
            Some("add a type such as `String` or `[User!]!`".into()),
        ),
        "unexpected variable value in a Const context" => {
            ("variables are not allowed in a schema".into(), Some("write the value instead".into()))
        }
        "parser recursion limit reached" => ("nested too deeply".into(), None),
        "expected Enum Value Definition" => {
            ("an enum needs at least one value".into(), Some("add one or remove the enum".into()))
        }
        _ if message.starts_with("Unexpected character") => match word {
            "'" => ("strings cannot start with `'`".into(), Some("use double quotes: `\"…\"`".into())),
            "/" => ("unexpected `/`".into(), Some("comments start with `#`".into())),
            _ => (format!("unexpected character `{word}`"), None),
        },
        "expected R_CURLY, got =" => (
            "expected `}`, found `=`".into(),
            Some("write the default of a field as `@default(value: …)`".into()),
        ),
        "unterminated string value" => ("unterminated string".into(), Some("add the closing `\"`".into())),
        _ => (replace_token_names(message), None),
    }
}

/// The number of open braces. Braces in strings and comments are counted too, which is good enough here.
fn open_braces(text: &str) -> i64 {
    text.bytes().fold(0, |open, byte| match byte {
        b'{' => open + 1,
        b'}' => open - 1,
        _ => open,
    })
}

/// Replaces the parser's token names by the symbols that people type.
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
        Some((expected, found)) => format!("{expected}, found `{found}`"),
        None => message,
    }
}

/// The text with spaces for the empty braces of types, which GraphQL wants left out; `None` if it has none. Empty objects
/// as values stay.
pub(crate) fn without_empty_bodies(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut is_changed = false;
    let mut at = 0;
    let mut previous = b' ';
    while at < bytes.len() {
        let skipped = ignored_length(&text.as_bytes()[at..]);
        if skipped > 0 {
            at += skipped;
            continue;
        }
        if bytes[at] == b'{'
            && (previous.is_ascii_alphanumeric() || matches!(previous, b'_' | b')'))
            && let Some(end) = closing_brace(text.as_bytes(), at + 1)
        {
            (bytes[at], bytes[end]) = (b' ', b' ');
            is_changed = true;
        }
        previous = bytes[at];
        at += 1;
    }
    is_changed.then(|| String::from_utf8(bytes).ok()).flatten()
}

/// The brace that ends a body without anything in it.
fn closing_brace(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match text.get(at)? {
            b'}' => return Some(at),
            b'"' => return None,
            _ => {}
        }
        match ignored_length(&text[at..]) {
            0 => return None,
            skipped => at += skipped,
        }
    }
}

/// The length of the white space, comment or text that the rest begins with.
fn ignored_length(rest: &[u8]) -> usize {
    match rest {
        [b'#', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        [b'"', b'"', b'"', inner @ ..] => {
            let end = inner.windows(3).position(|window| window == b"\"\"\"");
            end.map_or(rest.len(), |end| end + 6)
        }
        [b'"', inner @ ..] => text_length(inner) + 1,
        [b' ' | b'\t' | b'\r' | b'\n' | b',', ..] => 1,
        _ => 0,
    }
}

/// The length of a text on one line, after its first quote and with its last one.
fn text_length(inner: &[u8]) -> usize {
    let mut is_escaped = false;
    for (position, byte) in inner.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' | b'\n' => return position + 1,
            _ => {}
        }
    }
    inner.len()
}

#[cfg(test)]
mod tests {
    use super::without_empty_bodies;

    #[test]
    fn empty_braces_of_types_are_left_out() {
        for (text, expected) in [
            ("type Query {\n}\ntype A { a: Int }", Some("type Query  \n \ntype A { a: Int }")),
            ("type Query @a(b: 1) { # none } \n }", Some("type Query @a(b: 1)   # none } \n  ")),
            ("input A { a: B = {} }", None),
            ("\"type A {}\" type A { a: Int @b(c: [{}, {}]) }", None),
            ("\"\"\" { } \"\"\" type A { \"a\" a: Int }", None),
        ] {
            assert_eq!(without_empty_bodies(text).as_deref(), expected, "{text}");
        }
    }
}
