//! The credential of a WebSocket: from the upgrade or the first message, for each operation, until it ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::listener::{Heard, Socket};
use super::site::{StreamSite, ask, done, token_of};

const NOTES: &str = "{ posts { title note } }";

/// Whether the answer shows notes, as it does to editors.
fn shows_notes(answer: &Value) -> bool {
    answer.to_string().contains("\"note\":\"secret\"")
}

#[test]
fn sockets_take_good_credentials_alone() {
    for site in StreamSite::both() {
        let admin = site.key("admin", &["--role", "ADMIN", "--role", "EDITOR"]);
        let editor = site.key("editor", &["--role", "EDITOR"]);
        let author = site.key("author", &["--role", "AUTHOR"]);
        let server = site.serve();
        let at = server.address;
        done(&server, &admin, "mutation { createPost(title: \"one\", note: \"secret\") { id } }");

        // Nothing before the acknowledgement.
        let mut early = Socket::open(at, &[("authorization", &editor)]).expect("a socket");
        early.start("1", NOTES);
        assert_eq!(early.next(), Heard::Ended(Some(4401)));

        // The credential of the upgrade, and none.
        for (headers, sees) in [(vec![("authorization", editor.as_str())], true), (vec![], false)] {
            let mut socket = Socket::open(at, &headers).expect("a socket");
            socket.init(&json!({})).expect("acknowledged");
            assert_eq!(shows_notes(&socket.answer("1", NOTES).expect("an answer")), sees, "{headers:?}");
        }
        assert_eq!(Socket::open(at, &[("authorization", "Bearer tfk_nonsense")]).err(), Some(401));

        // That of the first message goes before.
        for (name, upgrade, first, sees) in [
            ("authorization", None, &editor, true),
            ("Authorization", None, &editor, true),
            ("authorization", Some(&author), &editor, true),
            ("authorization", Some(&editor), &author, false),
            ("authorization", None, &token_of("ada@example.org"), true),
        ] {
            let headers: Vec<_> =
                upgrade.into_iter().map(|value| ("authorization", value.as_str())).collect();
            let mut socket = Socket::open(at, &headers).expect("a socket");
            socket.init(&json!({ name: first })).expect("acknowledged");
            assert_eq!(shows_notes(&socket.answer("1", NOTES).expect("an answer")), sees, "{name}");
        }
        for wrong in ["Bearer tfk_nonsense", "Bearer a.b.c", "Bearer", "nonsense", ""] {
            let mut socket = Socket::open(at, &[("authorization", &editor)]).expect("a socket");
            assert_eq!(socket.init(&json!({"authorization": wrong})), Err(Some(4403)), "{wrong}");
        }
    }
}

#[test]
fn operations_on_sockets_need_the_right_of_now() {
    for site in StreamSite::both() {
        let admin = site.key("admin", &["--role", "ADMIN", "--role", "EDITOR"]);
        let author = site.key("author", &["--role", "AUTHOR"]);
        let server = site.serve();
        let open = |credential: &str| {
            let mut socket =
                Socket::open(server.address, &[("authorization", credential)]).expect("a socket");
            socket.init(&json!({})).expect("acknowledged");
            socket
        };
        let titles = || done(&server, &admin, NOTES).to_string();
        done(&server, &admin, "mutation { createPost(title: \"one\", note: \"secret\") { id } }");

        // A key that is revoked.
        let mut socket = open(&author);
        let first = socket.answer("1", "mutation { createPost(title: \"before\") { id } }");
        assert!(first.expect("an answer").get("errors").is_none());
        site.revoke("author");
        let second = socket.answer("2", "mutation { createPost(title: \"after\") { id } }");
        assert_eq!(second, Err(Some(4403)));
        assert!(titles().contains("before") && !titles().contains("after"), "{}", titles());

        // An account that is blocked: nothing between the two requests.
        let mut socket = open(&token_of("ada@example.org"));
        assert!(shows_notes(&socket.answer("1", NOTES).expect("an answer")));
        done(&server, &admin, "mutation { updateUser(id: 1, blocked: true) { id } }");
        assert_eq!(socket.answer("2", NOTES), Err(Some(4403)));
        done(&server, &admin, "mutation { updateUser(id: 1, blocked: false) { id } }");

        // A role that is taken away, and given.
        for (role, sees) in [("null", false), ("EDITOR", true)] {
            let mut socket = open(&token_of("ada@example.org"));
            done(&server, &admin, &format!("mutation {{ updateUser(id: 1, role: {role}) {{ id }} }}"));
            // The socket itself ends soon, perhaps before it is asked: its streams have the rights of its beginning.
            match socket.answer("1", NOTES) {
                Ok(answer) => {
                    assert_eq!(shows_notes(&answer), sees, "{role}: {answer}");
                    assert_eq!(socket.next(), Heard::Ended(Some(4403)), "{role}");
                }
                Err(code) => assert_eq!(code, Some(4403), "{role}"),
            }
        }
        assert!(shows_notes(&ask(&server, &token_of("ada@example.org"), NOTES)));
    }
}

#[test]
fn operations_count_for_whom_the_first_message_proves() {
    let site = StreamSite::on_sqlite();
    let [one, two] = ["one", "two"].map(|name| site.key(name, &["--role", "EDITOR"]));
    let server = site.serve_with(&["--rate-limit", "5/600s"]);
    // Upgrades without a credential: four of the five requests of the address.
    let mut sockets = [Some(&one), Some(&one), Some(&two), None].map(|credential| {
        let mut socket = Socket::open(server.address, &[]).expect("a socket");
        let payload =
            credential.map_or_else(|| json!({}), |credential| json!({ "authorization": credential }));
        socket.init(&payload).expect("acknowledged");
        socket
    });
    for (socket, is_answered) in [
        (0, true),
        (0, true),
        (0, true),
        (1, true),
        (1, true),
        // Wherever the actor asks from.
        (1, false),
        (0, false),
        (2, true),
        (2, true),
        (3, true),
        (3, false),
    ] {
        let answer = sockets[socket].answer("1", "{ posts { title } }").expect("an answer");
        let is_limited = answer.to_string().contains("RATE_LIMITED");
        assert_eq!(!is_limited, is_answered, "{socket}: {answer}");
    }
}

#[test]
fn sockets_end_with_keys_that_expire() {
    let site = StreamSite::on_sqlite();
    let server = site.serve();
    let brief = site.key("brief", &["--role", "EDITOR", "--expires", "3s"]);
    let begin = Instant::now();
    let mut socket = Socket::open(server.address, &[]).expect("a socket");
    socket.init(&json!({ "authorization": brief })).expect("acknowledged");
    socket.start("1", "subscription { postCreated { title } }");
    assert_eq!(socket.next(), Heard::Ended(Some(4403)));
    let lasted = begin.elapsed();
    assert!(lasted > Duration::from_millis(500) && lasted < Duration::from_secs(8), "{lasted:?}");
    let mut again = Socket::open(server.address, &[]).expect("a socket");
    assert_eq!(again.init(&json!({ "authorization": brief })), Err(Some(4403)));
}
