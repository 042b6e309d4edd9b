//! The tables of what nobody and a stranger are answered: one line a way to ask, read from a text.

/// What is expected of each way to ask.
#[derive(Default)]
pub struct CoverageTable {
    /// `at PATTERN SEEN UNSEEN`: a path where a stranger sees a record, and one where not.
    paths: Vec<(String, [String; 2])>,
    /// `json PATTERN BODY` and `form PATTERN BODY`.
    bodies: Vec<(String, String, String)>,
    pub routes: Vec<RouteRow>,
    pub fields: Vec<FieldRow>,
}

/// `METHOD PATTERN KIND NOBODY STRANGER`, where `200/404` is about a record in sight and one out of it. `public` at the
/// end: no credential is looked at.
pub struct RouteRow {
    pub method: String,
    pub pattern: String,
    pub kind: String,
    pub expected: [String; 2],
    pub is_public: bool,
}

/// `query posts { id } => NOBODY STRANGER`: the code of the first error, or `ok`.
pub struct FieldRow {
    pub operation: String,
    pub selection: String,
    pub expected: [String; 2],
}

impl CoverageTable {
    pub fn parse(text: &str) -> CoverageTable {
        let mut table = CoverageTable::default();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let (first, rest) = line.split_once(' ').expect(line);
            match first {
                "at" => {
                    let [pattern, seen, unseen] = words(rest);
                    table.paths.push((pattern, [seen, unseen]));
                }
                "json" | "form" => {
                    let (pattern, body) = rest.split_once(' ').expect(line);
                    table.bodies.push((first.to_owned(), pattern.to_owned(), body.to_owned()));
                }
                "query" | "mutation" | "subscription" => {
                    let (selection, codes) = rest.split_once(" => ").expect(line);
                    table.fields.push(FieldRow {
                        operation: first.to_owned(),
                        selection: selection.to_owned(),
                        expected: words(codes),
                    });
                }
                _ => {
                    let is_public = line.ends_with(" public");
                    let [method, pattern, kind, nobody, stranger] =
                        words(line.strip_suffix(" public").unwrap_or(line));
                    let expected = [nobody, stranger];
                    table.routes.push(RouteRow { method, pattern, kind, expected, is_public });
                }
            }
        }
        table
    }

    /// The two paths of a pattern; only one of them counts where it leads to no record.
    pub fn paths_of(&self, pattern: &str) -> [String; 2] {
        let known = self.paths.iter().filter(|(start, _)| pattern.starts_with(start.as_str()));
        match known.max_by_key(|(start, _)| start.len()) {
            Some((start, paths)) => {
                paths.each_ref().map(|path| path.to_owned() + &pattern[start.len()..]).map(filled)
            }
            None => [filled(pattern.to_owned()), String::new()],
        }
    }

    pub fn body_of(&self, kind: &str, pattern: &str) -> &str {
        let is_it = |(own, of, _): &&(String, String, String)| own == kind && of == pattern;
        self.bodies.iter().find(is_it).map_or(if kind == "json" { "{}" } else { "" }, |(_, _, body)| body)
    }
}

/// What is left open is the first.
fn filled(path: String) -> String {
    path.replace("{id}", "1").replace("{index}", "1").replace("{n}", "1")
}

fn words<const COUNT: usize>(text: &str) -> [String; COUNT] {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    words.try_into().unwrap_or_else(|words| panic!("{COUNT} words, not {words:?}"))
}
