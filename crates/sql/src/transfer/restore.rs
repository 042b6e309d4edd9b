//! Brings a backup back, into either database: all of it or nothing, and with a new epoch of change ids.

use std::path::Path;

use crate::DataLock;
use crate::transfer::backup::Label;
use crate::transfer::copied_table::Sum;
use crate::transfer::copy::{compare, copy, records, sums};
use crate::transfer::partial_file::Partial;
use crate::transfer::store_handle::End;
use crate::transfer::store_metadata::{BACKUP, Facts};
use crate::transfer::{Application, Failed, Place, Progress, move_record, postgres, sqlite};

/// What to do with a store that the schema has left behind.
fn way_on(command: &str) -> String {
    format!("if it is the right one, restore it elsewhere (--data, --database) and see `{command}`")
}

#[derive(Debug)]
pub struct Restored {
    pub records: u64,
    pub rows: u64,
    /// When the backup was begun, if it says so.
    pub at: Option<String>,
    /// It is not the store that was put aside: that may live on elsewhere.
    pub is_another: bool,
}

/// Puts the store in `file`, a backup or another store's file, into `to`. Nothing gives way to what the application
/// could not be served from.
pub async fn restore(
    file: &Path,
    to: &Place,
    application: &Application,
    overwrite: bool,
    progress: &mut dyn Progress,
) -> Result<Restored, Failed> {
    let source = sqlite::open_to_read(file).or_else(|_| sqlite::open(file))?;
    source.execute_batch("BEGIN")?;
    sqlite::check(&source).map_err(|failed| Failed::at(file, failed))?;
    let source = End::Sqlite(source);
    let facts = Facts::of(&source).await.map_err(|failed| Failed::at(file, failed))?;
    let mut facts = facts.ok_or_else(|| Failed::at(file, "this is no backup: there is no store in it"))?;
    let label: Option<Label> = facts.meta.get(BACKUP).and_then(|text| serde_json::from_str(text).ok());
    let read = sums(&source, &facts, progress).await?;
    if let Some(label) = &label {
        compare(&label.sums, &read)
            .map_err(|failed| Failed::at(file, format!("the backup is damaged: {failed}")))?;
    }
    let verdict = match overwrite {
        true => {
            Some(application.refuse_unfit(&source, way_on).await.map_err(|failed| Failed::at(file, failed)))
        }
        false => None,
    };
    let backed_up = facts.store().to_owned();
    facts.begin_epoch(label.as_ref().map_or(facts.last_change, |label| label.sure))?;
    match to {
        Place::File(path) => into_file(&source, path, &mut facts, &read, verdict, progress).await?,
        Place::Postgres(url) => {
            let client = crate::postgres::alone(url).await.map_err(Failed)?;
            into_postgres(&source, client, &mut facts, &read, verdict, progress).await?;
        }
    }
    let (records, rows) = (records(&facts, &read), read.iter().map(|sum| sum.rows).sum());
    let is_another = facts.store() != backed_up;
    Ok(Restored { records, rows, at: label.map(|label| label.at), is_another })
}

async fn into_file(
    source: &End,
    path: &Path,
    facts: &mut Facts,
    read: &[Sum],
    verdict: Option<Result<(), Failed>>,
    progress: &mut dyn Progress,
) -> Result<(), Failed> {
    let _lock = lock(path)?;
    make_way(held_in(path).await, facts, verdict, path.display())?;
    let partial = Partial::beside(path)?;
    let written = write_file(source, &partial, facts, read, progress).await;
    written.map_err(|failed| failed.while_doing(path.display()))?;
    partial.replace(path)
}

async fn write_file(
    source: &End,
    partial: &Partial,
    facts: &Facts,
    read: &[Sum],
    progress: &mut dyn Progress,
) -> Result<(), Failed> {
    let End::Sqlite(connection) = source else { return Err(Failed("a backup is a file".to_owned())) };
    let mut target = sqlite::create(partial.path())?;
    sqlite::copy_file(connection, &mut target, progress)?;
    drop(target);
    let target = End::Sqlite(sqlite::alone(partial.path())?);
    compare(read, &sums(&target, facts, progress).await?)?;
    move_record::open_again(&target, &facts.shape).await?;
    target.remove_meta(BACKUP).await?;
    facts.write(&target).await?;
    renew_lists(&target).await
}

async fn into_postgres(
    source: &End,
    client: tokio_postgres::Client,
    facts: &mut Facts,
    read: &[Sum],
    verdict: Option<Result<(), Failed>>,
    progress: &mut dyn Progress,
) -> Result<(), Failed> {
    let target = make_room(client, |found| make_way(Ok(found), facts, verdict, "the database")).await?;
    copy(source, &target, facts, progress).await?;
    compare(read, &sums(&target, facts, progress).await?)?;
    renew_lists(&target).await?;
    target.run("COMMIT").await
}

/// Whether what is there may go; if so, what is restored knows which ids were given. There is no verdict where nobody has
/// said that anything may.
fn make_way(
    found: Result<Option<Facts>, Failed>,
    facts: &mut Facts,
    verdict: Option<Result<(), Failed>>,
    place: impl std::fmt::Display,
) -> Result<(), Failed> {
    facts.take_place_of(found.as_ref().ok().and_then(Option::as_ref));
    refuse_used(found, place).or_else(|refused| verdict.unwrap_or(Err(refused)))
}

/// A transaction on a database in which a new store can be made: no server is there, and the old store, if `agreed`
/// lets it go, is gone once it is committed.
pub async fn make_room(
    client: tokio_postgres::Client,
    agreed: impl FnOnce(Option<Facts>) -> Result<(), Failed>,
) -> Result<End, Failed> {
    postgres::prepare(&client).await?;
    postgres::keep_servers_out(&client).await?;
    client.batch_execute("BEGIN").await?;
    crate::migrate::postgres::take_turn(&client).await?;
    let end = End::Postgres(client);
    let found = Facts::of(&end).await?;
    let tables: Option<Vec<String>> =
        found.as_ref().map(|facts| facts.shape.table_names().map(str::to_owned).collect());
    agreed(found)?;
    if let (Some(tables), End::Postgres(client)) = (tables, &end) {
        postgres::drop_store(client, &tables).await?;
    }
    Ok(end)
}

/// What is in the file of a store; an error where that cannot be told.
pub async fn held_in(path: &Path) -> Result<Option<Facts>, Failed> {
    if !path.exists() {
        return Ok(None);
    }
    Facts::of(&End::Sqlite(sqlite::open(path)?)).await
}

pub fn refuse_used(
    found: Result<Option<Facts>, Failed>,
    place: impl std::fmt::Display,
) -> Result<(), Failed> {
    let what = match found {
        Ok(None) => return Ok(()),
        Ok(Some(facts)) if !facts.is_used => return Ok(()),
        Ok(Some(_)) => "there is a store with records already".to_owned(),
        Err(failed) => format!("what is there cannot be read ({failed})"),
    };
    Err(Failed(format!("{place}: {what}; --overwrite replaces it")))
}

/// One command or server at a time.
pub fn lock(path: &Path) -> Result<DataLock, Failed> {
    Ok(DataLock::take(path.parent().unwrap_or(Path::new(".")))?)
}

/// A version tells what a list is like, also to those who saw one that is no more.
async fn renew_lists(end: &End) -> Result<(), Failed> {
    let now = jiff::Timestamp::now().as_microsecond();
    end.run(&format!(
        "UPDATE \"trefoil_lists\" SET \"version\" = CASE WHEN \"version\" < {now} THEN {now} ELSE \"version\" + 1 END"
    ))
    .await
}
