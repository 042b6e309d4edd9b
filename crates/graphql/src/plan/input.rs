//! Argument values of a document: constants are coerced once, variables are inserted for each request.

use apollo_compiler::ast::{self, InputValueDefinition, VariableDefinition};
use apollo_compiler::schema::{ExtendedType, InputObjectType};
use apollo_compiler::{Name, Node, Schema};

use trefoil_model::Value;
use trefoil_model::error::{Error, Result};

use crate::plan::variable_values::VariableValues;

/// The arguments of a field, in the order of its definition.
#[derive(Debug, Clone, Default)]
pub struct FieldArguments(pub Vec<FieldArgument>);

#[derive(Debug, Clone)]
pub struct FieldArgument {
    pub name: String,
    /// Its index in the field's definition.
    pub position: usize,
    pub required: bool,
    pub input: InputExpression,
    pub default: Option<Value>,
}

/// A value that may contain variables.
#[derive(Debug, Clone)]
pub enum InputExpression {
    Constant(Value),
    /// Index in the operation's variable definitions.
    Variable(usize),
    List {
        items: Vec<InputExpression>,
        required: bool,
    },
    Object(Vec<InputProperty>),
}

#[derive(Debug, Clone)]
pub struct InputProperty {
    name: String,
    required: bool,
    input: InputExpression,
    default: Option<Value>,
}

impl FieldArguments {
    pub fn read(
        schema: &Schema,
        variable_definitions: &[VariableNode],
        definitions: &[Node<InputValueDefinition>],
        nodes: &[Node<ast::Argument>],
    ) -> FieldArguments {
        let mut arguments = Vec::new();
        for (position, definition) in definitions.iter().enumerate() {
            let default =
                definition.default_value.as_ref().map(|value| constant_value(schema, &definition.ty, value));
            let node = nodes.iter().find(|argument| argument.name == definition.name);
            let input = match (node, &default) {
                (Some(argument), _) => {
                    InputReader { schema, variable_definitions }.read(&definition.ty, &argument.value)
                }
                (None, Some(default)) => InputExpression::Constant(default.clone()),
                (None, None) => continue,
            };
            let (name, required) = (definition.name.to_string(), definition.ty.is_non_null());
            arguments.push(FieldArgument { name, position, required, input, default });
        }
        FieldArguments(arguments)
    }

    pub fn uses_variables(&self) -> bool {
        self.0.iter().any(|argument| argument.input.uses_variables())
    }

    /// The position and the value of the only argument, if it is given as a variable.
    pub fn only_variable<'v>(&self, variables: &'v VariableValues) -> Option<(usize, &'v Value)> {
        let [FieldArgument { position, input: InputExpression::Variable(variable), .. }] = self.0.as_slice()
        else {
            return None;
        };
        Some((*position, variables.get(*variable)?))
    }

    /// The values of the arguments by position in the definition, without absent ones.
    pub fn values_by_position(&self, variables: &VariableValues) -> Result<Vec<(usize, Value)>> {
        self.values(variables)
            .map(|value| value.map(|(argument, value)| (argument.position, value)))
            .collect()
    }

    pub fn values_by_name(&self, variables: &VariableValues) -> Result<Vec<(String, Value)>> {
        self.values(variables)
            .map(|value| value.map(|(argument, value)| (argument.name.clone(), value)))
            .collect()
    }

    fn values(&self, variables: &VariableValues) -> impl Iterator<Item = Result<(&FieldArgument, Value)>> {
        self.0.iter().filter_map(|argument| argument.resolve(variables).transpose())
    }
}

impl FieldArgument {
    fn resolve(&self, variables: &VariableValues) -> Result<Option<(&FieldArgument, Value)>> {
        let value = self.input.resolve(variables)?.or_else(|| self.default.clone());
        if self.required && value.as_ref().is_some_and(Value::is_null) {
            let message = format!("argument `{}` must not be null", self.name);
            return Err(Error::invalid(&self.name, "REQUIRED", message));
        }
        Ok(value.map(|value| (self, value)))
    }
}

impl InputExpression {
    fn uses_variables(&self) -> bool {
        match self {
            InputExpression::Constant(_) => false,
            InputExpression::Variable(_) | InputExpression::List { .. } | InputExpression::Object(_) => true,
        }
    }

    /// `None` for an absent variable.
    fn resolve(&self, variables: &VariableValues) -> Result<Option<Value>> {
        Ok(match self {
            InputExpression::Constant(value) => Some(value.clone()),
            InputExpression::Variable(position) => variables.get(*position).cloned(),
            InputExpression::List { items, required } => {
                let items = items.iter().map(|item| {
                    let value = item.resolve(variables)?.unwrap_or(Value::Null);
                    if *required && value.is_null() {
                        let message = "an element of this list must not be null";
                        return Err(Error::invalid("[]", "REQUIRED", message));
                    }
                    Ok(value)
                });
                Some(Value::List(items.collect::<Result<_>>()?))
            }
            InputExpression::Object(properties) => {
                let mut fields = Vec::with_capacity(properties.len());
                for property in properties {
                    if let Some(value) =
                        property.input.resolve(variables)?.or_else(|| property.default.clone())
                    {
                        property.check_null(&value)?;
                        fields.push((property.name.clone(), value));
                    }
                }
                Some(Value::Object(fields))
            }
        })
    }
}

