//! Values written in a document, coerced as far as they are constant, and completed by a request's variables.

use apollo_compiler::Schema;
use apollo_compiler::ast::{self, InputValueDefinition, VariableDefinition};
use apollo_compiler::schema::ExtendedType;

use crate::plan::variables::Variables;
use trefoil_model::Value;
use trefoil_model::error::{Error, Result};

/// The arguments of a field, in the order of the schema.
#[derive(Debug, Clone, Default)]
pub struct Arguments(pub Vec<Argument>);

#[derive(Debug, Clone)]
pub struct Argument {
    pub name: String,
    /// In the field's definition.
    pub position: usize,
    pub required: bool,
    pub input: Input,
    pub default: Option<Value>,
}

/// A value with holes for variables.
#[derive(Debug, Clone)]
pub enum Input {
    Constant(Value),
    /// By position in the operation's definitions.
    Variable(usize),
    List {
        items: Vec<Input>,
        required: bool,
    },
    Object(Vec<Property>),
}

#[derive(Debug, Clone)]
pub struct Property {
    name: String,
    required: bool,
    input: Input,
    default: Option<Value>,
}

impl Arguments {
    pub fn read(
        schema: &Schema,
        declared: &[VariableRef],
        definitions: &[apollo_compiler::Node<InputValueDefinition>],
        given: &[apollo_compiler::Node<ast::Argument>],
    ) -> Arguments {
        let mut arguments = Vec::new();
        for (position, definition) in definitions.iter().enumerate() {
            let default =
                definition.default_value.as_ref().map(|value| constant(schema, &definition.ty, value));
            let written = given.iter().find(|argument| argument.name == definition.name);
            let input = match (written, &default) {
                (Some(argument), _) => Reader { schema, declared }.read(&definition.ty, &argument.value),
                (None, Some(default)) => Input::Constant(default.clone()),
                (None, None) => continue,
            };
            let (name, required) = (definition.name.to_string(), definition.ty.is_non_null());
            arguments.push(Argument { name, position, required, input, default });
        }
        Arguments(arguments)
    }

    pub fn use_variables(&self) -> bool {
        self.0.iter().any(|argument| argument.input.uses_variables())
    }

    /// The values of a request by position in the definition; absent ones are left out.
    pub fn by_position(&self, variables: &Variables) -> Result<Vec<(usize, Value)>> {
        self.values(variables)
            .map(|value| value.map(|(argument, value)| (argument.position, value)))
            .collect()
    }

    pub fn by_name(&self, variables: &Variables) -> Result<Vec<(String, Value)>> {
        self.values(variables)
            .map(|value| value.map(|(argument, value)| (argument.name.clone(), value)))
            .collect()
    }

    fn values(&self, variables: &Variables) -> impl Iterator<Item = Result<(&Argument, Value)>> {
        self.0.iter().filter_map(|argument| argument.value(variables).transpose())
    }
}

impl Argument {
    fn value(&self, variables: &Variables) -> Result<Option<(&Argument, Value)>> {
        let value = self.input.value(variables)?.or_else(|| self.default.clone());
        if self.required && value.as_ref().is_some_and(Value::is_null) {
            let message = format!("argument `{}` must not be null", self.name);
            return Err(Error::invalid(&self.name, "REQUIRED", message));
        }
        Ok(value.map(|value| (self, value)))
    }
}

impl Input {
    fn uses_variables(&self) -> bool {
        match self {
            Input::Constant(_) => false,
            Input::Variable(_) | Input::List { .. } | Input::Object(_) => true,
        }
    }

    /// Nothing when it is a variable that was not given.
    fn value(&self, variables: &Variables) -> Result<Option<Value>> {
        Ok(match self {
            Input::Constant(value) => Some(value.clone()),
            Input::Variable(position) => variables.get(*position).cloned(),
            Input::List { items, required } => {
                let items = items.iter().map(|item| {
                    let value = item.value(variables)?.unwrap_or(Value::Null);
                    if *required && value.is_null() {
                        let message = "an element of this list must not be null";
                        return Err(Error::invalid("[]", "REQUIRED", message));
                    }
                    Ok(value)
                });
                Some(Value::List(items.collect::<Result<_>>()?))
            }
            Input::Object(properties) => {
                let mut fields = Vec::with_capacity(properties.len());
                for property in properties {
                    if let Some(value) = property.input.value(variables)?.or_else(|| property.default.clone())
                    {
                        property.check(&value)?;
                        fields.push((property.name.clone(), value));
                    }
                }
                Some(Value::Object(fields))
            }
        })
    }
}

impl Property {
    fn check(&self, value: &Value) -> Result<()> {
        if self.required && value.is_null() {
            let message = format!("input field `{}` must not be null", self.name);
            return Err(Error::invalid(&self.name, "REQUIRED", message));
        }
        Ok(())
    }
}

