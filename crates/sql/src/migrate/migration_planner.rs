//! Plans a step for each change, from the stored rows: how many are affected, what is lost, what is impossible.

use std::collections::HashMap;

use trefoil_model::values::digit_grouping::group_thousands;
use trefoil_model::{Model, StoredValue};

use crate::accounts::ACCOUNT_TABLES;
use crate::migrate::MigrateError;
use crate::migrate::column_rewrite::model_field;
use crate::migrate::create_statements::{self, quote_name, quote_text};
use crate::migrate::diff::{ChangeDetail, ModelChange};
use crate::migrate::migration_database::{MigrationDatabase, for_each_page};
use crate::migrate::model_pairs::ModelPairs;
use crate::migrate::phrases::{self, count_nouns, count_records, count_values};
use crate::migrate::planned_step::{PlannedStep, StepSafety};
use crate::migrate::stored_model::{
    ColumnDefault, StoredColumn, StoredIndex, StoredKey, StoredTable, StoredType,
};
use crate::migrate::type_converter::{ConvertedValue, TypeConverter, referenced_ids};

/// Plans the steps of one migration.
pub struct MigrationPlanner<'a> {
    pub database: &'a dyn MigrationDatabase,
    pub model: &'a Model,
    pub pairs: &'a ModelPairs<'a>,
}

