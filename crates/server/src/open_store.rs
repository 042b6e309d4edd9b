//! Opens the configured store, with or without the lock of its data folder.

use std::path::Path;

use trefoil_config::{Config, DatabaseLocation};
use trefoil_sql::{DataLock, SqlStore, SqliteOptions, postgres};

use crate::StartError;

/// The database file in the data folder.
pub const DATABASE_FILE: &str = "trefoil.db";

/// Whether the configured store exists.
pub fn store_exists(config: &Config) -> Result<bool, StartError> {
    match &config.database {
        DatabaseLocation::Memory => Ok(false),
        DatabaseLocation::Embedded => {
            let found = config.data.join(DATABASE_FILE).try_exists();
            found
                .map_err(|error| StartError::Store(format!("data folder {}: {error}", config.data.display())))
        }
        // Only the database can tell, and looking at it changes nothing.
        DatabaseLocation::Postgres(_) => Ok(true),
    }
}

/// Opens the configured store and locks its data folder.
pub async fn open_store(config: &Config) -> Result<(Option<DataLock>, SqlStore), StartError> {
    let lock = match &config.database {
        DatabaseLocation::Memory | trefoil_config::DatabaseLocation::Postgres(_) => None,
        DatabaseLocation::Embedded => {
            create_data_folder(config)?;
            Some(DataLock::acquire(&config.data).map_err(StartError::from_store_error)?)
        }
    };
    Ok((lock, open_store_unlocked(config).await?))
}

/// The lock of the data folder, or `None` if there is no data folder or a server holds the lock.
pub fn try_lock_data(config: &Config) -> Result<Option<DataLock>, StartError> {
    match &config.database {
        DatabaseLocation::Memory | trefoil_config::DatabaseLocation::Postgres(_) => Ok(None),
        DatabaseLocation::Embedded => {
            create_data_folder(config)?;
            DataLock::try_acquire(&config.data).map_err(StartError::from_store_error)
        }
    }
}

fn create_data_folder(config: &Config) -> Result<(), StartError> {
    let folder = &config.data;
    create_folder_durably(folder)
        .map_err(|error| StartError::Store(format!("data folder {}: {error}", folder.display())))
}

/// Opens the configured store without a lock, even if a server uses it.
pub async fn open_store_unlocked(config: &Config) -> Result<SqlStore, StartError> {
    let options = SqliteOptions {
        keep_changes: config.keep_changes,
        keep_changes_for: config.keep_changes_for,
        ..SqliteOptions::default()
    };
    match &config.database {
        DatabaseLocation::Memory => {
            SqlStore::open_sqlite(None, options).map_err(StartError::from_store_error)
        }
        DatabaseLocation::Embedded => {
            let path = config.data.join(DATABASE_FILE);
            let store = SqlStore::open_sqlite(Some(&path), options);
            store.map_err(|error| {
                StartError::Store(format!("{}: {}", path.display(), StartError::from_store_error(error)))
            })
        }
        DatabaseLocation::Postgres(url) => {
            let options = postgres::PostgresOptions {
                url: url.clone(),
                pool_size: config.database_connections,
                acquire_timeout: config.database_timeout,
                notify: config.database_notify,
                keep_changes: config.keep_changes,
                keep_changes_for: config.keep_changes_for,
            };
            let store = SqlStore::open_postgres(options).await;
            store.map_err(|error| StartError::Store(format!("database {error}")))
        }
    }
}

/// Creates a folder and its parents. Each is synced into its parent, because otherwise a power cut could lose the new
/// folder with acknowledged writes in it.
pub fn create_folder_durably(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder_durably(parent)?;
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists || !folder.is_dir() => Err(error),
        Ok(()) | Err(_) => std::fs::File::open(parent)?.sync_all(),
    }
}
