//! Types, fields and enum values in words: those of `@display`, or their names.

use crate::display_words::{ChoiceTone, RecordDisplay};
use crate::naming::{inflection, names};
use crate::{EnumType, Field, RecordType};

impl Field {
    /// The field in words: "Last name".
    pub fn label(&self) -> String {
        self.display.label.clone().unwrap_or_else(|| names::display_label(&self.name))
    }
}

impl RecordType {
    /// The type in words: "Order line".
    pub fn label(&self) -> String {
        self.display.label.clone().unwrap_or_else(|| names::display_label(&self.name))
    }

    /// Its records in words: "Order lines".
    pub fn plural_label(&self) -> String {
        let RecordDisplay { label, plural, .. } = &self.display;
        let derived = || label.as_ref().map(|label| inflection::plural(label));
        plural.clone().or_else(derived).unwrap_or_else(|| names::display_label(&self.path))
    }
}

impl EnumType {
    /// A value in words: "In progress".
    pub fn label(&self, value: &str) -> String {
        let label = self.position(value).and_then(|position| self.displays.get(position)?.label.clone());
        label.unwrap_or_else(|| names::display_label(value))
    }

    /// The number of a value's colour: that of [`ChoiceTone::NAMES`], or else one after the other.
    pub fn tone(&self, value: &str) -> usize {
        let position = self.position(value).unwrap_or(self.values.len());
        let tone = self.displays.get(position).and_then(|display| display.tone);
        let of_tone = |tone| ChoiceTone::NAMES.iter().position(|(_, known)| *known == tone);
        tone.and_then(of_tone).unwrap_or(position % ChoiceTone::IN_TURN)
    }

    fn position(&self, value: &str) -> Option<usize> {
        self.values.iter().position(|known| known == value)
    }
}
