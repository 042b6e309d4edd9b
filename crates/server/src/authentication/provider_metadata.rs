//! [`ProviderMetadata`]: what the configuration of an issuer says of itself.

use arc_swap::ArcSwapOption;
use serde_json::Value;

use crate::authentication::http_client::{check_address, get};

/// The configuration as it was last fetched.
pub type ProviderSlot = ArcSwapOption<ProviderMetadata>;

/// What the configuration of an issuer says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderMetadata {
    /// Where its keys are.
    pub keys: String,
    /// Where people sign in, and where their codes are exchanged; `None` if it signs nobody in.
    pub authorization: Option<String>,
    pub token: Option<String>,
    /// What tells more of somebody.
    pub user_info: Option<String>,
    /// Whether its answers always name it (RFC 9207).
    pub names_itself: bool,
    /// Whether it takes the client's secret in the body alone.
    pub secret_in_body: bool,
}

impl ProviderMetadata {
    /// Fetches the configuration, which must be of this very issuer.
    pub async fn discover(issuer: &str) -> Result<ProviderMetadata, String> {
        let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let found = async {
            let (_, body) = get(&address).await?;
            ProviderMetadata::parse(issuer, &body)
        };
        found.await.map_err(|error| format!("{address}: {error}"))
    }

    fn parse(issuer: &str, body: &[u8]) -> Result<ProviderMetadata, String> {
        let json: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let text = |name: &str| json.get(name).and_then(Value::as_str);
        match text("issuer") {
            Some(found) if found == issuer => {}
            Some(found) => {
                return Err(format!("it is the configuration of {found:?}, not of {issuer:?}"));
            }
            None => return Err("it names no issuer".to_owned()),
        }
        // An address that must not be asked is none.
        let address = |name: &str| text(name).filter(|text| check_address(text).is_ok()).map(str::to_owned);
        let methods = json.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
        let takes = |method: &str| methods.is_some_and(|methods| methods.iter().any(|own| own == method));
        let names_itself = json.get("authorization_response_iss_parameter_supported");
        Ok(ProviderMetadata {
            keys: text("jwks_uri").ok_or("it has no jwks_uri")?.to_owned(),
            authorization: address("authorization_endpoint").filter(|address| !address.contains('#')),
            token: address("token_endpoint"),
            user_info: address("userinfo_endpoint"),
            names_itself: names_itself.and_then(Value::as_bool).unwrap_or(false),
            // Without the list it is the header.
            secret_in_body: takes("client_secret_post") && !takes("client_secret_basic"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(more: Value) -> Result<ProviderMetadata, String> {
        let mut all = json!({
            "issuer": "https://a.example",
            "jwks_uri": "https://a.example/keys",
            "authorization_endpoint": "https://a.example/auth",
            "token_endpoint": "https://a.example/token",
        });
        for (name, value) in more.as_object().expect("an object") {
            all[name] = value.clone();
        }
        ProviderMetadata::parse("https://a.example", all.to_string().as_bytes())
    }

    #[test]
    fn configurations_are_read() {
        let plain = parse(json!({})).unwrap();
        assert_eq!(plain.token.as_deref(), Some("https://a.example/token"));
        assert!(plain.user_info.is_none() && !plain.names_itself && !plain.secret_in_body);
        let methods = json!(["private_key_jwt", "client_secret_post"]);
        let other = parse(json!({
            "token_endpoint_auth_methods_supported": methods,
            "authorization_response_iss_parameter_supported": true,
            "userinfo_endpoint": "https://a.example/me",
        }));
        let other = other.unwrap();
        assert!(other.secret_in_body && other.names_itself && other.user_info.is_some());
        let methods = json!(["client_secret_post", "client_secret_basic"]);
        assert!(!parse(json!({ "token_endpoint_auth_methods_supported": methods })).unwrap().secret_in_body);
    }

    #[test]
    fn addresses_that_must_not_be_asked_are_none() {
        for wrong in [json!("http://a.example/auth"), json!("javascript:alert(1)"), json!("/auth"), json!(7)]
        {
            let found = parse(json!({ "authorization_endpoint": wrong, "token_endpoint": wrong })).unwrap();
            assert_eq!((found.authorization, found.token), (None, None), "{wrong}");
        }
        assert!(parse(json!({ "issuer": "https://a.example/" })).is_err());
        assert!(parse(json!({ "issuer": null })).is_err());
        assert!(parse(json!({ "jwks_uri": null })).is_err());
    }
}
