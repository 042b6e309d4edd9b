//! The table of settings, the source of flags, variables, file keys, help and documentation.

use std::fmt;

use crate::Config;
use crate::setting_syntax::{
    CountOrZeroSyntax, CountSyntax, DatabaseSyntax, DurationOrOffSyntax, DurationSyntax, FolderSyntax,
    HostListSyntax, HostSyntax, LogFormatSyntax, NetworkListSyntax, OriginListSyntax, PortSyntax,
    RateLimitSyntax, SettingSyntax, SizeOrZeroSyntax, SizeSyntax, SwitchSyntax,
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
    setting!("host", HostSyntax, host, "Name or address to listen on"),
    setting!("port", PortSyntax, port, "Port to listen on; 0 picks a free one and prints it"),
    setting!("data", FolderSyntax, data, "Folder that keeps the records"),
    setting!(
        "database",
        DatabaseSyntax,
        database,
        "Where records live: sqlite: (in the data folder), memory: or postgres://USER@HOST/NAME"
    ),
    setting!(
        "database-connections",
        CountSyntax,
        database_connections,
        "Connections to PostgreSQL for transactions and long lists"
    ),
    setting!(
        "database-timeout",
        DurationSyntax,
        database_timeout,
        "Time a request waits for one of those connections"
    ),
    setting!(
        "database-notify",
        SwitchSyntax,
        database_notify,
        "Hear of other nodes' changes by LISTEN; else look for them every 100 ms"
    ),
    setting!("open", SwitchSyntax, open, "Listen beyond this machine although nobody has to sign in"),
    setting!("watch", SwitchSyntax, watch, "Serve a changed schema without a restart"),
    setting!(
        "trusted-proxies",
        NetworkListSyntax,
        trusted_proxies,
        "Networks whose Forwarded and X-Forwarded-* headers count"
    ),
    setting!(
        "allowed-hosts",
        HostListSyntax,
        allowed_hosts,
        "Names that requests may call this server by (Host), beside localhost and the host above"
    ),
    setting!(
        "cors-origins",
        OriginListSyntax,
        cors_origins,
        "Origins whose pages may call this server from a browser; * lets all others read"
    ),
    setting!(
        "log-format",
        LogFormatSyntax,
        log_format,
        "auto (pretty on a terminal, else json), pretty or json"
    ),
    setting!("introspection", SwitchSyntax, introspection, "Let clients ask GraphQL for the schema"),
    setting!("graphiql", SwitchSyntax, graphiql, "Show GraphiQL to browsers at /graphql"),
    setting!(
        "rate-limit",
        RateLimitSyntax,
        rate_limit,
        "Requests a client may make in a time, like 100/60s, or off"
    ),
    setting!(
        "shutdown-delay",
        DurationOrOffSyntax,
        shutdown_delay,
        "Time between the signal and the end of service, for a load balancer to notice"
    ),
    setting!(
        "heartbeat",
        DurationSyntax,
        heartbeat,
        "Time between two signs of life of an open subscription"
    ),
    setting!(
        "keep-changes",
        CountOrZeroSyntax,
        keep_changes,
        "Changes kept at least for subscribers that come back"
    ),
    setting!("keep-changes-for", DurationSyntax, keep_changes_for, "How long changes are kept at least"),
    setting!("limit-body", SizeSyntax, limits.body, "Bytes of a request body"),
    setting!("limit-headers", SizeSyntax, limits.headers, "Bytes of a request's headers"),
    setting!("limit-header-timeout", DurationSyntax, limits.header_timeout, "Time for the headers to arrive"),
    setting!("limit-request-timeout", DurationSyntax, limits.request_timeout, "Time until the answer begins"),
    setting!(
        "limit-stall-timeout",
        DurationSyntax,
        limits.stall_timeout,
        "Time a reader may take no byte of its answer"
    ),
    setting!("limit-idle-timeout", DurationSyntax, limits.idle_timeout, "Time a connection may stay unused"),
    setting!("limit-connections", CountSyntax, limits.connections, "Connections open at once"),
    setting!("limit-depth", CountSyntax, limits.depth, "Levels of a GraphQL selection"),
    setting!("limit-tokens", CountSyntax, limits.tokens, "Tokens of a GraphQL document"),
    setting!("limit-aliases", CountSyntax, limits.aliases, "Aliases in a GraphQL document"),
    setting!("limit-cost", CountSyntax, limits.cost, "Fields a GraphQL request may come to"),
    setting!(
        "limit-page-size",
        CountSyntax,
        limits.page_size,
        "Records on a page when the request does not say"
    ),
    setting!(
        "limit-max-page-size",
        CountSyntax,
        limits.max_page_size,
        "Records a request may ask for on one page"
    ),
    setting!(
        "limit-conditions",
        CountSyntax,
        limits.conditions,
        "Conditions that a request may filter one list by"
    ),
    setting!(
        "limit-document-cache",
        SizeSyntax,
        limits.document_cache,
        "Bytes of GraphQL documents kept for re-use"
    ),
    setting!(
        "limit-answer-cache",
        SizeOrZeroSyntax,
        limits.answer_cache,
        "Bytes of answers kept and given again while nothing has changed; 0 keeps none"
    ),
    setting!(
        "limit-page-parts",
        SizeOrZeroSyntax,
        limits.page_parts,
        "Bytes of rows and frames of list pages kept for the next page; 0 keeps none"
    ),
    setting!(
        "limit-event-cache",
        SizeSyntax,
        limits.event_cache,
        "Bytes of changes and events kept for subscribers to share"
    ),
    setting!("limit-socket-message", SizeSyntax, limits.socket_message, "Bytes of one WebSocket message"),
    setting!(
        "limit-socket-subscriptions",
        CountSyntax,
        limits.socket_subscriptions,
        "Subscriptions open on one WebSocket"
    ),
    setting!(
        "limit-socket-init-timeout",
        DurationSyntax,
        limits.socket_init_timeout,
        "Time for a WebSocket to say connection_init"
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
        match self.name.strip_prefix("limit-") {
            Some(key) => (Some("limits"), key),
            None => (None, self.name),
        }
    }

    pub fn is_limit(&self) -> bool {
        self.key().0.is_some()
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
        assert_eq!(switches, ["database-notify", "open", "watch", "introspection", "graphiql"]);
    }

    #[test]
    fn flag_variable_and_key_names() {
        let body = Setting::find("limit-body").unwrap();
        assert_eq!(body.flag(), "--limit-body");
        assert_eq!(body.variable(), "TREFOIL_LIMIT_BODY");
        assert_eq!(body.key(), (Some("limits"), "body"));
        assert_eq!(Setting::find("cors-origins").unwrap().key(), (None, "cors-origins"));
    }
}
