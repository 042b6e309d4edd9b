//! What only PostgreSQL does: locks, pipelines, and several nodes at once.
