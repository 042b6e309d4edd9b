//! A disk that fills up under a command: it says so, leaves nothing half-written, and the stores are unchanged.

use super::site::{On, Ran, Site, Store};
use crate::power::rig::{Behaviour, ENOSPC, Rig};

/// The binary with what lies below the rig's folder on a disk that has no room.
fn on_a_full_disk(rig: &Rig, site: &Site, arguments: &[&str], store: &Store, bad: Behaviour) -> Ran {
    let flags = store.flags();
    rig.behave(bad);
    let mut command = rig.command(env!("CARGO_BIN_EXE_trefoil"));
    let output = command.current_dir(site.folder.path()).args(site.arguments(arguments, &flags)).output();
    rig.behave(Behaviour::Sound);
    Ran::of(output.expect("the binary runs"))
}

fn says_full(ran: &Ran) {
    let says = ran.err.contains("the disk is full") || ran.err.contains("No space left on device");
    assert!(ran.code == 1 && says, "{} {}", ran.code, ran.err);
}

#[test]
fn full_disk_leaves_nothing_half_written() {
    let (rig, site) = (Rig::new(), Site::new());
    let store = site.filled(On::Sqlite, "store", 200);
    let before = site.served(&store);
    site.must(&["backup", "app", "--to", "aside.db"], &store);
    let disk = rig.folder();
    let below = |name: &str| disk.join(name).to_str().expect("UTF-8").to_owned();
    let (file, folder) = (below("copy.db"), below("data"));
    std::fs::create_dir(&folder).expect("a folder");
    let there = Store::Sqlite(folder.clone());
    for bad in [Behaviour::WritesFail(ENOSPC), Behaviour::Full] {
        says_full(&on_a_full_disk(&rig, &site, &["backup", "app", "--to", &file], &store, bad));
        says_full(&on_a_full_disk(&rig, &site, &["restore", "aside.db", "app"], &there, bad));
        says_full(&on_a_full_disk(&rig, &site, &["move", "app", "--to", &there.target()], &store, bad));
        let left: Vec<_> = [&disk, &disk.join("data")]
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"))
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .filter(|name| !["data", "trefoil.lock"].contains(&name.as_str()))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
    assert_eq!(site.served(&store), before, "it is still the live one");
}
