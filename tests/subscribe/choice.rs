//! Which transport answers: the operation type decides first, `Accept` second.

use serde_json::json;

use super::{Body, CREATED, memory, sample};

const URQL: &str = "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, \
                    multipart/mixed";

#[test]
fn accept_header_chooses_the_stream_format() {
    let server = sample(memory());
    let table = [
        ("*/*", "text/event-stream; charset=utf-8"),
        ("text/event-stream", "text/event-stream; charset=utf-8"),
        (URQL, "text/event-stream; charset=utf-8"),
        ("text/event-stream, multipart/mixed", "text/event-stream; charset=utf-8"),
        (
            "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/graphql-response+json,application/json;q=0.9",
            "multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0",
        ),
    ];
    for (accept, content_type) in table {
        let body = Body::post(&server, accept, json!({ "query": CREATED }));
        assert_eq!((body.status, body.header("content-type")), (200, Some(content_type)), "{accept}");
    }
    let none = Body::open(
        &server,
        "POST",
        "/graphql",
        &[("Content-Type", "application/json")],
        &json!({ "query": CREATED }).to_string(),
    );
    assert_eq!(none.header("content-type"), Some("text/event-stream; charset=utf-8"));
}

#[test]
fn query_gets_json_although_streams_are_accepted() {
    let server = sample(memory());
    for accept in
        [URQL, "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/graphql-response+json"]
    {
        let mut body = Body::post(&server, accept, json!({ "query": "{ __typename }" }));
        assert_eq!(body.header("content-type"), Some("application/graphql-response+json; charset=utf-8"));
        assert_eq!(body.rest(), "{\"data\":{\"__typename\":\"Query\"}}");
    }
}

#[test]
fn subscription_without_stream_accept_is_406() {
    let server = sample(memory());
    for accept in
        ["application/json", "application/graphql-response+json", "application/json, multipart/mixed"]
    {
        let mut body = Body::post(&server, accept, json!({ "query": CREATED }));
        let text = body.rest();
        assert_eq!(body.status, 406, "{accept}: {text}");
        for words in [
            "SUBSCRIPTION_TRANSPORT",
            "text/event-stream",
            "multipart/mixed;subscriptionSpec=1.0",
            "graphql-transport-ws",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
}

#[test]
fn query_over_sse_is_one_event_and_complete() {
    let server = sample(memory());
    let mut body = Body::post(&server, "text/event-stream", json!({ "query": "{ __typename }" }));
    assert_eq!((body.status, body.header("content-type")), (200, Some("text/event-stream; charset=utf-8")));
    assert_eq!(
        body.rest(),
        "event: next\ndata: {\"data\":{\"__typename\":\"Query\"}}\n\nevent: complete\ndata:\n\n"
    );
    let mutation = "mutation { createUser(name: \"Ada\", email: \"\") { name } }";
    let mut body = Body::post(&server, "text/event-stream", json!({ "query": mutation }));
    let expected =
        "event: next\ndata: {\"data\":{\"createUser\":{\"name\":\"Ada\"}}}\n\nevent: complete\ndata:\n\n";
    assert_eq!(body.rest(), expected);
    let only =
        Body::post(&server, "multipart/mixed;subscriptionSpec=1.0", json!({ "query": "{ __typename }" }));
    assert_eq!(only.status, 406);
}

#[test]
fn invalid_document_error_is_sent_over_sse() {
    let server = sample(memory());
    let mut body = Body::post(&server, "text/event-stream", json!({ "query": "subscription { nothing }" }));
    let text = body.rest();
    assert_eq!(body.status, 200);
    assert!(text.starts_with("event: next\ndata: {\"errors\":[{\"message\":"), "{text}");
    assert!(text.ends_with("}\n\nevent: complete\ndata:\n\n"), "{text}");
    let malformed = Body::post(&server, "text/event-stream", json!({ "query": 1 }));
    assert_eq!(malformed.status, 400);
}

#[test]
fn mutation_by_get_and_sse_single_connection_are_405() {
    let server = sample(memory());
    let create = "/graphql?query=mutation%7BcreateUser(name%3A%22a%22%2Cemail%3A%22%22)%7Bid%7D%7D";
    let body = Body::open(&server, "GET", create, &[("Accept", "text/event-stream")], "");
    assert_eq!((body.status, body.header("allow")), (405, Some("POST")));
    for method in ["PUT", "DELETE"] {
        let body = Body::open(&server, method, "/graphql", &[("Accept", "text/event-stream")], "");
        assert_eq!(body.status, 405, "{method}");
        assert!(body.header("allow").is_some_and(|allow| allow.contains("POST")));
    }
}
