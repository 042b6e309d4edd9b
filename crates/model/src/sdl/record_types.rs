//! Turns object types into record types and embedded values, field by field; lists of records come later.

use std::collections::{HashMap, HashSet};

use apollo_compiler::Schema;
use apollo_compiler::ast::{FieldDefinition, Type};
use apollo_compiler::schema::{ExtendedType, ObjectType};
use indexmap::IndexMap;

use crate::naming::names;
use crate::sdl::diagnostic_log::{Log, did_you_mean, is_written};
use crate::sdl::directives::{Marks, Reader, is_ours, misfit};
use crate::sdl::root_fields::{arguments, root_names};
use crate::sdl::unstored_fields;
use crate::sdl::unstored_fields::Why;
use crate::{
    EmbeddedType, EnumType, Field, FieldId, FilledBy, Item, Kind, OnDelete, RecordType, Scalar, TypeId,
};

/// What has been read so far.
pub(crate) struct Draft {
    pub records: Vec<RecordType>,
    pub enums: IndexMap<String, EnumType>,
    pub embedded: IndexMap<String, EmbeddedType>,
    pub lists: Vec<RecordList>,
    /// `@reference(inverse:)` on references: owner, field and the list it names.
    pub named_inverses: Vec<(TypeId, FieldId, String)>,
}

/// A field that is a list of records: an inverse or a link, decided when all references are known.
pub(crate) struct RecordList {
    pub owner: TypeId,
    pub field: FieldId,
    pub target: TypeId,
    pub inverse: Option<String>,
}

/// What a field's type alone says.
enum Shape {
    Kept(Kind),
    Record(TypeId),
    Records(TypeId),
    Not(Why),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Record,
    Value,
}

pub(crate) struct Records<'a> {
    schema: &'a Schema,
    roots: HashSet<&'a str>,
    ids: HashMap<&'a str, TypeId>,
    theirs: &'a HashSet<String>,
    log: &'a mut Log,
    draft: Draft,
    /// Embedded types seen in a field and not read yet.
    waiting: Vec<&'a str>,
}

pub(crate) fn read(schema: &Schema, theirs: &HashSet<String>, log: &mut Log) -> Draft {
    let roots = root_names(schema);
    let types: Vec<&ObjectType> = objects(schema).filter(|ty| !roots.contains(ty.name.as_str())).collect();
    let records: Vec<&ObjectType> = types.iter().copied().filter(|ty| is_record(ty)).collect();
    let ids = records.iter().enumerate().map(|(i, ty)| (ty.name.as_str(), TypeId(i))).collect();
    let draft = Draft {
        records: Vec::new(),
        enums: enums(schema),
        embedded: IndexMap::new(),
        lists: Vec::new(),
        named_inverses: Vec::new(),
    };
    let mut reading = Records { schema, roots, ids, theirs, log, draft, waiting: Vec::new() };
    for ty in records {
        reading.record(ty);
    }
    reading.embedded();
    for ty in types.iter().filter(|ty| !is_record(ty)) {
        reading.almost_a_record(ty);
        reading.told_in_vain(ty);
    }
    reading.draft
}

/// `id: ID!` makes an object type a record type.
pub(crate) fn is_record(ty: &ObjectType) -> bool {
    ty.fields.get("id").is_some_and(|id| matches!(&id.ty, Type::NonNullNamed(name) if name == "ID"))
}

fn objects(schema: &Schema) -> impl Iterator<Item = &ObjectType> {
    let objects = schema.types.values().filter_map(|ty| ty.as_object());
    objects.filter(|object| is_written(object.name.location(), None))
}

fn enums(schema: &Schema) -> IndexMap<String, EnumType> {
    let written = schema.types.values().filter(|ty| !ty.is_built_in());
    written
        .filter_map(|ty| ty.as_enum())
        .map(|ty| {
            let values = ty.values.keys().map(|name| name.to_string()).collect();
            let description = ty.description.as_ref().map(|text| text.to_string());
            (ty.name.to_string(), EnumType { name: ty.name.to_string(), values, description })
        })
        .collect()
}

impl<'a> Records<'a> {
    /// `id: Int!` and the like look like a record type and are none.
    fn almost_a_record(&mut self, ty: &ObjectType) {
        let Some(id) = ty.fields.get("id").filter(|id| !id.ty.is_list()) else { return };
        self.log
            .warning(
                id.name.location(),
                "NOT_A_RECORD",
                format!("`{}` is no record type: its `id` is `{}`, not `ID!`", ty.name, id.ty),
            )
            .label("makes it a value inside its owner")
            .help("write `id: ID!` to keep its records");
    }

