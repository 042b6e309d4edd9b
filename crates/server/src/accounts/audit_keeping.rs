//! Keeps audit and sessions while a server runs: writes what was gathered, removes what is too old, ends what is blocked.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use trefoil_config::AccountSettings;
use trefoil_credentials::SignInState;
use trefoil_engine::Engine;
use trefoil_http::shutdown::Shutdown;
use trefoil_model::error::Result;

use crate::routes::ResourceRouter;

/// How often.
const INTERVAL: Duration = Duration::from_secs(60);

/// Runs until the server drains. An application without rules has no audit.
pub async fn keep_audit(
    router: ResourceRouter,
    sign_ins: Arc<SignInState>,
    settings: AccountSettings,
    shutdown: Shutdown,
) {
    loop {
        let engine = router.current().catalog.engine.clone();
        if engine.model().access.is_some()
            && let Err(error) = keep_once(&engine, &sign_ins, &settings, &shutdown).await
        {
            tracing::warn!("cannot write the audit, or remove its old entries: {error}");
        }
        if shutdown.is_draining() {
            return;
        }
        // Writes of this server end them at once.
        if let Err(error) = engine.end_unusable_sessions().await {
            tracing::warn!("cannot end the sessions of accounts that cannot be used any more: {error}");
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.wait_for_drain() => {}
        }
    }
}

async fn keep_once(
    engine: &Engine,
    sign_ins: &SignInState,
    settings: &AccountSettings,
    shutdown: &Shutdown,
) -> Result<()> {
    sign_ins.note_failures(engine).await?;
    let age = SignedDuration::try_from(settings.audit_for).unwrap_or(SignedDuration::MAX);
    let before = Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN);
    // A bounded number at a time, so that writes come in between. A server that ends leaves the rest to the next one.
    while !shutdown.is_draining() && engine.credentials()?.prune_audit(before).await? > 0 {}
    Ok(())
}
