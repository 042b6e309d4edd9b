//! The start page: a map of the application.

use std::time::Duration;

use axum::response::Response;
use http::StatusCode;
use http::header::HOST;
use http::request::Parts;

use crate::Served;
use crate::examples::page::{About, quoted, single};
use crate::multi_read::look;
use crate::phrases::{MOST_COUNTED, bounded};
use crate::view::{Card, Head, Home, Link, Try};
use trefoil_application::{Manifest, Methods, Reply};
use trefoil_engine::{Binding, Count, Gives, Listing, Operation, Outcome, Slice, Verb};
use trefoil_http::client::Client;
use trefoil_http::errors::problem::Problem;
use trefoil_model::{Root, TypeId};
use trefoil_resources::Site;

/// The map is worth more than its counts: a store that does not answer by then is left out.
const PATIENCE: Duration = Duration::from_secs(3);

impl Served {
    pub async fn home(&self, site: &Site, head: &Parts) -> Result<Response, Problem> {
        let counts = self.counts(site).await;
        let is_away = !counts.is_empty() && counts.iter().all(Option::is_none);
        let cards = self.subjects.iter().zip(counts).zip(&site.collections);
        let cards = cards.map(|((subject, count), collection)| Card {
            new: format!("{}/new", subject.resource.path),
            resource: subject.resource.clone(),
            count: count.map_or("–".to_owned(), bounded),
            is_live: !collection.deeds.is_empty(),
        });
        let home = Home {
            description: None,
            is_away,
            cards: cards.collect(),
            others: self.others.clone(),
            tries: self.tries(site, &origin(head)),
        };
        let mut frame = Head::new("Home", "", Vec::new());
        frame.crumbs.clear();
        frame.title.clone_from(&self.name);
        frame.ways = Some(self.ways(site, head, About::Home));
        self.show(&head.headers, StatusCode::OK, frame, "home", &home)
    }

    /// How many records of each type there are; nothing where the store is away.
    async fn counts(&self, site: &Site) -> Vec<Option<u64>> {
        let count = |position: usize| {
            let listing = Listing {
                slice: Slice::First { first: 0, after: None },
                count: Count::UpTo(MOST_COUNTED),
                ..Listing::default()
            };
            let selection = self.names[position].clone();
            Operation::List { record: TypeId(position), listing, selection }
        };
        let operations = (0..self.subjects.len()).map(count).collect();
        let found = tokio::time::timeout(PATIENCE, look(&site.engine, operations, 0)).await;
        let total = |outcome: &Outcome| {
            if let Outcome::Listed { total, .. } = outcome { *total } else { None }
        };
        match found {
            Ok(Ok(found)) => found.iter().map(|found| total(&found.outcome)).collect(),
            Ok(Err(_)) | Err(_) => vec![None; self.subjects.len()],
        }
    }

    /// A line for each face, made of what is here.
    fn tries(&self, site: &Site, origin: &str) -> Vec<Try> {
        let line = |label: &str, text: String| Try { label: label.to_owned(), text };
        let query = asked(site).unwrap_or_else(|| "{ __typename }".to_owned());
        let mut tries = vec![line(
            "Ask GraphQL",
            format!(
                "curl '{origin}/graphql' -H 'Content-Type: application/json' -d '{{\"query\":\"{query}\"}}'"
            ),
        )];
        tries.extend(site.collections.first().map(|collection| {
            line("Read records as JSON", format!("curl '{origin}{}?fields=*&size=3'", collection.path))
        }));
        let address = |path: &str| quoted(&format!("{origin}{}", single(path)));
        tries.push(match (site.lists.first(), self.others.first()) {
            (Some(list), _) => line("Add to a plain list", format!("curl {} -d 'milk'", address(&list.path))),
            (None, Some(text)) => line("Read a text", format!("curl {}", address(&text.href))),
            (None, None) => line("Read what REST serves", format!("curl '{origin}/openapi.json'")),
        });
        tries
    }
}

/// The first list that the schema has a query for, with what its records are known by.
fn asked(site: &Site) -> Option<String> {
    let model = site.engine.model();
    model.roots.iter().zip(site.engine.bindings()).find_map(|(root, binding)| match binding {
        Binding::Builtin(builtin)
            if root.root == Root::Query
                && builtin.verb == Verb::List
                && builtin.gives == Gives::List
                && !root.arguments.iter().any(|argument| argument.ty.is_required()) =>
        {
            let record = model.record(builtin.record);
            let title = crate::labels::title(record).map(|id| format!(" {}", record.field(id).name));
            Some(format!("{{ {} {{ id{} }} }}", root.name, title.unwrap_or_default()))
        }
        Binding::Builtin(_) | Binding::Registered(_) | Binding::Missing(_) => None,
    })
}

/// By which address we were reached, if it can stand between quotes of a shell.
fn origin(head: &Parts) -> String {
    let origin = head.extensions.get::<Client>().map(|client| client.origin(head.headers.get(HOST)));
    let is_plain =
        |origin: &String| origin.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]/".contains(&b));
    origin.filter(is_plain).unwrap_or_else(|| "http://localhost:8080".to_owned())
}

/// Plain lists, and texts that can be opened.
pub fn others(manifest: &Manifest) -> Vec<Link> {
    let lists = manifest.lists.iter().map(|list| &list.path);
    let texts = manifest.texts.iter().filter(|text| {
        let opens = match &text.methods {
            Methods::Any => true,
            Methods::Only(methods) => methods.iter().any(|method| method == "GET"),
        };
        opens && matches!(text.reply, Reply::Text(_))
    });
    let paths = lists.chain(texts.map(|text| &text.path));
    paths.map(|path| Link { label: path.clone(), href: path.clone() }).collect()
}
