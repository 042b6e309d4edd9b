//! Depth, aliases and cost of an operation, computed once for all its requests.

use std::collections::HashMap;

use apollo_compiler::executable::{Field, Operation, Selection, SelectionSet};
use apollo_compiler::{ExecutableDocument, Name, ast};

use trefoil_config::ServerLimits;
use trefoil_engine::RelationLengths;
use trefoil_engine::arguments::argument_roles::is_length_argument;
use trefoil_engine::plan::{DEFAULT_LIST_LENGTH, MAX_MEASURED_LISTS};
use trefoil_model::{FieldId, Model, RecordType, Value};

use crate::plan::input::VariableNode;
use crate::plan::variable_values::VariableValues;

/// These lists of types lead to types again, so responses grow exponentially with the nesting. graphql-js has the same
/// limit.
const INTROSPECTION_LIST_FIELDS: [&str; 4] = ["fields", "interfaces", "possibleTypes", "inputFields"];

/// The weight of an operation. Fragments count at every spread.
#[derive(Debug)]
pub struct OperationWeight {
    pub depth: u64,
    pub aliases: u64,
    /// Nesting of type lists in introspection.
    pub introspection_lists: u64,
    cost: SelectionCost,
    steps: CostSteps,
}

/// The costs that depend on variables.
#[derive(Debug)]
pub(super) struct CostSteps {
    /// Each uses only those before it.
    steps: Vec<CostStep>,
    lengths: Vec<LargestLength>,
    /// Maximum of a length argument; the engine rejects higher values.
    max_length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SelectionCost {
    Fixed(u64),
    /// A position in [`CostSteps::steps`].
    Step(usize),
}

#[derive(Debug)]
enum CostStep {
    Sum {
        fixed: u64,
        steps: Vec<usize>,
    },
    /// A field with what is selected of each of its records.
    List {
        own_length: Option<ListLength>,
        inherited: Option<ListLength>,
        children: SelectionCost,
    },
}

/// The maximum length of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ListLength {
    Fixed(u64),
    /// A position in [`CostSteps::lengths`].
    Variable(usize),
}

/// The greatest of several lengths, of which some are variables.
#[derive(Debug, PartialEq, Eq)]
struct LargestLength {
    fixed: Option<u64>,
    variables: Vec<LengthVariable>,
}

/// A variable that is a length, or an object with lengths.
#[derive(Debug, PartialEq, Eq)]
struct LengthVariable {
    position: usize,
    /// The members that are lengths; `None` if the variable itself is one.
    members: Option<Vec<Name>>,
}

impl OperationWeight {
    /// `lengths` are those of lists of related records without a limit.
    pub fn new(
        model: &Model,
        document: &ExecutableDocument,
        operation: &Operation,
        limits: &ServerLimits,
        lengths: &RelationLengths,
    ) -> OperationWeight {
        let mut calculator = WeightCalculator::new(model, document, operation, limits, lengths);
        let SelectionWeight { depth, aliases, lists, cost } =
            calculator.weigh_set(&operation.selection_set, None);
        OperationWeight { depth, aliases, introspection_lists: lists, cost, steps: calculator.steps }
    }

    pub fn depends_on_variables(&self) -> bool {
        matches!(self.cost, SelectionCost::Step(_))
    }

    /// Without `variables`, lists whose length is a variable count once.
    pub fn cost(&self, variables: Option<&VariableValues>) -> u64 {
        self.steps.value(self.cost, variables)
    }
}

impl CostSteps {
    fn value(&self, cost: SelectionCost, variables: Option<&VariableValues>) -> u64 {
        self.next_value(&mut Vec::with_capacity(self.steps.len()), cost, variables)
    }

