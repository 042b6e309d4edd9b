//! What the controls of a form say, as the tree that their dotted names spell: `address.street`, `lines.0.price`.

use indexmap::IndexMap;

/// Names go no deeper: what is deeper was never a control of ours, and a tree is taken apart by recursion.
const DEEPEST: usize = 16;

/// What stands at a name, and below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// As often as the name was given.
    pub texts: Vec<String>,
    pub below: IndexMap<String, Node>,
}

impl Node {
    pub fn text(text: impl Into<String>) -> Node {
        Node { texts: vec![text.into()], below: IndexMap::new() }
    }

    /// Adds what was typed at the segments of a name; what is too deep is ignored.
    pub fn add<'s>(&mut self, segments: impl Iterator<Item = &'s str>, text: &str) {
        let segments: Vec<&str> = segments.take(DEEPEST + 1).collect();
        if segments.len() > DEEPEST {
            return;
        }
        let mut node = self;
        for segment in segments {
            node = node.below.entry(segment.to_owned()).or_default();
        }
        node.texts.push(text.to_owned());
    }

    /// The one that counts where only one can: a box that is ticked comes after the hidden one.
    pub fn last(&self) -> &str {
        self.texts.last().map_or("", String::as_str)
    }

    pub fn get(&self, name: &str) -> Option<&Node> {
        self.below.get(name)
    }

    /// Nothing was typed or chosen, here or below.
    pub fn is_blank(&self) -> bool {
        self.texts.iter().all(|text| text.trim().is_empty()) && self.below.values().all(Node::is_blank)
    }

    /// What is below by number, in the order of the numbers.
    pub fn items(&self) -> Vec<&Node> {
        let mut items: Vec<(u64, &Node)> =
            self.below.iter().filter_map(|(name, node)| Some((number(name)?, node))).collect();
        items.sort_by_key(|(number, _)| *number);
        items.into_iter().map(|(_, node)| node).collect()
    }

    /// The same with these below, numbered from 0.
    pub fn numbered(items: Vec<Node>) -> Node {
        let below = items.into_iter().enumerate().map(|(i, node)| (i.to_string(), node)).collect();
        Node { texts: Vec::new(), below }
    }
}

fn number(name: &str) -> Option<u64> {
    if name.bytes().all(|byte| byte.is_ascii_digit()) { name.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(pairs: &[(&str, &str)]) -> Node {
        let mut root = Node::default();
        for (name, text) in pairs {
            root.add(name.split('.'), text);
        }
        root
    }

    #[test]
    fn dots_lead_down() {
        let root = tree(&[("a.b", "1"), ("a.b", "2"), ("a.c.0.d", "x"), ("e", "")]);
        let a = root.get("a").expect("a");
        assert_eq!(a.get("b").map(Node::last), Some("2"));
        assert_eq!(a.get("c").expect("c").items()[0].get("d").map(Node::last), Some("x"));
        assert!(root.get("e").expect("e").is_blank() && !root.is_blank());
        assert!(tree(&[("a.b", ""), ("text", " ")]).is_blank() && !tree(&[("a.b", "false")]).is_blank());
    }

    #[test]
    fn numbers_are_numbers_and_depth_has_an_end() {
        let root = tree(&[("10", "b"), ("9", "a"), ("x", "?"), ("+1", "?"), ("99999999999999999999", "?")]);
        let texts: Vec<&str> = root.items().into_iter().map(Node::last).collect();
        assert_eq!(texts, ["a", "b"]);
        assert_eq!(tree(&[(&vec!["a"; 100_000].join("."), "x")]), Node::default());
    }
}