impl InputProperty {
    fn check_null(&self, value: &Value) -> Result<()> {
        if self.required && value.is_null() {
            let message = format!("input field `{}` must not be null", self.name);
            return Err(Error::invalid(&self.name, "REQUIRED", message));
        }
        Ok(())
    }
}

pub type VariableNode = Node<VariableDefinition>;

/// A value without variables: the default of an argument, input field or variable.
pub fn constant_value(schema: &Schema, ty: &ast::Type, value: &ast::Value) -> Value {
    match (InputReader { schema, variable_definitions: &[] }).read(ty, value) {
        InputExpression::Constant(value) => value,
        // Validation rejects variables in constants.
        InputExpression::Variable(_) | InputExpression::List { .. } | InputExpression::Object(_) => {
            Value::Null
        }
    }
}

struct InputReader<'a> {
    schema: &'a Schema,
    variable_definitions: &'a [VariableNode],
}

impl InputReader<'_> {
    fn read(&self, ty: &ast::Type, value: &ast::Value) -> InputExpression {
        if let Some(name) = value.as_variable() {
            return self.read_variable(name);
        }
        match (ty.is_list(), value.as_list()) {
            (_, _) if value.is_null() => InputExpression::Constant(Value::Null),
            (true, Some(items)) => {
                let required = ty.item_type().is_non_null();
                list_expression(items.iter().map(|item| self.read(ty.item_type(), item)).collect(), required)
            }
            // A single value is coerced to a list of one.
            (true, None) => {
                list_expression(vec![self.read(ty.item_type(), value)], ty.item_type().is_non_null())
            }
            (false, _) => self.read_named(ty.inner_named_type(), value),
        }
    }

    fn read_named(&self, name: &str, value: &ast::Value) -> InputExpression {
        match (self.schema.types.get(name), value) {
            (Some(ExtendedType::InputObject(definition)), ast::Value::Object(fields)) => {
                self.read_object(definition, fields)
            }
            // An ID may be written as an integer, but is a string.
            (_, ast::Value::Int(number)) if name == "ID" => {
                InputExpression::Constant(Value::String(number.as_str().to_owned()))
            }
            _ => self.read_untyped(value),
        }
    }

    /// Properties in the order of the definition, as in graphql-js.
    fn read_object(
        &self,
        definition: &InputObjectType,
        fields: &[(Name, Node<ast::Value>)],
    ) -> InputExpression {
        let mut properties = Vec::new();
        for (name, field) in &definition.fields {
            let default =
                field.default_value.as_ref().map(|value| constant_value(self.schema, &field.ty, value));
            let input = match (fields.iter().find(|(key, _)| key == name), &default) {
                (Some((_, value)), _) => self.read(&field.ty, value),
                (None, Some(default)) => InputExpression::Constant(default.clone()),
                (None, None) => continue,
            };
            let (name, required) = (name.to_string(), field.ty.is_non_null());
            properties.push(InputProperty { name, required, input, default });
        }
        object_expression(properties)
    }

    fn read_untyped(&self, value: &ast::Value) -> InputExpression {
        match value {
            ast::Value::Null => InputExpression::Constant(Value::Null),
            ast::Value::Boolean(flag) => InputExpression::Constant(Value::Bool(*flag)),
            ast::Value::Int(digits) => parse_number(digits.as_str()),
            ast::Value::Float(digits) => parse_number(digits.as_str()),
            ast::Value::String(text) => InputExpression::Constant(Value::String(text.clone())),
            ast::Value::Enum(name) => InputExpression::Constant(Value::String(name.to_string())),
            ast::Value::Variable(name) => self.read_variable(name),
            ast::Value::List(items) => {
                list_expression(items.iter().map(|item| self.read_untyped(item)).collect(), false)
            }
            ast::Value::Object(fields) => object_expression(
                fields
                    .iter()
                    .map(|(name, value)| InputProperty {
                        name: name.to_string(),
                        required: false,
                        input: self.read_untyped(value),
                        default: None,
                    })
                    .collect(),
            ),
        }
    }

    fn read_variable(&self, name: &str) -> InputExpression {
        match self.variable_definitions.iter().position(|variable| variable.name == name) {
            Some(position) => InputExpression::Variable(position),
            None => InputExpression::Constant(Value::Null),
        }
    }
}

/// Numbers have the same grammar as in JSON.
fn parse_number(digits: &str) -> InputExpression {
    InputExpression::Constant(Value::number(digits).unwrap_or(Value::Null))
}

/// A constant if all items are constants.
fn list_expression(items: Vec<InputExpression>, required: bool) -> InputExpression {
    if items.iter().any(InputExpression::uses_variables) {
        return InputExpression::List { items, required };
    }
    let values = items.into_iter().filter_map(|item| match item {
        InputExpression::Constant(value) => Some(value),
        InputExpression::Variable(_) | InputExpression::List { .. } | InputExpression::Object(_) => None,
    });
    InputExpression::Constant(Value::List(values.collect()))
}

fn object_expression(properties: Vec<InputProperty>) -> InputExpression {
    if properties.iter().any(|property| property.input.uses_variables()) {
        return InputExpression::Object(properties);
    }
    let fields = properties.into_iter().filter_map(|property| match property.input {
        InputExpression::Constant(value) => Some((property.name, value)),
        InputExpression::Variable(_) | InputExpression::List { .. } | InputExpression::Object(_) => None,
    });
    InputExpression::Constant(Value::Object(fields.collect()))
}
