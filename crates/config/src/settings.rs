//! The table of settings, the source of flags, variables, file keys, help and documentation.

use std::fmt;

use crate::Config;
use crate::setting_syntax::{
    AuditModeSyntax, CountOrZeroSyntax, CountSyntax, DatabaseSyntax, DurationOrOffSyntax, DurationSyntax,
    FolderSyntax, HashMemorySyntax, HashRoundsSyntax, HostListSyntax, HostSyntax, LogFormatSyntax,
    NetworkListSyntax, OptionalFileSyntax, OriginListSyntax, PasswordLengthSyntax, PortSyntax,
    RateLimitSyntax, RuleSyntax, SettingSyntax, SizeOrZeroSyntax, SizeSyntax, SwitchSyntax, TimeZoneSyntax,
};

/// One setting. Flag, variable and file key derive from its name; see [`Setting::flag`], [`Setting::variable`] and
/// [`Setting::key`].
pub struct Setting {
    pub name: &'static str,
    /// Placeholder of the value in a usage line.
    pub hint: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// True if the flag may be given without a value, meaning true.
    pub is_switch: bool,
    pub(crate) read: fn(&mut Config, &str) -> Result<(), String>,
    pub(crate) show: fn(&Config) -> String,
}

macro_rules! setting {
    ($name:literal, $kind:ident, $($field:ident).+, $help:literal) => {
        Setting {
            name: $name,
            hint: <$kind as SettingSyntax>::HINT,
            help: $help,
            is_switch: <$kind as SettingSyntax>::IS_SWITCH,
            read: |config, text| {
                config.$($field).+ = <$kind as SettingSyntax>::read(text)?;
                Ok(())
            },
            show: |config| <$kind as SettingSyntax>::show(&config.$($field).+),
        }
    };
}

