//! Random requests for lists and groups, what a server is sent for them, and what it must answer.

use serde_json::{Value, json};

use super::graphql_text;
use super::groups::{GroupKey, GroupMeasure, GroupRequest, OrderOf, PERIODS};
use super::interpreter::{FieldPath, OrderKey, PlainWorld};
use super::paths;
use super::rest_text::{self, encoded, plain_text, quoted};
use super::rows::{self, PlainCell};
use super::schema::{Content, PlainField, ValueKind};
use super::tree::{ConditionTree, TestOperator, TreeMaker, TreeOwner, smaller_lists};
use super::values::PlainValue;

#[derive(Clone, Debug)]
pub enum PlainRequest {
    List {
        record: usize,
        conditions: Vec<ConditionTree>,
        order: Vec<OrderKey>,
        first: Option<usize>,
    },
    Groups(GroupRequest),
    /// The groups of the records that a list or link of each record leads to, and their number.
    RelatedGroups {
        record: usize,
        field: usize,
        request: GroupRequest,
    },
}

/// A document with its variables.
pub struct SentDocument {
    pub text: String,
    pub variables: Value,
}

impl TreeMaker<'_> {
    pub fn request(&mut self) -> PlainRequest {
        let record = self.chance.below(self.schema.records.len());
        if self.chance.percent(10)
            && let Some((field, target)) = self.related_list(record)
        {
            let conditions = self.conditions(TreeOwner::Record(target), 1);
            let measures = vec![GroupMeasure::Count];
            let request =
                GroupRequest { measures, having: Vec::new(), ..self.group_request(target, conditions) };
            let order =
                request.order.iter().filter(|(of, _)| matches!(of, OrderOf::Key(_))).cloned().collect();
            return PlainRequest::RelatedGroups { record, field, request: GroupRequest { order, ..request } };
        }
        let depth = 1 + self.chance.below(3);
        let conditions = self.conditions(TreeOwner::Record(record), depth);
        if self.chance.percent(40) {
            return PlainRequest::Groups(self.group_request(record, conditions));
        }
        let is_sortable = |field: &PlainField| matches!(field.content, Content::Single(_) | Content::Key(_));
        let order = (0..self.chance.below(4)).filter_map(|_| {
            let path = paths::random(&mut self.chance, self.schema, record, 3, &is_sortable)?;
            Some(OrderKey { path, descending: self.chance.percent(50) })
        });
        let mut order: Vec<OrderKey> = order.collect();
        let mut seen: Vec<FieldPath> = Vec::new();
        order.retain(|key| {
            !seen.contains(&key.path) && {
                seen.push(key.path.clone());
                true
            }
        });
        let first = self.chance.percent(30).then(|| 1 + self.chance.below(6));
        PlainRequest::List { record, conditions, order, first }
    }

    /// A list of related records, and their type.
    fn related_list(&mut self, record: usize) -> Option<(usize, usize)> {
        let fields = self.schema.records[record].fields.iter().enumerate();
        let lists = fields.filter_map(|(at, field)| match field.content {
            Content::Inverse { target, .. } | Content::Link { target, .. } => Some((at, target)),
            _ => None,
        });
        self.chance.pick(&lists.collect::<Vec<_>>()).copied()
    }

    fn group_request(&mut self, record: usize, conditions: Vec<ConditionTree>) -> GroupRequest {
        // Only the record's own fields are measures in GraphQL.
        let depth = if self.chance.percent(30) { 2 } else { 0 };
        let mut keys: Vec<GroupKey> = Vec::new();
        for _ in 0..self.chance.below(3) {
            let key = self.group_key(record);
            keys.extend(key.filter(|key| !keys.contains(key)));
        }
        let mut measures: Vec<GroupMeasure> = vec![GroupMeasure::Count];
        for _ in 0..self.chance.below(5) {
            let measure = self.measure(record, depth);
            measures.extend(measure.filter(|measure| !measures.contains(measure)));
        }
        let mut having = Vec::new();
        for _ in 0..self.chance.below(2) {
            having.extend(self.having(record, &measures));
        }
        let mut order: Vec<(OrderOf, bool)> = Vec::new();
        for _ in 0..self.chance.below(3) {
            let of = match (self.chance.below(2), keys.len()) {
                (0, count) if count > 0 => OrderOf::Key(self.chance.below(count)),
                _ => OrderOf::Measure(self.chance.pick(&measures).unwrap().clone()),
            };
            if !order.iter().any(|(known, _)| *known == of) {
                order.push((of, self.chance.percent(50)));
            }
        }
        let first = self.chance.percent(20).then(|| 1 + self.chance.below(4));
        GroupRequest { record, conditions, keys, measures, having, order, first }
    }

    fn group_key(&mut self, record: usize) -> Option<GroupKey> {
        let fits = |field: &PlainField| {
            matches!(field.content, Content::Single(_) | Content::Reference { .. } | Content::Key(_))
        };
        let path = paths::random(&mut self.chance, self.schema, record, 3, &fits)?;
        let periods = match paths::field_at(self.schema, record, &path).content {
            Content::Single(ValueKind::DateTime) => &PERIODS[..],
            // A day has no hours.
            Content::Single(ValueKind::Date) => &PERIODS[..6],
            _ => &[],
        };
        let period = if self.chance.percent(80) { self.chance.pick(periods).copied() } else { None };
        Some(GroupKey { path, period })
    }

    fn measure(&mut self, record: usize, depth: usize) -> Option<GroupMeasure> {
        let function = *self.chance.pick(&["sum", "avg", "min", "max", "countDistinct"]).unwrap();
        let fits = |field: &PlainField| match (function, field.content) {
            ("sum" | "avg", Content::Single(kind)) => kind.is_number(),
            ("min" | "max", Content::Single(kind)) => kind.is_ordered(),
            ("countDistinct", Content::Single(_) | Content::Reference { .. }) => true,
            _ => false,
        };
        let path = paths::random(&mut self.chance, self.schema, record, depth, &fits)?;
        Some(GroupMeasure::Of(function, path))
    }

    fn having(
        &mut self,
        record: usize,
        measures: &[GroupMeasure],
    ) -> Option<(GroupMeasure, TestOperator, PlainValue)> {
        let operators = [
            TestOperator::Eq,
            TestOperator::Ne,
            TestOperator::Lt,
            TestOperator::Lte,
            TestOperator::Gt,
            TestOperator::Gte,
        ];
        let operator = *self.chance.pick(&operators).unwrap();
        let measure = self.chance.pick(measures).unwrap().clone();
        let operand = match &measure {
            GroupMeasure::Count | GroupMeasure::Of("countDistinct", _) => {
                PlainValue::Whole(self.chance.below(5) as i64)
            }
            GroupMeasure::Of(function, path) => {
                let kind = paths::field_at(self.schema, record, path).single(self.schema)?;
                let is_own = matches!(*function, "min" | "max") || kind == ValueKind::Float;
                rows::value(&mut self.chance, if is_own { kind } else { ValueKind::Decimal })
            }
        };
        Some((measure, operator, operand))
    }
}

