//! Accounts: choosing, changing and hashing passwords.

use serde_json::json;

use super::{
    HTML, JSON, MANIFEST, PASSWORD, Site, cookie_of, encode, form, get, html, me, sign_in, sign_in_as,
    use_link,
};

const OTHER: &str = "another long password";

#[test]
fn a_changed_password_leaves_the_session_its_roles_and_its_end() {
    for site in Site::both() {
        let server = site.serve_people();
        let cookie = sign_in(&server, "bob@example.org");
        // As if a provider had signed Bob in, five days ago.
        let ends = "UPDATE trefoil_sessions SET roles = '[\"EDITOR\"]', expires = expires - 432000, created = created - 432000";
        site.sql(ends);
        let times = "SELECT min(created) * 10 + min(expires) FROM trefoil_sessions";
        let before = site.sql(times);
        assert_eq!(me(&server, &cookie)["roles"], json!(["EDITOR"]));
        let fields = [("current", PASSWORD), ("password", OTHER), ("again", OTHER)];
        let changed = form(&server, "/_/account/password", &[("Cookie", &cookie)], &fields);
        assert_eq!(changed.status, 303, "{}", changed.text());
        let new = cookie_of(&changed);
        assert_eq!(me(&server, &new)["roles"], json!(["EDITOR"]));
        assert_eq!(site.sql(times), before);
        let age = changed.headers_named("set-cookie").concat();
        let age = age.split("Max-Age=").nth(1).and_then(|rest| rest.split(';').next()).expect("an age");
        let left = 25 * 24 * 3_600;
        assert!((left - 60..=left).contains(&age.parse::<i64>().expect("seconds")), "{age}");
        assert_eq!(me(&server, &cookie)["kind"], "anonymous");
    }
}

#[test]
fn programs_change_the_password_with_json() {
    for site in Site::both() {
        let server = site.serve_people();
        let body = json!({ "login": "bob@example.org", "password": PASSWORD }).to_string();
        let told = server.client().send("POST", "/_/sign-in", &[JSON], body.as_bytes()).json();
        let bearer = format!("Bearer {}", told["token"].as_str().expect("a token"));
        let change = |headers: &[(&str, &str)], current: &str, password: &str| {
            let body = json!({ "current": current, "password": password, "again": password }).to_string();
            let headers = [&[JSON], headers].concat();
            server.client().send("POST", "/_/account/password", &headers, body.as_bytes())
        };
        let wrong = change(&[("Authorization", &bearer)], "wrong", OTHER);
        assert_eq!((wrong.status, wrong.json()["code"].clone()), (401, json!("UNAUTHENTICATED")));
        let changed = change(&[("Authorization", &bearer)], PASSWORD, OTHER);
        assert_eq!(changed.status, 200, "{}", changed.text());
        assert!(changed.headers_named("set-cookie").is_empty());
        assert_eq!(changed.json()["expires"], told["expires"]);
        assert_eq!(changed.json()["me"]["email"], "bob@example.org");
        let new = format!("Bearer {}", changed.json()["token"].as_str().expect("a token"));
        assert_eq!(get(&server, "/_/me", &[("Authorization", &new)]).json()["kind"], "account");
        assert_eq!(get(&server, "/_/me", &[("Authorization", &bearer)]).status, 401);
        // A script of a page never sees the token of its cookie.
        let cookie = cookie_of(&sign_in_as(&server, &[], "bob@example.org", OTHER));
        let changed = change(&[("Cookie", &cookie)], OTHER, PASSWORD);
        assert_eq!((changed.status, changed.text()), (204, String::new()));
        assert_eq!(me(&server, &cookie_of(&changed))["kind"], "account");
        // A key that acts as the account has no session, and gets none.
        let key = site.must(&["key", "add", "bot", "app", "--as", "bob@example.org"]);
        let key = format!(
            "Bearer {}",
            key.split_whitespace().find(|word| word.starts_with("tfk_")).expect("a key")
        );
        let page = get(&server, "/_/account", &[HTML, ("Authorization", &key)]);
        assert_eq!(page.status, 200, "{}", page.text());
        assert!(!page.text().contains("(this one)"), "{}", page.text());
        let changed = change(&[("Authorization", &key)], PASSWORD, OTHER);
        assert_eq!((changed.status, changed.text()), (204, String::new()));
        assert_eq!(site.sql("SELECT count(*) FROM trefoil_sessions"), "0");
        assert_eq!(get(&server, "/_/me", &[("Authorization", &key)]).json()["kind"], "key");
    }
}

