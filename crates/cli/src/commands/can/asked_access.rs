//! What `trefoil can` is asked, looked up in the schema.

use trefoil_application::{AllowedMethods, Manifest, TextEndpoint};
use trefoil_engine::{AccessQuestion, ResolverBinding};
use trefoil_model::access::AccessAction;
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{Model, RecordId, RootType};
use trefoil_server::load_application::LoadedApplication;

use crate::command_error::CommandError;

pub enum AskedAccess {
    Record(AccessQuestion),
    /// A call of an operation, by position in [`Model::root_fields`].
    Call(usize),
    /// A plain list or a text of `trefoil.toml`.
    Path {
        action: &'static str,
        path: String,
        rule: PathRule,
    },
}

/// The rule of a path.
pub enum PathRule {
    List {
        name: String,
        is_write: bool,
    },
    /// By position in `trefoil.toml`.
    Text(usize),
}

const ACTIONS: [AccessAction; 4] =
    [AccessAction::Read, AccessAction::Create, AccessAction::Update, AccessAction::Delete];

impl AskedAccess {
    pub fn read(
        manifest: &Manifest,
        application: &LoadedApplication,
        action: &str,
        target: &str,
        field: Option<&str>,
    ) -> Result<AskedAccess, CommandError> {
        if target.starts_with('/') {
            return read_path(manifest, action, target, field);
        }
        let (type_name, id) = match target.split_once('/') {
            Some((type_name, id)) => (type_name, Some(id)),
            None => (target, None),
        };
        if action == "call" {
            return read_call(application, target, field);
        }
        let model = &*application.model;
        let Some(found) = ACTIONS.into_iter().find(|known| known.name() == action) else {
            let known = ACTIONS.iter().map(|known| known.name()).chain(["call"]);
            let help = did_you_mean(action, known, "the actions are read, create, update, delete and call");
            return Err(CommandError::usage(format!("there is no action `{action}`; {help}")));
        };
        let Some(record) = model.find_record(type_name) else {
            let known = model.records.iter().map(|record| record.name.as_str());
            let listed = format!("it has {}", known.clone().collect::<Vec<_>>().join(", "));
            let help = did_you_mean(type_name, known, &listed);
            return Err(CommandError::usage(format!(
                "the schema has no type `{type_name}` with records; {help}"
            )));
        };
        let owner = model.record(record);
        let id = id.map(|text| {
            RecordId::from_text(owner.key_form(), text)
                .map_err(|why| CommandError::usage(format!("{text:?} is no id of {type_name}: {why}")))
        });
        let id = id.transpose()?;
        if let (Some(id), AccessAction::Create) = (&id, found) {
            return Err(CommandError::usage(format!(
                "create is about no record that exists: write `create {type_name}` without /{id}"
            )));
        }
        if found == AccessAction::Delete && field.is_some() {
            return Err(CommandError::usage("delete is about whole records: leave out the field"));
        }
        let field = field.map(|name| {
            owner.find_field(name).or_else(|| owner.find_input_field(name)).ok_or_else(|| {
                let known = owner.fields.iter().map(|field| field.name.as_str());
                let listed = format!("it has {}", known.clone().collect::<Vec<_>>().join(", "));
                let help = did_you_mean(name, known, &listed);
                CommandError::usage(format!("`{type_name}` has no field `{name}`; {help}"))
            })
        });
        let question = AccessQuestion { action: found, record, id, field: field.transpose()? };
        Ok(AskedAccess::Record(question))
    }

    pub fn has_id(&self) -> bool {
        matches!(self, AskedAccess::Record(AccessQuestion { id: Some(_), .. }))
    }

    /// `update Post 2`, `read title of Post`, `call Query.stats`, `write /items`
    pub fn words(&self, model: &Model) -> String {
        match self {
            AskedAccess::Record(question) => question_words(question, model),
            AskedAccess::Call(position) => {
                let root = &model.root_fields[*position];
                format!("call {}.{}", model.root_type_name(root.root_kind), root.name)
            }
            AskedAccess::Path { action, path, .. } => format!("{action} {path}"),
        }
    }
}