impl PlainRequest {
    /// The answer: a row for each record or group.
    pub fn expected(&self, world: PlainWorld<'_>) -> Vec<Vec<Value>> {
        match self {
            PlainRequest::Groups(request) => world.groups(request),
            PlainRequest::RelatedGroups { record, field, request } => {
                let kind = world.schema.records[*record].fields[0].single(world.schema).unwrap();
                let found = world.select(request.record, &request.conditions, &[]);
                let row = |at: usize| {
                    let row = &world.data.rows[*record][at];
                    let PlainCell::Many(related) = &row.cells[*field] else { panic!("a list of records") };
                    let mut found = found.clone();
                    found.retain(|at| related.contains(at));
                    let groups = Value::from_iter(world.groups_of(request, &found));
                    vec![row.key().to_json(kind), json!(found.len()), groups]
                };
                world.select(*record, &[], &[]).into_iter().map(row).collect()
            }
            PlainRequest::List { record, conditions, order, first } => {
                let mut found = world.select(*record, conditions, order);
                found.truncate(first.unwrap_or(usize::MAX));
                let kind = world.schema.records[*record].fields[0].single(world.schema).unwrap();
                let id = |at: usize| vec![world.data.rows[*record][at].key().to_json(kind)];
                found.into_iter().map(id).collect()
            }
        }
    }

