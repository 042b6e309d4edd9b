//! Lists the changes between two stored models, without reading any rows.

use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair, delete_action};
use crate::migrate::stored_model::{
    LinkTable, LoggedChanges, StoredColumn, StoredIndex, StoredModel, StoredTable,
};

/// One change and its subject: `User.email`, `User`.
#[derive(Debug, PartialEq)]
pub struct ModelChange<'a> {
    pub subject: String,
    pub detail: ChangeDetail<'a>,
}

#[derive(Debug, PartialEq)]
pub enum ChangeDetail<'a> {
    NewType,
    RemovedType {
        old: &'a StoredTable,
    },
    RenamedType {
        old: &'a StoredTable,
    },
    /// Other ids than before.
    ChangedKey {
        old: &'a StoredTable,
        new: &'a StoredTable,
    },
    NewField {
        table: &'a StoredTable,
        new: &'a StoredColumn,
    },
    RemovedField {
        table: &'a StoredTable,
        old: &'a StoredColumn,
    },
    RenamedField {
        old: &'a StoredColumn,
    },
    /// The same field, whose column had another name in earlier versions.
    RenamedColumn {
        new: &'a StoredColumn,
    },
    /// A type whose values are stored in another form.
    ChangedType {
        table: &'a StoredTable,
        old: &'a StoredColumn,
        new: &'a StoredColumn,
    },
    /// The same type, but an enum or embedded type allows fewer values than before.
    Narrowed {
        table: &'a StoredTable,
        old: &'a StoredColumn,
        new: &'a StoredColumn,
    },
    BecameRequired {
        table: &'a StoredTable,
        old: &'a StoredColumn,
        new: &'a StoredColumn,
    },
    BecameOptional,
    ChangedDefault {
        new: &'a StoredColumn,
    },
    ChangedOnDelete {
        new: &'a StoredColumn,
    },
    /// The columns of the index as they are and as they will be; the first is `None` if the column is new.
    NewIndex {
        table: &'a StoredTable,
        index: &'a StoredIndex,
        columns: Vec<(Option<&'a StoredColumn>, Option<&'a StoredColumn>)>,
    },
    RemovedIndex {
        index: &'a StoredIndex,
    },
    /// The columns of the full-text index; empty if there is none any more.
    ChangedSearch {
        columns: &'a [String],
    },
    NewLink,
    RemovedLink {
        old: &'a LinkTable,
    },
    RenamedLink {
        old: &'a LinkTable,
    },
    ChangedLogging {
        from: LoggedChanges,
        to: LoggedChanges,
    },
    /// The people of another type sign in.
    MovedAccounts {
        old: &'a StoredTable,
        new: &'a StoredTable,
    },
}

/// What `--allow-drop` names where what accounts sign in with is lost.
const ACCOUNTS_SUBJECT: &str = "accounts";

pub fn diff_models<'a>(pairs: &ModelPairs<'a>) -> Vec<ModelChange<'a>> {
    let mut changes = Vec::new();
    changes.extend(
        pairs
            .new_tables
            .iter()
            .map(|new| ModelChange { subject: new.name.clone(), detail: ChangeDetail::NewType }),
    );
    for pair in &pairs.tables {
        diff_table(pairs, pair, &mut changes);
    }
    changes.extend(pairs.new_links.iter().map(|new| link_change(new, ChangeDetail::NewLink, pairs.new)));
    changes.extend(
        pairs
            .links
            .iter()
            .filter(|pair| needs_link_rebuild(pair))
            .map(|pair| link_change(pair.new, ChangeDetail::RenamedLink { old: pair.old }, pairs.new)),
    );
    changes.extend(
        pairs.removed_links.iter().map(|old| link_change(old, ChangeDetail::RemovedLink { old }, pairs.new)),
    );
    changes.extend(
        pairs
            .removed_tables
            .iter()
            .map(|old| ModelChange { subject: old.name.clone(), detail: ChangeDetail::RemovedType { old } }),
    );
    changes.extend(pairs.moved_accounts().map(|(old, new)| ModelChange {
        subject: ACCOUNTS_SUBJECT.to_owned(),
        detail: ChangeDetail::MovedAccounts { old, new },
    }));
    changes
}

