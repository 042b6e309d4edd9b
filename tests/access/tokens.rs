//! An issuer of tokens for tests that ask over HTTP: it signs with a secret that the application knows.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::credentials::hmac_sha256;

pub const SECRET: &str = "the secret of an issuer, for tests alone";

/// Gives an application the issuer: its accounts are found by the claim `login`.
pub fn add_issuer(app: &Path, login: &str) -> std::io::Result<()> {
    let path = app.join("trefoil.toml");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let secret = app.join("issuer.secret");
    std::fs::write(&secret, SECRET)?;
    let issuer = format!(
        "{before}\n[[auth.jwt]]\nissuer = \"tests\"\naudience = \"app\"\nsecret-file = \"{}\"\nroles = \"roles\"\n\
         account = {{ claim = \"login\", field = \"{login}\" }}\n",
        secret.display()
    );
    std::fs::write(path, issuer)
}

/// `Bearer …`, good for an hour.
pub fn bearer(claims: &Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let mut all = json!({"iss": "tests", "aud": "app", "sub": "someone", "exp": now + 3600});
    for (name, value) in claims.as_object().expect("an object") {
        all[name] = value.clone();
    }
    let encode = |json: &Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", encode(&json!({"alg": "HS256", "typ": "JWT"})), encode(&all));
    let signature = hmac_sha256(SECRET.as_bytes(), message.as_bytes());
    format!("Bearer {message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}