    /// Path and query for REST, if it can ask for this.
    pub fn rest(&self, world: PlainWorld<'_>) -> Option<String> {
        let schema = world.schema;
        let (record, conditions) = self.subject();
        let mut parameters = rest_text::parameters(schema, record, conditions);
        let mut add = |name: &str, items: Vec<String>, separator: &str| {
            if !items.is_empty() {
                parameters.push(format!("{name}={}", encoded(&items.join(separator))));
            }
        };
        match self {
            PlainRequest::RelatedGroups { .. } => return None,
            PlainRequest::List { order, first, .. } => {
                add("sort", order_names(world, record, order), ",");
                add("size", vec![first.unwrap_or(100).to_string()], "");
                add("fields", vec!["id".to_owned()], "");
            }
            PlainRequest::Groups(request) => {
                let measure = |measure: &GroupMeasure| measure_name(world, record, measure, "(", ")");
                add("aggregate", request.measures.iter().map(measure).collect(), ",");
                add("group", request.keys.iter().map(|key| key_name(world, record, key)).collect(), ",");
                let having = request.having.iter().map(|(of, operator, operand)| {
                    let point = if *operator == TestOperator::Eq { "" } else { "." };
                    format!("{}{point}{}={}", measure(of), operator.name(), quoted(&plain_text(operand)))
                });
                add("having", having.collect(), ",");
                add("sort", group_order_names(world, request, "(", ")"), ",");
                add("size", request.first.iter().map(usize::to_string).collect(), "");
            }
        }
        Some(format!("/{}?{}", schema.records[record].plural, parameters.join("&")))
    }

    /// The document for GraphQL, if it can ask for this.
    pub fn graphql(&self, world: PlainWorld<'_>, with_variables: bool) -> Option<SentDocument> {
        if let PlainRequest::RelatedGroups { record, field, request } = self {
            return Some(related_document(world, *record, *field, request));
        }
        let (record, conditions) = self.subject();
        let shape = &world.schema.records[record];
        let mut arguments: Vec<(&str, String, Value)> = Vec::new();
        let conditions = graphql_text::object(world.schema, TreeOwner::Record(record), conditions);
        arguments.push(("where", format!("{}Where", shape.name), conditions));
        let (field, selection) = match self {
            PlainRequest::RelatedGroups { .. } => return None,
            PlainRequest::List { order, first, .. } => {
                arguments.push(("orderBy", "[String!]".to_owned(), json!(order_names(world, record, order))));
                arguments.extend(first.map(|first| ("first", "Int".to_owned(), json!(first))));
                (shape.plural.to_owned(), "id".to_owned())
            }
            PlainRequest::Groups(request) => {
                let is_own = |measure: &GroupMeasure| match measure {
                    GroupMeasure::Count => true,
                    GroupMeasure::Of(_, path) => path.references.is_empty() && path.members.is_empty(),
                };
                if !request.measures.iter().all(is_own) {
                    return None;
                }
                let keys: Vec<String> = request.keys.iter().map(|key| key_name(world, record, key)).collect();
                arguments.push(("groupBy", "[String!]".to_owned(), json!(keys)));
                if !request.having.is_empty() {
                    arguments.push(("having", format!("{}Having", shape.name), having(world, request)));
                }
                let order = group_order_names(world, request, ".", "");
                arguments.push(("orderBy", "[String!]".to_owned(), json!(order)));
                arguments.extend(request.first.map(|first| ("first", "Int".to_owned(), json!(first))));
                let measures = request.measures.iter().map(|of| measure_name(world, record, of, " { ", " }"));
                let selection = format!("key {}", measures.collect::<Vec<_>>().join(" "));
                (format!("{}Aggregate", shape.plural), selection)
            }
        };
        if !with_variables {
            let given =
                arguments.iter().map(|(name, _, value)| format!("{name}: {}", graphql_text::literal(value)));
            let text = format!("{{ {field}({}) {{ {selection} }} }}", given.collect::<Vec<_>>().join(", "));
            return Some(SentDocument { text, variables: json!({}) });
        }
        let declared: Vec<String> = arguments.iter().map(|(name, of, _)| format!("${name}: {of}")).collect();
        let given: Vec<String> = arguments.iter().map(|(name, _, _)| format!("{name}: ${name}")).collect();
        let text =
            format!("query({}) {{ {field}({}) {{ {selection} }} }}", declared.join(", "), given.join(", "));
        let variables = arguments.into_iter().map(|(name, _, value)| (name.to_owned(), value));
        Some(SentDocument { text, variables: Value::Object(variables.collect()) })
    }