fn diff_table<'a>(pairs: &ModelPairs<'a>, pair: &TablePair<'a>, changes: &mut Vec<ModelChange<'a>>) {
    let TablePair { old, new, .. } = *pair;
    let mut add = |subject: String, detail| changes.push(ModelChange { subject, detail });
    let name = |field: &str| format!("{}.{field}", new.name);
    if old.name != new.name {
        add(new.name.clone(), ChangeDetail::RenamedType { old });
    }
    if old.key != new.key {
        add(new.name.clone(), ChangeDetail::ChangedKey { old, new });
    }
    for column in &pair.new_columns {
        add(name(&column.field), ChangeDetail::NewField { table: old, new: column });
    }
    for (old_column, new_column) in &pair.columns {
        for detail in diff_column(pairs, old, old_column, new_column) {
            add(name(&new_column.field), detail);
        }
    }
    for column in &pair.removed_columns {
        // A removed field is named by its type's old name: the new type never had it.
        add(format!("{}.{}", old.name, column.field), ChangeDetail::RemovedField { table: old, old: column });
    }
    for detail in diff_indexes(pair) {
        add(new.name.clone(), detail);
    }
    if has_other_search(pair) {
        add(new.name.clone(), ChangeDetail::ChangedSearch { columns: &new.search });
    }
    if old.logged != new.logged {
        add(new.name.clone(), ChangeDetail::ChangedLogging { from: old.logged, to: new.logged });
    }
}

fn diff_column<'a>(
    pairs: &ModelPairs<'a>,
    table: &'a StoredTable,
    old: &'a StoredColumn,
    new: &'a StoredColumn,
) -> Vec<ChangeDetail<'a>> {
    let mut list = Vec::new();
    if old.field != new.field {
        list.push(ChangeDetail::RenamedField { old });
    } else if old.column != new.column && pairs.is_same_type(&old.form, &new.form) {
        list.push(ChangeDetail::RenamedColumn { new });
    }
    if !pairs.is_same_type(&old.form, &new.form) {
        list.push(ChangeDetail::ChangedType { table, old, new });
    } else if pairs.is_narrowed(&old.form, &new.form) {
        list.push(ChangeDetail::Narrowed { table, old, new });
    } else if delete_action(&old.form) != delete_action(&new.form) {
        list.push(ChangeDetail::ChangedOnDelete { new });
    }
    if new.required && !old.required {
        list.push(ChangeDetail::BecameRequired { table, old, new });
    }
    if old.required && !new.required {
        list.push(ChangeDetail::BecameOptional);
    }
    if old.default != new.default {
        list.push(ChangeDetail::ChangedDefault { new });
    }
    list
}

/// Compares indexes by their columns, whatever their names.
fn diff_indexes<'a>(pair: &TablePair<'a>) -> Vec<ChangeDetail<'a>> {
    let old_column =
        |new: &str| pair.columns.iter().find(|(_, new_column)| new_column.column == new).map(|(old, _)| *old);
    let same = |old: &StoredIndex, new: &StoredIndex| {
        let columns = new.columns.iter().map(|column| old_column(column).map(|old| old.column.as_str()));
        (old.unique, old.ignores_case) == (new.unique, new.ignores_case)
            && columns.eq(old.columns.iter().map(|column| Some(column.as_str())))
    };
    let added = pair.new.indexes.iter().filter(|new| pair.old.indexes.iter().all(|old| !same(old, new)));
    // An index that is dropped with its column is not listed.
    let is_removed_column =
        |column: &String| pair.removed_columns.iter().any(|removed| removed.column == *column);
    let removed = pair.old.indexes.iter().filter(|old| {
        pair.new.indexes.iter().all(|new| !same(old, new)) && !old.columns.iter().any(is_removed_column)
    });
    let added = added.map(|index| ChangeDetail::NewIndex {
        table: pair.old,
        index,
        columns: index.columns.iter().map(|name| (old_column(name), pair.new.column(name))).collect(),
    });
    added.chain(removed.map(|index| ChangeDetail::RemovedIndex { index })).collect()
}

/// True if the full-text index of a table has other columns, whatever their names.
pub fn has_other_search(pair: &TablePair<'_>) -> bool {
    let renamed = |old: &String| {
        let found = pair.columns.iter().find(|(old_column, _)| old_column.column == *old);
        found.map_or_else(String::new, |(_, new)| new.column.clone())
    };
    pair.old.search.iter().map(renamed).ne(pair.new.search.iter().cloned())
}

/// True if a link table needs another name or other columns.
pub fn needs_link_rebuild(pair: &LinkPair<'_>) -> bool {
    let sides = |link: &LinkTable| (link.first.column.clone(), link.second.column.clone());
    pair.old.table != pair.new.table || pair.swapped || sides(pair.old) != sides(pair.new)
}

/// A change to a link, named by a field that shows it, preferably of a type of the new model.
fn link_change<'a>(link: &LinkTable, detail: ChangeDetail<'a>, new: &StoredModel) -> ModelChange<'a> {
    let sides = [&link.first, &link.second];
    let fields = || sides.into_iter().filter_map(|side| side.field.as_ref().map(|field| (&side.to, field)));
    let found = fields().find(|(type_name, _)| new.table(type_name).is_some()).or_else(|| fields().next());
    let subject =
        found.map_or_else(|| link.table.clone(), |(type_name, field)| format!("{type_name}.{field}"));
    ModelChange { subject, detail }
}
