//! Matches the tables, columns and links of two stored models: by name, else by `@renamedFrom`.

use crate::migrate::stored_model::{
    DeleteAction, LinkSide, LinkTable, StoredColumn, StoredModel, StoredTable, StoredType,
};

/// The matched, new and removed tables and links of two stored models.
pub struct ModelPairs<'a> {
    pub old: &'a StoredModel,
    pub new: &'a StoredModel,
    pub tables: Vec<TablePair<'a>>,
    pub new_tables: Vec<&'a StoredTable>,
    pub removed_tables: Vec<&'a StoredTable>,
    pub links: Vec<LinkPair<'a>>,
    pub new_links: Vec<&'a LinkTable>,
    pub removed_links: Vec<&'a LinkTable>,
}

/// A table of the old model and its successor in the new one.
pub struct TablePair<'a> {
    pub old: &'a StoredTable,
    pub new: &'a StoredTable,
    pub columns: Vec<(&'a StoredColumn, &'a StoredColumn)>,
    pub new_columns: Vec<&'a StoredColumn>,
    pub removed_columns: Vec<&'a StoredColumn>,
}

/// A link table of the old model and its successor in the new one.
pub struct LinkPair<'a> {
    pub old: &'a LinkTable,
    pub new: &'a LinkTable,
    /// True if the old first side is the new second one.
    pub swapped: bool,
}

impl<'a> LinkPair<'a> {
    /// The sides of the old link, in the order of the new one.
    pub fn old_sides(&self) -> (&'a LinkSide, &'a LinkSide) {
        match self.swapped {
            false => (&self.old.first, &self.old.second),
            true => (&self.old.second, &self.old.first),
        }
    }
}

impl<'a> ModelPairs<'a> {
    pub fn match_models(old: &'a StoredModel, new: &'a StoredModel) -> Self {
        let (tables, new_tables, removed_tables) =
            match_items(&old.tables, &new.tables, |old, new, pass| match pass {
                MatchPass::ByName => old.name == new.name,
                MatchPass::ByRename => new.renamed_from.as_ref() == Some(&old.name),
            });
        let tables: Vec<_> = tables.into_iter().map(|(old, new)| TablePair::match_tables(old, new)).collect();
        let (links, new_links, removed_links) =
            match_items(&old.links, &new.links, |old, new, pass| match pass {
                MatchPass::ByName => old.table == new.table && match_link(&tables, old, new).is_some(),
                MatchPass::ByRename => {
                    matches!(match_link(&tables, old, new), Some(LinkMatch { by_field: true, .. }))
                }
            });
        let links = links.into_iter().map(|(old, new)| {
            let swapped = match_link(&tables, old, new).is_some_and(|found| found.swapped);
            LinkPair { old, new, swapped }
        });
        let links = links.collect();
        ModelPairs { old, new, tables, new_tables, removed_tables, links, new_links, removed_links }
    }

    /// The tables of removed types, each with the name it has until it is dropped: a temporary one if a new
    /// table takes its name.
    pub fn removed_names(&self) -> impl Iterator<Item = (&str, String)> {
        temporary_names(self.removed_tables.iter().map(|removed| removed.table.as_str()), |name| {
            self.new.table_names().any(|new| new.eq_ignore_ascii_case(name))
        })
    }

    /// The types of accounts before and after, if they are not the same type under any name.
    pub fn moved_accounts(&self) -> Option<(&'a StoredTable, &'a StoredTable)> {
        let accounts = |model: &'a StoredModel| model.tables.iter().find(|table| table.has_accounts);
        let (old, new) = (accounts(self.old)?, accounts(self.new)?);
        let is_same = self.tables.iter().any(|pair| pair.old.name == old.name && pair.new.name == new.name);
        (!is_same).then_some((old, new))
    }

    /// The name in the new model of a record type of the old one.
    pub fn new_name(&self, old: &str) -> Option<&'a str> {
        new_name(&self.tables, old)
    }

    /// True if values of both types are stored alike, apart from the values of enums and the members of
    /// embedded types.
    pub fn is_same_type(&self, old: &StoredType, new: &StoredType) -> bool {
        match (old, new) {
            (StoredType::Scalar(old), StoredType::Scalar(new)) => old == new,
            (StoredType::Enum(_), StoredType::Enum(_))
            | (StoredType::Embedded(_), StoredType::Embedded(_)) => true,
            (StoredType::List { item: old, .. }, StoredType::List { item: new, .. }) => {
                self.is_same_type(old, new)
            }
            (StoredType::Reference { to: old, .. }, StoredType::Reference { to: new, .. }) => {
                self.new_name(old) == Some(new.as_str())
            }
            (
                StoredType::Scalar(_)
                | StoredType::Enum(_)
                | StoredType::Embedded(_)
                | StoredType::List { .. }
                | StoredType::Reference { .. },
                _,
            ) => false,
        }
    }

    /// For types that pass [`Self::is_same_type`]: true if a value of the old type may be invalid in the new one.
    pub fn is_narrowed(&self, old: &StoredType, new: &StoredType) -> bool {
        self.is_narrowed_within(old, new, &mut Vec::new())
    }

    fn is_narrowed_within(
        &self,
        old: &StoredType,
        new: &StoredType,
        seen: &mut Vec<(String, String)>,
    ) -> bool {
        match (old, new) {
            (StoredType::Enum(old), StoredType::Enum(new)) => {
                let allowed = self.new.enums.get(new);
                let values = self.old.enums.get(old).into_iter().flatten();
                values.into_iter().any(|value| allowed.is_none_or(|allowed| !allowed.contains(value)))
            }
            (
                StoredType::List { item: old, required: was_required },
                StoredType::List { item: new, required },
            ) => (*required && !*was_required) || self.is_narrowed_within(old, new, seen),
            (StoredType::Embedded(old), StoredType::Embedded(new)) => {
                // An embedded type may contain itself.
                let pair = (old.clone(), new.clone());
                if seen.contains(&pair) {
                    return false;
                }
                seen.push(pair);
                self.is_embedded_narrowed(old, new, seen)
            }
            (StoredType::Scalar(_) | StoredType::Reference { .. }, _) => false,
            (StoredType::Enum(_) | StoredType::List { .. } | StoredType::Embedded(_), _) => true,
        }
    }

    fn is_embedded_narrowed(&self, old: &str, new: &str, seen: &mut Vec<(String, String)>) -> bool {
        let old = self.old.embedded.get(old).map_or(&[][..], Vec::as_slice);
        let new = self.new.embedded.get(new).map_or(&[][..], Vec::as_slice);
        let removed = old.iter().any(|member| new.iter().all(|other| other.name != member.name));
        removed
            || new.iter().any(|member| match old.iter().find(|other| other.name == member.name) {
                None => member.required,
                Some(old_member) => {
                    (member.required && !old_member.required)
                        || !self.is_same_type(&old_member.form, &member.form)
                        || self.is_narrowed_within(&old_member.form, &member.form, seen)
                }
            })
    }
}

