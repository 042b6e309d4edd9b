//! Judges changes by the rows that are there: how many are concerned, what is lost, what cannot be done.

use std::collections::HashMap;
use std::fmt;

use crate::migrate::MigrateError;
use crate::migrate::column_conversion::field;
use crate::migrate::ddl;
use crate::migrate::ddl::quoted;
use crate::migrate::diff::{Change, What};
use crate::migrate::migration_database::{Host, each_page};
use crate::migrate::model_pairs::Pairs;
use crate::migrate::phrases;
use crate::migrate::phrases::{counted, records, values};
use crate::migrate::stored_model::{Column, Fill, Index, Table};
use crate::migrate::value_converter::{Converted, Converter, targets};
use trefoil_model::values::thousands::grouped;
use trefoil_model::{Model, Stored};

/// One change as a person reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// What it is about: `User.email`, `User`.
    pub subject: String,
    /// What happens, to how many records.
    pub description: String,
    pub safety: Safety,
}

/// Who has to agree to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Safety {
    /// Nobody: it is done at start.
    Safe,
    /// Whoever runs `trefoil migrate --apply`.
    NeedsApply,
    /// Whoever also says `--allow-drop` and this name.
    Loses { what: String },
    /// The records do not allow it; here is the way out.
    Blocked { way_out: String },
}

/// The model, both shapes and the rows.
pub struct Survey<'a> {
    pub host: &'a dyn Host,
    pub model: &'a Model,
    pub pairs: &'a Pairs<'a>,
}

impl Survey<'_> {
    pub fn judge(&self, changes: &[Change<'_>]) -> Result<Vec<PlannedStep>, MigrateError> {
        changes.iter().map(|change| self.step(change)).collect()
    }

    fn step(&self, change: &Change<'_>) -> Result<PlannedStep, MigrateError> {
        let subject = &change.subject;
        let loss = || Safety::Loses { what: subject.clone() };
        let safe = |description: String| (description, Safety::Safe);
        let (description, safety) = match &change.what {
            What::NewType => safe("new type".to_owned()),
            What::GoneType { old } => (format!("removed; lost: {}", records(self.rows(&old.table)?)), loss()),
            What::RenamedType { old } => {
                safe(format!("renamed from {}; kept: {}", old.name, records(self.rows(&old.table)?)))
            }
            What::NewField { table, new } => self.new_field(table, new)?,
            What::GoneField { table, old } => {
                (format!("removed; lost: {}", values(self.filled(table, old)?)), loss())
            }
            What::RenamedField { old } => safe(format!("renamed from {}", old.field)),
            What::MovedField { new } => safe(format!("kept in the column {}", new.column)),
            What::Retyped { table, old, new } => self.retyped(subject, table, old, new)?,
            What::Narrowed { table, old, new } => self.narrowed(subject, table, old, new)?,
            What::Required { table, old, new } => self.required(table, old, new)?,
            What::Optional => safe("no longer required".to_owned()),
            What::Redefaulted { new } => safe(match phrases::fill(&new.default) {
                Some(words) => format!("the default is now {words}; records keep their values"),
                None => "there is no default any more; records keep their values".to_owned(),
            }),
            What::OnDelete { new } => safe(phrases::on_delete(&new.form).to_owned()),
            What::NewIndex { table, index, old, new } => self.new_index(table, index, *old, *new)?,
            What::GoneIndex { index } => safe(format!("{} dropped", phrases::index(index))),
            What::NewLink => safe("new link".to_owned()),
            What::GoneLink { old } => {
                (format!("link removed; lost: {}", counted(self.rows(&old.table)?, "pair")), loss())
            }
            What::RenamedLink { old } => {
                safe(format!("link renamed; kept: {}", counted(self.rows(&old.table)?, "pair")))
            }
            What::Logging { to, .. } => safe(phrases::logging(*to)),
        };
        Ok(PlannedStep { subject: subject.clone(), description, safety })
    }

    fn new_field(&self, table: &Table, new: &Column) -> Result<(String, Safety), MigrateError> {
        let rows = self.rows(&table.table)?;
        let what = if new.required { "new required field" } else { "new field" };
        let intro = format!("{what}, {}", new.form);
        Ok(match phrases::fill(&new.default) {
            Some(words) => (format!("{intro}; {words} in {}", records(rows)), Safety::Safe),
            None if !new.required => (format!("{intro}; null in {}", records(rows)), Safety::Safe),
            None if rows == 0 => {
                (format!("{intro}, without a default; there are no records"), Safety::NeedsApply)
            }
            None => {
                let way_out = "give it a @default, or make it nullable until every record has a value";
                let text = format!("{intro}, without a default; no value for {}", records(rows));
                (text, Safety::Blocked { way_out: way_out.to_owned() })
            }
        })
    }

    fn retyped(
        &self,
        subject: &str,
        table: &Table,
        old: &Column,
        new: &Column,
    ) -> Result<(String, Safety), MigrateError> {
        let found = self.convertible(table, old, new)?;
        let intro = format!("{} becomes {}; ", old.form, new.form);
        Ok(match found.doubt(new) {
            None => (format!("{intro}converted: {}", values(found.all)), Safety::NeedsApply),
            Some(doubt) => (intro + &doubt.words, doubt.safety(subject, new)),
        })
    }

    fn narrowed(
        &self,
        subject: &str,
        table: &Table,
        old: &Column,
        new: &Column,
    ) -> Result<(String, Safety), MigrateError> {
        let found = self.convertible(table, old, new)?;
        let intro = format!("{} allows less than before; ", new.form);
        Ok(match found.doubt(new) {
            None => (format!("{intro}still fit: {}", values(found.all)), Safety::Safe),
            Some(doubt) => (intro + &doubt.words, doubt.safety(subject, new)),
        })
    }

    fn required(&self, table: &Table, old: &Column, new: &Column) -> Result<(String, Safety), MigrateError> {
        let empty = self.rows(&table.table)? - self.filled(table, old)?;
        Ok(match phrases::fill(&new.default) {
            _ if empty == 0 => ("now required; every record has a value".to_owned(), Safety::NeedsApply),
            Some(words) => {
                (format!("now required; {words} in {} without a value", records(empty)), Safety::NeedsApply)
            }
            None => {
                let way_out = "give these records a value, or the field a @default";
                let text = format!("now required; no value in {}", records(empty));
                (text, Safety::Blocked { way_out: way_out.to_owned() })
            }
        })
    }

    fn new_index(
        &self,
        table: &Table,
        index: &Index,
        old: Option<&Column>,
        new: Option<&Column>,
    ) -> Result<(String, Safety), MigrateError> {
        let intro = format!("new {}", phrases::index(index));
        let doubles = match (old, new) {
            _ if !index.unique => 0,
            (Some(old), _) => self.doubles(table, old)?,
            (None, Some(new)) if phrases::fill(&new.default).is_some() => self.rows(&table.table)? - 1,
            (None, Some(_) | None) => 0,
        };
        if doubles <= 0 {
            return Ok((intro, Safety::Safe));
        }
        let way_out = "change these records so that every value is there once".to_owned();
        let text = format!("{intro}; repeated: {}", values(doubles));
        Ok((text, Safety::Blocked { way_out }))
    }

    fn convertible(&self, table: &Table, old: &Column, new: &Column) -> Result<Fit, MigrateError> {
        let tables: HashMap<&str, &str> =
            self.pairs.tables.iter().map(|pair| (pair.new.name.as_str(), pair.old.table.as_str())).collect();
        let converter = Converter {
            model: self.model,
            shape: self.pairs.new,
            field: field(self.model, self.pairs, table, new),
            old: &old.form,
            new: &new.form,
            targets: targets(self.host, &new.form, &tables)?,
        };
        let column = quoted(&old.column);
        let value = (self.host.spelling().reading)(&old.form, &column);
        let from = quoted(&table.table);
        let query = format!("SELECT \"id\", {value} FROM {from} WHERE {column} IS NOT NULL");
        let mut fit = Fit::default();
        each_page(self.host, &query, "id", |rows| {
            for value in rows.iter().filter_map(|row| row.get(1)) {
                fit.all += 1;
                match converter.convert(value) {
                    Converted::Kept(_) => {}
                    Converted::Trimmed(_) => fit.trimmed += 1,
                    Converted::Unfit => fit.unfit += 1,
                }
            }
            Ok(())
        })?;
        Ok(fit)
    }

    fn rows(&self, table: &str) -> Result<i64, MigrateError> {
        self.count(&format!("SELECT count(*) FROM {}", quoted(table)))
    }

    fn filled(&self, table: &Table, column: &Column) -> Result<i64, MigrateError> {
        self.count(&format!("SELECT count({}) FROM {}", quoted(&column.column), quoted(&table.table)))
    }

    /// How many records would have to change for every value to be there once.
    fn doubles(&self, table: &Table, column: &Column) -> Result<i64, MigrateError> {
        let term = ddl::index_term(self.host.spelling(), table, &column.column);
        self.count(&format!("SELECT count({term}) - count(DISTINCT {term}) FROM {}", quoted(&table.table)))
    }

    fn count(&self, sql: &str) -> Result<i64, MigrateError> {
        match self.host.rows(sql, &[])?.first().and_then(|row| row.first()) {
            Some(Stored::Int(number)) => Ok(*number),
            Some(Stored::Null | Stored::Real(_) | Stored::Text(_)) | None => Ok(0),
        }
    }
}

