//! [`ProviderClient`]: what this server says to one OpenID provider, and what the provider says of somebody.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use jiff::Timestamp;
use serde_json::Value as Json;
use tokio::time::timeout;

use trefoil_config::OpenIdProvider;
use trefoil_credentials::jwt::{
    IdTokenExpectation, IssuerKeys, TokenClaims, TrustedIssuer, find_claim, verify_id_token,
};
use trefoil_credentials::{BegunSignIn, ProvenPerson, ProviderRefusal, ReturnedSignIn};
use trefoil_engine::ProviderIdentity;
use trefoil_http::form_pairs::percent_encode;
use trefoil_model::Value;

use crate::authentication::http_client::{HttpAnswer, send};
use crate::authentication::provider_metadata::{ProviderMetadata, ProviderSlot};

/// How long a provider that answered counts as one that answers.
const PROBE_AGE: Duration = Duration::from_secs(60);

/// How long one request to a provider may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// An OpenID provider, and this server as its client.
pub struct ProviderClient {
    pub settings: OpenIdProvider,
    /// `None` for a public client.
    secret: Option<String>,
    issuer: TrustedIssuer,
    keys: Arc<IssuerKeys>,
    metadata: Arc<ProviderSlot>,
    /// The roles that the schema knows.
    roles: Vec<String>,
}

/// What a provider gives for a code.
struct TokenAnswer {
    id_token: String,
    access_token: Option<String>,
}

impl ProviderClient {
    pub fn new(
        settings: OpenIdProvider,
        secret: Option<String>,
        keys: Arc<IssuerKeys>,
        metadata: Arc<ProviderSlot>,
        roles: Vec<String>,
    ) -> ProviderClient {
        let issuer = TrustedIssuer::new(settings.token_issuer(), keys.clone());
        ProviderClient { settings, secret, issuer, keys, metadata, roles }
    }

    /// Waits until it is known that the provider answers.
    pub async fn require_answer(&self) -> Result<(), ProviderRefusal> {
        if !self.keys.has_answered_within(PROBE_AGE).await {
            return Err(ProviderRefusal::Unreachable("its configuration cannot be fetched".to_owned()));
        }
        self.metadata().map(drop)
    }

    fn metadata(&self) -> Result<Arc<ProviderMetadata>, ProviderRefusal> {
        let found = self.metadata.load_full().ok_or("its configuration was not fetched yet");
        let found = found.and_then(|found| match (&found.authorization, &found.token) {
            (Some(_), Some(_)) => Ok(found),
            (_, _) => Err("its configuration has no authorization_endpoint and token_endpoint"),
        });
        found.map_err(|reason| ProviderRefusal::Unreachable(reason.to_owned()))
    }

    /// Where the browser goes to sign in.
    pub fn authorization_address(
        &self,
        begun: &BegunSignIn,
        redirect_uri: &str,
    ) -> Result<String, ProviderRefusal> {
        let metadata = self.metadata()?;
        let endpoint = metadata.authorization.as_deref().unwrap_or_default();
        let pairs = [
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", redirect_uri),
            ("scope", &self.settings.scopes.join(" ")),
            ("state", &begun.state),
            ("nonce", &begun.nonce),
            ("code_challenge", &begun.challenge),
            ("code_challenge_method", "S256"),
        ];
        let join = if endpoint.contains('?') { '&' } else { '?' };
        Ok(format!("{endpoint}{join}{}", encode(&pairs)))
    }

    /// Refuses the answer of another issuer (RFC 9207).
    pub fn check_issuer(&self, named: Option<&str>) -> Result<(), ProviderRefusal> {
        let is_right = match named {
            Some(issuer) => issuer == self.settings.issuer,
            None => !self.metadata()?.names_itself,
        };
        if is_right {
            return Ok(());
        }
        Err(ProviderRefusal::Rejected("the answer is not of the issuer that was asked".to_owned()))
    }

    /// Exchanges a code for what the provider proves of somebody.
    pub async fn find_person(
        &self,
        code: &str,
        redirect_uri: &str,
        returned: &ReturnedSignIn,
    ) -> Result<ProvenPerson, ProviderRefusal> {
        let metadata = self.metadata()?;
        let answer = self.exchange(&metadata, code, redirect_uri, &returned.verifier).await?;
        let expected = IdTokenExpectation {
            client_id: &self.settings.client_id,
            nonce: &returned.nonce,
            access_token: answer.access_token.as_deref(),
        };
        let now = Timestamp::now();
        let (subject, mut claims) = verify_id_token(&self.issuer, &answer.id_token, expected, now).await?;
        if let (Some(address), Some(token)) = (&metadata.user_info, &answer.access_token)
            && self.lacks_claims(&claims)
        {
            let more = user_info(address, token, &subject).await?;
            add_claims(&mut claims, more);
        }
        Ok(self.person(subject, &claims))
    }

    fn person(&self, subject: String, claims: &TokenClaims) -> ProvenPerson {
        let field = self.settings.account.as_ref().map(|account| account.field.clone());
        let fields = self.settings.fields.iter().filter_map(|own| {
            let value = find_claim(claims, &own.claim).filter(|value| !value.is_null())?;
            Some((own.field.clone(), Value::from(value.clone())))
        });
        ProvenPerson {
            identity: ProviderIdentity { issuer: self.settings.issuer.clone(), subject },
            account: field.zip(self.issuer.account_in(claims)),
            fields: fields.collect(),
            roles: self.issuer.roles_in(claims, &self.roles),
        }
    }

