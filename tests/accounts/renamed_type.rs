//! Accounts: their type gets another name, or another type takes its place.

use super::{PASSWORD, SCHEMA, Site, form, me, sign_in, sign_in_as, use_link};

/// The people under another name.
fn renamed() -> String {
    SCHEMA
        .replace("type User @account", "type Person @renamedFrom(name: \"User\") @account")
        .replace("author: User", "author: Person")
        .replace("users: [User!]!", "people: [Person!]!")
        .replace("me: User", "me: Person")
        .replace(
            "updateUser(id: ID!, blocked: Boolean): User",
            "updatePerson(id: ID!, blocked: Boolean): Person",
        )
        .replace("deleteUser(id: ID!): User", "deletePerson(id: ID!): Person")
}

/// Others sign in, and the people stay.
fn moved() -> String {
    let account = "@account(login: \"email\", roles: \"role\", if: \"!blocked\", manage: \"role(ADMIN)\", signUp: true)";
    let others =
        "type Member @account(login: \"email\") @allow(read: true) { id: ID! email: String! @unique }";
    let schema = SCHEMA.replace(account, "").replace("this == me || ", "").replace("this == me", "true");
    let schema =
        schema.replace("@createdBy ", "").replace("author == me", "true").replace(" me: User", " me: Member");
    format!("{schema}\n{others}")
}

#[test]
fn what_people_sign_in_with_follows_the_name_of_their_type() {
    for site in Site::both() {
        let server = site.serve_people();
        let cookie = sign_in(&server, "bob@example.org");
        let link = site.link("ada@example.org");
        drop(server);
        site.put("app/graphql/schema.graphqls", &renamed());
        let server = site.serve();
        assert_eq!(me(&server, &cookie)["me"]["email"], "bob@example.org");
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", PASSWORD).status, 303);
        assert_eq!(use_link(&server, &link, "another long password").status, 303);
        assert_eq!(sign_in_as(&server, &[], "ada@example.org", "another long password").status, 303);
        assert_eq!(form(&server, "/_/sign-out", &[("Cookie", &cookie)], &[]).status, 303);
        assert_eq!(me(&server, &cookie)["kind"], "anonymous");
    }
}

#[test]
fn other_accounts_need_to_be_allowed() {
    for site in Site::both() {
        let server = site.serve_people();
        let cookie = sign_in(&server, "bob@example.org");
        drop(server);
        site.must(&["key", "add", "of-bob", "app", "--as", "bob@example.org"]);
        site.must(&["key", "add", "of-nobody", "app", "--role", "ADMIN"]);
        site.put("app/graphql/schema.graphqls", &moved());
        let refused = site.run(&["serve", "app", "--port", "0"], "");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{said}");
        for part in ["`@account` moved from User to Member; lost: 2 passwords", "--allow-drop accounts"] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert!(!site.run(&["migrate", "app", "--apply"], "").status.success());
        site.must(&["migrate", "app", "--apply", "--allow-drop", "accounts"]);
        let keys = site.must(&["key", "list", "app"]);
        assert!(keys.contains("of-nobody") && !keys.contains("of-bob"), "{keys}");
        // A member with the id of somebody who had a session.
        for login in ["eve@example.org", "fay@example.org"] {
            site.must(&["user", "add", login, "app"]);
        }
        let server = site.serve();
        assert_eq!(me(&server, &cookie)["kind"], "anonymous");
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", PASSWORD).status, 401);
        assert_eq!(sign_in_as(&server, &[], "fay@example.org", PASSWORD).status, 401);
    }
}
