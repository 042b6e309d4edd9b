//! `PageVisit`: one actor goes through the pages of an application, and compares each with what the interpreter says.

use std::collections::BTreeSet;

use serde_json::Value;

use super::expected::{ShownWorld, label};
use super::page_controls::{base_name, chosen_texts, control_names, offered_records};
use super::page_tree::PageElement;
use crate::access::asking::ReadMaker;
use crate::access::judge::Verdict;
use crate::access::over_http::{ServedStage, ask};
use crate::access::rule_tree::Deed;
use crate::power::chance::Chance;
use crate::support::{Client, Reply};

/// An actor who looks at pages.
pub struct PageVisit<'v> {
    client: Client,
    /// An application without rules that has only what the actor sees.
    open: Client,
    credential: Option<String>,
    pub shown: ShownWorld<'v>,
    /// The rows that were compared.
    pub row_count: usize,
    /// The buttons that were there.
    pub link_count: usize,
}

type Checked = Result<(), String>;

impl<'v> PageVisit<'v> {
    pub fn new(
        stage: &ServedStage,
        open: &ServedStage,
        credential: Option<String>,
        shown: ShownWorld<'v>,
    ) -> PageVisit<'v> {
        let (client, open) = (Client::of(&stage.server), Client::of(&open.server));
        PageVisit { client, open, credential, shown, row_count: 0, link_count: 0 }
    }

    fn get(&mut self, path: &str) -> Reply {
        ask(&mut self.client, path, self.credential.as_deref(), "text/html")
    }

    fn plural(&self, of: usize) -> &'static str {
        self.shown.judge.shape.types[of].plural
    }

    /// The page, which has this status; only the links of pages that are shown are looked at.
    fn page(&mut self, path: &str, status: u16) -> Result<Option<PageElement>, String> {
        let reply = self.get(path);
        if status == 401 {
            // Whoever is nobody yet is led to where people sign in.
            require(path, "status", &reply.status, &303)?;
            return Ok(None);
        }
        require(path, "status", &reply.status, &status)?;
        let tree = PageElement::parse(&reply.text());
        self.check_navigation(path, &tree)?;
        Ok((status == 200).then_some(tree))
    }

    /// Leads to the types that the actor may read, and to no others.
    fn check_navigation(&self, path: &str, tree: &PageElement) -> Checked {
        let is_records = |nav: &&PageElement| nav.attribute("aria-label") == Some("Records");
        let found: Vec<&str> =
            tree.all("nav").into_iter().find(is_records).map(PageElement::addresses).unwrap_or_default();
        let readable =
            (0..self.shown.judge.shape.types.len()).filter(|of| self.shown.status(*of, Deed::Read) == 200);
        let expected: Vec<String> = readable.map(|of| format!("/{}", self.plural(of))).collect();
        require(path, "navigation", &found, &expected)
    }

    /// Whether the page has a link to the form of a new record.
    fn check_new_link(&mut self, path: &str, page: &PageElement, of: usize, given: Option<usize>) -> Checked {
        let new = format!("/{}/new", self.plural(of));
        let is_there = page.addresses().iter().any(|address| address.starts_with(&new));
        self.link_count += usize::from(is_there);
        let may_give = given.is_none_or(|at| self.may_set(of, at));
        require(path, "a link to a new record", &is_there, &(self.shown.may_create(of) && may_give))
    }

    fn may_set(&self, of: usize, at: usize) -> bool {
        self.shown.judge.field_verdict(of, at, Deed::Create) != Verdict::No
    }

    pub fn check_home(&mut self) -> Checked {
        let Some(page) = self.page("/", 200)? else { return Ok(()) };
        let cards = page.all("li").into_iter().filter_map(|card| card.first("h3").map(|head| (card, head)));
        let cards: Vec<_> = cards.filter(|(card, _)| card.all("span").len() > 1).collect();
        let found: Vec<String> = cards.iter().map(|(_, head)| head.value_text()).collect();
        let counts: Vec<String> =
            cards.iter().filter_map(|(_, head)| Some(head.first("span")?.text())).collect();
        let types = 0..self.shown.judge.shape.types.len();
        let readable: Vec<usize> =
            types.filter(|of| self.shown.judge.verdict(*of, Deed::Read) != Verdict::No).collect();
        let names = readable.iter().map(|of| format!("{} at /{}", label(self.plural(*of)), self.plural(*of)));
        require("/", "cards", &found, &names.collect::<Vec<_>>())?;
        let expected = readable.iter().map(|of| format!("{} records", self.shown.world.rows[*of].len()));
        require("/", "counts", &counts, &expected.collect::<Vec<_>>())?;
        for ((card, _), of) in cards.iter().zip(readable) {
            self.check_new_link("/", card, of, None)?;
        }
        Ok(())
    }

    /// The pages of a type that the actor may not read at all.
    pub fn check_refusals(&mut self, of: usize) -> Checked {
        if self.shown.status(of, Deed::Read) == 200 {
            return Ok(());
        }
        let (plural, status) = (self.plural(of), self.shown.refusal());
        for path in ["", "/1", "/1000", "/1/edit", "/1/delete", "/-/summary", "?format=csv"] {
            self.page(&format!("/{plural}{path}"), status)?;
        }
        Ok(())
    }

    pub fn check_whole_list(&mut self, of: usize) -> Checked {
        let ids: Vec<i64> = self.shown.world.rows[of].keys().copied().collect();
        let path = format!("/{}", self.plural(of));
        self.check_list(&path, of, &ids)
    }

    /// With conditions, a search and an order, in pages that are followed. Which records that are, an open application
    /// with the records of the actor's world says.
    pub fn check_chosen_list(&mut self, chance: &mut Chance, of: usize) -> Checked {
        let judge = self.shown.judge;
        let parameters = ReadMaker { judge, chance, names_all: false }.list_parameters(of);
        let query = parameters.join("&").replace(' ', "%20");
        let path = format!("/{}?{query}&fields=id&size=100", self.plural(of));
        let reply = ask(&mut self.open, &path, None, "application/json");
        if reply.status != 200 {
            return Err(format!("GET {path} of the open application: {}", reply.text()));
        }
        let ids: Vec<i64> = reply.json().as_array().expect("a list").iter().map(id_of).collect();
        let size = 1 + chance.below(5);
        let mut path = Some(format!("/{}?{query}&size={size}", self.plural(of)));
        let mut pages = ids.chunks(size);
        while let Some(address) = path {
            let page = self.check_rows(&address, of, pages.next().unwrap_or_default())?;
            let next = page.all("a").into_iter().find(|link| link.attribute("rel") == Some("next"));
            path = next.and_then(|link| link.attribute("href")).map(str::to_owned);
            if path.is_none() && pages.len() > 0 {
                return Err(format!("{address}: no link to the next page"));
            }
        }
        Ok(())
    }

    fn check_list(&mut self, path: &str, of: usize, ids: &[i64]) -> Checked {
        let page = self.check_rows(path, of, ids)?;
        self.check_new_link(path, &page, of, None)?;
        self.check_filters(path, &page, of)?;
        self.check_downloads(&page, of, ids)
    }

    fn check_rows(&mut self, path: &str, of: usize, ids: &[i64]) -> Result<PageElement, String> {
        let page = self.page(path, 200)?.expect("a page that is shown");
        let list = format!("/{}", self.plural(of));
        self.check_table(path, page.first("table"), (of, None), ids, &list)?;
        Ok(page)
    }

    /// The rows of a table, with a button for each record that may be changed.
    fn check_table(
        &mut self,
        path: &str,
        table: Option<&PageElement>,
        (of, left_out): (usize, Option<usize>),
        ids: &[i64],
        list: &str,
    ) -> Checked {
        let rows =
            table.and_then(|table| table.first("tbody")).map(|body| body.own("tr")).unwrap_or_default();
        let cells = |row: &PageElement| -> Vec<String> {
            let title = row.first("th").map(PageElement::value_text);
            title.into_iter().chain(row.own("td").into_iter().map(PageElement::value_text)).collect()
        };
        let mut found: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
        let buttons: Vec<Option<String>> = found.iter_mut().map(Vec::pop).collect();
        let expected: Vec<Vec<String>> =
            ids.iter().map(|id| self.shown.row(of, *id, list, left_out)).collect();
        require(path, "rows", &found, &expected)?;
        for (id, button) in ids.iter().zip(buttons) {
            let title = self.shown.title(of, *id);
            let edit = format!("Edit {title} at {}/edit", self.shown.path(of, *id));
            let expected = if self.shown.may_edit(of, *id) { edit } else { String::new() };
            self.link_count += usize::from(!expected.is_empty());
            require(path, "button", &button.unwrap_or_default(), &expected)?;
        }
        self.row_count += ids.len();
        let Some(head) = table.and_then(|table| table.first("thead")) else { return Ok(()) };
        let heads = head.all("th").into_iter().map(PageElement::text).skip(1);
        let names = self.shown.columns(of, left_out).into_iter();
        let names = names.map(|at| label(&self.shown.fields(of)[at].name)).chain(["Actions".to_owned()]);
        require(path, "columns", &heads.collect::<Vec<_>>(), &names.collect::<Vec<_>>())
    }

    /// What lists can be filtered by: the fields that are shown, and records that the actor sees.
    fn check_filters(&self, path: &str, page: &PageElement, of: usize) -> Checked {
        let Some(form) = page.all("form").into_iter().find(is_own_form) else { return Ok(()) };
        let shown: BTreeSet<String> = (0..self.shown.fields(of).len())
            .filter(|at| self.shown.is_shown(of, *at))
            .map(|at| self.shown.fields(of)[at].input_name())
            .collect();
        let apart = ["q", "sort", "size", "id"];
        let names = control_names(form).into_iter().filter(|name| !apart.contains(&name.as_str()));
        let hidden: Vec<String> = names.filter(|name| !shown.contains(name)).collect();
        require(path, "filters by what is hidden", &hidden, &Vec::<String>::new())?;
        self.check_offered(path, form, of)
    }

    /// The records that controls offer are those that the actor sees, under the names that they see.
    fn check_offered(&self, path: &str, form: &PageElement, of: usize) -> Checked {
        for field in self.shown.fields(of) {
            let Some(target) = field.content.target() else { continue };
            let name = field.input_name();
            let Some(offered) = offered_records(form, &name) else { continue };
            let world = &self.shown.world.rows[target];
            let ids: BTreeSet<i64> = offered.iter().map(|(id, _)| *id).collect();
            require(path, &name, &ids, &world.keys().copied().collect())?;
            for (id, text) in offered {
                let title = self.shown.title(target, id);
                if text != title && text != format!("{title} ({id})") {
                    return Err(format!("{path}: {name} offers {text}, not {title}"));
                }
            }
        }
        Ok(())
    }

    /// The downloads that a list links to.
    fn check_downloads(&mut self, page: &PageElement, of: usize, ids: &[i64]) -> Checked {
        let addresses: Vec<String> = page.addresses().iter().map(|address| (*address).to_owned()).collect();
        let has_format = |address: &&String| address.contains("format=");
        let downloads: Vec<&String> = addresses.iter().filter(has_format).collect();
        require("downloads", "links", &downloads.is_empty(), &ids.is_empty())?;
        for path in downloads {
            let reply = self.get(path);
            let text = reply.text();
            require(path, "status", &reply.status, &200)?;
            if path.contains("format=csv") {
                require(path, "lines", &text.lines().count(), &(ids.len() + 1))?;
                let heads = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default();
                let heads = heads.split(',').map(base_name).collect();
                self.check_columns(path, of, &heads)?;
                continue;
            }
            let records: Vec<Value> = match path.contains("format=ndjson") {
                true => text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(),
                false => reply.json().as_array().expect("a list").clone(),
            };
            require(path, "records", &records.iter().map(id_of).collect::<Vec<_>>(), &ids.to_vec())?;
            for record in &records {
                self.check_download(path, of, record)?;
            }
        }
        Ok(())
    }

    fn check_columns(&self, path: &str, of: usize, names: &BTreeSet<String>) -> Checked {
        let shown =
            |at: &usize| !self.shown.fields(of)[*at].content.is_list() && self.shown.is_shown(of, *at);
        let fields = (0..self.shown.fields(of).len()).filter(shown);
        let expected = fields.map(|at| self.shown.fields(of)[at].input_name()).chain(["id".to_owned()]);
        require(path, "columns", names, &expected.collect())
    }

    fn check_download(&self, path: &str, of: usize, record: &Value) -> Checked {
        let object = record.as_object().expect("an object");
        self.check_columns(path, of, &object.keys().cloned().collect())?;
        let row = &self.shown.world.rows[of][&id_of(record)];
        for (field, cell) in self.shown.fields(of).iter().zip(row) {
            let Some(found) = object.get(&field.input_name()) else { continue };
            if plain_json(found) != plain_json(&cell.json()) {
                return Err(format!(
                    "{path}: {} is {found} in {record}, expected {}",
                    field.name,
                    cell.json()
                ));
            }
        }
        Ok(())
    }

    pub fn check_record(&mut self, of: usize, id: i64) -> Checked {
        let path = self.shown.path(of, id);
        let status = if self.shown.is_seen(of, id) { 200 } else { 404 };
        let Some(page) = self.page(&path, status)? else { return Ok(()) };
        require(&path, "title", &page.first("h1").map(PageElement::text), &Some(self.shown.title(of, id)))?;
        let fields = page.first("dl").map(|list| list.own("div")).unwrap_or_default();
        let found = fields.into_iter().map(|field| {
            let part = |name: &str| field.own(name)[0];
            (part("dt").text(), part("dd").value_text())
        });
        require(&path, "values", &found.collect::<Vec<_>>(), &self.shown.labelled(of, id))?;
        for (end, is_allowed) in
            [("edit", self.shown.may_edit(of, id)), ("delete", self.shown.may_delete(of, id))]
        {
            let is_there = page.addresses().contains(&format!("{path}/{end}").as_str());
            self.link_count += usize::from(is_there);
            require(&path, end, &is_there, &is_allowed)?;
        }
        self.check_related(&path, &page, of, id)
    }

    /// The lists below a record, and the pages of these lists.
    fn check_related(&mut self, path: &str, page: &PageElement, of: usize, id: i64) -> Checked {
        let is_list = |section: &&PageElement| {
            section.attribute("aria-labelledby").is_some_and(|by| by.ends_with("-heading"))
        };
        let sections: Vec<&PageElement> = page.all("section").into_iter().filter(is_list).collect();
        let lists = self.shown.related(of);
        let found: Vec<String> =
            sections.iter().filter_map(|section| Some(section.first("h2")?.value_text())).collect();
        let names = lists.iter().map(|(at, ..)| &self.shown.fields(of)[*at].name);
        let expected: Vec<String> = names.map(|name| format!("{} at {path}/{name}", label(name))).collect();
        require(path, "lists", &found, &expected)?;
        for (section, (at, target, reference)) in sections.into_iter().zip(lists) {
            let crate::access::stock::Cell::Many(ids) = self.shown.world.rows[of][&id][at].clone() else {
                panic!("a list of records");
            };
            let list = format!("{path}/{}", self.shown.fields(of)[at].name);
            // Linked records are at home elsewhere.
            let rows = if reference.is_some() { list.clone() } else { format!("/{}", self.plural(target)) };
            let first = &ids[..ids.len().min(5)];
            self.check_table(path, section.first("table"), (target, reference), first, &rows)?;
            if reference.is_some() {
                self.check_new_link(path, section, target, reference)?;
            }
            let whole = self.page(&list, 200)?.expect("a page that is shown");
            self.check_table(&list, whole.first("table"), (target, reference), &ids, &list)?;
        }
        Ok(())
    }

    pub fn check_new_form(&mut self, of: usize) -> Checked {
        let path = format!("/{}/new", self.plural(of));
        let Some(page) = self.page(&path, self.shown.status(of, Deed::Create))? else { return Ok(()) };
        let form = write_form(&path, &page)?;
        require(&path, "controls", &control_names(form), &self.shown.controls(of, Deed::Create))?;
        self.check_offered(&path, form, of)
    }

    pub fn check_edit_form(&mut self, of: usize, id: i64) -> Checked {
        let path = format!("{}/edit", self.shown.path(of, id));
        let may_edit = self.shown.judge.verdict(of, Deed::Update) != Verdict::No;
        let status = match (may_edit, self.shown.is_seen(of, id)) {
            (false, _) => self.shown.refusal(),
            (true, false) => 404,
            (true, true) if self.shown.may_edit(of, id) => 200,
            (true, true) => self.shown.refusal(),
        };
        let Some(page) = self.page(&path, status)? else { return Ok(()) };
        let form = write_form(&path, &page)?;
        let controls = self.shown.controls(of, Deed::Update);
        require(&path, "controls", &control_names(form), &controls)?;
        for (at, field) in self.shown.fields(of).iter().enumerate() {
            if controls.contains(&field.input_name()) {
                let found = chosen_texts(form, &field.input_name(), field.content);
                require(&path, &field.name, &found, &self.shown.chosen(of, id, at))?;
            }
        }
        self.check_offered(&path, form, of)
    }

    pub fn check_delete_page(&mut self, of: usize, id: i64) -> Checked {
        let path = format!("{}/delete", self.shown.path(of, id));
        let is_never = self.shown.judge.verdict(of, Deed::Delete) == Verdict::No;
        let status = match (is_never, self.shown.is_seen(of, id)) {
            (true, _) => self.shown.refusal(),
            (false, false) => 404,
            (false, true) if self.shown.may_delete(of, id) => 200,
            (false, true) => self.shown.refusal(),
        };
        let Some(page) = self.page(&path, status)? else { return Ok(()) };
        let title = self.shown.title(of, id);
        let text = page.first("h1").map(PageElement::text).unwrap_or_default();
        require(&path, "title", &text.contains(&title), &true)
    }

    /// Groups with their numbers; each leads to the list of its records.
    pub fn check_summary(&mut self, chance: &mut Chance, of: usize) -> Checked {
        let judge = self.shown.judge;
        let key = ReadMaker { judge, chance, names_all: false }.way_to_value(of, true);
        let Some(key) = key else { return Ok(()) };
        let names: Vec<&str> = key.split('.').collect();
        let (group, mut expected) = self.shown.groups(of, &names);
        let path = format!("/{}/-/summary?group={group}", self.plural(of));
        let Some(page) = self.page(&path, 200)? else { return Ok(()) };
        let mut leads = Vec::new();
        let mut found: Vec<(String, usize)> = Vec::new();
        for row in page.first("tbody").map(|body| body.own("tr")).unwrap_or_default() {
            let head = row.first("th").expect("a key");
            let count = row.own("td").last().map(|cell| cell.text()).unwrap_or_default();
            let count = count.parse().map_err(|_| format!("{path}: {count} is no number"))?;
            let Some(link) = head.first("a").and_then(|link| link.attribute("href")) else {
                return Err(format!("{path}: {} leads nowhere", head.text()));
            };
            leads.push((link.to_owned(), count));
            found.push((head.text(), count));
        }
        found.sort();
        expected.sort();
        require(&path, "groups", &found, &expected)?;
        self.row_count += found.len();
        for (address, count) in leads {
            let list = self.page(&format!("{address}&size=100"), 200)?.expect("a page that is shown");
            let rows = list.first("tbody").map(|body| body.own("tr").len()).unwrap_or_default();
            require(&address, "records of a group", &rows, &count)?;
        }
        self.check_keys(&path, &page, of)
    }

    /// The keys that a summary offers are shown fields, also of other records.
    fn check_keys(&self, path: &str, page: &PageElement, of: usize) -> Checked {
        let is_key = |select: &&PageElement| select.attribute("name") == Some("group");
        let options = page.all("select").into_iter().filter(is_key).flat_map(|select| select.all("option"));
        for option in options.filter_map(|option| option.attribute("value")) {
            let inner = option.split_once('(').map_or(option, |(_, inner)| inner.trim_end_matches(')'));
            let mut owner = of;
            for name in inner.split('.').filter(|name| !name.is_empty()) {
                let at = self.shown.fields(owner).iter().position(|field| field.name == name);
                let Some(at) = at else { return Err(format!("{path} offers {option}, which is no field")) };
                require(path, option, &self.shown.is_shown(owner, at), &true)?;
                // What comes after another field is a part of its value.
                let Some(target) = self.shown.fields(owner)[at].content.target() else { break };
                owner = target;
            }
        }
        Ok(())
    }
}

fn require<F: std::fmt::Debug + PartialEq<E>, E: std::fmt::Debug>(
    path: &str,
    what: &str,
    found: &F,
    expected: &E,
) -> Checked {
    if found == expected {
        return Ok(());
    }
    Err(format!("{path}: {what}\n  found    {found:?}\n  expected {expected:?}"))
}

/// Not the one above all pages that signs out.
fn is_own_form(form: &&PageElement) -> bool {
    form.attribute("action") != Some("/_/sign-out")
}

fn write_form<'p>(path: &str, page: &'p PageElement) -> Result<&'p PageElement, String> {
    let is_write = |form: &&PageElement| form.attribute("method") == Some("post") && is_own_form(form);
    page.all("form").into_iter().find(is_write).ok_or_else(|| format!("{path}: no form"))
}

fn id_of(record: &Value) -> i64 {
    record["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
}

/// Decimals with and without the zeros at their end are the same.
fn plain_json(value: &Value) -> Value {
    match value.as_str().filter(|text| text.contains('.') && text.parse::<f64>().is_ok()) {
        Some(text) => Value::from(text.trim_end_matches('0').trim_end_matches('.')),
        None => value.clone(),
    }
}
