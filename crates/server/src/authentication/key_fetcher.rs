//! Fetches the keys of an issuer of tokens, and what its configuration says.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::CACHE_CONTROL;

use trefoil_credentials::jwt::{FetchedKeys, KeyFetcher};

use crate::authentication::http_client::get;
use crate::authentication::provider_metadata::{ProviderMetadata, ProviderSlot};

/// Where the keys of an issuer are.
pub enum KeyLocation {
    Address(String),
    /// What the configuration of this issuer names. The rest of it goes into the slot.
    Discovery(String, Arc<ProviderSlot>),
}

/// Fetches keys for [`trefoil_credentials::jwt::IssuerKeys`], which limits the time.
pub struct HttpKeyFetcher(pub KeyLocation);

impl KeyFetcher for HttpKeyFetcher {
    fn fetch(&self) -> BoxFuture<'_, Result<FetchedKeys, String>> {
        Box::pin(async {
            let address = match &self.0 {
                KeyLocation::Address(address) => address.clone(),
                KeyLocation::Discovery(issuer, slot) => {
                    let found = ProviderMetadata::discover(issuer).await?;
                    let address = found.keys.clone();
                    slot.store(Some(Arc::new(found)));
                    address
                }
            };
            let (headers, body) = get(&address).await.map_err(|error| format!("{address}: {error}"))?;
            Ok(FetchedKeys { body, max_age: max_age(&headers) })
        })
    }
}

/// `max-age` of `Cache-Control`; zero for what must not be kept.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(CACHE_CONTROL).iter().filter_map(|line| line.to_str().ok());
    let directives: Vec<String> =
        lines.flat_map(|line| line.split(',')).map(|part| part.trim().to_ascii_lowercase()).collect();
    if directives.iter().any(|directive| directive == "no-store" || directive == "no-cache") {
        return Some(Duration::ZERO);
    }
    let seconds = directives.iter().find_map(|directive| directive.strip_prefix("max-age="));
    seconds?.trim_matches('"').parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authentication::http_client::MAX_BODY_BYTES;
    use http::HeaderValue;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server that gives these answers, one a connection.
    async fn serve(answers: Vec<String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let own = address.clone();
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await;
                let answer = answer.replace("{self}", &own);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        address
    }

    fn answer(head: &str, body: &str) -> String {
        format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    }

    async fn fetch(location: KeyLocation) -> Result<(String, Option<u64>), String> {
        let fetched = HttpKeyFetcher(location).fetch().await?;
        Ok((String::from_utf8(fetched.body).unwrap(), fetched.max_age.map(|age| age.as_secs())))
    }

    #[tokio::test]
    async fn keys_are_fetched_with_their_age() {
        let found = answer("200 OK\r\ncache-control: public, max-age=600", "{\"keys\": []}");
        let address = serve(vec![found]).await;
        let fetched = fetch(KeyLocation::Address(address)).await;
        assert_eq!(fetched, Ok(("{\"keys\": []}".to_owned(), Some(600))));
    }

    #[tokio::test]
    async fn other_answers_are_refused() {
        let long = answer("200 OK", &" ".repeat(MAX_BODY_BYTES + 1));
        let moved = answer("302 Found\r\nlocation: {self}/other", "");
        let missing = answer("404 Not Found", "{\"keys\": []}");
        for (wrong, reason) in [(long, "cannot be read"), (moved, "302"), (missing, "404")] {
            let address = serve(vec![wrong]).await;
            let error = fetch(KeyLocation::Address(address)).await.unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let away = fetch(KeyLocation::Address("http://keys.example.org/".to_owned())).await;
        assert!(away.unwrap_err().contains("https://"));
    }

    #[tokio::test]
    async fn keys_are_found_by_the_configuration_of_the_issuer() {
        let configuration = answer("200 OK", "{\"issuer\": \"{self}\", \"jwks_uri\": \"{self}/keys\"}");
        // The length counts the address that replaces the placeholder.
        let configuration = configuration.replace("content-length", "x-length");
        let address = serve(vec![configuration.clone(), answer("200 OK", "keys")]).await;
        let slot = Arc::<ProviderSlot>::default();
        let fetched = fetch(KeyLocation::Discovery(address.clone(), slot.clone())).await;
        assert_eq!(fetched, Ok(("keys".to_owned(), None)));
        assert_eq!(slot.load().as_ref().map(|found| found.keys.clone()), Some(format!("{address}/keys")));
        let other = configuration.replacen("{self}", "http://localhost:1", 1);
        let address = serve(vec![other]).await;
        let refused = fetch(KeyLocation::Discovery(address, Arc::default())).await.unwrap_err();
        assert!(refused.contains("configuration of"), "{refused}");
    }

    #[test]
    fn the_age_is_read_from_cache_control() {
        let age = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static(text));
            max_age(&headers).map(|age| age.as_secs())
        };
        assert_eq!(age("public, Max-Age=60"), Some(60));
        assert_eq!(age("max-age=60, no-store"), Some(0));
        assert_eq!(age("public"), None);
        assert_eq!(age("max-age=soon"), None);
    }
}
