//! The contrast of two colours, as WCAG 2 measures it.

/// An opaque colour: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RgbColor([u8; 3]);

impl RgbColor {
    /// `#0b6b52` or `#fff`.
    pub fn parse(text: &str) -> Option<RgbColor> {
        let digits = text.strip_prefix('#').filter(|digits| digits.is_ascii())?;
        let part = |from: usize, to: usize| u8::from_str_radix(digits.get(from..to)?, 16).ok();
        let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match digits.len() {
            6 if is_hexadecimal => Some(RgbColor([part(0, 2)?, part(2, 4)?, part(4, 6)?])),
            3 if is_hexadecimal => Some(RgbColor([part(0, 1)? * 17, part(1, 2)? * 17, part(2, 3)? * 17])),
            _ => None,
        }
    }

    /// From 1 to 21.
    pub fn contrast(self, other: RgbColor) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// This colour with so much of another, from 0 to 1.
    pub fn mixed(self, other: RgbColor, share: f64) -> RgbColor {
        let mix = |own: u8, other: u8| f64::from(own) * (1.0 - share) + f64::from(other) * share;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
        let part = |position: usize| mix(self.0[position], other.0[position]).round() as u8;
        RgbColor([part(0), part(1), part(2)])
    }

    pub fn hexadecimal(self) -> String {
        let RgbColor([red, green, blue]) = self;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn color(text: &str) -> RgbColor {
        RgbColor::parse(text).unwrap()
    }

    #[test]
    fn contrast_is_that_of_wcag() {
        assert!((color("#fff").contrast(color("#000")) - 21.0).abs() < 0.001);
        // The best known pair: the lightest grey that passes on white.
        assert!(color("#767676").contrast(color("#fff")) > 4.5);
        assert!(color("#777777").contrast(color("#fff")) < 4.5);
    }

    #[test]
    fn colours_are_read_and_written() {
        assert_eq!(color("#0aF").hexadecimal(), "#00aaff");
        assert_eq!(color("#000").mixed(color("#fff"), 0.5).hexadecimal(), "#808080");
        for wrong in ["", "#", "#ff", "#ffff", "0b6b52", "#0b6b5g", "#+1+1+1", "#é12345", "green"] {
            assert_eq!(RgbColor::parse(wrong), None, "{wrong}");
        }
    }
}
