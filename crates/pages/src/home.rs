//! The start page: record types with counts, other links, shell examples.

use std::time::Duration;

use axum::response::Response;
use http::StatusCode;
use http::header::HOST;
use http::request::Parts;

use trefoil_engine::{
    CountMode, ListSlice, Listing, Operation, OperationVerb, Outcome, ResolverBinding, ResultShape,
};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::Problem;
use trefoil_model::access::AccessAction;
use trefoil_model::{RecordTypeId, RootType};
use trefoil_resources::ServedResources;
use trefoil_resources::collection::Collection;

use crate::Pages;
use crate::examples::page::{PageSubject, escape_brackets, shell_quote};
use crate::phrases::{MAX_COUNT, bounded_count};
use crate::snapshot_reads::read_snapshot;
use crate::template_data::{HomeView, PageHead, ResourceCard, ShellExample};

/// The page is shown without counts if the store does not respond within this time.
const COUNT_TIMEOUT: Duration = Duration::from_secs(3);

impl Pages {
    pub async fn home_page(&self, resources: &ServedResources, head: &Parts) -> Result<Response, Problem> {
        let counts = self.count_records(resources).await;
        let is_away = !counts.is_empty() && counts.iter().all(Option::is_none);
        let engine = &resources.engine;
        let shown = resources
            .collections
            .iter()
            .filter(|collection| engine.may(AccessAction::Read, collection.record));
        let cards = shown
            .zip(counts)
            .map(|(collection, count)| (self.labels_of(collection.record), count, collection));
        let cards = cards.map(|(labels, count, collection)| ResourceCard {
            new: self.new_record_url(resources, collection.record, None),
            resource: labels.resource.clone(),
            count: count.map_or("–".to_owned(), bounded_count),
            is_live: !collection.subscribed_changes.is_empty(),
        });
        let home = HomeView {
            description: None,
            is_away,
            cards: cards.collect(),
            others: self.other_links.clone(),
            tries: self.shell_examples(resources, &request_origin(head)),
        };
        let mut page_head = PageHead::new("Home", "", Vec::new());
        page_head.crumbs.clear();
        page_head.title.clone_from(&self.name);
        page_head.ways = Some(self.api_examples(resources, head, PageSubject::Home));
        self.page_response(&head.headers, StatusCode::OK, page_head, "home", &home)
    }

    /// Number of records of each type that the actor may read; `None` if the store does not respond.
    async fn count_records(&self, resources: &ServedResources) -> Vec<Option<u64>> {
        let count = |position: usize| {
            let listing = Listing {
                slice: ListSlice::First { first: 0, after: None },
                count: CountMode::UpTo(MAX_COUNT),
                ..Listing::default()
            };
            let selection = self.name_selections[position].clone();
            Operation::List { record: RecordTypeId(position), listing, selection }
        };
        let is_shown = |position: &usize| resources.engine.may(AccessAction::Read, RecordTypeId(*position));
        let operations: Vec<Operation> = (0..self.labels.len()).filter(is_shown).map(count).collect();
        let length = operations.len();
        let found =
            tokio::time::timeout(COUNT_TIMEOUT, read_snapshot(&resources.engine, operations, 0)).await;
        let total = |outcome: &Outcome| {
            if let Outcome::Listed { total, .. } = outcome { *total } else { None }
        };
        match found {
            Ok(Ok(found)) => found.iter().map(|found| total(&found.outcome)).collect(),
            Ok(Err(_)) | Err(_) => vec![None; length],
        }
    }

    /// A shell command for each API, with a path that exists here.
    fn shell_examples(&self, resources: &ServedResources, origin: &str) -> Vec<ShellExample> {
        let line = |label: &str, text: String| ShellExample { label: label.to_owned(), text };
        let query = example_query(resources).unwrap_or_else(|| "{ __typename }".to_owned());
        let mut examples = vec![line(
            "Query with GraphQL",
            format!(
                "curl '{origin}/graphql' -H 'Content-Type: application/json' -d '{{\"query\":\"{query}\"}}'"
            ),
        )];
        let readable = |collection: &&Collection| resources.engine.may(AccessAction::Read, collection.record);
        examples.extend(resources.collections.iter().find(readable).map(|collection| {
            line("Read records as JSON", format!("curl '{origin}{}?fields=*&size=3'", collection.path))
        }));
        let address = |path: &str| shell_quote(&format!("{origin}{}", escape_brackets(path)));
        let mut lists = resources.plain_lists.iter();
        let list = lists.find(|list| resources.engine.may_use_list(&list.name, true));
        examples.push(match (list, self.other_links.first()) {
            (Some(list), _) => line("Add to a plain list", format!("curl {} -d 'milk'", address(&list.path))),
            (None, Some(text)) => line("Read a text", format!("curl {}", address(&text.href))),
            (None, None) => line("Read the OpenAPI description", format!("curl '{origin}/openapi.json'")),
        });
        examples
    }
}

/// The first list query of the schema, selecting id and title.
fn example_query(resources: &ServedResources) -> Option<String> {
    let model = resources.engine.model();
    model.root_fields.iter().zip(resources.engine.bindings()).find_map(|(root, binding)| match binding {
        ResolverBinding::Builtin(builtin)
            if root.root_kind == RootType::Query
                && builtin.verb == OperationVerb::List
                && resources.engine.may_run(builtin.verb, builtin.record)
                && builtin.result_shape == ResultShape::List
                && !root.arguments.iter().any(|argument| argument.ty.is_required()) =>
        {
            let record = model.record(builtin.record);
            let title = record.title.fields();
            let title = title.filter(|id| resources.engine.shows_field(builtin.record, *id));
            let title: String = title.map(|id| format!(" {}", record.field(id).name)).collect();
            Some(format!("{{ {} {{ id{title} }} }}", root.name))
        }
        ResolverBinding::Builtin(_)
        | ResolverBinding::Abstract(_)
        | ResolverBinding::Registered(_)
        | ResolverBinding::Missing(_) => None,
    })
}

/// The origin of the request, if it is safe inside shell quotes.
fn request_origin(head: &Parts) -> String {
    let origin = head.extensions.get::<ClientInfo>().map(|client| client.origin(head.headers.get(HOST)));
    let is_plain =
        |origin: &String| origin.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]/".contains(&b));
    origin.filter(is_plain).unwrap_or_else(|| "http://localhost:8080".to_owned())
}
