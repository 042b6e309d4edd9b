//! Turns an [`Operation`] into a [`Plan`]: every value coerced, every rule applied. The sole maker of plans.

use std::sync::Arc;

use super::{Op, Order};
use crate::model::{FieldId, Stored, TypeId};

/// An operation that was proven. Stores take nothing else; only this module can make one.
#[derive(Debug, Clone)]
pub struct Plan {
    pub action: Action,
    _proof: Proof,
}

/// Private, so that a `Plan` cannot be written down elsewhere.
#[derive(Debug, Clone)]
struct Proof;

#[derive(Debug, Clone)]
pub enum Action {
    Get {
        record: TypeId,
        id: i64,
        selection: Arc<Chosen>,
    },
    List {
        record: TypeId,
        listing: Bounds,
        selection: Arc<Chosen>,
    },
    Create {
        record: TypeId,
        id: Option<i64>,
        values: Vec<(FieldId, Stored)>,
        links: Vec<(FieldId, Vec<i64>)>,
        selection: Arc<Chosen>,
    },
    Update {
        record: TypeId,
        id: i64,
        values: Vec<(FieldId, Stored)>,
        links: Vec<(FieldId, Vec<i64>)>,
        expected_version: Option<i64>,
        selection: Arc<Chosen>,
    },
    Delete {
        record: TypeId,
        id: i64,
        expected_version: Option<i64>,
        selection: Arc<Chosen>,
    },
}

/// A proven [`Selection`]; `shape` is equal exactly when the statements for it are.
#[derive(Debug, Clone)]
pub struct Chosen {
    pub columns: Vec<FieldId>,
    pub children: Vec<ChosenChild>,
    pub shape: u128,
}

#[derive(Debug, Clone)]
pub struct ChosenChild {
    pub field: FieldId,
    pub listing: Bounds,
    pub selection: Chosen,
}

/// A proven listing.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    pub conditions: Vec<Test>,
    /// Without the closing `id`, which every order has.
    pub order: Vec<Order>,
    /// Keyset: the values of `order` and the id of the last record already seen.
    pub after: Option<(Vec<Stored>, i64)>,
    /// At most so many …
    pub limit: Option<i64>,
    /// … after skipping so many.
    pub offset: i64,
    pub count: bool,
    pub cursors: bool,
}

#[derive(Debug, Clone)]
pub enum Test {
    /// The value is never null; `Contains` compares text.
    Compare {
        field: FieldId,
        op: Op,
        value: Stored,
    },
    /// One of these, none of them null. Kept in one parameter, so that the statement is the same for any number.
    OneOf {
        field: FieldId,
        values: Vec<Stored>,
    },
    IsNull {
        field: FieldId,
    },
    NotNull {
        field: FieldId,
    },
    /// Never true: `IN ()` and the like.
    Nothing,
}
