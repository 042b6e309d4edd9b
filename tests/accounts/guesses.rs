//! Accounts: what guesses cost and tell, and many who sign in at once.

use std::time::{Duration, Instant};

use super::{FORM, PASSWORD, Site, encode, get, sign_in_as, use_link_from};
use crate::support::{Process, is_long};

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

/// Behind a proxy that is trusted, with so many accounts that all have the same password.
fn site(auth: &str) -> Site {
    let users: Vec<String> = (1..=ACCOUNTS)
        .map(|number| format!(r#"{{"id": {number}, "name": "N{number}", "email": "n{number}@example.org"}}"#))
        .collect();
    let site = Site::new(&["--database", "sqlite:", "--data", "data"], &format!("[{}]", users.join(",")));
    let manifest = format!("trusted-proxies = [\"127.0.0.0/8\", \"::1\"]\n[auth]\n{auth}");
    site.put("app/trefoil.toml", &manifest);
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
                    let headers: Vec<(&str, &str)> =
                        network.iter().map(|(name, value)| (*name, value.as_str())).collect();
                    sign_in_as(server, &headers, &format!("n{}@example.org", number % ACCOUNTS + 1), PASSWORD)
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
    assert_eq!(
        count(303) + count(503),
        200,
        "{:?}",
        replies.iter().map(|reply| reply.status).collect::<Vec<_>>()
    );
    // One hashes per two cores, 64 wait; more may follow as these end.
    assert!(count(303) >= 64, "{} signed in", count(303));
    for reply in replies.iter().filter(|reply| reply.status == 503) {
        assert_eq!(reply.header("retry-after"), Some("2"), "{}", reply.text());
    }
    let slots = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)) as u64;
    let grown = server.peak_memory().saturating_sub(before);
    assert!(grown <= (slots * 19 + 16) << 20, "{} MiB more", grown >> 20);
    let slowest = waits.iter().max().expect("some were asked");
    eprintln!(
        "{} signed in within {:?}; {} MiB more; a neighbour waited {slowest:?} at most",
        count(303),
        began.elapsed(),
        grown >> 20
    );
    assert!(*slowest < Duration::from_secs(2), "a neighbour waited {slowest:?}");
}
