//! The messages of `graphql-transport-ws` as text, both ways, and the codes a socket is closed with.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::response_error;
use crate::response_error::Failure;

pub const NAME: &str = "graphql-transport-ws";

/// Of the protocol before it, which took this name first.
pub const LEGACY: &str = "graphql-ws";

/// A message that a client may send.
#[derive(Debug)]
pub enum Incoming<'a> {
    Init,
    /// With its payload as it was written, to be sent back.
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

/// Why a socket is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    pub code: u16,
    pub reason: String,
}

impl Close {
    /// A reason has room for 123 bytes.
    const LONGEST: usize = 123;

    pub fn new(code: u16, reason: impl Into<String>) -> Close {
        let mut reason = reason.into();
        let mut end = reason.len().min(Close::LONGEST);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        reason.truncate(end);
        Close { code, reason }
    }

    pub fn going_away() -> Close {
        Close::new(1001, "Going away")
    }

    pub fn invalid(what: impl std::fmt::Display) -> Close {
        Close::new(4400, format!("Invalid message: {what}"))
    }

    pub fn unauthorized() -> Close {
        Close::new(4401, "Unauthorized")
    }

    pub fn not_acceptable() -> Close {
        Close::new(4406, format!("Subprotocol not acceptable: {NAME} is the one spoken here"))
    }

    pub fn exists(id: &str) -> Close {
        const AROUND: usize = "Subscriber for  already exists".len();
        let mut end = id.len().min(Close::LONGEST - AROUND);
        while !id.is_char_boundary(end) {
            end -= 1;
        }
        Close::new(4409, format!("Subscriber for {} already exists", &id[..end]))
    }

    pub fn too_many_inits() -> Close {
        Close::new(4429, "Too many initialisation requests")
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// Reads a message; the error is what the socket is closed with.
pub fn read(text: &str) -> Result<Incoming<'_>, Close> {
    if !text.trim_start().starts_with('{') {
        return Err(Close::invalid("not a JSON object"));
    }
    let fields: Fields =
        serde_json::from_str(text).map_err(|error| Close::invalid(format_args!("{error}")))?;
    let kind = string(fields.kind).ok_or_else(|| Close::invalid("`type` is missing or no text"))?;
    match kind.as_ref() {
        "connection_init" => details(&fields, "connection_init").map(|_| Incoming::Init),
        "ping" => details(&fields, "ping").map(Incoming::Ping),
        "pong" => details(&fields, "pong").map(|_| Incoming::Pong),
        "complete" => id(&fields, "complete").map(|id| Incoming::Complete { id }),
        "subscribe" => {
            let id = id(&fields, "subscribe")?;
            let payload = object(fields.payload)
                .ok_or_else(|| Close::invalid("`payload` of subscribe is no object"))?;
            Ok(Incoming::Subscribe { id, payload })
        }
        other => Err(Close::invalid(format_args!("a client does not send `type` {other:.40?}"))),
    }
}

fn string(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text>(raw?.get()).ok().map(|text| text.0)
}

fn object(raw: Option<&RawValue>) -> Option<&str> {
    raw.map(RawValue::get).filter(|text| text.starts_with('{'))
}

/// The payload that init, ping and pong may have.
fn details<'a>(fields: &Fields<'a>, kind: &str) -> Result<Option<&'a str>, Close> {
    match fields.payload.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some(text) if text.starts_with('{') => Ok(Some(text)),
        Some(_) => Err(Close::invalid(format_args!("`payload` of {kind} is no object"))),
    }
}

fn id<'a>(fields: &Fields<'a>, kind: &str) -> Result<Cow<'a, str>, Close> {
    let id = string(fields.id).filter(|id| !id.is_empty());
    id.ok_or_else(|| Close::invalid(format_args!("`id` of {kind} is missing, empty or no text")))
}

/// Where a subscription begun now starts; nothing where that is not known.
pub fn ack(place: Option<&str>) -> Vec<u8> {
    with_payload(
        "connection_ack",
        place.map(|place| format!("{{\"lastEventId\":{}}}", quoted(place))).as_deref(),
    )
}

pub fn pong(payload: Option<&str>) -> Vec<u8> {
    with_payload("pong", payload)
}

/// Where one subscription of a socket stands.
pub struct Place<'a> {
    pub subscription: &'a str,
    pub number: i64,
    pub id: &'a str,
}

