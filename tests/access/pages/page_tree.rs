//! The elements of a page as a tree, and the texts, links and controls that people find in it.

/// An element with what is in it.
#[derive(Debug, Default)]
pub struct PageElement {
    pub name: String,
    attributes: Vec<(String, String)>,
    children: Vec<PageNode>,
}

#[derive(Debug)]
enum PageNode {
    Element(PageElement),
    Text(String),
}

/// Elements that have no end.
const VOID: [&str; 6] = ["meta", "link", "input", "br", "img", "hr"];
/// Elements whose text is no markup.
const RAW: [&str; 2] = ["script", "style"];

impl PageElement {
    /// The whole page. Our own templates close what they open.
    pub fn parse(html: &str) -> PageElement {
        let mut open = vec![PageElement::default()];
        let mut rest = html;
        while let Some((text, after)) = rest.split_once('<') {
            let top = open.last_mut().expect("the page");
            top.children.push(PageNode::Text(unescape(text)));
            let (tag, after) = split_tag(after);
            rest = after;
            if tag.starts_with('!') {
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                close(&mut open, name.trim());
                continue;
            }
            let element = PageElement::of_tag(tag.trim_end_matches('/'));
            if VOID.contains(&element.name.as_str()) || tag.ends_with('/') {
                top.children.push(PageNode::Element(element));
                continue;
            }
            if RAW.contains(&element.name.as_str()) {
                rest = rest
                    .split_once("</")
                    .map_or("", |(_, rest)| rest.split_once('>').map_or("", |end| end.1));
                continue;
            }
            open.push(element);
        }
        while open.len() > 1 {
            let name = open.last().expect("some").name.clone();
            close(&mut open, &name);
        }
        open.remove(0)
    }

    fn of_tag(tag: &str) -> PageElement {
        let (name, mut rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let mut attributes = Vec::new();
        while !rest.trim().is_empty() {
            rest = rest.trim_start();
            let end = rest.find(|letter: char| letter == '=' || letter.is_whitespace()).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let quoted = after.strip_prefix("=\"").and_then(|after| after.split_once('"'));
            let (value, after) = quoted.unwrap_or(("", after));
            attributes.push((name.to_owned(), unescape(value)));
            rest = after;
        }
        PageElement { name: name.to_owned(), attributes, children: Vec::new() }
    }

    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The elements of this name within, from the outermost on.
    pub fn all(&self, name: &str) -> Vec<&PageElement> {
        let mut found = Vec::new();
        for child in &self.children {
            if let PageNode::Element(element) = child {
                if element.name == name {
                    found.push(element);
                }
                found.extend(element.all(name));
            }
        }
        found
    }

    pub fn first(&self, name: &str) -> Option<&PageElement> {
        self.all(name).into_iter().next()
    }

    /// Those directly within.
    pub fn own(&self, name: &str) -> Vec<&PageElement> {
        let elements = self.children.iter().filter_map(|child| match child {
            PageNode::Element(element) if element.name == name => Some(element),
            PageNode::Element(_) | PageNode::Text(_) => None,
        });
        elements.collect()
    }

    /// The text that is read out, with single spaces.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.add_text(&mut text);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn add_text(&self, text: &mut String) {
        if self.attribute("aria-hidden") == Some("true") {
            return;
        }
        for child in &self.children {
            match child {
                PageNode::Text(own) => text.push_str(own),
                PageNode::Element(element) => element.add_text(text),
            }
        }
    }

    /// The lines of a text that was typed.
    pub fn lines(&self) -> Vec<String> {
        let texts = self.children.iter().filter_map(|child| match child {
            PageNode::Text(text) => Some(text.lines()),
            PageNode::Element(_) => None,
        });
        texts.flatten().map(|line| line.trim().to_owned()).collect()
    }

    /// A value of a record: links with their address, times as they are sent, the items of lists one after the other.
    pub fn value_text(&self) -> String {
        if let Some(link) = self.first("a") {
            return format!("{} at {}", link.text(), link.attribute("href").unwrap_or_default());
        }
        if let Some(time) = self.first("time") {
            return time.attribute("datetime").unwrap_or_default().to_owned();
        }
        if let Some(list) = self.first("ul") {
            return list.own("li").into_iter().map(PageElement::text).collect::<Vec<_>>().join("; ");
        }
        if let Some(parts) = self.first("dl") {
            let parts = parts.own("div").into_iter();
            let part = |part: &PageElement| format!("{}: {}", part_text(part, "dt"), part_text(part, "dd"));
            return parts.map(part).collect::<Vec<_>>().join("; ");
        }
        self.text()
    }

    /// The addresses of all links within.
    pub fn addresses(&self) -> Vec<&str> {
        self.all("a").into_iter().filter_map(|link| link.attribute("href")).collect()
    }
}

fn part_text(element: &PageElement, name: &str) -> String {
    element.first(name).map(PageElement::text).unwrap_or_default()
}

/// A tag without its brackets, and what follows it.
fn split_tag(text: &str) -> (&str, &str) {
    let mut is_quoted = false;
    let end = text.find(|letter| {
        is_quoted ^= letter == '"';
        letter == '>' && !is_quoted
    });
    let end = end.unwrap_or_else(|| panic!("a tag without an end: {text:.80}"));
    (&text[..end], &text[end + 1..])
}

fn close(open: &mut Vec<PageElement>, name: &str) {
    let element = open.pop().expect("the page");
    assert_eq!(element.name, name, "a page closes what it did not open");
    open.last_mut().expect("the page").children.push(PageNode::Element(element));
}

fn unescape(text: &str) -> String {
    let signs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&#x2f;", "/"),
    ];
    let text = signs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    text.replace("&amp;", "&")
}
