//! [`PresumedIdentity`]: whom a credential is taken for while its request is answered.

use std::sync::Arc;

use crate::access::actor::ActorIdentity;
use crate::access::identity_check::IdentityCheck;
use crate::store::DataVersion;

/// Whom a credential proves, or proved before.
pub struct PresumedIdentity {
    pub identity: Arc<ActorIdentity>,
    /// `None` if it is known to hold.
    pub check: Option<IdentityCheck>,
    /// What the version of the data was when it was found to hold, if the store can tell.
    pub data_version: Option<DataVersion>,
}

/// What a credential is looked at for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialUse {
    /// A request: a session that has them goes on.
    Request,
    /// Whether a long answer may go on, which is no use of a session.
    Watch,
}
