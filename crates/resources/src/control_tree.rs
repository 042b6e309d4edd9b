//! What the controls of a form say, as the tree that their dotted names spell: `address.street`, `lines.0.price`.

use indexmap::IndexMap;

/// Names go no deeper: what is deeper was never a control of ours, and a tree is taken apart by recursion.
const MAX_DEPTH: usize = 16;

/// What stands at a name, and below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlNode {
    /// As often as the name was given.
    pub texts: Vec<String>,
    pub children: IndexMap<String, ControlNode>,
}

impl ControlNode {
    pub fn from_text(text: impl Into<String>) -> ControlNode {
        ControlNode { texts: vec![text.into()], children: IndexMap::new() }
    }

    /// Adds what was typed at the segments of a name; what is too deep is ignored.
    pub fn add_text<'s>(&mut self, segments: impl Iterator<Item = &'s str>, text: &str) {
        let segments: Vec<&str> = segments.take(MAX_DEPTH + 1).collect();
        if segments.len() > MAX_DEPTH {
            return;
        }
        let mut node = self;
        for segment in segments {
            node = node.children.entry(segment.to_owned()).or_default();
        }
        node.texts.push(text.to_owned());
    }

    /// The one that counts where only one can: a box that is ticked comes after the hidden one.
    pub fn last_text(&self) -> &str {
        self.texts.last().map_or("", String::as_str)
    }

    pub fn child(&self, name: &str) -> Option<&ControlNode> {
        self.children.get(name)
    }

    /// Nothing was typed or chosen, here or below.
    pub fn is_blank(&self) -> bool {
        self.texts.iter().all(|text| text.trim().is_empty())
            && self.children.values().all(ControlNode::is_blank)
    }

    /// What is below by number, in the order of the numbers.
    pub fn numbered_children(&self) -> Vec<&ControlNode> {
        let mut items: Vec<(u64, &ControlNode)> =
            self.children.iter().filter_map(|(name, node)| Some((child_number(name)?, node))).collect();
        items.sort_by_key(|(number, _)| *number);
        items.into_iter().map(|(_, node)| node).collect()
    }

    /// The same with these below, numbered from 0.
    pub fn from_items(items: Vec<ControlNode>) -> ControlNode {
        let below = items.into_iter().enumerate().map(|(i, node)| (i.to_string(), node)).collect();
        ControlNode { texts: Vec::new(), children: below }
    }
}

fn child_number(name: &str) -> Option<u64> {
    if name.bytes().all(|byte| byte.is_ascii_digit()) { name.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(pairs: &[(&str, &str)]) -> ControlNode {
        let mut root = ControlNode::default();
        for (name, text) in pairs {
            root.add_text(name.split('.'), text);
        }
        root
    }

    #[test]
    fn dots_lead_down() {
        let root = tree(&[("a.b", "1"), ("a.b", "2"), ("a.c.0.d", "x"), ("e", "")]);
        let a = root.child("a").expect("a");
        assert_eq!(a.child("b").map(ControlNode::last_text), Some("2"));
        assert_eq!(
            a.child("c").expect("c").numbered_children()[0].child("d").map(ControlNode::last_text),
            Some("x")
        );
        assert!(root.child("e").expect("e").is_blank() && !root.is_blank());
        assert!(tree(&[("a.b", ""), ("text", " ")]).is_blank() && !tree(&[("a.b", "false")]).is_blank());
    }

    #[test]
    fn numbers_are_numbers_and_depth_has_an_end() {
        let root = tree(&[("10", "b"), ("9", "a"), ("x", "?"), ("+1", "?"), ("99999999999999999999", "?")]);
        let texts: Vec<&str> = root.numbered_children().into_iter().map(ControlNode::last_text).collect();
        assert_eq!(texts, ["a", "b"]);
        assert_eq!(tree(&[(&vec!["a"; 100_000].join("."), "x")]), ControlNode::default());
    }
}
