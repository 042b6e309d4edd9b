//! The pages of each actor, read from their HTML: what they show, link and offer is what the interpreter of rules says.

mod expected;
mod page_controls;
mod page_tree;
mod visit;

use std::sync::atomic::{AtomicUsize, Ordering};

use super::judge::{RuleJudge, Verdict};
use super::making::RuleWeight;
use super::over_http::{ServedStage, database, key_actors};
use super::rule_tree::Deed;
use super::seeds::{self, Trial};
use super::shape::AccessShape;
use super::stock::AccessStock;
use crate::power::chance::Chance;
use expected::ShownWorld;
use visit::PageVisit;

#[test]
fn pages_are_those_of_the_actors_world() {
    let (rows, links) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
    seeds::run(&Trial { name: "access::pages", short: 4, long: 500 }, |seed| async move {
        let mut chance = Chance::new(seed);
        // Buttons and forms need rules for writing, too.
        let shape = AccessShape::random(&mut chance, RuleWeight::Writing);
        let stock = AccessStock::random(&mut chance, &shape);
        tokio::task::block_in_place(|| {
            let stage = ServedStage::new(&shape, &shape.protected_sdl(), &stock, &database(seed))?;
            for (number, actor) in key_actors(&mut chance, &shape, &stock).iter().enumerate() {
                let judge = RuleJudge { shape: &shape, stock: &stock, actor, old: None, image: None };
                let credential = stage.credential(number, actor)?;
                let world = ShownWorld::new(judge);
                let open = ServedStage::new(&shape, &shape.open_sdl(), &world.world, "sqlite:")?;
                let mut visit = PageVisit::new(&stage, &open, credential, world);
                let visited = try_pages(&mut chance, &mut visit);
                visited.map_err(|why| format!("{why}\n  by {actor:?}\n{}", shape.protected_sdl()))?;
                rows.fetch_add(visit.row_count, Ordering::Relaxed);
                links.fetch_add(visit.link_count, Ordering::Relaxed);
            }
            Ok(())
        })
    });
    // Pages without records, and without buttons, would prove nothing.
    let seen = (rows.load(Ordering::Relaxed), links.load(Ordering::Relaxed));
    eprintln!("{} rows and {} buttons were on the pages", seen.0, seen.1);
    assert!(seen.0 > 0 && seen.1 > 0, "no page shows anything");
}

fn try_pages(chance: &mut Chance, visit: &mut PageVisit<'_>) -> Result<(), String> {
    visit.check_home()?;
    for of in 0..visit.shown.judge.shape.types.len() {
        visit.check_refusals(of)?;
        visit.check_new_form(of)?;
        if visit.shown.judge.verdict(of, Deed::Read) == Verdict::No {
            continue;
        }
        visit.check_whole_list(of)?;
        visit.check_chosen_list(chance, of)?;
        visit.check_summary(chance, of)?;
        for id in visit.shown.judge.stock.rows[of].keys().copied().chain([1000]) {
            visit.check_record(of, id)?;
            visit.check_edit_form(of, id)?;
            visit.check_delete_page(of, id)?;
        }
    }
    Ok(())
}