/// How the values of a column fit another type.
#[derive(Default)]
struct Fit {
    all: i64,
    trimmed: i64,
    unfit: i64,
}

struct Doubt {
    words: String,
    unfit: i64,
}

impl Fit {
    fn doubt(&self, new: &Column) -> Option<Doubt> {
        let mut words = Vec::new();
        if self.unfit > 0 {
            let (all, unfit) = (grouped(self.all.unsigned_abs()), grouped(self.unfit.unsigned_abs()));
            let instead = match phrases::fill(&new.default) {
                Some(words) if new.required => format!(", to become {words}"),
                None if new.required => String::new(),
                Some(_) | None => ", to become null".to_owned(),
            };
            words.push(format!("do not fit: {unfit} of {all} values{instead}"));
        }
        if self.trimmed > 0 {
            words.push(format!("lost: members of {} that their type no longer has", values(self.trimmed)));
        }
        (!words.is_empty()).then(|| Doubt { words: words.join(", "), unfit: self.unfit })
    }
}

impl Doubt {
    fn safety(&self, subject: &str, new: &Column) -> Safety {
        if self.unfit > 0 && new.required && new.default == Fill::Nothing {
            let way_out =
                "change these values, or make the field nullable or give it a @default to lose them";
            return Safety::Blocked { way_out: way_out.to_owned() };
        }
        Safety::Loses { what: subject.to_owned() }
    }
}

impl PlannedStep {
    /// The line about it once it is done.
    pub fn taken(&self) -> String {
        format!("{}: {}\n", self.subject, self.description)
    }
}

impl fmt::Display for PlannedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.description)?;
        match &self.safety {
            Safety::Safe => Ok(()),
            Safety::NeedsApply => f.write_str("  [needs --apply]"),
            Safety::Loses { what } => write!(f, "  [LOSS: needs --apply --allow-drop {what}]"),
            Safety::Blocked { way_out } => write!(f, "  [NOT POSSIBLE: {way_out}]"),
        }
    }
}
