//! [`ApplicationAccounts`]: the accounts of one application, for those who answer requests about them.

use std::sync::Arc;

use trefoil_config::AccountSettings;
use trefoil_credentials::{AccountService, SignInState};
use trefoil_engine::{Actor, Engine};
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_model::access::AccountType;

use crate::authentication::provider_client::ProviderClient;

/// The accounts of one application.
pub struct ApplicationAccounts {
    pub service: AccountService,
    pub settings: AccountSettings,
    pub account: AccountType,
    pub metrics: Metrics,
    /// Whom people sign in with, beside passwords.
    pub providers: Vec<Arc<ProviderClient>>,
}

impl ApplicationAccounts {
    /// `None` if the schema has no accounts.
    pub fn new(
        engine: &Engine,
        settings: &AccountSettings,
        application: &str,
        state: &Arc<SignInState>,
        metrics: &Metrics,
        providers: Vec<Arc<ProviderClient>>,
    ) -> Option<Arc<ApplicationAccounts>> {
        let account = engine.model().access.as_ref()?.account.clone()?;
        let service = AccountService::new(engine, settings, application, state.clone())?;
        let (settings, metrics) = (settings.clone(), metrics.clone());
        Some(Arc::new(ApplicationAccounts { service, settings, account, metrics, providers }))
    }

    /// The same for what somebody asks for, as the audit tells it.
    pub fn for_actor(&self, actor: &Actor) -> ApplicationAccounts {
        ApplicationAccounts {
            service: self.service.for_actor(actor),
            settings: self.settings.clone(),
            account: self.account.clone(),
            metrics: self.metrics.clone(),
            providers: self.providers.clone(),
        }
    }
}
