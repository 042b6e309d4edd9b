//! Writes a leaf value of a resolver as graphql-js serialises it for the declared type.

use trefoil_model::Value;
use trefoil_model::values::json_text;

use crate::plan::shape::LeafType;

/// Writes the value. Writes nothing and returns the reason if the type cannot represent it.
pub fn write_leaf(out: &mut Vec<u8>, leaf: &LeafType, value: &Value) -> Result<(), String> {
    match leaf {
        LeafType::Int => write_int(out, value),
        LeafType::Float => write_float(out, value),
        LeafType::String => write_string(out, value),
        LeafType::Boolean => write_boolean(out, value),
        LeafType::Id => write_id(out, value),
        LeafType::NumberAsText => write_number_as_text(out, value),
        LeafType::Enum { name, values } => {
            let known = value.as_str().filter(|text| values.iter().any(|value| value == text));
            let text = known
                .ok_or_else(|| format!("Enum \"{name}\" cannot represent value: {}", show_json(value)))?;
            json_text::write_text(out, text);
            Ok(())
        }
        LeafType::Custom => {
            json_text::write_value(out, value);
            Ok(())
        }
    }
}

fn write_int(out: &mut Vec<u8>, value: &Value) -> Result<(), String> {
    let number = match value {
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Int(number) => *number as f64,
        Value::Number(_) | Value::String(_) => as_js_number(value)
            .ok_or_else(|| format!("Int cannot represent non-integer value: {}", show_json(value)))?,
        Value::Null | Value::List(_) | Value::Object(_) => f64::NAN,
    };
    if number.fract() != 0.0 || number.is_nan() {
        return Err(format!("Int cannot represent non-integer value: {}", show_json(value)));
    }
    if number < f64::from(i32::MIN) || number > f64::from(i32::MAX) {
        return Err(format!("Int cannot represent non 32-bit signed integer value: {}", show_json(value)));
    }
    json_text::write_int(out, number as i64);
    Ok(())
}

fn write_float(out: &mut Vec<u8>, value: &Value) -> Result<(), String> {
    let text = match value {
        Value::Bool(flag) => u8::from(*flag).to_string(),
        Value::Int(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => match parse_js_number(text) {
            Some(number) => serde_json::Value::from(number).to_string(),
            None => return Err(format!("Float cannot represent non numeric value: {}", show_json(value))),
        },
        Value::Null | Value::List(_) | Value::Object(_) => {
            return Err(format!("Float cannot represent non numeric value: {}", show_json(value)));
        }
    };
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn as_js_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(text) => parse_js_number(text),
        Value::String(text) => parse_js_number(text),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::List(_) | Value::Object(_) => None,
    }
}

/// Parses text as JavaScript's `Number` does, in the common forms.
fn parse_js_number(text: &str) -> Option<f64> {
    let trimmed = text.trim();
    let plain = trimmed.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    if trimmed.is_empty() || !plain { None } else { trimmed.parse().ok().filter(|n: &f64| n.is_finite()) }
}

fn write_string(out: &mut Vec<u8>, value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => json_text::write_text(out, text),
        Value::Bool(flag) => json_text::write_text(out, if *flag { "true" } else { "false" }),
        Value::Int(number) => json_text::write_text(out, &number.to_string()),
        Value::Number(text) => json_text::write_text(out, text),
        Value::Null | Value::List(_) | Value::Object(_) => {
            return Err(format!("String cannot represent value: {}", show_json(value)));
        }
    }
    Ok(())
}

fn write_boolean(out: &mut Vec<u8>, value: &Value) -> Result<(), String> {
    let flag = match value {
        Value::Bool(flag) => *flag,
        Value::Int(number) => *number != 0,
        Value::Number(text) => parse_js_number(text) != Some(0.0),
        Value::Null | Value::String(_) | Value::List(_) | Value::Object(_) => {
            return Err(format!("Boolean cannot represent a non boolean value: {}", show_json(value)));
        }
    };
    out.extend_from_slice(if flag { b"true" } else { b"false" });
    Ok(())
}

fn write_id(out: &mut Vec<u8>, value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => json_text::write_text(out, text),
        Value::Int(number) => json_text::write_text(out, &number.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_) => {
            return Err(format!("ID cannot represent value: {}", show_json(value)));
        }
    }
    Ok(())
}

fn write_number_as_text(out: &mut Vec<u8>, value: &Value) -> Result<(), String> {
    match value {
        Value::Int(number) => json_text::write_text(out, &number.to_string()),
        Value::Number(text) => json_text::write_text(out, text),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::List(_) | Value::Object(_) => {
            json_text::write_value(out, value)
        }
    }
    Ok(())
}

fn show_json(value: &Value) -> String {
    let mut out = Vec::new();
    json_text::write_value(&mut out, value);
    String::from_utf8_lossy(&out).into_owned()
}