#[test]
fn the_longest_passwords_fit() {
    let [site, _] = Site::both();
    let server = site.serve_people();
    let (first, second) = ("\u{1f40e}".repeat(1_024), "\u{1f40b}".repeat(1_024));
    assert_eq!(encode(&first).len(), 12 * 1_024);
    let set = use_link(&server, &site.link("bob@example.org"), &first);
    assert_eq!(set.status, 303, "{}", set.text());
    let cookie = cookie_of(&sign_in_as(&server, &[], "bob@example.org", &first));
    let fields = [("current", &*first), ("password", &second), ("again", &second)];
    let changed = form(&server, "/_/account/password", &[("Cookie", &cookie)], &fields);
    assert_eq!(changed.status, 303, "{}", changed.text());
    sign_in_as(&server, &[], "bob@example.org", &second);
    let too_long = format!("{second}x");
    assert_eq!(use_link(&server, &site.link("bob@example.org"), &too_long).status, 400);
    assert_eq!(sign_in_as(&server, &[], "bob@example.org", &too_long).status, 401);
    assert_eq!(sign_in_as(&server, &[], "bob@example.org", &second).status, 303);
    let flood = sign_in_as(&server, &[], "bob@example.org", &"x".repeat(20_000));
    assert_eq!(flood.status, 413, "{}", flood.text());
}

#[test]
fn stronger_settings_are_taken_over_when_somebody_signs_in() {
    for site in Site::both() {
        let server = site.serve_people();
        let hash = |id: u8| site.sql(&format!("SELECT hash FROM trefoil_passwords WHERE account = '{id}'"));
        let settings = |id: u8| hash(id).split('$').nth(3).expect("settings").to_owned();
        assert_eq!([1, 2].map(settings), ["m=64,t=1,p=1", "m=64,t=1,p=1"]);
        drop(server);
        site.put("app/trefoil.toml", "[auth]\npassword-memory = \"128 KiB\"\npassword-rounds = 2\n");
        let server = site.serve();
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", "a wrong password").status, 401);
        assert_eq!(settings(2), "m=64,t=1,p=1");
        sign_in(&server, "bob@example.org");
        assert_eq!([1, 2].map(settings), ["m=64,t=1,p=1", "m=128,t=2,p=1"]);
        sign_in(&server, "bob@example.org");
        drop(server);
        // Weaker ones are not.
        site.put("app/trefoil.toml", MANIFEST);
        let (server, kept) = (site.serve(), hash(2));
        sign_in(&server, "bob@example.org");
        assert_eq!(hash(2), kept);
    }
}

#[test]
fn names_are_no_passwords() {
    let [site, _] = Site::both();
    site.put("app/trefoil.toml", &format!("name = \"The village library\"\n{MANIFEST}"));
    let server = site.serve();
    let link = site.link("ada@example.org");
    for name in ["The village library", "the VILLAGE library", "ada lovelace", "ADA@example.org"] {
        let refused = use_link(&server, &link, name);
        assert_eq!(refused.status, 400, "{name}: {}", refused.text());
        assert!(refused.text().contains("not a name or the login"), "{name}: {}", refused.text());
    }
    assert_eq!(use_link(&server, &link, "The village library!").status, 303);
    let cookie = cookie_of(&sign_in_as(&server, &[], "ada@example.org", "The village library!"));
    let name = "the village library";
    let fields = [("current", "The village library!"), ("password", name), ("again", name)];
    assert_eq!(form(&server, "/_/account/password", &[("Cookie", &cookie)], &fields).status, 400);
}

#[test]
fn a_password_that_is_sent_after_the_session_ended_is_not_shown_and_can_be_sent_again() {
    for site in Site::both() {
        let server = site.serve_people();
        let cookie = sign_in(&server, "bob@example.org");
        site.must(&["user", "end", "bob@example.org", "app"]);
        let fields = [("current", PASSWORD), ("password", OTHER), ("again", OTHER)];
        let lost = form(&server, "/_/account/password", &[("Cookie", &cookie)], &fields);
        assert_eq!(lost.status, 401);
        let text = html(&lost);
        assert!(text.contains("href=\"/_/sign-in?next=%2F_%2Faccount\""), "{text}");
        assert!(!text.contains(PASSWORD) && !text.contains(OTHER), "{text}");
    }
}