impl<'a> TablePair<'a> {
    fn match_tables(old: &'a StoredTable, new: &'a StoredTable) -> Self {
        let (columns, new_columns, removed_columns) =
            match_items(&old.columns, &new.columns, |old, new, pass| match pass {
                MatchPass::ByName => old.field == new.field,
                MatchPass::ByRename => new.renamed_from.as_ref() == Some(&old.field),
            });
        TablePair { old, new, columns, new_columns, removed_columns }
    }
}

impl TablePair<'_> {
    /// The removed columns, each with the name it has while the table is changed: a temporary one if a new
    /// column takes its name.
    pub fn removed_names(&self) -> impl Iterator<Item = (&str, String)> {
        temporary_names(self.removed_columns.iter().map(|removed| removed.column.as_str()), |name| {
            self.new.columns.iter().any(|new| new.column.eq_ignore_ascii_case(name))
        })
    }
}

fn temporary_names<'n>(
    names: impl Iterator<Item = &'n str>,
    is_taken: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'n str, String)> {
    names.enumerate().map(move |(number, name)| {
        (name, if is_taken(name) { format!("trefoil_gone_{number}") } else { name.to_owned() })
    })
}

/// The action when the target of a reference is deleted; `None` if the type is not a reference.
pub fn delete_action(stored_type: &StoredType) -> Option<DeleteAction> {
    match stored_type {
        StoredType::Reference { on_delete, .. } => Some(*on_delete),
        StoredType::Scalar(_) | StoredType::Enum(_) | StoredType::Embedded(_) | StoredType::List { .. } => {
            None
        }
    }
}

#[derive(Clone, Copy)]
enum MatchPass {
    ByName,
    /// Only among items without a match by name: after the rename, `@renamedFrom` may stay in the schema
    /// and has no effect.
    ByRename,
}

/// Pairs, new items and removed items.
type MatchedItems<'a, T> = (Vec<(&'a T, &'a T)>, Vec<&'a T>, Vec<&'a T>);

/// The pairs, the new items and the removed items, each in the order of its input.
fn match_items<'a, T>(
    old: &'a [T],
    new: &'a [T],
    is_match: impl Fn(&T, &T, MatchPass) -> bool,
) -> MatchedItems<'a, T> {
    let mut matches: Vec<Option<usize>> = vec![None; new.len()];
    for pass in [MatchPass::ByName, MatchPass::ByRename] {
        for (position, item) in new.iter().enumerate() {
            if matches[position].is_none() {
                let is_free = |candidate: &usize| !matches.contains(&Some(*candidate));
                matches[position] =
                    (0..old.len()).filter(is_free).find(|&other| is_match(&old[other], item, pass));
            }
        }
    }
    let pairs = matches.iter().zip(new).filter_map(|(found, item)| found.map(|found| (&old[found], item)));
    let added = matches.iter().zip(new).filter(|(found, _)| found.is_none()).map(|(_, item)| item);
    let removed = old
        .iter()
        .enumerate()
        .filter(|(position, _)| !matches.contains(&Some(*position)))
        .map(|(_, item)| item);
    (pairs.collect(), added.collect(), removed.collect())
}

fn new_name<'a>(tables: &[TablePair<'a>], old: &str) -> Option<&'a str> {
    tables.iter().find(|pair| pair.old.name == old).map(|pair| pair.new.name.as_str())
}

/// How a link table of the old model matches one of the new model.
struct LinkMatch {
    swapped: bool,
    /// True if a field that shows the link has the same name in both models, not only the types match.
    by_field: bool,
}

fn match_link(tables: &[TablePair<'_>], old: &LinkTable, new: &LinkTable) -> Option<LinkMatch> {
    let is_same_type = |old: &LinkSide, new: &LinkSide| new_name(tables, &old.to) == Some(new.to.as_str());
    let is_same_field = |old: &LinkSide, new: &LinkSide| {
        old.field.is_some() && (old.field == new.field || old.field == new.renamed_from)
    };
    let found = [(&new.first, &new.second, false), (&new.second, &new.first, true)].into_iter().filter_map(
        |(first, second, swapped)| {
            let by_field = is_same_field(&old.first, first) || is_same_field(&old.second, second);
            (is_same_type(&old.first, first) && is_same_type(&old.second, second))
                .then_some(LinkMatch { swapped, by_field })
        },
    );
    found.max_by_key(|found| (found.by_field, !found.swapped))
}
