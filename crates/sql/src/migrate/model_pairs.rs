//! Which table, column and link of the new shape continues which of the old one: by name, else by
//! `@renamedFrom`.

use crate::migrate::stored_model::{
    DeleteAction, LinkSide, LinkTable, StoredColumn, StoredModel, StoredTable, StoredType,
};

/// Both shapes, sorted into what stays, what is new and what is gone.
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

pub struct TablePair<'a> {
    pub old: &'a StoredTable,
    pub new: &'a StoredTable,
    pub columns: Vec<(&'a StoredColumn, &'a StoredColumn)>,
    pub new_columns: Vec<&'a StoredColumn>,
    pub removed_columns: Vec<&'a StoredColumn>,
}

pub struct LinkPair<'a> {
    pub old: &'a LinkTable,
    pub new: &'a LinkTable,
    /// The old first side is the new second one.
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
        let (tables, new_tables, gone_tables) =
            match_items(&old.tables, &new.tables, |old, new, pass| match pass {
                MatchPass::ByName => old.name == new.name,
                MatchPass::ByRename => new.renamed_from.as_ref() == Some(&old.name),
            });
        let tables: Vec<_> = tables.into_iter().map(|(old, new)| TablePair::match_tables(old, new)).collect();
        let (links, new_links, gone_links) =
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
        ModelPairs {
            old,
            new,
            tables,
            new_tables,
            removed_tables: gone_tables,
            links,
            new_links,
            removed_links: gone_links,
        }
    }

    /// The tables of removed types, by the names they have until they are dropped: one gives way where
    /// another takes its name.
    pub fn removed_names(&self) -> impl Iterator<Item = (&str, String)> {
        temporary_names(self.removed_tables.iter().map(|gone| gone.table.as_str()), |name| {
            self.new.table_names().any(|new| new.eq_ignore_ascii_case(name))
        })
    }

    /// What a record type of the old shape is called in the new one.
    pub fn new_name(&self, old: &str) -> Option<&'a str> {
        new_name(&self.tables, old)
    }

    /// Whether values of one form stand in the store as values of the other do, but for the members of
    /// enums and embedded types.
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

    /// For two of [`Self::same_form`]: whether a value of the old one may be none of the new one.
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
                let kept = self.new.enums.get(new);
                let values = self.old.enums.get(old).into_iter().flatten();
                values.into_iter().any(|value| kept.is_none_or(|kept| !kept.contains(value)))
            }
            (StoredType::List { item: old, required: was }, StoredType::List { item: new, required }) => {
                (*required && !*was) || self.is_narrowed_within(old, new, seen)
            }
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
        let gone = old.iter().any(|part| new.iter().all(|other| other.name != part.name));
        gone || new.iter().any(|part| match old.iter().find(|other| other.name == part.name) {
            None => part.required,
            Some(was) => {
                (part.required && !was.required)
                    || !self.is_same_type(&was.form, &part.form)
                    || self.is_narrowed_within(&was.form, &part.form, seen)
            }
        })
    }
}

impl<'a> TablePair<'a> {
    fn match_tables(old: &'a StoredTable, new: &'a StoredTable) -> Self {
        let (columns, new_columns, gone_columns) =
            match_items(&old.columns, &new.columns, |old, new, pass| match pass {
                MatchPass::ByName => old.field == new.field,
                MatchPass::ByRename => new.renamed_from.as_ref() == Some(&old.field),
            });
        TablePair { old, new, columns, new_columns, removed_columns: gone_columns }
    }
}

impl TablePair<'_> {
    /// The columns of the old table that the new one has not, by the names they have while it is rebuilt:
    /// one gives way where another takes its name.
    pub fn removed_names(&self) -> impl Iterator<Item = (&str, String)> {
        temporary_names(self.removed_columns.iter().map(|gone| gone.column.as_str()), |name| {
            self.new.columns.iter().any(|new| new.column.eq_ignore_ascii_case(name))
        })
    }
}

fn temporary_names<'n>(
    names: impl Iterator<Item = &'n str>,
    is_taken: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'n str, String)> {
    names.enumerate().map(move |(at, name)| {
        (name, if is_taken(name) { format!("trefoil_gone_{at}") } else { name.to_owned() })
    })
}

/// What deleting the target does, where a form is a reference.
pub fn delete_action(form: &StoredType) -> Option<DeleteAction> {
    match form {
        StoredType::Reference { on_delete, .. } => Some(*on_delete),
        StoredType::Scalar(_) | StoredType::Enum(_) | StoredType::Embedded(_) | StoredType::List { .. } => {
            None
        }
    }
}

#[derive(Clone, Copy)]
enum MatchPass {
    ByName,
    /// Only among those that found no partner by name: after the rename is done, `@renamedFrom` may
    /// stay in the schema and means nothing more.
    ByRename,
}

type MatchedItems<'a, T> = (Vec<(&'a T, &'a T)>, Vec<&'a T>, Vec<&'a T>);

/// Pairs, new ones and gone ones, each in its own order.
fn match_items<'a, T>(
    old: &'a [T],
    new: &'a [T],
    partners: impl Fn(&T, &T, MatchPass) -> bool,
) -> MatchedItems<'a, T> {
    let mut partner: Vec<Option<usize>> = vec![None; new.len()];
    for pass in [MatchPass::ByName, MatchPass::ByRename] {
        for (at, one) in new.iter().enumerate() {
            if partner[at].is_none() {
                let free = |candidate: &usize| !partner.contains(&Some(*candidate));
                partner[at] = (0..old.len()).filter(free).find(|&other| partners(&old[other], one, pass));
            }
        }
    }
    let pairs = partner.iter().zip(new).filter_map(|(found, one)| found.map(|found| (&old[found], one)));
    let fresh = partner.iter().zip(new).filter(|(found, _)| found.is_none()).map(|(_, one)| one);
    let gone = old.iter().enumerate().filter(|(at, _)| !partner.contains(&Some(*at))).map(|(_, one)| one);
    (pairs.collect(), fresh.collect(), gone.collect())
}

fn new_name<'a>(tables: &[TablePair<'a>], old: &str) -> Option<&'a str> {
    tables.iter().find(|pair| pair.old.name == old).map(|pair| pair.new.name.as_str())
}

/// How one link table holds the relation of another.
struct LinkMatch {
    swapped: bool,
    /// A field that shows it has the same name on both, and not only the types are the same.
    by_field: bool,
}

fn match_link(tables: &[TablePair<'_>], old: &LinkTable, new: &LinkTable) -> Option<LinkMatch> {
    let same = |old: &LinkSide, new: &LinkSide| new_name(tables, &old.to) == Some(new.to.as_str());
    let shown = |old: &LinkSide, new: &LinkSide| {
        old.field.is_some() && (old.field == new.field || old.field == new.renamed_from)
    };
    let found = [(&new.first, &new.second, false), (&new.second, &new.first, true)].into_iter().filter_map(
        |(first, second, swapped)| {
            let by_field = shown(&old.first, first) || shown(&old.second, second);
            (same(&old.first, first) && same(&old.second, second)).then_some(LinkMatch { swapped, by_field })
        },
    );
    found.max_by_key(|found| (found.by_field, !found.swapped))
}
