//! Who may read the metrics of an application with rules: clients on the machine, and whom a setting allows.

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation, IpNetwork};

use super::stage::write_application;
use super::tokens;
use crate::support::{Client, Reply, Server};

const SCHEMA: &str = r#"
enum Role { OPS EDITOR }
type User @account(login: "login", roles: "role") @allow(read: true)
{ id: ID! login: String! @unique role: Role @allow(write: false) watches: Boolean! @allow(write: false) }
"#;

const OPEN_SCHEMA: &str = "type User { id: ID! login: String! @unique watches: Boolean! }";

/// A client on another machine, as a proxy names it.
const FAR: &str = "203.0.113.9";

struct MetricsStage {
    server: Server,
    _folder: tempfile::TempDir,
}

impl MetricsStage {
    fn start(schema: &str, see_metrics: &str, is_proxy_trusted: bool) -> MetricsStage {
        let folder = tempfile::tempdir().expect("a folder");
        let users = json!([{ "login": "ada", "watches": true }, { "login": "eve", "watches": false }]);
        write_application(folder.path(), schema, &[("users", users.to_string())]).expect("written");
        if schema == SCHEMA {
            tokens::add_issuer(folder.path(), "login").expect("written");
        }
        let local = IpNetwork { address: "127.0.0.1".parse().expect("an address"), prefix: 32 };
        let config = Config {
            database: DatabaseLocation::Memory,
            see_metrics: see_metrics.to_owned(),
            trusted_proxies: if is_proxy_trusted { vec![local] } else { Vec::new() },
            ..Config::default()
        };
        MetricsStage { server: Server::start(Trefoil::folder(folder.path()), config), _folder: folder }
    }

    fn ask(&self, path: &str, forwarded: Option<&str>, credential: Option<&str>) -> Reply {
        let forwarded = forwarded.map(|client| ("x-forwarded-for", client));
        let credential = credential.map(|credential| ("authorization", credential));
        let headers: Vec<_> =
            [("accept", "text/plain")].into_iter().chain(forwarded).chain(credential).collect();
        Client::of(&self.server).send("GET", path, &headers, b"")
    }

    /// The status of the metrics, which are listed on the start page of whom they are shown to.
    fn status(&self, forwarded: Option<&str>, credential: Option<&str>) -> u16 {
        let reply = self.ask("/metrics", forwarded, credential);
        let is_shown = reply.text().contains("http_server_connections");
        assert_eq!(is_shown, reply.status == 200, "{}", reply.text());
        let home = self.ask("/", forwarded, credential);
        if home.status == 200 {
            assert_eq!(home.text().contains("/metrics "), is_shown, "{}", home.text());
        }
        reply.status
    }
}

#[test]
fn metrics_are_for_this_machine_and_for_whom_the_setting_allows() {
    let bearer = |claims: Value| tokens::bearer(&claims);
    let [ops, editor] = ["OPS", "EDITOR"].map(|role| bearer(json!({ "roles": [role] })));
    let [ada, eve] = ["ada", "eve"].map(|login| bearer(json!({ "login": login })));
    for (rule, expected) in [
        ("false", [401, 403, 403, 403, 403]),
        ("true", [200, 200, 200, 200, 200]),
        ("signedIn", [401, 200, 200, 200, 200]),
        ("role(OPS)", [401, 200, 403, 403, 403]),
        ("role(OPS) || me.watches", [401, 200, 403, 200, 403]),
    ] {
        let stage = MetricsStage::start(SCHEMA, rule, true);
        let askers = [None, Some(&ops), Some(&editor), Some(&ada), Some(&eve)];
        let statuses = askers.map(|asker| stage.status(Some(FAR), asker.map(String::as_str)));
        assert_eq!(statuses, expected, "{rule}");
        assert_eq!(askers.map(|asker| stage.status(None, asker.map(String::as_str))), [200; 5], "{rule}");
        assert_eq!(stage.status(Some("127.0.0.9"), None), 200, "the proxy says that it is local");
        let refused = stage.ask("/metrics", None, Some("Bearer tfk_unknown"));
        assert_eq!(refused.status, 401, "a credential that is not good");
    }
    let stage = MetricsStage::start(SCHEMA, "false", true);
    let refused = stage.ask("/metrics", Some(FAR), None);
    assert!(refused.header("www-authenticate").is_some_and(|challenge| challenge.starts_with("Bearer ")));
    // A proxy that nobody trusts cannot tell that its client is local.
    let stage = MetricsStage::start(SCHEMA, "role(OPS)", false);
    for client in [FAR, "127.0.0.1"] {
        assert_eq!(stage.status(Some(client), None), 401);
        assert_eq!(stage.status(Some(client), Some(&ops)), 200);
    }
    assert_eq!(stage.status(None, None), 200);
}

#[test]
fn metrics_of_open_applications_are_for_everybody() {
    for is_proxy_trusted in [false, true] {
        let stage = MetricsStage::start(OPEN_SCHEMA, "false", is_proxy_trusted);
        assert_eq!([None, Some(FAR)].map(|client| stage.status(client, None)), [200, 200]);
    }
}
