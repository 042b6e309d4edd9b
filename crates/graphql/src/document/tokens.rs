//! A lexer for documents, used to count tokens and to find a syntax error that the parser ignores.

/// A token with its byte offset.
#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    pub offset: usize,
    pub text: &'a str,
}

/// All tokens except white space, commas and comments.
pub fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut position = 0;
    std::iter::from_fn(move || {
        let mut rest = &text.as_bytes()[position..];
        let length = next_token_length(&mut rest)?;
        let start = text.len() - rest.len();
        // A non-ASCII character is not a valid token, but must not be cut in the middle.
        let end = (start + length..=text.len()).find(|end| text.is_char_boundary(*end))?;
        position = end;
        Some(Token { offset: start, text: &text[start..end] })
    })
}

/// The first argument or object field without a value. The parser drops those silently.
pub fn find_bare_name(text: &str) -> Option<Token<'_>> {
    let mut tokens = tokens(text).peekable();
    // The closing tokens of open brackets; values occur within parentheses only.
    let mut open: Vec<&str> = Vec::new();
    let mut expects_value = false;
    while let Some(token) = tokens.next() {
        let expects_name = matches!(open.last(), Some(&("}" | ")"))) && open.contains(&")");
        match token.text {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" => drop(open.pop()),
            // A default of a variable, and the name of a directive on it, occupy the position of a value.
            ":" | "=" | "@" if expects_name => {
                expects_value = true;
                continue;
            }
            "$" | "!" => continue,
            _ if expects_name && !expects_value && tokens.peek().is_some_and(|next| next.text != ":") => {
                return Some(token);
            }
            _ => {}
        }
        expects_value = false;
    }
    None
}

/// The length of the next token, after skipping ignored ones.
fn next_token_length(rest: &mut &[u8]) -> Option<usize> {
    loop {
        match rest {
            [] => return None,
            [b' ' | b'\t' | b'\r' | b'\n' | b',', ..] => *rest = &rest[1..],
            [b'#', ..] => {
                let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
                *rest = &rest[end..];
            }
            // A byte order mark is ignored anywhere.
            [0xEF, 0xBB, 0xBF, ..] => *rest = &rest[3..],
            [_, ..] => break,
        }
    }
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    Some(match rest {
        [b'"', b'"', b'"', ..] => block_string_length(rest),
        [b'"', ..] => string_length(rest),
        [b'.', b'.', b'.', ..] => 3,
        [b'-' | b'0'..=b'9', ..] => number_length(rest),
        [first, ..] if word(first) => rest.iter().take_while(|b| word(b)).count(),
        _ => 1,
    })
}

/// `-12.5e+3`. Also accepts malformed numbers, which the parser rejects.
fn number_length(text: &[u8]) -> usize {
    let mut exponent = false;
    let rest = text[1..].iter().take_while(|b| {
        let sign = exponent && matches!(b, b'+' | b'-');
        exponent = matches!(b, b'e' | b'E');
        sign || b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_')
    });
    1 + rest.count()
}

fn string_length(text: &[u8]) -> usize {
    let mut escaped = false;
    for (i, b) in text.iter().enumerate().skip(1) {
        match b {
            b'\n' | b'\r' => return i,
            b'"' if !escaped => return i + 1,
            _ => escaped = *b == b'\\' && !escaped,
        }
    }
    text.len()
}

fn block_string_length(text: &[u8]) -> usize {
    let mut i = 3;
    while i < text.len() {
        match &text[i..] {
            [b'\\', b'"', b'"', b'"', ..] => i += 4,
            [b'"', b'"', b'"', ..] => return i + 3,
            _ => i += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_follow_the_specification() {
        let table = [
            ("", 0),
            ("{ a }", 3),
            ("{a,b , c}", 5),
            ("# { a }\n{ a } # b", 3),
            ("{a(x:\"}\\\"{{{\")}", 8),
            ("{a(x:\"\"\"}\\\"\"\"{{{\"\"\")}", 8),
            ("{...F}", 4),
            ("query($a:[Int!]!=-1.5e+3){a}", 16),
            ("\"never ends", 1),
            ("{\u{feff}a}", 3),
        ];
        for (text, expected) in table {
            assert_eq!(tokens(text).count(), expected, "{text}");
        }
    }

    #[test]
    fn bare_names_are_found() {
        let broken = [
            "{a(x:{b})}",
            "{a(x:{b c:1})}",
            "{a(x:[{c:{b}}])}",
            "query($a:I={b}){a}",
            "{a@d(x:{c:1 b})}",
            "{a(b)}",
            "{a(c:1 b d:2)}",
            "{a(c:[1] b)}",
        ];
        for text in broken {
            assert_eq!(find_bare_name(text).map(|token| token.text), Some("b"), "{text}");
        }
        let whole = [
            "{a(x:{b:1})}",
            "{a(x:{b:{c:$d},e:[{}]}){f}}",
            "{a{b}}",
            "query($a:I={b:1}){a{c}}",
            "{a(x:{",
            "{a(x:1){b}}",
            "query($a:[I!]!=[1] @d(e:$f) $g:I=2 @h){a(b:$a,c:-1.5)}",
        ];
        for text in whole {
            assert_eq!(find_bare_name(text).map(|token| token.text), None, "{text}");
        }
    }
}