    /// The type and the conditions of a subscription, and the keys of the records that meet them, in the order of texts.
    pub fn subscription<'w>(&self, world: PlainWorld<'w>) -> Option<(&'w str, Value, Vec<String>)> {
        let PlainRequest::List { record, conditions, .. } = self else { return None };
        let text = |at: usize| world.data.rows[*record][at].key_text();
        let mut keys: Vec<String> = world.select(*record, conditions, &[]).into_iter().map(text).collect();
        keys.sort();
        let conditions = graphql_text::object(world.schema, TreeOwner::Record(*record), conditions);
        Some((world.schema.records[*record].name, conditions, keys))
    }

    fn subject(&self) -> (usize, &[ConditionTree]) {
        match self {
            PlainRequest::List { record, conditions, .. } => (*record, conditions),
            PlainRequest::Groups(request) => (request.record, &request.conditions),
            PlainRequest::RelatedGroups { request, .. } => (request.record, &request.conditions),
        }
    }

    /// Rows of the answer in REST.
    pub fn rest_rows(&self, world: PlainWorld<'_>, answer: &Value) -> Option<Vec<Vec<Value>>> {
        let names: Vec<String> = match self {
            PlainRequest::List { .. } | PlainRequest::RelatedGroups { .. } => vec!["id".to_owned()],
            PlainRequest::Groups(request) => {
                let keys = request.keys.iter().map(|key| key_name(world, request.record, key));
                let measures =
                    request.measures.iter().map(|of| measure_name(world, request.record, of, "(", ")"));
                keys.chain(measures).collect()
            }
        };
        let row = |row: &Value| names.iter().map(|name| row.get(name).cloned()).collect();
        answer.as_array()?.iter().map(row).collect()
    }

    /// Rows of the answer in GraphQL.
    pub fn graphql_rows(&self, world: PlainWorld<'_>, answer: &Value) -> Option<Vec<Vec<Value>>> {
        let groups = answer.get("data")?.as_object()?.values().next()?.as_array()?;
        let row = |row: &Value| -> Option<Vec<Value>> {
            let request = match self {
                PlainRequest::List { .. } => return Some(vec![row.get("id")?.clone()]),
                PlainRequest::RelatedGroups { request, .. } => {
                    let inner = json!({ "data": { "groups": row.get("groups")? } });
                    let groups = PlainRequest::Groups(request.clone()).graphql_rows(world, &inner)?;
                    return Some(vec![
                        row.get("id")?.clone(),
                        row.get("count")?.clone(),
                        Value::from_iter(groups),
                    ]);
                }
                PlainRequest::Groups(request) => request,
            };
            let keys = request
                .keys
                .iter()
                .map(|key| row.get("key")?.get(key_name(world, request.record, key)).cloned());
            let measures = request.measures.iter().map(|of| match of {
                GroupMeasure::Count => row.get("count").cloned(),
                GroupMeasure::Of(function, path) => {
                    row.get(function)?.get(paths::name(world.schema, request.record, path)).cloned()
                }
            });
            keys.chain(measures).collect()
        };
        groups.iter().map(row).collect()
    }

    /// The same request with a part of it left out.
    pub fn smaller(&self) -> Vec<PlainRequest> {
        let mut smaller = Vec::new();
        match self {
            PlainRequest::List { record, conditions, order, first } => {
                let with = |conditions, order, first| PlainRequest::List {
                    record: *record,
                    conditions,
                    order,
                    first,
                };
                smaller.extend(first.map(|_| with(conditions.clone(), order.clone(), None)));
                smaller.extend(without_one(order).map(|order| with(conditions.clone(), order, *first)));
                smaller.extend(
                    smaller_lists(conditions).into_iter().map(|list| with(list, order.clone(), *first)),
                );
            }
            PlainRequest::RelatedGroups { record, field, request } => {
                smaller.extend(PlainRequest::Groups(request.clone()).smaller().into_iter().filter_map(
                    |inner| {
                        let PlainRequest::Groups(request) = inner else { return None };
                        Some(PlainRequest::RelatedGroups { record: *record, field: *field, request })
                    },
                ));
            }
            PlainRequest::Groups(request) => {
                let mut add = |change: GroupRequest| smaller.push(PlainRequest::Groups(change));
                if request.first.is_some() {
                    add(GroupRequest { first: None, ..request.clone() });
                }
                without_one(&request.order).for_each(|order| add(GroupRequest { order, ..request.clone() }));
                without_one(&request.having)
                    .for_each(|having| add(GroupRequest { having, ..request.clone() }));
                without_one(&request.measures)
                    .filter(|measures| !measures.is_empty())
                    .for_each(|measures| add(GroupRequest { measures, ..request.clone() }));
                if request.order.is_empty() {
                    without_one(&request.keys).for_each(|keys| add(GroupRequest { keys, ..request.clone() }));
                }
                for conditions in smaller_lists(&request.conditions) {
                    add(GroupRequest { conditions, ..request.clone() });
                }
            }
        }
        smaller
    }
}

