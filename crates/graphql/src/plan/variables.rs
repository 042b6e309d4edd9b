//! Coerces the variables of a request to the types that the operation declares.

use apollo_compiler::Schema;
use apollo_compiler::ast::Type;
use apollo_compiler::schema::{EnumType, ExtendedType, InputObjectType};

use trefoil_engine::Engine;
use trefoil_model::Value;
use trefoil_model::values::json_text;

use crate::document::suggest::{NamePlace, UnknownName};
use crate::plan::input::{self, VariableNode};
use crate::plan::variable_values::VariableValues;
use crate::response_error::{DocumentLocation, ResponseError};

/// A variable of an operation.
#[derive(Debug)]
pub struct DeclaredVariable {
    pub name: String,
    pub definition: VariableNode,
    pub default: Option<Value>,
    pub location: Option<DocumentLocation>,
}

/// Coerces all variables; returns all errors.
pub fn coerce(
    engine: &Engine,
    declared: &[DeclaredVariable],
    mut inputs: Vec<(String, Value)>,
) -> Result<VariableValues, Vec<ResponseError>> {
    let mut values = Vec::with_capacity(declared.len());
    let mut failures = Vec::new();
    for variable in declared {
        let position = inputs.iter().position(|(name, _)| *name == variable.name);
        let value = position.map(|position| inputs.swap_remove(position).1);
        match coerce_variable(engine, variable, value) {
            Ok(value) => values.push(value),
            Err(list) => failures.extend(list),
        }
    }
    if failures.is_empty() { Ok(VariableValues(values)) } else { Err(failures) }
}

fn coerce_variable(
    engine: &Engine,
    variable: &DeclaredVariable,
    value: Option<Value>,
) -> Result<Option<Value>, Vec<ResponseError>> {
    let ty = &variable.definition.ty;
    let rejection = |message: String| {
        let failure = ResponseError::new("BAD_USER_INPUT", message);
        vec![failure.with_locations(variable.location.as_slice())]
    };
    let name = &variable.name;
    match value {
        None => match &variable.default {
            Some(default) => Ok(Some(default.clone())),
            None if ty.is_non_null() => {
                Err(rejection(format!("Variable \"${name}\" of required type \"{ty}\" was not provided.")))
            }
            None => Ok(None),
        },
        Some(Value::Null) if ty.is_non_null() => {
            Err(rejection(format!("Variable \"${name}\" of non-null type \"{ty}\" must not be null.")))
        }
        Some(value) => {
            let schema = &engine.model().schema;
            let mut coercer = VariableCoercer { schema, name, path: Vec::new(), mistakes: Vec::new() };
            let value = coercer.coerce_value(ty, value);
            if coercer.mistakes.is_empty() {
                return Ok(Some(value));
            }
            let mistakes = coercer.mistakes.into_iter();
            let refuse = |mistake: ValueMistake| {
                let message = format!("Variable \"${name}\" got invalid value {}", mistake.text);
                let failure = ResponseError::new("BAD_USER_INPUT", message);
                let failure = failure.with_locations(variable.location.as_slice());
                match mistake.unknown_name {
                    Some(unknown) => failure.with_unknown_name(engine, unknown),
                    None => failure,
                }
            };
            Err(mistakes.map(refuse).collect())
        }
    }
}

struct VariableCoercer<'a> {
    schema: &'a Schema,
    name: &'a str,
    /// The place of the value in the variable.
    path: Vec<InputStep<'a>>,
    mistakes: Vec<ValueMistake>,
}

struct ValueMistake {
    text: String,
    unknown_name: Option<UnknownName>,
}

enum InputStep<'a> {
    Field(&'a str),
    Index(usize),
}

impl std::fmt::Display for InputStep<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InputStep::Field(name) => write!(formatter, ".{name}"),
            InputStep::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

impl<'a> VariableCoercer<'a> {
    fn coerce_value(&mut self, ty: &Type, value: Value) -> Value {
        if value.is_null() && ty.is_non_null() {
            return self.report(&value, format!("Expected non-nullable type \"{ty}\" not to be null."));
        }
        match (ty.is_list(), value) {
            (_, Value::Null) => Value::Null,
            (true, Value::List(items)) => {
                let items = items.into_iter().enumerate();
                let items =
                    items.map(|(i, item)| self.coerce_nested(InputStep::Index(i), ty.item_type(), item));
                Value::List(items.collect())
            }
            // A single value is coerced to a list of one.
            (true, single) => Value::List(vec![self.coerce_value(ty.item_type(), single)]),
            (false, single) => self.coerce_named(ty.inner_named_type(), single),
        }
    }

    fn coerce_nested(&mut self, step: InputStep<'a>, ty: &Type, value: Value) -> Value {
        self.path.push(step);
        let value = self.coerce_value(ty, value);
        self.path.pop();
        value
    }