    /// The value of a cost; `costs` has those of the first steps, and gets those of the others.
    pub(super) fn next_value(
        &self,
        costs: &mut Vec<u64>,
        cost: SelectionCost,
        variables: Option<&VariableValues>,
    ) -> u64 {
        for step in &self.steps[costs.len()..] {
            let cost = match step {
                CostStep::Sum { fixed, steps } => {
                    steps.iter().fold(*fixed, |sum, step| sum.saturating_add(costs[*step]))
                }
                CostStep::List { own_length, inherited, children } => {
                    let length = |length: &Option<ListLength>| self.length((*length)?, variables);
                    let length = length(own_length).or_else(|| length(inherited));
                    list_cost(length, cost_value(costs, *children))
                }
            };
            costs.push(cost);
        }
        cost_value(costs, cost)
    }

    pub(super) fn length(&self, length: ListLength, variables: Option<&VariableValues>) -> Option<u64> {
        let position = match length {
            ListLength::Fixed(length) => return Some(length),
            ListLength::Variable(position) => position,
        };
        let LargestLength { fixed, variables: sources } = &self.lengths[position];
        let given = sources.iter().filter_map(|source| match variables {
            Some(variables) => source.length(variables),
            None => source.members.is_none().then_some(1),
        });
        given.chain(*fixed).max().map(|length| length.min(self.max_length))
    }
}

fn cost_value(costs: &[u64], cost: SelectionCost) -> u64 {
    match cost {
        SelectionCost::Fixed(cost) => cost,
        SelectionCost::Step(position) => costs[position],
    }
}

/// The cost of a field that lists so many records, each of which costs as much as its children.
fn list_cost(length: Option<u64>, children: u64) -> u64 {
    children.saturating_mul(length.unwrap_or(DEFAULT_LIST_LENGTH)).saturating_add(1)
}

impl LengthVariable {
    fn length(&self, variables: &VariableValues) -> Option<u64> {
        let number = |value: &Value| value.as_i64().map(|number| u64::try_from(number).unwrap_or(0));
        let value = variables.get(self.position)?;
        match &self.members {
            None => number(value),
            Some(members) => members.iter().filter_map(|name| number(value.get(name)?)).max(),
        }
    }
}

/// The weight of a part of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct SelectionWeight {
    depth: u64,
    aliases: u64,
    lists: u64,
    pub(super) cost: SelectionCost,
}

impl SelectionWeight {
    const NOTHING: SelectionWeight =
        SelectionWeight { depth: 0, aliases: 0, lists: 0, cost: SelectionCost::Fixed(0) };
}

pub(super) struct WeightCalculator<'a> {
    model: &'a Model,
    pub(super) document: &'a ExecutableDocument,
    variable_definitions: &'a [VariableNode],
    relation_lengths: &'a RelationLengths,
    /// The lists of related records without a limit that the current selection is inside of.
    pub(super) unlimited_lists: usize,
    pub(super) steps: CostSteps,
    /// Weights of fragments by name, inherited length and lists around them; `None` while a weight is being computed.
    fragment_weights: HashMap<(&'a Name, Option<ListLength>, usize), Option<SelectionWeight>>,
}

