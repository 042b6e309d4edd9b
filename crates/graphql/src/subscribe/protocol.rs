//! The messages of `graphql-transport-ws`, parsed and encoded, and its close codes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::response_error::{self, ResponseError};

pub const SUBPROTOCOL: &str = "graphql-transport-ws";

/// The older protocol of subscriptions-transport-ws, which used this name first.
pub const LEGACY_SUBPROTOCOL: &str = "graphql-ws";

/// A message that a client may send.
#[derive(Debug)]
pub enum IncomingMessage<'a> {
    /// With its payload as raw JSON.
    Init(Option<&'a str>),
    /// With its payload as raw JSON, to be returned in the pong.
    Ping(Option<&'a str>),
    Pong,
    Subscribe {
        id: Cow<'a, str>,
        payload: &'a str,
    },
    Complete {
        id: Cow<'a, str>,
    },
}

/// The code and reason with which a socket is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketClose {
    pub code: u16,
    pub reason: String,
}

impl SocketClose {
    /// Maximum length of a reason in bytes, by RFC 6455.
    const MAX_REASON: usize = 123;

    pub fn new(code: u16, reason: impl Into<String>) -> SocketClose {
        let mut reason = reason.into();
        let mut end = reason.len().min(SocketClose::MAX_REASON);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        reason.truncate(end);
        SocketClose { code, reason }
    }

    pub fn going_away() -> SocketClose {
        SocketClose::new(1001, "Going away")
    }

    pub fn invalid_message(what: impl std::fmt::Display) -> SocketClose {
        SocketClose::new(4400, format!("Invalid message: {what}"))
    }

    pub fn unauthorized() -> SocketClose {
        SocketClose::new(4401, "Unauthorized")
    }

    /// The credential is not good. Clients come back from it, with a fresh one.
    pub fn forbidden() -> SocketClose {
        SocketClose::new(4403, "Forbidden: the credential is not good")
    }

    pub fn not_acceptable() -> SocketClose {
        SocketClose::new(4406, format!("Subprotocol not acceptable: use {SUBPROTOCOL}"))
    }

    pub fn subscriber_exists(id: &str) -> SocketClose {
        const AROUND: usize = "Subscriber for  already exists".len();
        let mut end = id.len().min(SocketClose::MAX_REASON - AROUND);
        while !id.is_char_boundary(end) {
            end -= 1;
        }
        SocketClose::new(4409, format!("Subscriber for {} already exists", &id[..end]))
    }

    pub fn too_many_inits() -> SocketClose {
        SocketClose::new(4429, "Too many initialisation requests")
    }
}

#[derive(Deserialize)]
struct MessageFields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// Parses a message; the error closes the socket.
pub fn parse_message(text: &str) -> Result<IncomingMessage<'_>, SocketClose> {
    if !text.trim_start().starts_with('{') {
        return Err(SocketClose::invalid_message("not a JSON object"));
    }
    let fields: MessageFields =
        serde_json::from_str(text).map_err(|error| SocketClose::invalid_message(format_args!("{error}")))?;
    let kind = parse_string(fields.kind)
        .ok_or_else(|| SocketClose::invalid_message("`type` is missing or not a string"))?;
    match kind.as_ref() {
        "connection_init" => optional_payload(&fields, "connection_init").map(IncomingMessage::Init),
        "ping" => optional_payload(&fields, "ping").map(IncomingMessage::Ping),
        "pong" => optional_payload(&fields, "pong").map(|_| IncomingMessage::Pong),
        "complete" => operation_id(&fields, "complete").map(|id| IncomingMessage::Complete { id }),
        "subscribe" => {
            let id = operation_id(&fields, "subscribe")?;
            let payload = object_text(fields.payload)
                .ok_or_else(|| SocketClose::invalid_message("`payload` of subscribe is not an object"))?;
            Ok(IncomingMessage::Subscribe { id, payload })
        }
        other => Err(SocketClose::invalid_message(format_args!("unexpected `type` {other:.40?}"))),
    }
}

fn parse_string(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text>(raw?.get()).ok().map(|text| text.0)
}

fn object_text(raw: Option<&RawValue>) -> Option<&str> {
    raw.map(RawValue::get).filter(|text| text.starts_with('{'))
}

/// The optional payload of init, ping and pong.
fn optional_payload<'a>(fields: &MessageFields<'a>, kind: &str) -> Result<Option<&'a str>, SocketClose> {
    match fields.payload.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some(text) if text.starts_with('{') => Ok(Some(text)),
        Some(_) => Err(SocketClose::invalid_message(format_args!("`payload` of {kind} is not an object"))),
    }
}

fn operation_id<'a>(fields: &MessageFields<'a>, kind: &str) -> Result<Cow<'a, str>, SocketClose> {
    let id = parse_string(fields.id).filter(|id| !id.is_empty());
    id.ok_or_else(|| {
        SocketClose::invalid_message(format_args!("`id` of {kind} is missing, empty or not a string"))
    })
}

/// The `authorization` in the payload of an init, by any case. An error if it is no text, or there twice.
pub fn init_authorization(payload: Option<&str>) -> Result<Option<String>, SocketClose> {
    let Some(payload) = payload else { return Ok(None) };
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(payload)
        .map_err(|error| SocketClose::invalid_message(format_args!("{error}")))?;
    let mut found = members.into_iter().filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    match (found.next(), found.next()) {
        (None, _) | (Some((_, serde_json::Value::Null)), None) => Ok(None),
        (Some((_, serde_json::Value::String(text))), None) => Ok(Some(text)),
        (Some(_), _) => Err(SocketClose::forbidden()),
    }
}