pub type VariableRef = apollo_compiler::Node<VariableDefinition>;

/// A value without variables: a default of the schema or of a variable.
pub fn constant(schema: &Schema, ty: &ast::Type, value: &ast::Value) -> Value {
    match (Reader { schema, declared: &[] }).read(ty, value) {
        Input::Constant(value) => value,
        // Validation refuses variables in constants.
        Input::Variable(_) | Input::List { .. } | Input::Object(_) => Value::Null,
    }
}

struct Reader<'a> {
    schema: &'a Schema,
    declared: &'a [VariableRef],
}

impl Reader<'_> {
    fn read(&self, ty: &ast::Type, value: &ast::Value) -> Input {
        if let Some(name) = value.as_variable() {
            return self.variable(name);
        }
        match (ty.is_list(), value.as_list()) {
            (_, _) if value.is_null() => Input::Constant(Value::Null),
            (true, Some(items)) => {
                let required = ty.item_type().is_non_null();
                list(items.iter().map(|item| self.read(ty.item_type(), item)).collect(), required)
            }
            // One value stands for a list of one.
            (true, None) => list(vec![self.read(ty.item_type(), value)], ty.item_type().is_non_null()),
            (false, _) => self.read_named(ty.inner_named_type(), value),
        }
    }

    fn read_named(&self, name: &str, value: &ast::Value) -> Input {
        match (self.schema.types.get(name), value) {
            (Some(ExtendedType::InputObject(definition)), ast::Value::Object(given)) => {
                self.input_object(definition, given)
            }
            // An ID is text, however it is written.
            (_, ast::Value::Int(number)) if name == "ID" => {
                Input::Constant(Value::String(number.as_str().to_owned()))
            }
            _ => self.untyped(value),
        }
    }

    /// Properties in the order of the definition, as graphql-js gives them.
    fn input_object(
        &self,
        definition: &apollo_compiler::schema::InputObjectType,
        given: &[(apollo_compiler::Name, apollo_compiler::Node<ast::Value>)],
    ) -> Input {
        let mut properties = Vec::new();
        for (name, field) in &definition.fields {
            let default = field.default_value.as_ref().map(|value| constant(self.schema, &field.ty, value));
            let input = match (given.iter().find(|(key, _)| key == name), &default) {
                (Some((_, value)), _) => self.read(&field.ty, value),
                (None, Some(default)) => Input::Constant(default.clone()),
                (None, None) => continue,
            };
            let (name, required) = (name.to_string(), field.ty.is_non_null());
            properties.push(Property { name, required, input, default });
        }
        object(properties)
    }

    fn untyped(&self, value: &ast::Value) -> Input {
        match value {
            ast::Value::Null => Input::Constant(Value::Null),
            ast::Value::Boolean(flag) => Input::Constant(Value::Bool(*flag)),
            ast::Value::Int(digits) => number(digits.as_str()),
            ast::Value::Float(digits) => number(digits.as_str()),
            ast::Value::String(text) => Input::Constant(Value::String(text.clone())),
            ast::Value::Enum(name) => Input::Constant(Value::String(name.to_string())),
            ast::Value::Variable(name) => self.variable(name),
            ast::Value::List(items) => list(items.iter().map(|item| self.untyped(item)).collect(), false),
            ast::Value::Object(fields) => object(
                fields
                    .iter()
                    .map(|(name, value)| Property {
                        name: name.to_string(),
                        required: false,
                        input: self.untyped(value),
                        default: None,
                    })
                    .collect(),
            ),
        }
    }

    fn variable(&self, name: &str) -> Input {
        match self.declared.iter().position(|variable| variable.name == name) {
            Some(position) => Input::Variable(position),
            None => Input::Constant(Value::Null),
        }
    }
}

/// The grammar of numbers is that of JSON.
fn number(digits: &str) -> Input {
    Input::Constant(Value::number(digits).unwrap_or(Value::Null))
}

/// Constant as a whole when all its parts are.
fn list(items: Vec<Input>, required: bool) -> Input {
    if items.iter().any(Input::uses_variables) {
        return Input::List { items, required };
    }
    let values = items.into_iter().filter_map(|item| match item {
        Input::Constant(value) => Some(value),
        Input::Variable(_) | Input::List { .. } | Input::Object(_) => None,
    });
    Input::Constant(Value::List(values.collect()))
}

fn object(properties: Vec<Property>) -> Input {
    if properties.iter().any(|property| property.input.uses_variables()) {
        return Input::Object(properties);
    }
    let fields = properties.into_iter().filter_map(|property| match property.input {
        Input::Constant(value) => Some((property.name, value)),
        Input::Variable(_) | Input::List { .. } | Input::Object(_) => None,
    });
    Input::Constant(Value::Object(fields.collect()))
}
