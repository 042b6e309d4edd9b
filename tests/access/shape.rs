//! Random schemas with rules: what is in them, and their SDL with the rules and without.

use std::fmt::Write as _;

use super::rule_tree::{Deed, RuleTree};

/// A schema.
#[derive(Clone, Debug)]
pub struct AccessShape {
    pub types: Vec<ShapeType>,
    /// The position of the type of accounts.
    pub account: usize,
    /// Whether accounts have a list of roles.
    pub has_role_list: bool,
    /// The rules of the schema.
    pub everywhere: ShapeRules,
}

#[derive(Clone, Debug)]
pub struct ShapeType {
    pub name: &'static str,
    pub plural: &'static str,
    /// Without the key.
    pub fields: Vec<ShapeField>,
    pub rules: ShapeRules,
    /// `@rule`.
    pub named: Vec<(String, RuleTree)>,
}

#[derive(Clone, Debug)]
pub struct ShapeField {
    pub name: String,
    pub content: Content,
    pub required: bool,
    pub rules: ShapeRules,
}

/// The rules of a schema, a type or a field, as far as they are written.
#[derive(Clone, Debug, Default)]
pub struct ShapeRules(pub Vec<(Deed, RuleTree)>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    Value(Kind),
    /// A list of texts.
    Texts,
    /// An embedded value with the members `city` and `zip`.
    Spot,
    /// The roles of an account.
    Roles,
    /// What an account signs in with.
    Login,
    Reference {
        target: usize,
        inverse: Option<usize>,
    },
    Inverse {
        target: usize,
        reference: usize,
    },
    Link {
        target: usize,
        back: Option<usize>,
        is_owner: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Int,
    Flag,
    Decimal,
    Moment,
    Color,
}

pub const COLORS: [&str; 3] = ["RED", "GREEN", "BLUE"];
pub const ROLES: [&str; 3] = ["ALPHA", "BETA", "GAMMA"];

impl Content {
    /// The type that it leads to.
    pub fn target(self) -> Option<usize> {
        match self {
            Content::Reference { target, .. }
            | Content::Inverse { target, .. }
            | Content::Link { target, .. } => Some(target),
            Content::Value(_) | Content::Texts | Content::Spot | Content::Roles | Content::Login => None,
        }
    }

    pub fn is_list(self) -> bool {
        matches!(self, Content::Inverse { .. } | Content::Link { .. })
    }

    pub fn is_reference(self) -> bool {
        matches!(self, Content::Reference { .. })
    }
}

impl Kind {
    pub fn type_name(self) -> &'static str {
        match self {
            Kind::Text => "String",
            Kind::Int => "Int",
            Kind::Flag => "Boolean",
            Kind::Decimal => "Decimal",
            Kind::Moment => "DateTime",
            Kind::Color => "Color",
        }
    }

    /// Whether values have a least and a greatest one.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Kind::Flag | Kind::Color)
    }
}

impl ShapeRules {
    pub fn get(&self, deed: Deed) -> Option<&RuleTree> {
        self.0.iter().find(|(own, _)| *own == deed).map(|(_, rule)| rule)
    }

    /// `@allow(…)`, or nothing.
    fn directive(&self, shape: &AccessShape, of: usize) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let arguments = self.0.iter().map(|(deed, rule)| {
            let text = rule.text(shape, of);
            let is_constant = matches!(rule, RuleTree::Constant(_));
            format!("{}: {}", deed.name(), if is_constant { text } else { format!("\"{text}\"") })
        });
        format!(" @allow({})", arguments.collect::<Vec<_>>().join(", "))
    }
}

impl ShapeField {
    pub fn new(name: impl Into<String>, content: Content, required: bool) -> ShapeField {
        ShapeField { name: name.into(), content, required, rules: ShapeRules::default() }
    }

    /// The name by which conditions and bodies know it.
    pub fn input_name(&self) -> String {
        match self.content {
            Content::Reference { .. } => format!("{}Id", self.name),
            Content::Link { .. } => format!("{}Ids", self.name.trim_end_matches('s')),
            Content::Value(_)
            | Content::Texts
            | Content::Spot
            | Content::Roles
            | Content::Login
            | Content::Inverse { .. } => self.name.clone(),
        }
    }
}

impl AccessShape {
    pub fn type_at(&self, from: usize, references: &[usize]) -> usize {
        references.iter().fold(from, |owner, at| {
            let Content::Reference { target, .. } = self.types[owner].fields[*at].content else {
                panic!("a way goes through references");
            };
            target
        })
    }

    /// All rules, in an order that stays the same.
    fn rules_mut(&mut self) -> Vec<&mut RuleTree> {
        let mut found: Vec<&mut RuleTree> = self.everywhere.0.iter_mut().map(|(_, rule)| rule).collect();
        for owner in &mut self.types {
            found.extend(owner.rules.0.iter_mut().map(|(_, rule)| rule));
            found.extend(owner.named.iter_mut().map(|(_, rule)| rule));
            found.extend(owner.fields.iter_mut().flat_map(|field| &mut field.rules.0).map(|(_, rule)| rule));
        }
        found
    }