impl MigrationPlanner<'_> {
    pub fn plan_steps(&self, changes: &[ModelChange<'_>]) -> Result<Vec<PlannedStep>, MigrateError> {
        changes.iter().map(|change| self.plan_step(change)).collect()
    }

    fn plan_step(&self, change: &ModelChange<'_>) -> Result<PlannedStep, MigrateError> {
        let subject = &change.subject;
        let loss = || StepSafety::LosesData { subject: subject.clone() };
        let safe = |description: String| (description, StepSafety::Safe);
        let (description, safety) = match &change.detail {
            ChangeDetail::NewType => safe("new type".to_owned()),
            ChangeDetail::RemovedType { old } => {
                (format!("removed; lost: {}", count_records(self.row_count(&old.table)?)), loss())
            }
            ChangeDetail::RenamedType { old } => safe(format!(
                "renamed from {}; kept: {}",
                old.name,
                count_records(self.row_count(&old.table)?)
            )),
            ChangeDetail::ChangedKey { old, new } => {
                let anew = "export the records with the old schema, begin a new store with the changed one and \
                            import them there, with the new ids in references";
                let remedy = match old.key {
                    // Also the way out for a type that had no key in its schema.
                    StoredKey::Counted => {
                        format!(
                            "keep the ids with `id: ID!` as the key, and `@unique` on the other field; or {anew}"
                        )
                    }
                    StoredKey::Uuid | StoredKey::Text => anew.to_owned(),
                };
                let text = format!("the ids change from {} to {}", old.key, new.key);
                (text, StepSafety::Blocked { remedy })
            }
            ChangeDetail::NewField { table, new } => self.plan_new_field(table, new)?,
            ChangeDetail::RemovedField { table, old } => {
                let record = self.model.find_record(&table.name).map(|record| self.model.record(record));
                let is_list = record.is_some_and(|record| record.find_field(&old.field).is_some());
                match self.plan_record_values(table, old)?.filter(|_| is_list) {
                    Some(refused) => refused,
                    None => {
                        (format!("removed; lost: {}", count_values(self.value_count(table, old)?)), loss())
                    }
                }
            }
            ChangeDetail::RenamedField { old } => safe(format!("renamed from {}", old.field)),
            ChangeDetail::RenamedColumn { new } => safe(format!("now stored in the column {}", new.column)),
            ChangeDetail::ChangedType { table, old, new } => {
                self.plan_type_change(subject, table, old, new)?
            }
            ChangeDetail::Narrowed { table, old, new } => self.plan_narrowing(subject, table, old, new)?,
            ChangeDetail::BecameRequired { table, old, new } => self.plan_required(table, old, new)?,
            ChangeDetail::BecameOptional => safe("no longer required".to_owned()),
            ChangeDetail::ChangedDefault { new } => safe(match phrases::describe_default(&new.default) {
                Some(words) => format!("the default is now {words}; records keep their values"),
                None => "the default was removed; records keep their values".to_owned(),
            }),
            ChangeDetail::ChangedOnDelete { new } => safe(phrases::describe_on_delete(&new.form).to_owned()),
            ChangeDetail::NewIndex { table, index, columns } => self.plan_new_index(table, index, columns)?,
            ChangeDetail::RemovedIndex { index } => {
                safe(format!("{} dropped", phrases::describe_index(index)))
            }
            ChangeDetail::ChangedSearch { columns } => safe(phrases::describe_search(columns)),
            ChangeDetail::NewLink => safe("new link".to_owned()),
            ChangeDetail::RemovedLink { old } => {
                (format!("link removed; lost: {}", count_nouns(self.row_count(&old.table)?, "pair")), loss())
            }
            ChangeDetail::RenamedLink { old } => {
                safe(format!("link renamed; kept: {}", count_nouns(self.row_count(&old.table)?, "pair")))
            }
            ChangeDetail::ChangedLogging { to, .. } => safe(phrases::describe_logging(*to)),
            ChangeDetail::MovedAccounts { old, new } => {
                let text = format!(
                    "`@account` moved from {} to {}; lost: {}, with their sessions, links and keys",
                    old.name,
                    new.name,
                    count_nouns(self.password_count(old)?, "password")
                );
                (text, loss())
            }
        };
        Ok(PlannedStep { subject: subject.clone(), description, safety })
    }

    fn plan_new_field(
        &self,
        table: &StoredTable,
        new: &StoredColumn,
    ) -> Result<(String, StepSafety), MigrateError> {
        let rows = self.row_count(&table.table)?;
        let kind = if new.required { "new required field" } else { "new field" };
        let intro = format!("{kind}, {}", new.form);
        Ok(match phrases::describe_default(&new.default) {
            Some(words) => (format!("{intro}; {words} in {}", count_records(rows)), StepSafety::Safe),
            None if !new.required => (format!("{intro}; null in {}", count_records(rows)), StepSafety::Safe),
            None if rows == 0 => {
                (format!("{intro}, without a default; there are no records"), StepSafety::NeedsApply)
            }
            None => {
                let remedy = "give it a @default, or make it nullable until every record has a value";
                let text = format!("{intro}, without a default; no value for {}", count_records(rows));
                (text, StepSafety::Blocked { remedy: remedy.to_owned() })
            }
        })
    }

    /// Refuses to give up values whose type has become a record type.
    fn plan_record_values(
        &self,
        table: &StoredTable,
        old: &StoredColumn,
    ) -> Result<Option<(String, StepSafety)>, MigrateError> {
        let Some(name) = old.form.embedded_name() else { return Ok(None) };
        let count = self.value_count(table, old)?;
        if count == 0 || self.model.find_record(name).is_none() {
            return Ok(None);
        }
        let text = format!("{name} is now a record type; {} would be lost", count_values(count));
        let remedy = format!(
            "write `type {name} @embedded` to keep it a value, or remove the field first and add it again as a reference"
        );
        Ok(Some((text, StepSafety::Blocked { remedy })))
    }

    fn plan_type_change(
        &self,
        subject: &str,
        table: &StoredTable,
        old: &StoredColumn,
        new: &StoredColumn,
    ) -> Result<(String, StepSafety), MigrateError> {
        if let (StoredType::Reference { .. }, Some(refused)) =
            (&new.form, self.plan_record_values(table, old)?)
        {
            return Ok(refused);
        }
        let fit = self.check_conversion(table, old, new)?;
        let intro = format!("changed from {} to {}; ", old.form, new.form);
        Ok(match fit.loss(new) {
            None => (format!("{intro}converted: {}", count_values(fit.all)), StepSafety::NeedsApply),
            Some(loss) => (intro + &loss.description, loss.safety(subject, new)),
        })
    }

    fn plan_narrowing(
        &self,
        subject: &str,
        table: &StoredTable,
        old: &StoredColumn,
        new: &StoredColumn,
    ) -> Result<(String, StepSafety), MigrateError> {
        let fit = self.check_conversion(table, old, new)?;
        let intro = format!("{} is more restrictive; ", new.form);
        Ok(match fit.loss(new) {
            None => (format!("{intro}still valid: {}", count_values(fit.all)), StepSafety::Safe),
            Some(loss) => (intro + &loss.description, loss.safety(subject, new)),
        })
    }

    fn plan_required(
        &self,
        table: &StoredTable,
        old: &StoredColumn,
        new: &StoredColumn,
    ) -> Result<(String, StepSafety), MigrateError> {
        let empty = self.row_count(&table.table)? - self.value_count(table, old)?;
        Ok(match phrases::describe_default(&new.default) {
            _ if empty == 0 => ("now required; every record has a value".to_owned(), StepSafety::NeedsApply),
            Some(words) => (
                format!("now required; {words} in {} without a value", count_records(empty)),
                StepSafety::NeedsApply,
            ),
            None => {
                let remedy = "give these records a value, or the field a @default";
                let text = format!("now required; no value in {}", count_records(empty));
                (text, StepSafety::Blocked { remedy: remedy.to_owned() })
            }
        })
    }

    fn plan_new_index(
        &self,
        table: &StoredTable,
        index: &StoredIndex,
        columns: &[(Option<&StoredColumn>, Option<&StoredColumn>)],
    ) -> Result<(String, StepSafety), MigrateError> {
        let intro = format!("new {}", phrases::describe_index(index));
        let duplicates = if index.unique { self.duplicate_count(table, index, columns)? } else { 0 };
        if duplicates <= 0 {
            return Ok((intro, StepSafety::Safe));
        }
        let remedy = "change these records so that all values are unique".to_owned();
        let text = format!("{intro}; repeated: {}", count_values(duplicates));
        Ok((text, StepSafety::Blocked { remedy }))
    }

    fn check_conversion(
        &self,
        table: &StoredTable,
        old: &StoredColumn,
        new: &StoredColumn,
    ) -> Result<ConversionFit, MigrateError> {
        let tables: HashMap<&str, &str> =
            self.pairs.tables.iter().map(|pair| (pair.new.name.as_str(), pair.old.table.as_str())).collect();
        let converter = TypeConverter {
            model: self.model,
            stored_model: self.pairs.new,
            field: model_field(self.model, self.pairs, table, new),
            old_type: &old.form,
            new_type: &new.form,
            valid_ids: referenced_ids(self.database, &new.form, &tables)?,
        };
        let column = quote_name(&old.column);
        let value = (self.database.ddl_dialect().read_expression)(&old.form, &column);
        let from = quote_name(&table.table);
        let id = self.database.ddl_dialect().read_id(table.key);
        let query = format!("SELECT {id}, {value} FROM {from} WHERE {column} IS NOT NULL");
        let mut fit = ConversionFit::default();
        for_each_page(self.database, &query, "id", |rows| {
            for value in rows.iter().filter_map(|row| row.get(1)) {
                fit.all += 1;
                match converter.convert(value) {
                    ConvertedValue::Kept(_) => {}
                    ConvertedValue::Trimmed(_) => fit.trimmed += 1,
                    ConvertedValue::Unfit => fit.unfit += 1,
                }
            }
            Ok(())
        })?;
        Ok(fit)
    }

    fn password_count(&self, accounts: &StoredTable) -> Result<i64, MigrateError> {
        let [passwords, ..] = ACCOUNT_TABLES;
        if !self.database.relations()?.iter().any(|name| name == passwords) {
            return Ok(0);
        }
        let name = quote_text(&accounts.name);
        self.query_count(&format!(
            "SELECT count(*) FROM {} WHERE \"account_type\" = {name}",
            quote_name(passwords)
        ))
    }

    fn row_count(&self, table: &str) -> Result<i64, MigrateError> {
        self.query_count(&format!("SELECT count(*) FROM {}", quote_name(table)))
    }

    fn value_count(&self, table: &StoredTable, column: &StoredColumn) -> Result<i64, MigrateError> {
        self.query_count(&format!(
            "SELECT count({}) FROM {}",
            quote_name(&column.column),
            quote_name(&table.table)
        ))
    }

    /// The number of records that would have to change for every value to be unique. A new column has its default in all
    /// of them, or nothing in any, which is as good as different values.
    fn duplicate_count(
        &self,
        table: &StoredTable,
        index: &StoredIndex,
        columns: &[(Option<&StoredColumn>, Option<&StoredColumn>)],
    ) -> Result<i64, MigrateError> {
        let (mut terms, mut present) = (Vec::new(), Vec::new());
        for (position, column) in columns.iter().enumerate() {
            match column {
                (Some(old), _) => {
                    let dialect = self.database.ddl_dialect();
                    terms.push(create_statements::index_term(dialect, table, index, position, &old.column));
                    present.push(format!("{} IS NOT NULL", quote_name(&old.column)));
                }
                (None, Some(new)) if phrases::describe_default(&new.default).is_some() => {}
                (None, Some(_) | None) => return Ok(0),
            }
        }
        if terms.is_empty() {
            return Ok(self.row_count(&table.table)? - 1);
        }
        let (table, terms, present) = (quote_name(&table.table), terms.join(", "), present.join(" AND "));
        self.query_count(&format!(
            "SELECT CAST(sum(n - 1) AS bigint) FROM \
             (SELECT count(*) AS n FROM {table} WHERE {present} GROUP BY {terms}) AS repeated"
        ))
    }

    fn query_count(&self, sql: &str) -> Result<i64, MigrateError> {
        match self.database.query(sql, &[])?.first().and_then(|row| row.first()) {
            Some(StoredValue::Int(number)) => Ok(*number),
            Some(StoredValue::Null | StoredValue::Real(_) | StoredValue::Text(_)) | None => Ok(0),
        }
    }
}

