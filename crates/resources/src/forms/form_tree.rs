//! The text of form controls as a tree by their dotted names: `address.street`, `lines.0.price`.

use indexmap::IndexMap;

/// Maximum depth of a name. Our forms have no deeper controls, and the tree is processed recursively.
const MAX_DEPTH: usize = 16;

/// The texts at a name, and the nodes below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlNode {
    /// One per occurrence of the name.
    pub texts: Vec<String>,
    pub children: IndexMap<String, ControlNode>,
}

impl ControlNode {
    pub fn from_text(text: impl Into<String>) -> ControlNode {
        ControlNode { texts: vec![text.into()], children: IndexMap::new() }
    }

    /// Adds a text at a name; names that are too deep are ignored.
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

    /// The value of a control with one value: a ticked checkbox follows its hidden input.
    pub fn last_text(&self) -> &str {
        self.texts.last().map_or("", String::as_str)
    }

    pub fn child(&self, name: &str) -> Option<&ControlNode> {
        self.children.get(name)
    }

    /// True if all texts here and below are blank.
    pub fn is_blank(&self) -> bool {
        self.texts.iter().all(|text| text.trim().is_empty())
            && self.children.values().all(ControlNode::is_blank)
    }

    /// The children with numeric names, in numeric order.
    pub fn numbered_children(&self) -> Vec<&ControlNode> {
        let mut items: Vec<(u64, &ControlNode)> =
            self.children.iter().filter_map(|(name, node)| Some((child_number(name)?, node))).collect();
        items.sort_by_key(|(number, _)| *number);
        items.into_iter().map(|(_, node)| node).collect()
    }

    /// A node with these children, numbered from 0.
    pub fn from_items(items: Vec<ControlNode>) -> ControlNode {
        let children = items.into_iter().enumerate().map(|(i, node)| (i.to_string(), node)).collect();
        ControlNode { texts: Vec::new(), children }
    }
}

/// The number in a name, if it is one.
pub(super) fn child_number(name: &str) -> Option<u64> {
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
    fn dotted_names_form_a_tree() {
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
    fn numbered_children_and_depth_limit() {
        let root = tree(&[("10", "b"), ("9", "a"), ("x", "?"), ("+1", "?"), ("99999999999999999999", "?")]);
        let texts: Vec<&str> = root.numbered_children().into_iter().map(ControlNode::last_text).collect();
        assert_eq!(texts, ["a", "b"]);
        assert_eq!(tree(&[(&vec!["a"; 100_000].join("."), "x")]), ControlNode::default());
    }
}