    fn coerce_named(&mut self, name: &str, value: Value) -> Value {
        match name {
            "Int" => self.coerce_int(value),
            "Float" => self.coerce_float(value),
            "String" if value.as_str().is_some() => value,
            "String" => self.report_type("String", "a non string value", &value),
            "Boolean" if value.as_bool().is_some() => value,
            "Boolean" => self.report_type("Boolean", "a non boolean value", &value),
            "ID" => self.coerce_id(value),
            _ => match { self.schema }.types.get(name) {
                Some(ExtendedType::Enum(definition)) => self.coerce_enum(definition, value),
                Some(ExtendedType::InputObject(definition)) => self.coerce_object(definition, value),
                _ => value,
            },
        }
    }

    fn coerce_id(&mut self, value: Value) -> Value {
        let text = match &value {
            Value::String(_) => return value,
            Value::Int(number) => Some(number.to_string()),
            Value::Number(text) => integer_digits(text),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => None,
        };
        text.map_or_else(|| self.report_type("ID", "value", &value), Value::String)
    }

    fn coerce_int(&mut self, value: Value) -> Value {
        // `1.0` and `1e3` are integers to JSON's readers.
        let number = match &value {
            Value::Int(number) => Some(*number),
            Value::Number(text) => text.parse().ok().filter(|n: &f64| n.fract() == 0.0).map(|n| n as i64),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::List(_) | Value::Object(_) => None,
        };
        match number {
            Some(number) if i32::try_from(number).is_ok() => Value::Int(number),
            Some(_) => self.report_type("Int", "non 32-bit signed integer value", &value),
            None => self.report_type("Int", "non-integer value", &value),
        }
    }

    fn coerce_float(&mut self, value: Value) -> Value {
        let fits = match &value {
            Value::Int(_) => true,
            Value::Number(text) => text.parse::<f64>().is_ok_and(f64::is_finite),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::List(_) | Value::Object(_) => false,
        };
        if fits { value } else { self.report_type("Float", "non numeric value", &value) }
    }

    fn coerce_enum(&mut self, definition: &EnumType, value: Value) -> Value {
        let name = &definition.name;
        let Some(text) = value.as_str() else {
            let message =
                format!("Enum \"{name}\" cannot represent non-string value: {}.", show_value(&value));
            return self.report(&value, message);
        };
        if definition.values.contains_key(text) {
            return value;
        }
        let message = format!("Value \"{text}\" does not exist in \"{name}\" enum.");
        let place = NamePlace::EnumValue(name.to_string());
        let unknown = UnknownName { name: text.to_owned(), place };
        self.report_unknown(&value, message, unknown)
    }

    fn coerce_object(&mut self, definition: &'a InputObjectType, value: Value) -> Value {
        let Value::Object(mut properties) = value else {
            let message = format!("Expected type \"{}\" to be an object.", definition.name);
            return self.report(&value, message);
        };
        let mut fields = Vec::with_capacity(properties.len());
        for (name, field) in &definition.fields {
            let position = properties.iter().position(|(key, _)| key == name.as_str());
            match position.map(|position| properties.remove(position)) {
                Some((key, value)) => {
                    let value = self.coerce_nested(InputStep::Field(name), &field.ty, value);
                    fields.push((key, value));
                }
                None => match &field.default_value {
                    Some(default) => fields
                        .push((name.to_string(), input::constant_value(self.schema, &field.ty, default))),
                    None if field.ty.is_non_null() => {
                        let message =
                            format!("Field \"{name}\" of required type \"{}\" was not provided.", field.ty);
                        self.report(&Value::Object(properties.clone()), message);
                    }
                    None => {}
                },
            }
        }
        for (name, value) in properties {
            let message = format!("Field \"{name}\" is not defined by type \"{}\".", definition.name);
            let place = NamePlace::InputField(definition.name.to_string());
            self.report_unknown(&value, message, UnknownName { name, place });
        }
        Value::Object(fields)
    }

    fn report_type(&mut self, ty: &str, what: &str, value: &Value) -> Value {
        self.report(value, format!("{ty} cannot represent {what}: {}", show_value(value)))
    }

    fn report(&mut self, value: &Value, message: String) -> Value {
        self.add_mistake(value, message, None)
    }

    fn report_unknown(&mut self, value: &Value, message: String, unknown: UnknownName) -> Value {
        self.add_mistake(value, message, Some(unknown))
    }

    fn add_mistake(&mut self, value: &Value, message: String, unknown_name: Option<UnknownName>) -> Value {
        let at = match self.path.is_empty() {
            true => String::new(),
            false => {
                let path: String = self.path.iter().map(InputStep::to_string).collect();
                format!(" at \"{}{path}\"", self.name)
            }
        };
        let text = format!("{}{at}; {message}", show_value(value));
        self.mistakes.push(ValueMistake { text, unknown_name });
        Value::Null
    }
}

/// The digits of an integer that is too long for 64 bits or written as `1.0`.
fn integer_digits(text: &str) -> Option<String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return Some(text.to_owned());
    }
    let number: f64 = text.parse().ok()?;
    (number.fract() == 0.0 && number.abs() < 9e15).then(|| (number as i64).to_string())
}

/// The value as JSON, truncated.
fn show_value(value: &Value) -> String {
    const MAX_CHARS: usize = 100;
    let mut out = Vec::new();
    json_text::write_value(&mut out, value);
    let text = String::from_utf8_lossy(&out);
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