/// The number of a column's values by their fit to another type.
#[derive(Default)]
struct ConversionFit {
    all: i64,
    trimmed: i64,
    unfit: i64,
}

/// The values that a conversion loses.
struct ConversionLoss {
    description: String,
    unfit: i64,
}

impl ConversionFit {
    fn loss(&self, new: &StoredColumn) -> Option<ConversionLoss> {
        let mut words = Vec::new();
        if self.unfit > 0 {
            let (all, unfit) =
                (group_thousands(self.all.unsigned_abs()), group_thousands(self.unfit.unsigned_abs()));
            let replacement = match phrases::describe_default(&new.default) {
                Some(words) if new.required => format!(", to become {words}"),
                None if new.required => String::new(),
                Some(_) | None => ", to become null".to_owned(),
            };
            words.push(format!("invalid: {unfit} of {all} values{replacement}"));
        }
        if self.trimmed > 0 {
            words.push(format!(
                "lost: fields of {} that their type no longer has",
                count_values(self.trimmed)
            ));
        }
        (!words.is_empty()).then(|| ConversionLoss { description: words.join(", "), unfit: self.unfit })
    }
}

impl ConversionLoss {
    fn safety(&self, subject: &str, new: &StoredColumn) -> StepSafety {
        if self.unfit > 0 && new.required && new.default == ColumnDefault::Nothing {
            let remedy =
                "change these values; or, to drop them, make the field nullable or give it a @default";
            return StepSafety::Blocked { remedy: remedy.to_owned() };
        }
        StepSafety::LosesData { subject: subject.to_owned() }
    }
}