impl<'a> WeightCalculator<'a> {
    pub(super) fn new(
        model: &'a Model,
        document: &'a ExecutableDocument,
        operation: &'a Operation,
        limits: &ServerLimits,
        relation_lengths: &'a RelationLengths,
    ) -> WeightCalculator<'a> {
        let max_length = limits.max_page_size as u64;
        WeightCalculator {
            model,
            document,
            variable_definitions: &operation.variables,
            relation_lengths,
            unlimited_lists: 0,
            steps: CostSteps { steps: Vec::new(), lengths: Vec::new(), max_length },
            fragment_weights: HashMap::new(),
        }
    }

    /// `inherited` is the maximum length of the lists of a connection, from the arguments of the connection field.
    pub(super) fn weigh_set(
        &mut self,
        set: &'a SelectionSet,
        inherited: Option<ListLength>,
    ) -> SelectionWeight {
        let mut sum = SelectionWeight::NOTHING;
        let (mut fixed, mut steps) = (0_u64, Vec::new());
        for selection in &set.selections {
            let part = match selection {
                Selection::Field(field) => self.weigh_field(&set.ty, field, inherited),
                Selection::InlineFragment(fragment) => self.weigh_set(&fragment.selection_set, inherited),
                Selection::FragmentSpread(spread) => self.weigh_fragment(&spread.fragment_name, inherited),
            };
            sum.depth = sum.depth.max(part.depth);
            sum.aliases = sum.aliases.saturating_add(part.aliases);
            sum.lists = sum.lists.max(part.lists);
            match part.cost {
                SelectionCost::Fixed(cost) => fixed = fixed.saturating_add(cost),
                SelectionCost::Step(step) => steps.push(step),
            }
        }
        sum.cost = match steps.is_empty() {
            true => SelectionCost::Fixed(fixed),
            false => self.add_step(CostStep::Sum { fixed, steps }),
        };
        sum
    }

    fn add_step(&mut self, step: CostStep) -> SelectionCost {
        self.steps.steps.push(step);
        SelectionCost::Step(self.steps.steps.len() - 1)
    }

    fn weigh_fragment(&mut self, name: &'a Name, inherited: Option<ListLength>) -> SelectionWeight {
        let key = (name, inherited, self.unlimited_lists.min(MAX_MEASURED_LISTS));
        if let Some(known) = self.fragment_weights.get(&key) {
            return known.unwrap_or(SelectionWeight::NOTHING);
        }
        let Some(fragment) = self.document.fragments.get(name) else { return SelectionWeight::NOTHING };
        self.fragment_weights.insert(key, None);
        let weight = self.weigh_set(&fragment.selection_set, inherited);
        self.fragment_weights.insert(key, Some(weight));
        weight
    }

    pub(super) fn weigh_field(
        &mut self,
        parent: &str,
        field: &'a Field,
        inherited: Option<ListLength>,
    ) -> SelectionWeight {
        let own_length = self.list_length(parent, field);
        let is_list = field.ty().is_list();
        let is_unlimited = self.is_unlimited(parent, field);
        self.unlimited_lists += usize::from(is_unlimited);
        let children = self.weigh_set(&field.selection_set, if is_list { None } else { own_length });
        self.unlimited_lists -= usize::from(is_unlimited);
        let aliases = children.aliases.saturating_add(u64::from(field.alias.is_some()));
        let lists = children.lists
            + u64::from(parent == "__Type" && INTROSPECTION_LIST_FIELDS.contains(&field.name.as_str()));
        // Introspection is limited only by its nesting of lists.
        if field.name.starts_with("__") {
            return SelectionWeight { depth: 0, aliases, lists, cost: SelectionCost::Fixed(0) };
        }
        let cost = match is_list {
            true => self.list_cost(own_length, inherited, children.cost),
            false => self.list_cost(Some(ListLength::Fixed(1)), None, children.cost),
        };
        SelectionWeight { depth: children.depth.saturating_add(1), aliases, lists, cost }
    }

    fn list_cost(
        &mut self,
        own_length: Option<ListLength>,
        inherited: Option<ListLength>,
        children: SelectionCost,
    ) -> SelectionCost {
        match (own_length, inherited, children) {
            // Nothing is selected of the records.
            (_, _, SelectionCost::Fixed(0)) => SelectionCost::Fixed(1),
            (Some(ListLength::Fixed(length)), _, SelectionCost::Fixed(children))
            | (None, Some(ListLength::Fixed(length)), SelectionCost::Fixed(children)) => {
                SelectionCost::Fixed(list_cost(Some(length), children))
            }
            (None, None, SelectionCost::Fixed(children)) => SelectionCost::Fixed(list_cost(None, children)),
            (_, _, SelectionCost::Step(_))
            | (Some(ListLength::Variable(_)), _, _)
            | (_, Some(ListLength::Variable(_)), _) => {
                self.add_step(CostStep::List { own_length, inherited, children })
            }
        }
    }

    /// The length that the arguments of a field give, or the store for a list of related records.
    pub(super) fn list_length(&mut self, parent: &str, field: &Field) -> Option<ListLength> {
        self.argument_length(field).or_else(|| self.relation_length(parent, field))
    }

    /// True for a list of related records whose length no argument gives.
    pub(super) fn is_unlimited(&mut self, parent: &str, field: &Field) -> bool {
        self.argument_length(field).is_none() && self.relation_length(parent, field).is_some()
    }

    fn relation_length(&self, parent: &str, field: &Field) -> Option<ListLength> {
        let owner = self.model.find_record(parent)?;
        if !field.ty().is_list() && self.model.connection_node(field.ty().inner_named_type()).is_none() {
            return None;
        }
        let mut fields = self.model.record(owner).fields.iter();
        let relation =
            fields.position(|own| own.name == field.name.as_str() && own.kind.relation().is_some())?;
        let length = self.relation_lengths.expected(owner, FieldId(relation), self.unlimited_lists);
        Some(ListLength::Fixed(length))
    }

    fn argument_length(&mut self, field: &Field) -> Option<ListLength> {
        if field.definition.arguments.is_empty() {
            return None;
        }
        let record = list_record(self.model, field);
        let mut length = LargestLength { fixed: None, variables: Vec::new() };
        for argument in &field.definition.arguments {
            let specified = field.specified_argument_by_name(&argument.name);
            if let Some(value) = specified.or(argument.default_value.as_ref()) {
                self.add_argument(record, &argument.name, value, &mut length);
            }
        }
        if length.variables.is_empty() {
            return length.fixed.map(|fixed| ListLength::Fixed(fixed.min(self.steps.max_length)));
        }
        // Equal lengths are the same one, so that a fragment is weighed once for each length that differs.
        let lengths = &mut self.steps.lengths;
        let known = lengths.iter().position(|known| *known == length);
        Some(ListLength::Variable(known.unwrap_or_else(|| {
            lengths.push(length);
            lengths.len() - 1
        })))
    }

    /// Adds the length that an argument gives, by itself or inside an input object.
    fn add_argument(
        &self,
        record: Option<&RecordType>,
        name: &str,
        value: &ast::Value,
        length: &mut LargestLength,
    ) {
        match value {
            ast::Value::Variable(variable) => {
                let mut definitions = self.variable_definitions.iter();
                let Some(position) = definitions.position(|definition| definition.name == *variable) else {
                    return;
                };
                let type_name = self.variable_definitions[position].ty.inner_named_type();
                let members = self.length_members(record, type_name);
                let holds_length = match &members {
                    Some(members) => !members.is_empty(),
                    None => is_length_argument(record, name),
                };
                if holds_length {
                    length.variables.push(LengthVariable { position, members });
                }
            }
            ast::Value::Object(members) => {
                for (name, value) in members.iter().filter(|(name, _)| is_length_argument(record, name)) {
                    self.add_argument(record, name, value, length);
                }
            }
            ast::Value::Int(number) => {
                let number = number.try_to_i32().ok().filter(|_| is_length_argument(record, name));
                let number = number.map(|number| u64::try_from(number).unwrap_or(0));
                length.fixed = length.fixed.max(number);
            }
            ast::Value::Null
            | ast::Value::Enum(_)
            | ast::Value::String(_)
            | ast::Value::Float(_)
            | ast::Value::Boolean(_)
            | ast::Value::List(_) => {}
        }
    }

    /// The members of an input type that are lengths; `None` if it is another type.
    fn length_members(&self, record: Option<&RecordType>, type_name: &str) -> Option<Vec<Name>> {
        let members = self.model.schema.get_input_object(type_name)?.fields.keys();
        Some(members.filter(|name| is_length_argument(record, name)).cloned().collect())
    }
}

/// The type of the records that a field lists.
fn list_record<'m>(model: &'m Model, field: &Field) -> Option<&'m RecordType> {
    let name = field.ty().inner_named_type();
    let record = model.find_record(name).or_else(|| model.connection_node(name));
    record.map(|record| model.record(record))
}