/// Every setting, in the order of the documentation.
pub static SETTINGS: &[Setting] = &[
    setting!("host", HostSyntax, host, "Host name or address to listen on"),
    setting!("port", PortSyntax, port, "Port to listen on; 0 chooses a free port and prints it"),
    setting!("data", FolderSyntax, data, "Folder where the data is stored"),
    setting!(
        "database",
        DatabaseSyntax,
        database,
        "Database: sqlite: (in the data folder), memory: or postgres://USER@HOST/NAME"
    ),
    setting!(
        "database-connections",
        CountSyntax,
        database_connections,
        "PostgreSQL connections for transactions and long lists"
    ),
    setting!(
        "database-timeout",
        DurationSyntax,
        database_timeout,
        "How long a request waits for one of these connections"
    ),
    setting!(
        "database-notify",
        SwitchSyntax,
        database_notify,
        "Learn of changes by other nodes through LISTEN; otherwise poll every 100 ms"
    ),
    setting!(
        "open",
        SwitchSyntax,
        open,
        "Allow connections from other machines, although the schema has no rules"
    ),
    setting!("watch", SwitchSyntax, watch, "Reload the schema when its files change"),
    setting!(
        "tls-cert",
        OptionalFileSyntax,
        tls_cert,
        "Certificate in PEM with its chain: the server speaks HTTPS, and reads the file again when it changes"
    ),
    setting!("tls-key", OptionalFileSyntax, tls_key, "Private key of the certificate, in PEM"),
    setting!(
        "hsts",
        DurationOrOffSyntax,
        hsts,
        "How long browsers come by HTTPS only (Strict-Transport-Security), or off"
    ),
    setting!(
        "trusted-proxies",
        NetworkListSyntax,
        trusted_proxies,
        "Networks of proxies whose Forwarded and X-Forwarded-* headers are trusted"
    ),
    setting!(
        "allowed-hosts",
        HostListSyntax,
        allowed_hosts,
        "Accepted values of the Host header, besides localhost and the host above"
    ),
    setting!(
        "cors-origins",
        OriginListSyntax,
        cors_origins,
        "Origins that may send cross-origin requests (CORS); * allows all others to read"
    ),
    setting!(
        "log-format",
        LogFormatSyntax,
        log_format,
        "Log format: auto (pretty on a terminal, otherwise json), pretty or json"
    ),
    setting!(
        "time-zone",
        TimeZoneSyntax,
        time_zone,
        "Time zone in which times are grouped by periods, and that of pages, an IANA name such as Europe/Berlin"
    ),
    setting!("introspection", SwitchSyntax, introspection, "Allow GraphQL introspection"),
    setting!("graphiql", SwitchSyntax, graphiql, "Serve GraphiQL to browsers at /graphql"),
    setting!(
        "rate-limit",
        RateLimitSyntax,
        rate_limit,
        "Maximum requests per client and period, such as 100/60s, or off"
    ),
    setting!(
        "shutdown-delay",
        DurationOrOffSyntax,
        shutdown_delay,
        "How long to keep serving after a stop signal, so that load balancers notice"
    ),
    setting!("heartbeat", DurationSyntax, heartbeat, "Interval between heartbeats of an open subscription"),
    setting!(
        "keep-changes",
        CountOrZeroSyntax,
        keep_changes,
        "Minimum number of changes kept for subscribers that reconnect"
    ),
    setting!("keep-changes-for", DurationSyntax, keep_changes_for, "Minimum time that changes are kept"),
    setting!(
        "auth-see-metrics",
        RuleSyntax,
        see_metrics,
        "Who may read /metrics from other machines, as a rule: true, false or an expression about the actor"
    ),
    setting!(
        "auth-see-audit",
        RuleSyntax,
        see_audit,
        "Who may read the audit at /_/audit, as a rule: true, false or an expression about the actor"
    ),
    setting!(
        "auth-audit",
        AuditModeSyntax,
        accounts.audit,
        "What the audit notes: writes (and sign-ins and credentials), trust (without writes) or off"
    ),
    setting!("auth-audit-for", DurationSyntax, accounts.audit_for, "How long entries of the audit are kept"),
    setting!(
        "auth-session-idle",
        DurationSyntax,
        accounts.session_idle,
        "How long a session lasts without a request"
    ),
    setting!(
        "auth-session-lifetime",
        DurationSyntax,
        accounts.session_lifetime,
        "How long a session lasts in any case"
    ),
    setting!(
        "auth-link-lifetime",
        DurationSyntax,
        accounts.link_lifetime,
        "How long a link for a new password is good"
    ),
    setting!(
        "auth-password-length",
        PasswordLengthSyntax,
        accounts.password_length,
        "Minimum number of characters of a new password, 8 to 64"
    ),
    setting!(
        "auth-password-memory",
        HashMemorySyntax,
        accounts.password_memory,
        "Memory that hashing a password takes (argon2id)"
    ),
    setting!(
        "auth-password-rounds",
        HashRoundsSyntax,
        accounts.password_rounds,
        "Rounds of hashing a password (argon2id)"
    ),
    setting!(
        "auth-insecure",
        SwitchSyntax,
        accounts.insecure,
        "Take passwords and session cookies over plain HTTP from other machines"
    ),
    setting!("limit-body", SizeSyntax, limits.body, "Maximum size of a request body"),
    setting!("limit-headers", SizeSyntax, limits.headers, "Maximum size of the request headers"),
    setting!(
        "limit-header-timeout",
        DurationSyntax,
        limits.header_timeout,
        "Time limit for receiving the headers"
    ),
    setting!(
        "limit-request-timeout",
        DurationSyntax,
        limits.request_timeout,
        "Time limit until the response starts"
    ),
    setting!(
        "limit-stall-timeout",
        DurationSyntax,
        limits.stall_timeout,
        "Time after which a client that stops reading is disconnected"
    ),
    setting!(
        "limit-idle-timeout",
        DurationSyntax,
        limits.idle_timeout,
        "Time after which an idle connection is closed"
    ),
    setting!("limit-connections", CountSyntax, limits.connections, "Maximum number of open connections"),
    setting!("limit-depth", CountSyntax, limits.depth, "Maximum depth of a GraphQL selection"),
    setting!("limit-tokens", CountSyntax, limits.tokens, "Maximum number of tokens in a GraphQL document"),
    setting!("limit-aliases", CountSyntax, limits.aliases, "Maximum number of aliases in a GraphQL document"),
    setting!("limit-cost", CountSyntax, limits.cost, "Maximum cost of a GraphQL request, in fields"),
    setting!("limit-page-size", CountSyntax, limits.page_size, "Default number of records per page"),
    setting!("limit-max-page-size", CountSyntax, limits.max_page_size, "Maximum number of records per page"),
    setting!(
        "limit-conditions",
        CountSyntax,
        limits.conditions,
        "Maximum number of filter conditions on one list or subscription"
    ),
    setting!(
        "limit-bulk",
        CountSyntax,
        limits.bulk,
        "Maximum number of records that one operation creates, changes or deletes"
    ),
    setting!("limit-batch", CountSyntax, limits.batch, "Maximum number of requests in one batch"),
    setting!(
        "limit-search-rows",
        CountSyntax,
        limits.search_rows,
        "Maximum number of records that a search without `@search` reads"
    ),
    setting!("limit-groups", CountSyntax, limits.groups, "Maximum number of groups of one aggregate"),
    setting!(
        "limit-document-cache",
        SizeSyntax,
        limits.document_cache,
        "Size of the cache of parsed GraphQL documents"
    ),
    setting!(
        "limit-answer-cache",
        SizeOrZeroSyntax,
        limits.answer_cache,
        "Size of the cache of responses, which are reused until data changes; 0 turns it off"
    ),
    setting!(
        "limit-page-parts",
        SizeOrZeroSyntax,
        limits.page_parts,
        "Size of the cache of rendered parts of list pages; 0 turns it off"
    ),
    setting!(
        "limit-event-cache",
        SizeSyntax,
        limits.event_cache,
        "Size of the cache of changes and events that subscribers share"
    ),
    setting!(
        "limit-socket-message",
        SizeSyntax,
        limits.socket_message,
        "Maximum size of a WebSocket message"
    ),
    setting!(
        "limit-socket-subscriptions",
        CountSyntax,
        limits.socket_subscriptions,
        "Maximum number of subscriptions on one WebSocket"
    ),
    setting!(
        "limit-socket-init-timeout",
        DurationSyntax,
        limits.socket_init_timeout,
        "Time limit for a WebSocket client to send connection_init"
    ),
];

