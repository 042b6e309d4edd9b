//! Accounts on two nodes whose balancer sends each request to any of them.

use std::cell::Cell;

use super::{HTML, PASSWORD, Site, USERS, cookie_of, form, get, me, sign_in, sign_in_as, token_in, use_link};
use crate::support::{Process, postgres};

/// Two nodes on one database; each request goes to the other one than the last.
struct Nodes {
    servers: [Process; 2],
    count: Cell<usize>,
}

impl Nodes {
    fn next(&self) -> &Process {
        self.count.set(self.count.get() + 1);
        &self.servers[self.count.get() % 2]
    }

    /// Whether a session is good, on each node at once.
    fn are_signed_in(&self, cookie: &str) -> [bool; 2] {
        [0, 1].map(|node| me(&self.servers[node], cookie)["kind"] == "account")
    }
}

fn nodes() -> (Site, Nodes) {
    let site = Site::new(&["--database", &postgres::database()], USERS);
    let servers = [site.serve_people(), site.serve()];
    (site, Nodes { servers, count: Cell::new(0) })
}

#[test]
fn each_step_of_signing_in_may_be_taken_on_another_node() {
    let (_site, nodes) = nodes();
    for round in 0..4 {
        // So that both nodes have each part.
        nodes.next();
        let page = get(nodes.next(), "/_/sign-in?next=/notes", &[HTML]);
        assert_eq!(page.status, 200, "{round}");
        let first = sign_in(nodes.next(), "bob@example.org");
        assert_eq!(nodes.are_signed_in(&first), [true, true]);
        // Signing in again ends the session that was presented, wherever it began.
        let again = sign_in_as(nodes.next(), &[("Cookie", &first)], "bob@example.org", PASSWORD);
        let second = cookie_of(&again);
        assert_eq!((nodes.are_signed_in(&first), nodes.are_signed_in(&second)), ([false; 2], [true; 2]));

        let other = sign_in(nodes.next(), "bob@example.org");
        let ended = form(nodes.next(), "/_/account/sessions/end-others", &[("Cookie", &other)], &[]);
        assert_eq!(ended.status, 303);
        assert_eq!((nodes.are_signed_in(&second), nodes.are_signed_in(&other)), ([false; 2], [true; 2]));
        let created = form(nodes.next(), "/notes", &[("Cookie", &other)], &[("title", "One")]);
        assert_eq!(created.status, 303, "{}", created.text());

        let out = form(nodes.next(), "/_/sign-out", &[("Cookie", &other)], &[]);
        assert_eq!(out.status, 303);
        assert_eq!(nodes.are_signed_in(&other), [false; 2]);
    }
}

#[test]
fn a_changed_password_and_a_used_link_count_on_every_node() {
    let (_site, nodes) = nodes();
    let ada = sign_in(nodes.next(), "ada@example.org");
    let mut current = PASSWORD.to_owned();
    for round in 0..4 {
        nodes.next();
        let bob = cookie_of(&sign_in_as(nodes.next(), &[], "bob@example.org", &current));
        let stolen = cookie_of(&sign_in_as(nodes.next(), &[], "bob@example.org", &current));
        let changed = format!("a changed password {round}");
        let fields = [("current", current.as_str()), ("password", &changed), ("again", &changed)];
        let reply = form(nodes.next(), "/_/account/password", &[("Cookie", &bob)], &fields);
        assert_eq!(reply.status, 303, "{}", reply.text());
        assert_eq!(nodes.are_signed_in(&stolen), [false; 2], "round {round}");
        assert_eq!(nodes.are_signed_in(&cookie_of(&reply)), [true; 2]);
        assert_eq!(sign_in_as(nodes.next(), &[], "bob@example.org", &current).status, 401);

        let made = form(nodes.next(), "/_/accounts/2/link", &[("Cookie", &ada)], &[]);
        let token = token_in(&made.text());
        let winners: Vec<u64> = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8u64)
                .map(|number| {
                    let (server, token) = (nodes.next(), &token);
                    scope.spawn(move || {
                        (
                            number,
                            use_link(server, token, &format!("chosen by link {number} of {round}")).status,
                        )
                    })
                })
                .collect();
            let ended = tries.into_iter().map(|thread| thread.join().expect("ends"));
            ended.filter(|(_, status)| *status == 303).map(|(number, _)| number).collect()
        });
        let [winner] = winners[..] else { panic!("{winners:?}") };
        for server in &nodes.servers {
            assert_eq!(get(server, &format!("/_/link?token={token}"), &[HTML]).status, 404);
        }
        current = format!("chosen by link {winner} of {round}");
        assert_eq!(sign_in_as(nodes.next(), &[], "bob@example.org", &current).status, 303);
    }
}

#[test]
fn two_nodes_that_start_without_accounts_make_one_first_account() {
    let site = Site::new(&["--database", &postgres::database()], "[]");
    let servers = [site.serve(), site.serve()];
    let links = [0, 1].map(|node: usize| {
        servers[node].wait_for("/_/link?token=");
        token_in(&servers[node].log())
    });
    let make = |node: usize, token: &str, email: &str| {
        let fields = [
            ("token", token),
            ("name", "Ada"),
            ("email", email),
            ("role", "ADMIN"),
            ("password", PASSWORD),
            ("again", PASSWORD),
        ];
        form(&servers[node], "/_/link", &[], &fields).status
    };
    // The link of the start that came last is good, on either node, once.
    assert_eq!(make(1, &links[0], "old@example.org"), 404);
    let made: Vec<u16> = std::thread::scope(|scope| {
        let make = &make;
        let link = &links[1];
        let tries: Vec<_> = (0..6)
            .map(|number| scope.spawn(move || make(number % 2, link, &format!("a{number}@example.org"))))
            .collect();
        tries.into_iter().map(|thread| thread.join().expect("ends")).collect()
    });
    assert_eq!(made.iter().filter(|status| **status == 303).count(), 1, "{made:?}");
    assert!(made.iter().all(|status| [303, 404].contains(status)), "{made:?}");
    assert_eq!(
        site.must(&["user", "list", "app"]).lines().filter(|line| line.contains("@example.org")).count(),
        1
    );
}