    /// Whether a claim that the settings name is not in the ID token: some providers tell more when they are asked.
    fn lacks_claims(&self, claims: &TokenClaims) -> bool {
        let OpenIdProvider { account, fields, roles, .. } = &self.settings;
        let named = account.iter().chain(fields).map(|own| own.claim.as_str());
        let mut named = named.chain(roles.as_deref());
        let is_unverified = account.as_ref().is_some_and(|account| account.claim == "email")
            && !claims.contains_key("email_verified");
        is_unverified || named.any(|claim| find_claim(claims, claim).is_none())
    }

    async fn exchange(
        &self,
        metadata: &ProviderMetadata,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
    ) -> Result<TokenAnswer, ProviderRefusal> {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        let mut request = Request::post("/").header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        match &self.secret {
            Some(secret) if !metadata.secret_in_body => {
                let [id, secret] = [&self.settings.client_id, secret].map(|text| percent_encode(text));
                request = request.header(
                    AUTHORIZATION,
                    sensitive("Basic", &BASE64_STANDARD.encode(format!("{id}:{secret}"))),
                );
            }
            Some(secret) => {
                pairs.extend([("client_id", self.settings.client_id.as_str()), ("client_secret", secret)]);
            }
            None => pairs.push(("client_id", &self.settings.client_id)),
        }
        let address = metadata.token.as_deref().unwrap_or_default();
        let answer = ask(address, request, encode(&pairs).into_bytes()).await?;
        let json = json_of(&answer);
        if answer.status != StatusCode::OK {
            let code = json.as_ref().and_then(|json| json.get("error")?.as_str()).map(plain_code);
            let reason = format!(
                "the token endpoint answered {} {}",
                answer.status.as_u16(),
                code.unwrap_or_default()
            );
            return Err(match answer.status.is_server_error() {
                true => ProviderRefusal::Unreachable(reason),
                false => ProviderRefusal::Rejected(reason),
            });
        }
        let text = |name: &str| json.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let id_token = text("id_token")
            .ok_or_else(|| ProviderRefusal::Rejected("the token endpoint gave no ID token".to_owned()))?;
        Ok(TokenAnswer { id_token, access_token: text("access_token") })
    }
}

/// What the provider tells whoever has the access token, which must be of the same person.
async fn user_info(address: &str, access_token: &str, subject: &str) -> Result<TokenClaims, ProviderRefusal> {
    let request = Request::get("/").header(AUTHORIZATION, sensitive("Bearer", access_token));
    let answer = ask(address, request, Vec::new()).await?;
    if answer.status != StatusCode::OK {
        let reason = format!("the userinfo endpoint answered {}", answer.status.as_u16());
        return Err(ProviderRefusal::Unreachable(reason));
    }
    match json_of(&answer) {
        Some(Json::Object(claims)) if claims.get("sub").and_then(Json::as_str) == Some(subject) => Ok(claims),
        Some(_) | None => {
            Err(ProviderRefusal::Rejected("the userinfo endpoint tells of somebody else".to_owned()))
        }
    }
}

/// Adds claims that are not there yet. That an address is verified counts for that address alone.
fn add_claims(claims: &mut TokenClaims, more: TokenClaims) {
    let same_email = claims.get("email").is_none_or(|email| more.get("email") == Some(email));
    for (name, value) in more {
        if name != "email_verified" || same_email {
            claims.entry(name).or_insert(value);
        }
    }
}

async fn ask(
    address: &str,
    request: http::request::Builder,
    body: Vec<u8>,
) -> Result<HttpAnswer, ProviderRefusal> {
    let answer = timeout(REQUEST_TIMEOUT, send(address, request, body)).await;
    let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs())));
    answer.map_err(|error| ProviderRefusal::Unreachable(format!("{address}: {error}")))
}

fn json_of(answer: &HttpAnswer) -> Option<Json> {
    serde_json::from_slice(&answer.body).ok()
}

/// A header that is not shown in any debug output. One that cannot be sent is empty, and the provider refuses it.
fn sensitive(scheme: &str, text: &str) -> HeaderValue {
    let value = HeaderValue::try_from(format!("{scheme} {text}"));
    let mut value = value.unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

fn encode(pairs: &[(&str, &str)]) -> String {
    let encoded = pairs.iter().map(|(name, value)| format!("{name}={}", percent_encode(value)));
    encoded.collect::<Vec<_>>().join("&")
}

/// An error's code as providers write it, for the log.
pub fn plain_code(code: &str) -> String {
    code.chars().filter(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(*letter)).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(json: Json) -> TokenClaims {
        let Json::Object(claims) = json else { panic!("claims are an object") };
        claims
    }

    #[test]
    fn claims_of_the_id_token_count_first() {
        let with = |own: Json, more: Json| {
            let mut own = claims(own);
            add_claims(&mut own, claims(more));
            Json::Object(own)
        };
        let more = json!({"sub": "1", "email": "a@b.c", "email_verified": true, "name": "Ada"});
        assert_eq!(with(json!({"sub": "1"}), more.clone()), more);
        let other = with(json!({"sub": "1", "email": "x@b.c"}), more.clone());
        assert_eq!(other, json!({"sub": "1", "email": "x@b.c", "name": "Ada"}));
        let same = with(json!({"sub": "1", "email": "a@b.c"}), more.clone());
        assert_eq!(same["email_verified"], true);
        let refused = with(json!({"sub": "1", "email": "a@b.c", "email_verified": false}), more);
        assert_eq!(refused["email_verified"], false);
    }

    #[test]
    fn what_is_sent_is_encoded() {
        assert_eq!(encode(&[("a", "x y&z=+"), ("b", "ä")]), "a=x%20y%26z%3D%2B&b=%C3%A4");
        assert_eq!(plain_code("invalid_client\r\n<x>"), "invalid_clientx");
        assert!(sensitive("Bearer", "a\nb").is_empty());
    }
}
