//! Reads `@display` on fields, types and enum values, and refuses what is for another of them.

use apollo_compiler::Node;
use apollo_compiler::ast::{self, Directive};

use crate::display_words::{
    ChoiceDisplay, ChoiceTone, ControlWidth, FieldDisplay, HiddenPlaces, RecordDisplay, ValueFormat,
};
use crate::sdl::directives::directive_reader::{DirectiveReader, directive_argument};
use crate::sdl::directives::literals::{NumberSyntax, number_digits};

/// Where `@display` stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisplayPlace {
    Field,
    /// A field of an embedded value.
    Member,
    Type,
    EnumValue,
}

impl DisplayPlace {
    const ALL: [DisplayPlace; 4] =
        [DisplayPlace::Field, DisplayPlace::Member, DisplayPlace::Type, DisplayPlace::EnumValue];

    fn arguments(self) -> &'static [&'static str] {
        match self {
            DisplayPlace::Field => &[
                "label",
                "hint",
                "placeholder",
                "order",
                "group",
                "list",
                "form",
                "detail",
                "filter",
                "sum",
                "format",
                "readOnly",
                "width",
            ],
            DisplayPlace::Member => &["label", "hint", "placeholder", "format", "width"],
            DisplayPlace::Type => {
                &["label", "plural", "group", "order", "navigation", "columns", "sort", "pageSize"]
            }
            DisplayPlace::EnumValue => &["label", "tone"],
        }
    }

    fn noun(self) -> &'static str {
        match self {
            DisplayPlace::Field => "fields of records",
            DisplayPlace::Member => "fields of embedded values",
            DisplayPlace::Type => "types",
            DisplayPlace::EnumValue => "enum values",
        }
    }
}

impl<'s> DirectiveReader<'_> {
    pub(super) fn read_field_display(&mut self, directive: &'s Node<Directive>) -> FieldDisplay {
        let mut is_off = |name: &str| self.flag_argument(directive, name) == Some(false);
        let off = HiddenPlaces {
            list: is_off("list"),
            form: is_off("form"),
            detail: is_off("detail"),
            filter: is_off("filter"),
        };
        FieldDisplay {
            label: self.words(directive, "label"),
            hint: self.words(directive, "hint"),
            placeholder: self.words(directive, "placeholder"),
            order: self.whole_number(directive, "order"),
            group: self.words(directive, "group"),
            off,
            sum: self.flag_argument(directive, "sum") == Some(true),
            format: self.choice(directive, "format", &ValueFormat::NAMES),
            is_read_only: self.flag_argument(directive, "readOnly") == Some(true),
            width: self.choice(directive, "width", &ControlWidth::NAMES),
        }
    }

    /// Without checking that the columns and the order exist.
    pub(crate) fn read_record_display(&mut self, directive: &'s Node<Directive>) -> RecordDisplay {
        let mut texts = |name: &str| {
            let texts = self.text_list_argument(directive, name).into_iter();
            texts.map(|(text, _)| text.to_owned()).collect::<Vec<String>>()
        };
        let (columns, sort) = (texts("columns"), texts("sort"));
        RecordDisplay {
            label: self.words(directive, "label"),
            plural: self.words(directive, "plural"),
            group: self.words(directive, "group"),
            order: self.whole_number(directive, "order"),
            is_unlisted: self.flag_argument(directive, "navigation") == Some(false),
            columns,
            sort,
            page_size: self.page_size(directive),
        }
    }

    pub(crate) fn read_choice_display(&mut self, directive: &'s Node<Directive>) -> ChoiceDisplay {
        ChoiceDisplay {
            label: self.words(directive, "label"),
            tone: self.choice(directive, "tone", &ChoiceTone::NAMES),
        }
    }

    /// Reports arguments that are for another place.
    pub(crate) fn check_display_place(&mut self, directive: &Directive, place: DisplayPlace) {
        for argument in &directive.arguments {
            let name = argument.name.as_str();
            let others = DisplayPlace::ALL.into_iter().filter(|other| other.arguments().contains(&name));
            let others: Vec<&str> = others.map(DisplayPlace::noun).collect();
            if place.arguments().contains(&name) || others.is_empty() {
                continue;
            }
            let message =
                format!("`{name}` of `@display` is for {}, not for {}", others.join(" and "), place.noun());
            self.log
                .error(argument.name.location(), "DIRECTIVE_ARGUMENT", message)
                .label("has no meaning here")
                .help("remove the argument");
        }
    }

    /// A text that is not blank.
    fn words(&mut self, directive: &'s Directive, name: &str) -> Option<String> {
        let text = self.text_argument(directive, name)?;
        if text.trim().is_empty()
            && let Some(value) = directive_argument(directive, name)
        {
            self.report_wrong_argument(directive, name, value, "a text that is not blank");
            return None;
        }
        Some(text.trim().to_owned())
    }

    fn whole_number(&mut self, directive: &'s Directive, name: &str) -> Option<i32> {
        let value = directive_argument(directive, name)?;
        let number = number_digits(value, NumberSyntax::NumberOnly).and_then(|digits| digits.parse().ok());
        if number.is_none() {
            self.report_wrong_argument(directive, name, value, "a whole number");
        }
        number
    }

    fn page_size(&mut self, directive: &'s Directive) -> Option<i64> {
        let size = self.whole_number(directive, "pageSize")?;
        if size < 1
            && let Some(value) = directive_argument(directive, "pageSize")
        {
            self.report_wrong_argument(directive, "pageSize", value, "a whole number of at least 1");
            return None;
        }
        Some(size.into())
    }

    fn choice<T: Copy>(
        &mut self,
        directive: &'s Directive,
        name: &str,
        known: &[(&'static str, T)],
    ) -> Option<T> {
        let value: &Node<ast::Value> = directive_argument(directive, name)?;
        let chosen = value.as_enum().and_then(|word| known.iter().find(|(known, _)| word.as_str() == *known));
        if chosen.is_none() {
            let words: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let (last, others) = words.split_last()?;
            let expected = format!("{} or {last}, without quotes", others.join(", "));
            self.report_wrong_argument(directive, name, value, &expected);
        }
        chosen.map(|(_, chosen)| *chosen)
    }
}