/// The place of the one that is farthest behind, which is good for all of them, and those of the others by their ids
/// where they differ from it.
pub fn ping(places: &[Place<'_>]) -> Vec<u8> {
    let Some(least) = places.iter().min_by_key(|place| place.number) else {
        return with_payload("ping", None);
    };
    let others = places.iter().filter(|place| place.number != least.number);
    let others: Vec<String> =
        others.map(|place| format!("{}:{}", quoted(place.subscription), quoted(place.id))).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!(",\"subscriptions\":{{{}}}", others.join(",")),
    };
    with_payload("ping", Some(&format!("{{\"lastEventId\":{}{others}}}", quoted(least.id))))
}

fn with_payload(kind: &str, payload: Option<&str>) -> Vec<u8> {
    match payload {
        Some(payload) => format!("{{\"type\":\"{kind}\",\"payload\":{payload}}}"),
        None => format!("{{\"type\":\"{kind}\"}}"),
    }
    .into_bytes()
}

/// What stands before the payload of `next`; behind it is [`NEXT_END`].
pub fn next(id: &str) -> Vec<u8> {
    format!("{{\"id\":{},\"type\":\"next\",\"payload\":", quoted(id)).into_bytes()
}

pub const NEXT_END: &[u8] = b"}";

pub fn error(id: &str, failures: &[Failure]) -> Vec<u8> {
    let mut out = format!("{{\"id\":{},\"type\":\"error\",\"payload\":", quoted(id)).into_bytes();
    response_error::write_all(&mut out, failures);
    out.push(b'}');
    out
}

pub fn complete(id: &str) -> Vec<u8> {
    format!("{{\"id\":{},\"type\":\"complete\"}}", quoted(id)).into_bytes()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_told_why() {
        let table = [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("\"ping\"", "not a JSON object"),
            ("{", "EOF"),
            ("{\"type\":\"ping\"} x", "trailing"),
            ("{\"type\":\"ping\",\"type\":\"pong\"}", "duplicate"),
            ("{}", "`type` is missing"),
            ("{\"type\":1}", "`type` is missing or no text"),
            ("{\"type\":\"connection_ack\"}", "does not send `type` \"connection_ack\""),
            ("{\"type\":\"next\",\"id\":\"1\",\"payload\":{}}", "does not send"),
            ("{\"type\":\"start\",\"id\":\"1\",\"payload\":{}}", "does not send `type` \"start\""),
            ("{\"type\":\"ping\",\"payload\":1}", "`payload` of ping is no object"),
            ("{\"type\":\"connection_init\",\"payload\":[]}", "`payload` of connection_init is no object"),
            ("{\"type\":\"complete\"}", "`id` of complete"),
            ("{\"type\":\"subscribe\",\"id\":1,\"payload\":{}}", "`id` of subscribe"),
            ("{\"type\":\"subscribe\",\"id\":\"\",\"payload\":{}}", "`id` of subscribe"),
            ("{\"type\":\"subscribe\",\"id\":\"1\"}", "`payload` of subscribe"),
            ("{\"type\":\"subscribe\",\"id\":\"1\",\"payload\":null}", "`payload` of subscribe"),
        ];
        for (text, words) in table {
            let close = read(text).expect_err(text);
            assert_eq!(close.code, 4400, "{text}");
            assert!(close.reason.contains(words), "{text}: {}", close.reason);
        }
    }

    #[test]
    fn reasons_fit_into_a_frame() {
        for length in [1, 90, 93, 94, 200] {
            let id = "ä".repeat(length);
            let close = Close::exists(&id);
            assert!(
                close.reason.len() <= 123 && close.reason.ends_with(" already exists"),
                "{}",
                close.reason
            );
        }
        assert_eq!(Close::exists("a").reason, "Subscriber for a already exists");
        assert_eq!(Close::new(4400, "ä".repeat(100)).reason.len(), 122);
    }

    #[test]
    fn a_ping_tells_each_place_once() {
        let ping = |places: &[(&'static str, i64, &'static str)]| {
            let place = |&(subscription, number, id): &(&'static str, i64, &'static str)| Place {
                subscription,
                number,
                id,
            };
            String::from_utf8(ping(&places.iter().map(place).collect::<Vec<_>>())).expect("text")
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