    /// Directives for records on a type that is none. On its fields they do no harm: a warning is enough.
    fn told_in_vain(&mut self, ty: &ObjectType) {
        let message = |name: &str| format!("`@{name}` means nothing here: `{}` is no record type", ty.name);
        let help = format!("add `id: ID!` to `{}` to make it one", ty.name);
        for directive in ty.directives.iter().filter(|directive| is_ours(self.theirs, directive)) {
            let found = self.log.error(directive.location(), "DIRECTIVE_PLACE", message(&directive.name));
            found.label("has no records").help(&help);
        }
        if self.draft.embedded.contains_key(ty.name.as_str()) {
            return;
        }
        let on_fields = ty.fields.values().flat_map(|field| field.directives.iter());
        for directive in on_fields.filter(|one| one.name != "resolver" && is_ours(self.theirs, one)) {
            let found = self.log.warning(directive.location(), "DIRECTIVE_PLACE", message(&directive.name));
            found.label("has no records").help(&help);
        }
    }

    fn record(&mut self, ty: &'a ObjectType) {
        let id = TypeId(self.draft.records.len());
        let mut reader = Reader { log: self.log, theirs: self.theirs };
        let mut path = None;
        let mut renamed_from = None;
        for directive in ty.directives.iter().filter(|directive| is_ours(self.theirs, directive)) {
            reader.unknown_arguments(directive);
            match directive.name.as_str() {
                "resource" => path = reader.text(directive, "path").map(str::to_owned),
                "renamedFrom" => renamed_from = reader.text(directive, "name").map(str::to_owned),
                _ => {}
            }
        }
        let fields =
            ty.fields.values().enumerate().map(|(i, def)| self.field(ty, def, id, FieldId(i))).collect();
        self.draft.records.push(RecordType {
            name: ty.name.to_string(),
            path: path.unwrap_or_else(|| names::path(&ty.name)),
            table: names::table(&ty.name),
            description: ty.description.as_ref().map(|text| text.to_string()),
            fields,
            indexes: Vec::new(),
            renamed_from,
        });
    }

    /// Reads embedded types until none is left; they may hold each other.
    fn embedded(&mut self) {
        while let Some(name) = self.waiting.pop() {
            let Some(ty) = self.schema.get_object(name).filter(|_| !self.draft.embedded.contains_key(name))
            else {
                continue;
            };
            // Before its fields, so that a type may hold itself.
            self.draft
                .embedded
                .insert(name.to_owned(), EmbeddedType { name: name.to_owned(), fields: Vec::new() });
            let fields = ty.fields.values().map(|def| self.value_field(ty, def)).collect();
            self.draft.embedded.insert(name.to_owned(), EmbeddedType { name: name.to_owned(), fields });
        }
    }

    fn field(&mut self, ty: &'a ObjectType, def: &'a FieldDefinition, owner: TypeId, id: FieldId) -> Field {
        let marks = Reader { log: self.log, theirs: self.theirs }.field(&def.directives);
        let mut shape = if def.name == "id" { Shape::Kept(Kind::Id) } else { self.shape(&def.ty) };
        if marks.resolver.is_some() {
            shape = Shape::Not(Why::Resolver);
        } else if !def.arguments.is_empty() && matches!(shape, Shape::Kept(_) | Shape::Record(_)) {
            shape = Shape::Not(Why::Arguments);
        }
        let mut field = self.base(def, &marks);
        match shape {
            Shape::Kept(kind) => {
                field.column = if kind == Kind::Id { "id".into() } else { names::column(&def.name) };
                field.kind = kind;
            }
            Shape::Record(target) => {
                field.column = names::reference(&def.name);
                field.input_name = names::reference(&def.name);
                field.kind = Kind::Reference { target, on_delete: self.on_delete(ty, def, &marks) };
                if let Some((inverse, _)) = marks.reference.as_ref().and_then(|reference| reference.inverse) {
                    self.draft.named_inverses.push((owner, id, inverse.to_owned()));
                }
            }
            Shape::Records(target) => {
                let inverse = marks.reference.as_ref().and_then(|reference| reference.inverse);
                let inverse = inverse.map(|(name, _)| name.to_owned());
                self.list_marks(ty, def, &marks);
                self.draft.lists.push(RecordList { owner, field: id, target, inverse });
                return field;
            }
            Shape::Not(why) => {
                unstored_fields::warn(self.log, ty, def, why);
                return field;
            }
        }
        self.judge(ty, def, &marks, &field.kind, Within::Record);
        // An id is unique as it is.
        field.unique = marks.unique && field.kind != Kind::Id;
        field.filled_by = self.filled_by(ty, def, &marks);
        if field.filled_by == FilledBy::Version {
            field.column = names::VERSION_COLUMN.into();
        }
        field
    }