/// With the id of the last event, if it is known: a new subscription starts after it.
pub fn connection_ack(last_event_id: Option<&str>) -> Vec<u8> {
    with_payload(
        "connection_ack",
        last_event_id.map(|id| format!("{{\"lastEventId\":{}}}", json_string(id))).as_deref(),
    )
}

pub fn pong(payload: Option<&str>) -> Vec<u8> {
    with_payload("pong", payload)
}

/// The position of one subscription of a socket.
pub struct SubscriptionPosition<'a> {
    pub operation_id: &'a str,
    pub position: i64,
    pub event_id: &'a str,
}

/// With the lowest position, from which all subscriptions can resume, and the differing positions by operation id.
pub fn ping(positions: &[SubscriptionPosition<'_>]) -> Vec<u8> {
    let Some(lowest) = positions.iter().min_by_key(|position| position.position) else {
        return with_payload("ping", None);
    };
    let others = positions.iter().filter(|position| position.position != lowest.position);
    let others: Vec<String> = others
        .map(|position| format!("{}:{}", json_string(position.operation_id), json_string(position.event_id)))
        .collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!(",\"subscriptions\":{{{}}}", others.join(",")),
    };
    with_payload("ping", Some(&format!("{{\"lastEventId\":{}{others}}}", json_string(lowest.event_id))))
}

fn with_payload(kind: &str, payload: Option<&str>) -> Vec<u8> {
    match payload {
        Some(payload) => format!("{{\"type\":\"{kind}\",\"payload\":{payload}}}"),
        None => format!("{{\"type\":\"{kind}\"}}"),
    }
    .into_bytes()
}

/// The start of a `next` message, up to its payload; [`NEXT_SUFFIX`] follows the payload.
pub fn next_prefix(id: &str) -> Vec<u8> {
    format!("{{\"id\":{},\"type\":\"next\",\"payload\":", json_string(id)).into_bytes()
}

pub const NEXT_SUFFIX: &[u8] = b"}";

pub fn error(id: &str, failures: &[ResponseError]) -> Vec<u8> {
    let mut out = format!("{{\"id\":{},\"type\":\"error\",\"payload\":", json_string(id)).into_bytes();
    response_error::write_errors(&mut out, failures);
    out.push(b'}');
    out
}

pub fn complete(id: &str) -> Vec<u8> {
    format!("{{\"id\":{},\"type\":\"complete\"}}", json_string(id)).into_bytes()
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_messages_close_with_reason() {
        let table = [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("\"ping\"", "not a JSON object"),
            ("{", "EOF"),
            ("{\"type\":\"ping\"} x", "trailing"),
            ("{\"type\":\"ping\",\"type\":\"pong\"}", "duplicate"),
            ("{}", "`type` is missing"),
            ("{\"type\":1}", "`type` is missing or not a string"),
            ("{\"type\":\"connection_ack\"}", "unexpected `type` \"connection_ack\""),
            ("{\"type\":\"next\",\"id\":\"1\",\"payload\":{}}", "unexpected `type`"),
            ("{\"type\":\"start\",\"id\":\"1\",\"payload\":{}}", "unexpected `type` \"start\""),
            ("{\"type\":\"ping\",\"payload\":1}", "`payload` of ping is not an object"),
            (
                "{\"type\":\"connection_init\",\"payload\":[]}",
                "`payload` of connection_init is not an object",
            ),
            ("{\"type\":\"complete\"}", "`id` of complete"),
            ("{\"type\":\"subscribe\",\"id\":1,\"payload\":{}}", "`id` of subscribe"),
            ("{\"type\":\"subscribe\",\"id\":\"\",\"payload\":{}}", "`id` of subscribe"),
            ("{\"type\":\"subscribe\",\"id\":\"1\"}", "`payload` of subscribe"),
            ("{\"type\":\"subscribe\",\"id\":\"1\",\"payload\":null}", "`payload` of subscribe"),
        ];
        for (text, expected) in table {
            let close = parse_message(text).expect_err(text);
            assert_eq!(close.code, 4400, "{text}");
            assert!(close.reason.contains(expected), "{text}: {}", close.reason);
        }
    }

    #[test]
    fn close_reasons_fit_into_a_frame() {
        for length in [1, 90, 93, 94, 200] {
            let id = "ä".repeat(length);
            let close = SocketClose::subscriber_exists(&id);
            assert!(
                close.reason.len() <= 123 && close.reason.ends_with(" already exists"),
                "{}",
                close.reason
            );
        }
        assert_eq!(SocketClose::subscriber_exists("a").reason, "Subscriber for a already exists");
        assert_eq!(SocketClose::new(4400, "ä".repeat(100)).reason.len(), 122);
    }

    #[test]
    fn ping_lists_each_position_once() {
        let ping = |positions: &[(&'static str, i64, &'static str)]| {
            let position = |&(subscription, number, id): &(&'static str, i64, &'static str)| {
                SubscriptionPosition { operation_id: subscription, position: number, event_id: id }
            };
            String::from_utf8(ping(&positions.iter().map(position).collect::<Vec<_>>())).expect("text")
        };
        assert_eq!(ping(&[]), r#"{"type":"ping"}"#);
        assert_eq!(
            ping(&[("1", 7, "a-7"), ("2", 7, "a-7")]),
            r#"{"type":"ping","payload":{"lastEventId":"a-7"}}"#
        );
        assert_eq!(
            ping(&[("2", 9, "a-9"), ("1", 7, "a-7"), ("\"", 8, "a-8")]),
            r#"{"type":"ping","payload":{"lastEventId":"a-7","subscriptions":{"2":"a-9","\"":"a-8"}}}"#
        );
    }
}
