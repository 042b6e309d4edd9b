//! The field that makes up most of an operation's cost, for the error that refuses the operation.

use std::collections::HashSet;

use apollo_compiler::Name;
use apollo_compiler::executable::{Field, Operation, Selection, SelectionSet};

use trefoil_engine::plan::DEFAULT_LIST_LENGTH;

use crate::document::operation_weight::{ListLength, WeightCalculator};
use crate::plan::variable_values::VariableValues;

/// Longer paths help nobody. The document may not be valid: a fragment that contains itself has no end.
const MAX_NAMES: usize = 20;

/// A field as a path from the root, and its percentage of the cost.
pub struct CostliestField {
    pub path: String,
    pub percentage: u64,
}

/// A field of a selection, with the type that has it.
struct SelectedField<'a> {
    parent: &'a Name,
    field: &'a Field,
}

/// Follows the costliest field of each level as long as it is at least half of the whole.
pub fn find_costliest_field<'a>(
    mut calculator: WeightCalculator<'a>,
    operation: &'a Operation,
    variables: Option<&VariableValues>,
) -> Option<CostliestField> {
    let root = calculator.weigh_set(&operation.selection_set, None).cost;
    let mut costs = Vec::new();
    let total = calculator.steps.next_value(&mut costs, root, variables) as f64;
    let (mut names, mut percentage, mut copies) = (Vec::new(), 0, 1.0);
    let (mut set, mut inherited): (&SelectionSet, Option<ListLength>) = (&operation.selection_set, None);
    while names.len() < MAX_NAMES {
        let mut fields = Vec::new();
        collect_fields(&calculator, set, &mut HashSet::new(), &mut fields);
        let mut costliest: Option<(f64, SelectedField<'a>)> = None;
        for selected in
            fields.into_iter().filter(|selected| !selected.field.selection_set.selections.is_empty())
        {
            let cost = calculator.weigh_field(selected.parent, selected.field, inherited).cost;
            let cost = calculator.steps.next_value(&mut costs, cost, variables) as f64 * copies;
            if costliest.as_ref().is_none_or(|(most, _)| cost > *most) {
                costliest = Some((cost, selected));
            }
        }
        let Some((cost, SelectedField { parent, field })) = costliest.filter(|(cost, _)| cost * 2.0 >= total)
        else {
            break;
        };
        names.push(field.name.as_str());
        percentage = ((cost / total * 100.0).round() as u64).min(100);
        let own_length = calculator.list_length(parent, field);
        let is_unlimited = calculator.is_unlimited(parent, field);
        calculator.unlimited_lists += usize::from(is_unlimited);
        if field.ty().is_list() {
            let length =
                own_length.or(inherited).and_then(|length| calculator.steps.length(length, variables));
            copies *= length.unwrap_or(DEFAULT_LIST_LENGTH) as f64;
        }
        (set, inherited) = (&field.selection_set, own_length.filter(|_| !field.ty().is_list()));
    }
    (!names.is_empty()).then(|| CostliestField { path: names.join("."), percentage })
}

/// The fields of a selection, through its fragments, each of them once.
fn collect_fields<'a>(
    calculator: &WeightCalculator<'a>,
    set: &'a SelectionSet,
    seen: &mut HashSet<&'a Name>,
    fields: &mut Vec<SelectedField<'a>>,
) {
    for selection in &set.selections {
        match selection {
            Selection::Field(field) => fields.push(SelectedField { parent: &set.ty, field }),
            Selection::InlineFragment(fragment) => {
                collect_fields(calculator, &fragment.selection_set, seen, fields);
            }
            Selection::FragmentSpread(spread) => {
                if let Some(fragment) = calculator.document.fragments.get(&spread.fragment_name)
                    && seen.insert(&spread.fragment_name)
                {
                    collect_fields(calculator, &fragment.selection_set, seen, fields);
                }
            }
        }
    }
}
