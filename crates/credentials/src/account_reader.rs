//! [`AccountReader`]: reads the account of an actor, as far as the rules of the schema use it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use trefoil_engine::{
    AccountFacts, ActorIdentity, ActorPath, ChildSelection, Condition, Engine, KeyAccount, ListSlice,
    Listing, LoginColumns, Operation, OwnedRow, PreparedSelection, Selection,
};
use trefoil_model::access::{AccountType, RuleTest};
use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, FieldId, RecordId, RecordTitle, RecordTypeId, StoredValue, Value};

/// Reads accounts. One is made for a model.
pub struct AccountReader {
    engine: Engine,
    account: AccountType,
    logins: LoginColumns,
    /// The fields that claims of tokens are compared with.
    claimed: Vec<FieldId>,
    /// The fields that rules use.
    paths: Vec<ActorPath>,
    tree: PathTree,
    selection: Arc<PreparedSelection>,
    /// What the account is called; without it by its login.
    title: RecordTitle,
    /// Whether an account that can be used now can be used for as long as nothing changes.
    is_lasting: bool,
}

/// How an account is found.
pub enum AccountKey<'k> {
    Id(&'k RecordId),
    /// The only account with this value in this field.
    Field(FieldId, &'k str),
}

/// An account that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct UsableAccount {
    pub facts: AccountFacts,
    /// The values of the fields that claims of tokens are compared with.
    pub claimed: Vec<StoredValue>,
    /// Those that its own record names.
    pub roles: Vec<String>,
    /// What it signs in with.
    pub login: String,
}

impl UsableAccount {
    /// The actor that it is by itself.
    pub fn into_identity(self) -> ActorIdentity {
        ActorIdentity {
            name: format!("account:{}", self.facts.id),
            roles: self.roles,
            account: Some(self.facts),
            claims: Value::Object(Vec::new()),
            expires: None,
        }
    }
}

/// What was found of an account.
#[derive(Debug, Clone, PartialEq)]
pub enum AccountFinding {
    Missing,
    /// `if` of `@account` does not hold.
    Unusable,
    Usable(UsableAccount),
}

/// The columns of a record that are read, and those of the records that its references lead to.
#[derive(Default)]
struct PathTree {
    columns: Vec<FieldId>,
    references: Vec<(FieldId, PathTree)>,
}

impl AccountReader {
    /// `None` if the schema has no accounts. The engine is the operator's: rules about accounts see all data. `claimed` are
    /// the fields that claims of tokens are compared with.
    pub fn new(engine: &Engine, claimed: &[&str]) -> Option<AccountReader> {
        let access = engine.model().access.as_ref()?;
        let account = access.account.as_ref()?;
        let paths = access.actor_paths();
        let record = engine.model().record(account.record);
        let id = record.id_field();
        let logins = LoginColumns {
            table: record.table.clone(),
            id: record.field(id).column.clone(),
            login: record.field(account.login).column.clone(),
        };
        let mut tree = PathTree::default();
        tree.add(&[], id);
        account.roles.into_iter().for_each(|roles| tree.add(&[], roles));
        paths.iter().for_each(|path| tree.add(&path.references, path.field));
        tree.add(&[], account.login);
        // A field that a rule may hide from the account itself is not shown to it.
        let is_plain = |field: FieldId| {
            let own = access.types.get(account.record.0).and_then(|own| own.fields.get(field.0));
            own.is_none_or(|own| own.read.is_none())
        };
        let title = engine.model().record(account.record).title.shown(is_plain);
        title.fields().for_each(|field| tree.add(&[], field));
        let claimed =
            claimed.iter().filter_map(|name| engine.model().record(account.record).find_field(name));
        let claimed: Vec<FieldId> = claimed.collect();
        claimed.iter().for_each(|field| tree.add(&[], *field));
        let mut is_lasting = true;
        account.usable.visit_values(&mut |value| {
            is_lasting &= !value.is_time();
        });
        Some(AccountReader {
            engine: engine.as_operator(),
            account: AccountType {
                usable: account.usable.clone(),
                manage: RuleTest::Constant(false),
                ..*account
            },
            logins,
            selection: PreparedSelection::new(tree.selection()),
            claimed,
            title,
            paths,
            tree,
            is_lasting,
        })
    }

    /// The account with this id among the credentials.
    pub fn key_account(&self, id: RecordId) -> KeyAccount {
        KeyAccount { type_name: self.type_name().to_owned(), id }
    }