    fn value_field(&mut self, ty: &'a ObjectType, def: &'a FieldDefinition) -> Field {
        let marks = Reader { log: self.log, theirs: self.theirs }.field(&def.directives);
        let mut field = self.base(def, &marks);
        let why = match self.shape(&def.ty) {
            _ if marks.resolver.is_some() => Why::Resolver,
            Shape::Kept(_) if !def.arguments.is_empty() => Why::Arguments,
            Shape::Kept(kind) => {
                self.judge(ty, def, &marks, &kind, Within::Value);
                field.kind = kind;
                return field;
            }
            Shape::Record(_) | Shape::Records(_) => Why::HoldsRecords,
            Shape::Not(why) => why,
        };
        unstored_fields::warn(self.log, ty, def, why);
        field
    }

    fn base(&self, def: &FieldDefinition, marks: &Marks<'_>) -> Field {
        Field {
            name: def.name.to_string(),
            input_name: def.name.to_string(),
            column: String::new(),
            kind: Kind::Unstored,
            required: def.ty.is_non_null(),
            unique: false,
            rules: marks.rules.clone(),
            default: None,
            filled_by: FilledBy::Client,
            description: def.description.as_ref().map(|text| text.to_string()),
            renamed_from: marks.renamed_from.clone(),
            arguments: arguments(self.schema, &def.arguments),
        }
    }

    fn shape(&mut self, ty: &'a Type) -> Shape {
        match ty {
            Type::Named(name) | Type::NonNullNamed(name) => self.named(name),
            Type::List(item) | Type::NonNullList(item) => match self.shape(item) {
                Shape::Kept(kind) => {
                    Shape::Kept(Kind::List(Box::new(Item { kind, required: item.is_non_null() })))
                }
                Shape::Record(target) => Shape::Records(target),
                Shape::Records(_) => Shape::Not(Why::ListOfLists),
                Shape::Not(why) => Shape::Not(why),
            },
        }
    }

    fn named(&mut self, name: &'a str) -> Shape {
        if let Some(id) = self.ids.get(name) {
            return Shape::Record(*id);
        }
        match self.schema.types.get(name) {
            Some(ExtendedType::Scalar(_)) => match Scalar::named(name) {
                Some(scalar) => Shape::Kept(Kind::Scalar(scalar)),
                None => Shape::Not(Why::Scalar),
            },
            Some(ExtendedType::Enum(_)) => Shape::Kept(Kind::Enum(name.to_owned())),
            Some(ExtendedType::Object(_)) if self.roots.contains(name) => Shape::Not(Why::Root),
            Some(ExtendedType::Object(object)) if is_connection(object) => Shape::Not(Why::Connection),
            Some(ExtendedType::Object(object)) if self.holds_records(object) => Shape::Not(Why::HoldsRecords),
            Some(ExtendedType::Object(_)) => {
                self.waiting.push(name);
                Shape::Kept(Kind::Embedded(name.to_owned()))
            }
            Some(ExtendedType::Interface(_)) => Shape::Not(Why::Interface),
            Some(ExtendedType::Union(_)) => Shape::Not(Why::Union),
            // GraphQL itself complains.
            Some(ExtendedType::InputObject(_)) | None => Shape::Not(Why::Mistake),
        }
    }

    fn holds_records(&self, ty: &ObjectType) -> bool {
        ty.fields.values().any(|field| self.ids.contains_key(field.ty.inner_named_type().as_str()))
    }

