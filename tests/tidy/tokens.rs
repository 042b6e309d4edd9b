//! Splits Rust source into tokens, without comments, string contents and test modules.

/// The tokens of a file: words, `::`, and every other sign alone. A literal in quotes is the token `""`.
pub fn tokens(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let rest = &letters[at..];
        if let Some(length) = comment(rest) {
            at += length;
        } else if let Some(length) = quoted(rest) {
            found.push("\"\"".to_owned());
            at += length;
        } else if is_word(rest[0]) {
            let raw = rest.starts_with(&['r', '#']) && rest.get(2).copied().is_some_and(is_word);
            let start = if raw { 2 } else { 0 };
            let length = rest[start..].iter().take_while(|letter| is_word(**letter)).count();
            let mark = if raw { "r#" } else { "" };
            found.push(mark.chars().chain(rest[start..start + length].iter().copied()).collect());
            at += start + length;
        } else if rest.starts_with(&[':', ':']) {
            found.push("::".to_owned());
            at += 2;
        } else {
            // A lifetime is one token with its quote.
            let name = rest[1..].iter().take_while(|letter| rest[0] == '\'' && is_word(**letter)).count();
            if !rest[0].is_whitespace() {
                found.push(rest[..=name].iter().collect());
            }
            at += 1 + name;
        }
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// How long the comment is that begins here. Comments between `/*` and `*/` nest.
fn comment(rest: &[char]) -> Option<usize> {
    if rest.starts_with(&['/', '/']) {
        return Some(rest.iter().take_while(|letter| **letter != '\n').count());
    }
    if !rest.starts_with(&['/', '*']) {
        return None;
    }
    let (mut at, mut depth) = (2, 1);
    while at < rest.len() && depth > 0 {
        match (rest[at], rest.get(at + 1)) {
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            ('*', Some('/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    Some(at)
}

/// How long the string or character is that begins here, with its prefix.
fn quoted(rest: &[char]) -> Option<usize> {
    let prefix = rest.iter().take_while(|letter| matches!(letter, 'b' | 'c' | 'r')).count();
    let raw = rest[..prefix].contains(&'r');
    let hashes = rest[prefix..].iter().take_while(|letter| raw && **letter == '#').count();
    let open = prefix + hashes;
    match rest.get(open)? {
        '"' if raw => {
            let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let inside = &rest[open + 1..];
            let length = (0..inside.len()).find(|at| inside[*at..].starts_with(&end))?;
            Some(open + 1 + length + end.len())
        }
        '"' => Some(open + escaped(&rest[open..], '"')?),
        // `'a'` and `'\n'` are characters, `'a` is a lifetime.
        '\'' if rest.get(open + 1) == Some(&'\\') || rest.get(open + 2) == Some(&'\'') => {
            Some(open + escaped(&rest[open..], '\'')?)
        }
        _ => None,
    }
}

/// Up to the sign that closes what it opened; a sign after a backslash does not.
fn escaped(rest: &[char], close: char) -> Option<usize> {
    let mut at = 1;
    while *rest.get(at)? != close {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    Some(at + 1)
}

/// Takes out every item behind `#[cfg(test)]`; returns the names of the modules of tests that have files of their own.
pub fn without_tests(tokens: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut files) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        if is_for_tests(&tokens[at..]) {
            let item = &tokens[at..at + item_length(&tokens[at..])];
            if let [.., module, name, end] = item
                && module == "mod"
                && end == ";"
            {
                files.push(name.clone());
            }
            at += item.len();
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    (kept, files)
}

fn is_for_tests(tokens: &[String]) -> bool {
    tokens.len() > 7 && tokens[..7].iter().eq(["#", "[", "cfg", "(", "test", ")", "]"].iter())
}

/// An item ends with its block, or with a `;` outside of any bracket.
fn item_length(tokens: &[String]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (token == "}" || token == ";") {
            return at + 1;
        }
    }
    tokens.len()
}

#[test]
fn tokens_skip_comments_strings_and_tests() {
    let text = r##"
        use crate::a; // use crate::b;
        /* use /* nested */ crate::c */
        const X: &str = "crate::d \" crate::e"; const Y: &str = r#"crate::"f"#; const Z: char = '"';
        fn g<'a>(x: &'a str, r#type: u8) -> char { '\'' }
        #[cfg(test)]
        mod h;
        #[cfg(test)]
        #[allow(unused)]
        mod tests { fn i() { crate::j() } }
        struct K;
    "##;
    let (kept, files) = without_tests(&tokens(text));
    let expected = "use crate :: a ; const X : & str = \"\" ; const Y : & str = \"\" ; const Z : char = \"\" ; \
        fn g < 'a > ( x : & 'a str , r#type : u8 ) - > char { \"\" } struct K ;";
    assert_eq!(kept.join(" "), expected);
    assert_eq!(files, ["h"]);
}