    /// The fields that name an account: its login and its title.
    pub fn name_fields(&self) -> Vec<String> {
        let record = self.engine.model().record(self.account.record);
        let fields = [self.account.login].into_iter().chain(record.title.fields());
        fields.map(|field| record.field(field).input_name.clone()).collect()
    }

    pub fn login(&self) -> FieldId {
        self.account.login
    }

    /// The type of the accounts.
    pub fn record(&self) -> RecordTypeId {
        self.account.record
    }

    pub fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    /// The name of the type of accounts.
    pub fn type_name(&self) -> &str {
        &self.engine.model().record(self.account.record).name
    }

    /// A field of the accounts by its name.
    pub fn field(&self, name: &str) -> Option<FieldId> {
        self.engine.model().record(self.account.record).find_field(name)
    }

    /// The id of the account with this login: exactly, or else the only one that differs in the case of letters A to Z alone.
    /// What is there makes no difference to how it is asked.
    pub async fn find_login(&self, login: &str) -> Result<Option<RecordId>> {
        // PostgreSQL has no such text.
        if login.contains('\0') {
            return Ok(None);
        }
        let found = self.engine.credentials()?.find_logins(&self.logins, login).await?;
        let id = match found.as_slice() {
            [(id, own), ..] if own == login => id,
            [(id, _)] => id,
            _ => return Ok(None),
        };
        let key_form = self.engine.model().record(self.account.record).key_form();
        Ok(RecordId::from_text(key_form, id).ok())
    }

    /// Reads an account and decides whether it can be used.
    pub async fn find(&self, key: AccountKey<'_>) -> Result<AccountFinding> {
        let Some(row) = self.read(key).await? else { return Ok(AccountFinding::Missing) };
        let id = self.id_of(&row).ok_or_else(|| Error::internal("an account has no id"))?;
        let is_usable = match self.account.usable.as_constant() {
            Some(constant) => constant,
            None => self.engine.record_meets(self.account.record, &id, &self.account.usable).await?,
        };
        Ok(self.finding(&row, id, is_usable))
    }