    /// Complains about directives that do not fit the field they stand on.
    fn judge(
        &mut self,
        ty: &ObjectType,
        def: &FieldDefinition,
        marks: &Marks<'_>,
        kind: &Kind,
        within: Within,
    ) {
        for directive in &marks.all {
            let name = directive.name.as_str();
            let place = format!("`{}.{}`", ty.name, def.name);
            let inside = within == Within::Value
                && matches!(
                    name,
                    "unique" | "reference" | "renamedFrom" | "createdAt" | "updatedAt" | "version"
                );
            let (message, help) = if inside {
                (
                    format!("`@{name}` means nothing on {place}, a value inside its owner"),
                    "remove it".to_owned(),
                )
            } else if name == "reference" && !matches!(kind, Kind::Reference { .. }) {
                let records = self.ids.keys().copied();
                let help = did_you_mean(def.ty.inner_named_type(), records, || "remove it".into());
                (format!("`@reference` stands on {place}, which refers to no record"), help)
            } else if *kind == Kind::Id && !matches!(name, "unique" | "renamedFrom") {
                (format!("`@{name}` means nothing on {place}: the store gives ids"), "remove it".to_owned())
            } else if let Some(wanted) = misfit(name, kind) {
                (format!("`@{name}` is for {wanted}; {place} is `{}`", def.ty), fitting(name, kind))
            } else {
                continue;
            };
            self.log
                .error(directive.location(), "DIRECTIVE_PLACE", message)
                .label(format!("does not fit `{}`", def.ty))
                .help(help);
        }
    }

    /// Lists of records take `@reference(inverse:)` and, as sides of a link, `@renamedFrom`.
    fn list_marks(&mut self, ty: &ObjectType, def: &FieldDefinition, marks: &Marks<'_>) {
        for directive in marks
            .all
            .iter()
            .filter(|directive| !matches!(directive.name.as_str(), "reference" | "renamedFrom"))
        {
            let message = format!(
                "`@{}` means nothing on `{}.{}`, a list of records",
                directive.name, ty.name, def.name
            );
            self.log
                .error(directive.location(), "DIRECTIVE_PLACE", message)
                .label("keeps no value")
                .help("remove it");
        }
        if let Some(reference) = marks.reference.as_ref().filter(|reference| reference.on_delete.is_some()) {
            let target = def.ty.inner_named_type();
            let message =
                format!("`onDelete` belongs on the reference, not on the list `{}.{}`", ty.name, def.name);
            self.log
                .error(reference.directive.location(), "REFERENCE", message)
                .label("a list refers to nothing itself")
                .help(format!("move it to the field of `{target}` that refers to `{}`", ty.name));
        }
    }

    fn on_delete(&mut self, ty: &ObjectType, def: &FieldDefinition, marks: &Marks<'_>) -> OnDelete {
        let Some(reference) = &marks.reference else { return OnDelete::Refuse };
        let on_delete = reference.on_delete.unwrap_or(OnDelete::Refuse);
        if on_delete == OnDelete::SetNull && def.ty.is_non_null() {
            let message = format!("`{}.{}` is required and cannot become null", ty.name, def.name);
            self.log
                .error(reference.directive.location(), "REFERENCE", message)
                .label("SET_NULL needs a nullable field")
                .help(format!("write `{}: {}`, or `onDelete: CASCADE`", def.name, def.ty.inner_named_type()));
        }
        on_delete
    }

    fn filled_by(&mut self, ty: &ObjectType, def: &FieldDefinition, marks: &Marks<'_>) -> FilledBy {
        let Some(first) = marks.filled.first() else { return FilledBy::Client };
        let second = marks.filled.get(1).copied();
        let default = marks.all.iter().copied().find(|directive| directive.name == "default");
        if let Some(other) = second.or(default) {
            let message = format!("`{}.{}` is filled by `@{}` already", ty.name, def.name, first.name);
            self.log
                .error(other.location(), "DIRECTIVE_PLACE", message)
                .label("one too many")
                .help("remove one");
        }
        match first.name.as_str() {
            "createdAt" => FilledBy::Creation,
            "updatedAt" => FilledBy::Update,
            _ => FilledBy::Version,
        }
    }
}

/// Relay's shape: only list operations can answer with it.
fn is_connection(ty: &ObjectType) -> bool {
    ty.fields.contains_key("edges") && ty.fields.contains_key("pageInfo")
}

/// What to write instead of a directive that does not fit.
fn fitting(directive: &str, kind: &Kind) -> String {
    let text = matches!(kind, Kind::Scalar(Scalar::String | Scalar::Id | Scalar::Url | Scalar::Email));
    match directive {
        "range" if text => "use `@length` for text".into(),
        "length" if misfit("range", kind).is_none() => "use `@range` for numbers".into(),
        "createdAt" | "updatedAt" => "declare `scalar DateTime` and make the field a `DateTime`".into(),
        "version" => "make the field an `Int`".into(),
        _ => "remove it".into(),
    }
}