impl Setting {
    pub fn find(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// `--limit-body`
    pub fn flag(&self) -> String {
        format!("--{}", self.name)
    }

    /// `TREFOIL_LIMIT_BODY`
    pub fn variable(&self) -> String {
        format!("TREFOIL_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    /// The table and the key in `trefoil.toml`: `limits` and `body`.
    pub fn key(&self) -> (Option<&'static str>, &'static str) {
        let tables = [("limit-", "limits"), ("auth-", "auth")];
        let in_table = |(prefix, table)| Some((Some(table), self.name.strip_prefix(prefix)?));
        tables.into_iter().find_map(in_table).unwrap_or((None, self.name))
    }

    pub fn is_limit(&self) -> bool {
        self.key().0 == Some("limits")
    }

    /// The default value as text.
    pub fn default(&self) -> String {
        (self.show)(&Config::default())
    }

    /// Checks that the text is a valid value.
    pub fn check(&self, text: &str) -> Result<(), String> {
        (self.read)(&mut Config::default(), text)
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn defaults_round_trip_and_names_are_unique() {
        let mut names = HashSet::new();
        for setting in SETTINGS {
            let mut config = Config::default();
            (setting.read)(&mut config, &setting.default()).unwrap();
            assert_eq!((setting.show)(&config), setting.default(), "{}", setting.name);
            assert!(names.insert(setting.name), "{} is there twice", setting.name);
        }
    }

    #[test]
    fn switches_need_no_value() {
        let switches: Vec<&str> = SETTINGS.iter().filter(|s| s.is_switch).map(|s| s.name).collect();
        assert_eq!(
            switches,
            ["database-notify", "open", "watch", "introspection", "graphiql", "auth-insecure"]
        );
    }

    #[test]
    fn flag_variable_and_key_names() {
        let body = Setting::find("limit-body").unwrap();
        assert_eq!(body.flag(), "--limit-body");
        assert_eq!(body.variable(), "TREFOIL_LIMIT_BODY");
        assert_eq!(body.key(), (Some("limits"), "body"));
        assert_eq!(Setting::find("cors-origins").unwrap().key(), (None, "cors-origins"));
        let metrics = Setting::find("auth-see-metrics").unwrap();
        assert_eq!(metrics.variable(), "TREFOIL_AUTH_SEE_METRICS");
        assert_eq!(metrics.key(), (Some("auth"), "see-metrics"));
        assert!(body.is_limit() && !metrics.is_limit());
    }
}