    /// The same schema with one simpler rule.
    pub fn smaller(&self) -> Vec<AccessShape> {
        let mut found = Vec::new();
        let count = self.clone().rules_mut().len();
        for at in 0..count {
            let rule = self.clone().rules_mut()[at].clone();
            let parts = match &rule {
                // What is within sees another record.
                RuleTree::Exists(..) => Vec::new(),
                rule => rule.parts().into_iter().cloned().collect(),
            };
            let is_constant = matches!(rule, RuleTree::Constant(_));
            let simplest = (!is_constant).then_some(RuleTree::Constant(true));
            for smaller in simplest.into_iter().chain(parts) {
                let mut shape = self.clone();
                *shape.rules_mut()[at] = smaller;
                found.push(shape);
            }
        }
        found
    }

    /// The rule of a type for a deed: its own, or that of the schema. Empty: nobody is allowed.
    pub fn rules_for(&self, of: usize, deed: Deed) -> Vec<&RuleTree> {
        let own = self.types[of].rules.get(deed);
        // A literal `false` holds against the rule of the schema, too.
        if own == Some(&RuleTree::Constant(false)) {
            return Vec::new();
        }
        let everywhere = if deed == Deed::UpdateTo { Deed::Update } else { deed };
        own.into_iter().chain(self.everywhere.get(everywhere)).collect()
    }

    /// Whether some actor may see null where the record has a value.
    pub fn may_be_hidden(&self, field: &ShapeField) -> bool {
        let is_open = |target: usize| {
            self.rules_for(target, Deed::Read).iter().any(|rule| **rule == RuleTree::Constant(true))
        };
        let leads_away = field.content.is_reference() && !field.content.target().is_some_and(is_open);
        field.rules.get(Deed::Read).is_some() || leads_away
    }

    /// The schema with its rules.
    pub fn protected_sdl(&self) -> String {
        let mut text = String::new();
        if !self.everywhere.0.is_empty() {
            let _ = writeln!(text, "extend schema{}", self.everywhere.directive(self, self.account));
        }
        self.sdl(text, true)
    }

    /// The same without rules; what some actor may see as null may be null.
    pub fn open_sdl(&self) -> String {
        self.sdl(String::new(), false)
    }

    fn sdl(&self, mut text: String, is_protected: bool) -> String {
        let _ = writeln!(text, "scalar Decimal\nscalar DateTime");
        let _ = writeln!(text, "enum Color {{ {} }}\nenum Role {{ {} }}", COLORS.join(" "), ROLES.join(" "));
        text += "type Spot { city: String zip: Int }\n";
        for (position, owner) in self.types.iter().enumerate() {
            let _ = write!(text, "type {}", owner.name);
            if is_protected {
                if position == self.account {
                    text += " @account(login: \"login\", roles: \"role\")";
                }
                for (name, rule) in &owner.named {
                    let _ =
                        write!(text, "\n  @rule(name: \"{name}\", is: \"{}\")", rule.text(self, position));
                }
                let _ = write!(text, "\n {}", owner.rules.directive(self, position));
            }
            text += " {\n  id: ID!\n";
            for field in &owner.fields {
                let is_required = field.required && (is_protected || !self.may_be_hidden(field));
                let mark = if is_required { "!" } else { "" };
                let rules = if is_protected { field.rules.directive(self, position) } else { String::new() };
                let arguments = match field.content.target().filter(|_| field.content.is_list()) {
                    Some(target) => {
                        format!("(where: {}Where, orderBy: [String!], first: Int)", self.types[target].name)
                    }
                    None => String::new(),
                };
                let type_text = self.type_text(field.content, mark);
                let _ = writeln!(text, "  {}{arguments}: {type_text}{rules}", field.name);
            }
            text += "}\n";
        }
        text
    }

    fn type_text(&self, content: Content, mark: &str) -> String {
        let directive = |target: usize, field: usize| {
            format!(" @reference(inverse: \"{}\")", self.types[target].fields[field].name)
        };
        match content {
            Content::Value(kind) => format!("{}{mark}", kind.type_name()),
            Content::Texts => format!("[String!]{mark}"),
            Content::Spot => format!("Spot{mark}"),
            Content::Roles if self.has_role_list => format!("[Role!]{mark}"),
            Content::Roles => format!("Role{mark}"),
            Content::Login => format!("String{mark} @unique"),
            Content::Reference { target, inverse } => {
                let inverse = inverse.map_or(String::new(), |field| directive(target, field));
                format!("{}{mark}{inverse}", self.types[target].name)
            }
            Content::Inverse { target, .. } => format!("[{}!]!", self.types[target].name),
            Content::Link { target, back, is_owner } => {
                let back = back.filter(|_| is_owner).map_or(String::new(), |field| directive(target, field));
                format!("[{}!]!{back}", self.types[target].name)
            }
        }
    }
}