/// The number and the groups of related records, of all records at once.
fn related_document(
    world: PlainWorld<'_>,
    record: usize,
    field: usize,
    request: &GroupRequest,
) -> SentDocument {
    let shape = &world.schema.records[record];
    let list = &shape.fields[field].name;
    let owner = TreeOwner::Record(request.record);
    let conditions = graphql_text::object(world.schema, owner, &request.conditions);
    let keys: Vec<String> = request.keys.iter().map(|key| key_name(world, request.record, key)).collect();
    let order = group_order_names(world, request, ".", "");
    let first = request.first.map_or(String::new(), |first| format!(", first: {first}"));
    let text = format!(
        "query($where: {}Where, $keys: [String!], $order: [String!]) {{ {}(first: 100) {{ id count: {list}Count(where: $where) \
         groups: {list}Aggregate(where: $where, groupBy: $keys, orderBy: $order{first}) {{ key count }} }} }}",
        world.schema.records[request.record].name, shape.plural
    );
    SentDocument { text, variables: json!({ "where": conditions, "keys": keys, "order": order }) }
}

fn without_one<T: Clone>(items: &[T]) -> impl Iterator<Item = Vec<T>> {
    (0..items.len()).map(|left_out| {
        let rest = items.iter().enumerate().filter(|(at, _)| *at != left_out);
        rest.map(|(_, item)| item.clone()).collect()
    })
}

fn order_names(world: PlainWorld<'_>, record: usize, order: &[OrderKey]) -> Vec<String> {
    let name = |key: &OrderKey| {
        format!("{}{}", if key.descending { "-" } else { "" }, paths::name(world.schema, record, &key.path))
    };
    order.iter().map(name).collect()
}

fn key_name(world: PlainWorld<'_>, record: usize, key: &GroupKey) -> String {
    let name = paths::name(world.schema, record, &key.path);
    key.period.map_or(name.clone(), |period| format!("{period}({name})"))
}

fn measure_name(
    world: PlainWorld<'_>,
    record: usize,
    measure: &GroupMeasure,
    open: &str,
    close: &str,
) -> String {
    match measure {
        GroupMeasure::Count => "count".to_owned(),
        GroupMeasure::Of(function, path) => {
            format!("{function}{open}{}{close}", paths::name(world.schema, record, path))
        }
    }
}

fn group_order_names(world: PlainWorld<'_>, request: &GroupRequest, open: &str, close: &str) -> Vec<String> {
    let name = |(of, descending): &(OrderOf, bool)| {
        let name = match of {
            OrderOf::Key(at) => key_name(world, request.record, &request.keys[*at]),
            OrderOf::Measure(measure) => measure_name(world, request.record, measure, open, close),
        };
        format!("{}{name}", if *descending { "-" } else { "" })
    };
    request.order.iter().map(name).collect()
}

/// `{ count_gte: 2, sum: { total_gte: 5 } }`.
fn having(world: PlainWorld<'_>, request: &GroupRequest) -> Value {
    let mut object = json!({});
    for (measure, operator, operand) in &request.having {
        let line = if *operator == TestOperator::Eq { "" } else { "_" };
        let (outer, name, kind) = match measure {
            GroupMeasure::Count => (None, "count".to_owned(), ValueKind::Int),
            GroupMeasure::Of(function, path) => {
                let kind = match *function {
                    "countDistinct" => ValueKind::Int,
                    _ => world.kind(request.record, path),
                };
                (Some(*function), paths::name(world.schema, request.record, path), kind)
            }
        };
        let name = format!("{name}{line}{}", operator.name());
        match outer {
            None => object[name] = operand.to_json(kind),
            Some(outer) => object[outer][name] = operand.to_json(kind),
        }
    }
    object
}