    /// The same of several accounts at once.
    pub async fn find_all(&self, ids: Vec<RecordId>) -> Result<HashMap<RecordId, AccountFinding>> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let listing = Listing::of_ids(ids.clone());
        let (selection, record) = (self.selection.clone(), self.account.record);
        let operation = Operation::List { record, listing, selection: selection.clone() };
        let constant = self.account.usable.as_constant();
        let usable = async {
            match constant {
                Some(_) => Ok(HashSet::new()),
                None => self.engine.records_meeting(record, ids, &self.account.usable).await,
            }
        };
        let (found, usable) = tokio::try_join!(self.engine.collect(operation, selection), usable)?;
        let findings = found.rows.iter().filter_map(|row| {
            let id = self.id_of(row)?;
            let is_usable = constant.unwrap_or_else(|| usable.contains(&id));
            Some((id.clone(), self.finding(row, id, is_usable)))
        });
        Ok(findings.collect())
    }

    /// Whether whoever has a value of this field keeps it alone for as long as it does not change.
    pub fn is_claim_unique(&self, field: FieldId) -> bool {
        let field = self.engine.model().record(self.account.record).field(field);
        field.unique && field.unique_within.is_none() && !field.ignores_case && field.kind.is_text()
    }

    /// The same for the account of a credential, if it has one.
    pub async fn find_of(
        account: Option<&KeyAccount>,
        accounts: Option<&AccountReader>,
    ) -> Result<Option<AccountFinding>> {
        let Some(account) = account else { return Ok(None) };
        match accounts.filter(|reader| reader.type_name() == account.type_name) {
            Some(reader) => reader.find(AccountKey::Id(&account.id)).await.map(Some),
            None => Ok(Some(AccountFinding::Missing)),
        }
    }

    fn finding(&self, row: &OwnedRow, id: RecordId, is_usable: bool) -> AccountFinding {
        if !is_usable {
            return AccountFinding::Unusable;
        }
        let values = self.paths.iter().filter_map(|path| {
            let value = self.tree.value(row, &path.references, path.field)?;
            Some((path.clone(), value))
        });
        let text = |field: FieldId| match self.tree.cell(row, field)?.as_cell() {
            CellValue::Text(text) if !text.trim().is_empty() => Some(text.to_owned()),
            CellValue::Text(_)
            | CellValue::Null
            | CellValue::Int(_)
            | CellValue::Real(_)
            | CellValue::Unreadable => None,
        };
        let login = text(self.account.login).unwrap_or_default();
        let title = self.title.text(self.title.fields().map(text));
        let label = title.or_else(|| Some(login.clone()).filter(|login| !login.is_empty()));
        let model_hash = self.engine.model().hash;
        let facts = AccountFacts {
            label: label.unwrap_or_else(|| format!("{} {id}", self.type_name())),
            id,
            model_hash,
            values: values.collect(),
        };
        let claimed = self
            .claimed
            .iter()
            .map(|field| self.tree.cell(row, *field).cloned().unwrap_or(StoredValue::Null));
        AccountFinding::Usable(UsableAccount {
            facts,
            claimed: claimed.collect(),
            roles: self.roles_of(row),
            login,
        })
    }

    async fn read(&self, key: AccountKey<'_>) -> Result<Option<OwnedRow>> {
        let mut rows = match key {
            AccountKey::Id(id) => {
                let selection = self.selection.clone();
                let operation = Operation::Get { record: self.account.record, id: id.clone(), selection };
                self.engine.collect(operation, self.selection.clone()).await?.rows
            }
            AccountKey::Field(field, text) => {
                self.list(Condition::equals(field, self.operand(field, text))).await?
            }
        };
        // Two records with one value are nobody's account.
        Ok(if rows.len() == 1 { rows.pop() } else { None })
    }

    /// At most two records. A value that the field cannot have finds none.
    async fn list(&self, condition: Condition) -> Result<Vec<OwnedRow>> {
        let slice = ListSlice::Range { offset: 0, limit: Some(2) };
        let listing = Listing { conditions: vec![condition], slice, ..Listing::default() };
        let selection = self.selection.clone();
        let operation = Operation::List { record: self.account.record, listing, selection };
        match self.engine.collect(operation, self.selection.clone()).await {
            Ok(found) => Ok(found.rows),
            Err(Error::Invalid(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// A text as a value of a field.
    pub(crate) fn operand(&self, field: FieldId, text: &str) -> Value {
        let field = self.engine.model().record(self.account.record).field(field);
        let number = if field.kind.is_text() { None } else { Value::number(text) };
        number.unwrap_or_else(|| Value::String(text.to_owned()))
    }

    fn id_of(&self, row: &OwnedRow) -> Option<RecordId> {
        let id = self.engine.model().record(self.account.record).id_field();
        RecordId::from_cell(self.tree.cell(row, id)?.as_cell())
    }

    /// The roles in the record: one, or a list of them.
    fn roles_of(&self, row: &OwnedRow) -> Vec<String> {
        let Some(roles) = self.account.roles else { return Vec::new() };
        let cell = self.tree.cell(row, roles).map_or(CellValue::Null, StoredValue::as_cell);
        match self.engine.model().record(self.account.record).field(roles).cell_value(cell) {
            Value::String(role) => vec![role],
            Value::List(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        }
    }
}

impl PathTree {
    fn add(&mut self, references: &[FieldId], field: FieldId) {
        let Some((first, rest)) = references.split_first() else {
            if !self.columns.contains(&field) {
                self.columns.push(field);
            }
            return;
        };
        let found = self.references.iter().position(|(reference, _)| reference == first);
        let position = found.unwrap_or_else(|| {
            self.references.push((*first, PathTree::default()));
            self.references.len() - 1
        });
        self.references[position].1.add(rest, field);
    }

    fn selection(&self) -> Selection {
        let child = |(reference, tree): &(FieldId, PathTree)| {
            ChildSelection::new(*reference, Listing::default(), tree.selection())
        };
        Selection::new(self.columns.clone(), self.references.iter().map(child).collect())
    }

    fn cell<'r>(&self, row: &'r OwnedRow, field: FieldId) -> Option<&'r StoredValue> {
        row.cells.get(self.columns.iter().position(|column| *column == field)?)
    }

    /// The value at the end of a path; `None` if it is absent.
    fn value(&self, row: &OwnedRow, references: &[FieldId], field: FieldId) -> Option<StoredValue> {
        let Some((first, rest)) = references.split_first() else {
            return self.cell(row, field).filter(|value| **value != StoredValue::Null).cloned();
        };
        let position = self.references.iter().position(|(reference, _)| reference == first)?;
        self.references[position].1.value(row.children.get(position)?.first()?, rest, field)
    }
}
