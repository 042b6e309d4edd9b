//! How records are kept in an SQL database.
