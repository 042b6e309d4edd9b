//! The navigation: links to all lists, in menus if there are many or the schema has groups.

use trefoil_application::App;
use trefoil_model::Model;

use crate::labels::{ResourceLabels, grouped, path_heading};
use crate::site::declared_pages;
use crate::template_data::{NavMenu, PageLink};

/// More entries do not fit beside each other.
const MAX_ENTRIES: usize = 8;

/// The links in order, and the same in menus; no menus if all links fit beside each other.
pub fn navigation(app: &App, model: &Model, labels: &[ResourceLabels]) -> (Vec<PageLink>, Vec<NavMenu>) {
    let mut records: Vec<_> = model.records.iter().zip(labels).collect();
    records.retain(|(record, _)| !record.display.is_unlisted);
    records.sort_by_key(|(record, _)| (record.display.order.is_none(), record.display.order));
    let records = records.into_iter().map(|(record, labels)| {
        let link = PageLink { label: labels.resource.plural.clone(), href: labels.resource.path.clone() };
        (record.display.group.clone(), link)
    });
    let lists = app.manifest.plain_lists.iter().filter(|list| list.page);
    let lists = lists.map(|list| PageLink { label: path_heading(list.name()), href: list.path.clone() });
    let others = lists.chain(declared_pages::navigation_links(app)).map(|link| (None, link));
    let entries: Vec<(Option<String>, PageLink)> = records.chain(others).collect();
    let links = entries.iter().map(|(_, link)| link.clone()).collect();
    (links, menus(entries))
}

/// Links of no group are beside the menus as far as there is room, the others in a menu of their own.
fn menus(entries: Vec<(Option<String>, PageLink)>) -> Vec<NavMenu> {
    let has_groups = entries.iter().any(|(group, _)| group.is_some());
    if !has_groups && entries.len() <= MAX_ENTRIES {
        return Vec::new();
    }
    let (in_groups, mut alone): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|(group, _)| group.is_some());
    let mut menus: Vec<NavMenu> =
        grouped(in_groups).into_iter().map(|(label, links)| NavMenu { label, links }).collect();
    let room = MAX_ENTRIES.saturating_sub(menus.len());
    let rest = if alone.len() > room { alone.split_off(room.saturating_sub(1)) } else { Vec::new() };
    let links_of = |entries: Vec<(Option<String>, PageLink)>| -> Vec<PageLink> {
        entries.into_iter().map(|(_, link)| link).collect()
    };
    menus.insert(0, NavMenu { label: None, links: links_of(alone) });
    menus.push(NavMenu { label: Some("More".to_owned()), links: links_of(rest) });
    menus.retain(|menu| !menu.links.is_empty());
    menus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(groups: &[(Option<&str>, usize)]) -> Vec<(Option<String>, usize)> {
        let entries = groups.iter().flat_map(|(group, count)| {
            let link = PageLink { label: "Books".to_owned(), href: "/books".to_owned() };
            std::iter::repeat_n((group.map(str::to_owned), link), *count)
        });
        menus(entries.collect()).into_iter().map(|menu| (menu.label, menu.links.len())).collect()
    }

    #[test]
    fn many_links_are_in_menus() {
        let more = || Some("More".to_owned());
        assert_eq!(shown(&[(None, 8)]), []);
        assert_eq!(shown(&[(None, 9)]), [(None, 7), (more(), 2)]);
        let group = |name: &str| Some(name.to_owned());
        assert_eq!(
            shown(&[(Some("A"), 2), (None, 1), (Some("B"), 9), (Some("A"), 1)]),
            [(None, 1), (group("A"), 3), (group("B"), 9)]
        );
        assert_eq!(shown(&[(Some("A"), 1), (None, 30)]), [(None, 6), (group("A"), 1), (more(), 24)]);
    }
}
