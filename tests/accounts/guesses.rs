//! Accounts: what guesses cost and tell, and many who sign in at once.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::{FORM, JSON, PASSWORD, Site, encode, form, get, sign_in_as, use_link_from};
use crate::support::{Process, Reply, is_long};

/// Each from a network of its own, so that nobody has to wait.
fn from_network(number: usize) -> [(&'static str, String); 3] {
    let address = format!("10.{}.{}.7", number / 250, number % 250);
    [
        ("X-Forwarded-For", address),
        ("X-Forwarded-Proto", "https".to_owned()),
        ("X-Forwarded-Host", "shop.example".to_owned()),
    ]
}

const ACCOUNTS: usize = 20;

fn set_auth(site: &Site, auth: &str) {
    let manifest = format!("trusted-proxies = [\"127.0.0.0/8\", \"::1\"]\n[auth]\n{auth}");
    site.put("app/trefoil.toml", &manifest);
}

/// Behind a proxy that is trusted, with so many accounts that all have the same password.
fn site(auth: &str) -> Site {
    let users: Vec<String> = (1..=ACCOUNTS)
        .map(|number| format!(r#"{{"id": {number}, "name": "N{number}", "email": "n{number}@example.org"}}"#))
        .collect();
    let site = Site::new(&["--database", "sqlite:", "--data", "data"], &format!("[{}]", users.join(",")));
    set_auth(&site, auth);
    site
}

fn set_passwords(site: &Site, server: &Process) {
    for number in 1..=ACCOUNTS {
        let link = site.link(&format!("n{number}@example.org"));
        assert_eq!(use_link_from(server, &from_network(number), &link, PASSWORD).status, 303);
    }
}

#[test]
fn an_unknown_login_takes_as_long_as_a_wrong_password() {
    let site = site("password-memory = \"4 MiB\"\npassword-rounds = 1\n");
    let server = site.serve();
    set_passwords(&site, &server);
    drop(server);
    // Those who have not signed in since then have their old hashes.
    set_auth(&site, "password-memory = \"8 MiB\"\npassword-rounds = 1\n");
    let server = site.serve();
    let tries = if is_long() { 1000 } else { 100 };
    let mut times = [Vec::new(), Vec::new()];
    let mut client = server.client();
    for number in 0..2 * tries {
        let is_known = number % 2 == 0;
        let login = match is_known {
            true => format!("n{}@example.org", number / 2 % ACCOUNTS + 1),
            false => format!("x{}@example.org", number / 2 % ACCOUNTS + 1),
        };
        let network = from_network(100 + number);
        let headers: Vec<(&str, &str)> =
            network.iter().map(|(name, value)| (*name, value.as_str())).chain([FORM]).collect();
        let body = format!("login={}&password={}", encode(&login), encode("not the password"));
        let began = Instant::now();
        let reply = client.send("POST", "/_/sign-in", &headers, body.as_bytes());
        times[usize::from(is_known)].push(began.elapsed().as_secs_f64() * 1e3);
        assert_eq!(reply.status, 401, "{login}: {}", reply.text());
    }
    let t = welch(&times[0], &times[1]);
    let means = [mean(&times[0]), mean(&times[1])];
    // One in 15,000 of runs without a difference is beyond it.
    assert!(t.abs() < 4.0, "t = {t:.2}: unknown {:.3} ms, wrong {:.3} ms", means[0], means[1]);
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

/// Welch's t of two samples, each without the slowest twentieth: what else the machine does is not of the login.
fn welch(one: &[f64], other: &[f64]) -> f64 {
    let trimmed = |times: &[f64]| {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.truncate(sorted.len() - sorted.len() / 20);
        let mean = mean(&sorted);
        let variance =
            sorted.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (sorted.len() - 1) as f64;
        (mean, variance / sorted.len() as f64)
    };
    let ((one, spread), (other, other_spread)) = (trimmed(one), trimmed(other));
    (one - other) / (spread + other_spread).sqrt()
}

#[test]
fn the_test_of_times_finds_a_difference() {
    let times =
        |extra: f64| (0..100).map(|number| 5.0 + f64::from(number % 10) / 10.0 + extra).collect::<Vec<_>>();
    assert!(welch(&times(0.0), &times(0.0)).abs() < 1e-9);
    assert!(welch(&times(0.3), &times(0.0)) > 4.0);
}

fn headers_of<'n>(network: &'n [(&'static str, String); 3]) -> Vec<(&'static str, &'n str)> {
    network.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// The cookie that is set over HTTPS.
fn secure_cookie(reply: &Reply) -> String {
    let set = reply.headers_named("set-cookie").concat();
    assert!(set.starts_with("__Host-trefoil=tfs_"), "{}: {set} {}", reply.status, reply.text());
    set.split(';').next().expect("a part").to_owned()
}

#[test]
fn a_login_that_many_guess_is_open_where_its_account_signed_in() {
    let site = site("password-memory = \"64 KiB\"\npassword-rounds = 1\n");
    let server = site.serve();
    for number in 1..=2 {
        let link = site.link(&format!("n{number}@example.org"));
        assert_eq!(use_link_from(&server, &from_network(number), &link, PASSWORD).status, 303);
    }
    let [one, two, three, four] = [501, 502, 503, 504].map(from_network);
    let [one, two, three, four] = [&one, &two, &three, &four].map(headers_of);
    // By a sign-in, by a password that was changed, and by a sign-up.
    assert_eq!(sign_in_as(&server, &one, "n1@example.org", PASSWORD).status, 303);
    let cookie = secure_cookie(&sign_in_as(&server, &two, "n2@example.org", PASSWORD));
    let other = "another long password";
    let change = [("current", PASSWORD), ("password", other), ("again", other)];
    let changed =
        form(&server, "/_/account/password", &[&three[..], &[("Cookie", &*cookie)]].concat(), &change);
    assert_eq!(changed.status, 303, "{}", changed.text());
    let fields = [("name", "Eve"), ("email", "eve@example.org"), ("password", PASSWORD), ("again", PASSWORD)];
    secure_cookie(&form(&server, "/_/sign-up", &four, &fields));

    let logins = ["n1@example.org", "n2@example.org", "eve@example.org"];
    for (position, login) in logins.into_iter().enumerate() {
        for number in 0..100 {
            let network = from_network(1_000 + position * 100 + number);
            let wrong = sign_in_as(&server, &headers_of(&network), login, "a wrong password");
            assert_eq!(wrong.status, 401, "{login} {number}: {}", wrong.text());
        }
    }
    let elsewhere = from_network(600);
    for (login, password, known) in [
        (logins[0], PASSWORD, vec![&one]),
        (logins[1], other, vec![&two, &three]),
        (logins[2], PASSWORD, vec![&four]),
    ] {
        let refused = sign_in_as(&server, &headers_of(&elsewhere), login, password);
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")), "{login}");
        for network in known {
            let reply = sign_in_as(&server, network, login, password);
            assert_eq!(reply.status, 303, "{login} {network:?}: {}", reply.text());
        }
    }
    // One that a month ago was the last time is not known any more.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let days = now / 10_000_000;
    let earlier = format!("replace(networks, ',{days}', ',{}')", days - 1);
    site.sql(&format!("UPDATE trefoil_passwords SET networks = {earlier}"));
    assert_eq!(sign_in_as(&server, &one, logins[0], PASSWORD).status, 429);
}

#[test]
fn two_hundred_who_sign_in_at_once_take_bounded_memory() {
    // With the memory that hashing takes by default.
    let site = site("");
    let server = site.serve();
    set_passwords(&site, &server);
    assert_eq!(get(&server, "/_/me", &[]).status, 200);
    let before = server.peak_memory();
    let began = Instant::now();
    let (replies, waits) = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..200)
            .map(|number| {
                let server = &server;
                scope.spawn(move || {
                    let network = from_network(1000 + number);
                    let headers = headers_of(&network);
                    let login = format!("n{}@example.org", number % ACCOUNTS + 1);
                    if number % 2 == 0 {
                        return sign_in_as(server, &headers, &login, PASSWORD);
                    }
                    let body = json!({ "login": login, "password": PASSWORD }).to_string();
                    let headers = [&headers[..], &[JSON]].concat();
                    server.client().send("POST", "/_/sign-in", &headers, body.as_bytes())
                })
            })
            .collect();
        // Neighbours are answered meanwhile.
        let mut client = server.client();
        let mut waits = Vec::new();
        while tries.iter().any(|thread| !thread.is_finished()) {
            let asked = Instant::now();
            assert_eq!(client.send("GET", "/health/live", &[], b"").status, 200);
            waits.push(asked.elapsed());
            std::thread::sleep(Duration::from_millis(5));
        }
        let replies: Vec<_> = tries.into_iter().map(|thread| thread.join().expect("an answer")).collect();
        (replies, waits)
    });
    let count = |status: u16| replies.iter().filter(|reply| reply.status == status).count();
    let signed_in = count(303) + count(201);
    assert_eq!(
        signed_in + count(503),
        200,
        "{:?}",
        replies.iter().map(|reply| reply.status).collect::<Vec<_>>()
    );
    // One hashes per two cores, 64 wait; more may follow as these end. On a busy machine some wait too long.
    assert!(signed_in >= 32, "{signed_in} signed in");
    let mut busy_programs = 0;
    for (number, reply) in replies.iter().enumerate().filter(|(_, reply)| reply.status == 503) {
        assert_eq!(reply.header("retry-after"), Some("2"), "{}", reply.text());
        if number % 2 == 1 {
            assert_eq!(reply.json()["code"], "UNAVAILABLE", "{}", reply.text());
            busy_programs += 1;
        }
    }
    assert!(busy_programs > 0, "no program had to wait");
    let metrics = get(&server, "/metrics", &[]).text();
    for (outcome, count) in [("signed-in", signed_in), ("busy", count(503))] {
        let line = format!("trefoil_sign_ins_total{{outcome=\"{outcome}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    let slots = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)) as u64;
    let grown = server.peak_memory().saturating_sub(before);
    assert!(grown <= (slots * 19 + 16) << 20, "{} MiB more", grown >> 20);
    let slowest = waits.iter().max().expect("some were asked");
    eprintln!(
        "{} signed in within {:?}; {} MiB more; a neighbour waited {slowest:?} at most",
        signed_in,
        began.elapsed(),
        grown >> 20
    );
    assert!(*slowest < Duration::from_secs(2), "a neighbour waited {slowest:?}");
}