pub fn question_words(question: &AccessQuestion, model: &Model) -> String {
    let AccessQuestion { action, record, id, field } = question;
    let owner = model.record(*record);
    let field = field.map(|field| format!("`{}` of ", owner.field(field).name)).unwrap_or_default();
    let id = id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    let (verb, after) = match action {
        AccessAction::UpdateTo => ("update", ", as it would be"),
        AccessAction::Read | AccessAction::Create | AccessAction::Update | AccessAction::Delete => {
            (action.name(), "")
        }
    };
    format!("{verb} {field}{}{id}{after}", owner.name)
}

fn read_path(
    manifest: &Manifest,
    action: &str,
    path: &str,
    field: Option<&str>,
) -> Result<AskedAccess, CommandError> {
    let asked = |action, rule| Ok(AskedAccess::Path { action, path: path.to_owned(), rule });
    if field.is_some() {
        return Err(CommandError::usage(format!("{path} has no fields: leave out the field")));
    }
    if let Some(list) = manifest.plain_lists.iter().find(|list| list.path == path) {
        let rule = |is_write| PathRule::List { name: list.name().to_owned(), is_write };
        return match action {
            "read" => asked("read", rule(false)),
            "write" => asked("write", rule(true)),
            _ => Err(CommandError::usage(format!("{path} is a plain list: ask `read` or `write`"))),
        };
    }
    let texts = || manifest.text_endpoints.iter().enumerate().filter(|(_, text)| text.path == path);
    // Of several texts at one path, that of a plain request.
    let is_plain = |text: &TextEndpoint| match &text.methods {
        AllowedMethods::Any => true,
        AllowedMethods::Only(methods) => methods.iter().any(|method| method == "GET"),
    };
    match (texts().find(|(_, text)| is_plain(text)).or_else(|| texts().next()), action) {
        (Some((position, _)), "read") => asked("read", PathRule::Text(position)),
        (Some(_), _) => Err(CommandError::usage(format!("{path} is a text: ask `read`"))),
        (None, _) => {
            let lists = manifest.plain_lists.iter().map(|list| list.path.as_str());
            let known = lists.chain(manifest.text_endpoints.iter().map(|text| text.path.as_str()));
            let help = did_you_mean(path, known, "write the name of a type for records");
            Err(CommandError::usage(format!("trefoil.toml has no list and no text at {path}; {help}")))
        }
    }
}

fn read_call(
    application: &LoadedApplication,
    type_name: &str,
    field: Option<&str>,
) -> Result<AskedAccess, CommandError> {
    let model = &*application.model;
    let kinds = [RootType::Query, RootType::Mutation, RootType::Subscription];
    let Some(kind) = kinds.into_iter().find(|kind| model.root_type_name(*kind) == type_name) else {
        return Err(CommandError::usage(format!(
            "call is about operations: write `call Query FIELD` or `call Mutation FIELD`, not `{type_name}`"
        )));
    };
    let Some(name) = field else {
        return Err(CommandError::usage(format!("name the operation: `call {type_name} FIELD`")));
    };
    let of_kind = || model.root_fields.iter().enumerate().filter(|(_, root)| root.root_kind == kind);
    let Some((position, _)) = of_kind().find(|(_, root)| root.name == name) else {
        let known = of_kind().map(|(_, root)| root.name.as_str());
        let help = nearest_name(name, known).map(|near| format!("; did you mean `{near}`?"));
        let help = help.unwrap_or_default();
        return Err(CommandError::usage(format!("`{type_name}` has no field `{name}`{help}")));
    };
    match &application.bindings[position] {
        ResolverBinding::Registered(_) => Ok(AskedAccess::Call(position)),
        ResolverBinding::Builtin(_) | ResolverBinding::Abstract(_) => Err(CommandError::usage(format!(
            "the store answers `{type_name}.{name}`, by the rules of its types: ask `read TYPE`, or what it writes"
        ))),
        ResolverBinding::Missing(reason) => {
            Err(CommandError::usage(format!("nothing answers `{type_name}.{name}`: {reason}")))
        }
    }
}

fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>, otherwise: &str) -> String {
    nearest_name(name, known)
        .map_or_else(|| otherwise.to_owned(), |nearest| format!("did you mean `{nearest}`?"))
}
