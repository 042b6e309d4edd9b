//! What has to change to get from one stored shape to another: pure, and without a look at the rows.

use crate::migrate::model_pairs::{LinkPair, Pairs, TablePair, on_delete};
use crate::migrate::stored_model::{Column, Index, LinkTable, Logged, StoredModel, Table};

/// One change, and what it is about: `User.email`, `User`.
#[derive(Debug, PartialEq)]
pub struct Change<'a> {
    pub subject: String,
    pub what: What<'a>,
}

#[derive(Debug, PartialEq)]
pub enum What<'a> {
    NewType,
    GoneType {
        old: &'a Table,
    },
    RenamedType {
        old: &'a Table,
    },
    NewField {
        table: &'a Table,
        new: &'a Column,
    },
    GoneField {
        table: &'a Table,
        old: &'a Column,
    },
    RenamedField {
        old: &'a Column,
    },
    /// The same field, which earlier versions kept under another name.
    MovedField {
        new: &'a Column,
    },
    /// Another type, whose values look otherwise.
    Retyped {
        table: &'a Table,
        old: &'a Column,
        new: &'a Column,
    },
    /// The same type, but an enum or an embedded type no longer allows all it did.
    Narrowed {
        table: &'a Table,
        old: &'a Column,
        new: &'a Column,
    },
    Required {
        table: &'a Table,
        old: &'a Column,
        new: &'a Column,
    },
    Optional,
    Redefaulted {
        new: &'a Column,
    },
    OnDelete {
        new: &'a Column,
    },
    /// `old` is the column of a unique index as it is now, if it is there yet.
    NewIndex {
        table: &'a Table,
        index: &'a Index,
        old: Option<&'a Column>,
        new: Option<&'a Column>,
    },
    GoneIndex {
        index: &'a Index,
    },
    NewLink,
    GoneLink {
        old: &'a LinkTable,
    },
    RenamedLink {
        old: &'a LinkTable,
    },
    Logging {
        from: Logged,
        to: Logged,
    },
}

pub fn diff<'a>(pairs: &Pairs<'a>) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    changes
        .extend(pairs.new_tables.iter().map(|new| Change { subject: new.name.clone(), what: What::NewType }));
    for pair in &pairs.tables {
        table(pairs, pair, &mut changes);
    }
    changes.extend(pairs.new_links.iter().map(|new| link_change(new, What::NewLink, pairs.new)));
    changes.extend(
        pairs
            .links
            .iter()
            .filter(|pair| is_moved(pair))
            .map(|pair| link_change(pair.new, What::RenamedLink { old: pair.old }, pairs.new)),
    );
    changes.extend(pairs.gone_links.iter().map(|old| link_change(old, What::GoneLink { old }, pairs.new)));
    changes.extend(
        pairs
            .gone_tables
            .iter()
            .map(|old| Change { subject: old.name.clone(), what: What::GoneType { old } }),
    );
    changes
}

fn table<'a>(pairs: &Pairs<'a>, pair: &TablePair<'a>, changes: &mut Vec<Change<'a>>) {
    let TablePair { old, new, .. } = *pair;
    let mut add = |subject: String, what| changes.push(Change { subject, what });
    let name = |field: &str| format!("{}.{field}", new.name);
    if old.name != new.name {
        add(new.name.clone(), What::RenamedType { old });
    }
    for column in &pair.new_columns {
        add(name(&column.field), What::NewField { table: old, new: column });
    }
    for (was, now) in &pair.columns {
        for what in column(pairs, old, was, now) {
            add(name(&now.field), what);
        }
    }
    for column in &pair.gone_columns {
        // The type may have a new name, but the field is only known by that of the old schema.
        add(format!("{}.{}", old.name, column.field), What::GoneField { table: old, old: column });
    }
    for what in indexes(pair) {
        add(new.name.clone(), what);
    }
    if old.logged != new.logged {
        add(new.name.clone(), What::Logging { from: old.logged, to: new.logged });
    }
}

fn column<'a>(pairs: &Pairs<'a>, table: &'a Table, old: &'a Column, new: &'a Column) -> Vec<What<'a>> {
    let mut list = Vec::new();
    if old.field != new.field {
        list.push(What::RenamedField { old });
    } else if old.column != new.column && pairs.same_form(&old.form, &new.form) {
        list.push(What::MovedField { new });
    }
    if !pairs.same_form(&old.form, &new.form) {
        list.push(What::Retyped { table, old, new });
    } else if pairs.narrowed(&old.form, &new.form) {
        list.push(What::Narrowed { table, old, new });
    } else if on_delete(&old.form) != on_delete(&new.form) {
        list.push(What::OnDelete { new });
    }
    if new.required && !old.required {
        list.push(What::Required { table, old, new });
    }
    if old.required && !new.required {
        list.push(What::Optional);
    }
    if old.default != new.default {
        list.push(What::Redefaulted { new });
    }
    list
}

/// Indexes are the same when they index the same columns, whatever their names.
fn indexes<'a>(pair: &TablePair<'a>) -> Vec<What<'a>> {
    let was = |new: &str| pair.columns.iter().find(|(_, now)| now.column == new).map(|(old, _)| *old);
    let same = |old: &Index, new: &Index| {
        let columns = new.columns.iter().map(|column| was(column).map(|old| old.column.as_str()));
        old.unique == new.unique && columns.eq(old.columns.iter().map(|column| Some(column.as_str())))
    };
    let fresh = pair.new.indexes.iter().filter(|new| pair.old.indexes.iter().all(|old| !same(old, new)));
    // What goes with its columns needs no word of its own.
    let gone_column = |column: &String| pair.gone_columns.iter().any(|gone| gone.column == *column);
    let gone = pair.old.indexes.iter().filter(|old| {
        pair.new.indexes.iter().all(|new| !same(old, new)) && !old.columns.iter().any(gone_column)
    });
    let fresh = fresh.map(|index| {
        let single = index.columns.first().map_or("", String::as_str);
        What::NewIndex { table: pair.old, index, old: was(single), new: pair.new.column(single) }
    });
    fresh.chain(gone.map(|index| What::GoneIndex { index })).collect()
}

/// Whether a link table has to be built anew, under the same or another name.
pub fn is_moved(pair: &LinkPair<'_>) -> bool {
    let sides = |link: &LinkTable| (link.first.column.clone(), link.second.column.clone());
    pair.old.table != pair.new.table || pair.swapped || sides(pair.old) != sides(pair.new)
}

/// A link is called by a field that shows it, if possible one of a type that stays.
fn link_change<'a>(link: &LinkTable, what: What<'a>, new: &StoredModel) -> Change<'a> {
    let sides = [&link.first, &link.second];
    let shown = || sides.into_iter().filter_map(|side| side.field.as_ref().map(|field| (&side.to, field)));
    let found = shown().find(|(ty, _)| new.table(ty).is_some()).or_else(|| shown().next());
    let subject = found.map_or_else(|| link.table.clone(), |(ty, field)| format!("{ty}.{field}"));
    Change { subject, what }
}
