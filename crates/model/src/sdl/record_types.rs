//! Turns object types into record types and embedded types, field by field; lists of records are resolved later.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;

use apollo_compiler::Schema;
use apollo_compiler::ast::{FieldDefinition, Type};
use apollo_compiler::schema::{ExtendedType, ObjectType};
use indexmap::IndexMap;

use crate::aggregate_wrapper::summarises_list;
use crate::change_wrapper::changed_type;
use crate::list_wrapper::{is_page_with_id, related_record};
use crate::naming::names;
use crate::sdl::diagnostic_log::{DiagnosticLog, is_user_written};
use crate::sdl::directives::{
    ACCESS_DIRECTIVES, DirectiveReader, FieldDirectives, is_builtin_directive, outside_records,
};
use crate::sdl::record_keys::{DeclaredKey, declared_keys, hidden_key, is_embedded};
use crate::sdl::root_fields::{read_arguments, root_type_names};
use crate::sdl::unstored_fields::{self, UnstoredReason};
use crate::{
    EmbeddedType, EnumType, Field, FieldId, FieldKind, KeyForm, ListItem, OnDelete, RecordDisplay,
    RecordTitle, RecordType, RecordTypeId, Reference, Relation, Scalar, ValueSource, ValueType,
};

/// The part of the model that has been read so far.
pub(crate) struct PartialModel {
    pub records: Vec<RecordType>,
    pub enums: IndexMap<String, EnumType>,
    pub embedded: IndexMap<String, EmbeddedType>,
    pub lists: Vec<RecordListField>,
    /// `@reference(inverse:)` on references: owner, field and the named list.
    pub named_inverses: Vec<(RecordTypeId, FieldId, String)>,
}

/// A list of records: an inverse or a link, decided when all references are known.
pub(crate) struct RecordListField {
    pub owner: RecordTypeId,
    pub field: FieldId,
    pub target: RecordTypeId,
    pub inverse: Option<String>,
    /// The records are in a connection or a page.
    pub is_wrapped: bool,
}

/// The kind of field that its type alone implies.
enum TypeShape {
    /// `Key` is the record's own id.
    Value(ValueType),
    Record(RecordTypeId),
    RecordList(RecordTypeId),
    Unstored(UnstoredReason),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldOwner {
    Record,
    EmbeddedValue,
}

/// Reads the object types of a schema as record types and embedded types.
pub(crate) struct RecordTypeReader<'a> {
    schema: &'a Schema,
    roots: HashSet<&'a str>,
    pub(crate) record_ids: HashMap<&'a str, RecordTypeId>,
    keys: HashMap<&'a str, DeclaredKey<'a>>,
    pub(crate) redeclared: &'a HashSet<String>,
    pub(crate) log: &'a mut DiagnosticLog,
    partial_model: PartialModel,
    /// Embedded types found in fields and not read yet.
    pending_embedded: Vec<&'a str>,
    /// Scalars found in fields whose values we cannot check.
    unknown_scalars: BTreeSet<&'a str>,
}

pub(crate) fn read_record_types(
    schema: &Schema,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
) -> PartialModel {
    let roots = root_type_names(schema);
    let types: Vec<&ObjectType> =
        user_object_types(schema).filter(|ty| !roots.contains(ty.name.as_str())).collect();
    let keys = declared_keys(schema, &types, redeclared);
    let records: Vec<&ObjectType> =
        types.iter().copied().filter(|ty| keys.contains_key(ty.name.as_str())).collect();
    let record_ids = records.iter().enumerate().map(|(i, ty)| (ty.name.as_str(), RecordTypeId(i))).collect();
    let partial_model = PartialModel {
        records: Vec::new(),
        enums: read_enums(schema),
        embedded: IndexMap::new(),
        lists: Vec::new(),
        named_inverses: Vec::new(),
    };
    let mut reader = RecordTypeReader {
        schema,
        roots,
        record_ids,
        keys,
        redeclared,
        log,
        partial_model,
        pending_embedded: Vec::new(),
        unknown_scalars: BTreeSet::new(),
    };
    for ty in records {
        reader.read_record_type(ty);
    }
    reader.read_embedded_types();
    outside_records::report_outside_records(schema, &reader.roots, redeclared, reader.log);
    unstored_fields::warn_unknown_scalars(reader.log, schema, &reader.unknown_scalars);
    for ty in types {
        if reader.record_ids.contains_key(ty.name.as_str()) {
            continue;
        }
        let is_wrapper = changed_type(schema, ty).is_some() || is_page_with_id(schema, ty);
        if !is_embedded(ty, redeclared) && !is_wrapper {
            reader.warn_almost_record(ty);
        }
        reader.report_misplaced_directives(ty);
    }
    reader.partial_model
}

fn user_object_types(schema: &Schema) -> impl Iterator<Item = &ObjectType> {
    let objects = schema.types.values().filter_map(|ty| ty.as_object());
    objects.filter(|object| is_user_written(object.name.location(), None))
}

fn read_enums(schema: &Schema) -> IndexMap<String, EnumType> {
    let types = schema.types.values().filter(|ty| !ty.is_built_in());
    types
        .filter_map(|ty| ty.as_enum())
        .map(|ty| {
            let values = ty.values.keys().map(|name| name.to_string()).collect();
            let description = ty.description.as_ref().map(|text| text.to_string());
            let name = ty.name.to_string();
            (name.clone(), EnumType { name, values, displays: Vec::new(), description })
        })
        .collect()
}

impl<'a> RecordTypeReader<'a> {
    /// Warns about types with an `id` of another type, which look like record types but are not.
    fn warn_almost_record(&mut self, ty: &ObjectType) {
        let Some(id) = ty.fields.get("id").filter(|id| !id.ty.is_list()) else { return };
        self.log
            .warning(
                id.name.location(),
                "NOT_A_RECORD",
                format!("`{}` is not a record type: its `id` is `{}`", ty.name, id.ty),
            )
            .label("so it is stored as an embedded value")
            .help("write `id: ID!` to make it a record type");
    }

    /// Reports directives for records on a type that is not one. On its fields those that restrict no access are harmless,
    /// so these are warnings.
    fn report_misplaced_directives(&mut self, ty: &ObjectType) {
        let message =
            |name: &str| format!("`@{name}` has no effect here: `{}` is not a record type", ty.name);
        let help = format!("add `id: ID!` to `{}` to make it a record type", ty.name);
        for directive in ty.directives.iter().filter(|directive| {
            directive.name != "embedded" && is_builtin_directive(self.redeclared, directive)
        }) {
            let diagnostic =
                self.log.error(directive.location(), "DIRECTIVE_PLACE", message(&directive.name));
            diagnostic.label("not on a record type").help(&help);
        }
        let is_embedded = self.partial_model.embedded.contains_key(ty.name.as_str());
        let on_fields = ty.fields.values().flat_map(|field| field.directives.iter());
        for directive in on_fields.filter(|directive| {
            directive.name != "resolver" && is_builtin_directive(self.redeclared, directive)
        }) {
            let (place, message) = (directive.location(), message(&directive.name));
            let diagnostic = match ACCESS_DIRECTIVES.contains(&directive.name.as_str()) {
                true => self.log.error(place, "DIRECTIVE_PLACE", message),
                // Reported where the field was read.
                false if is_embedded => continue,
                false => self.log.warning(place, "DIRECTIVE_PLACE", message),
            };
            diagnostic.label("not on a record type").help(&help);
        }
    }

    fn read_record_type(&mut self, ty: &'a ObjectType) {
        let id = RecordTypeId(self.partial_model.records.len());
        let mut reader = DirectiveReader { log: self.log, redeclared: self.redeclared };
        let mut path = None;
        let mut renamed_from = None;
        for directive in
            ty.directives.iter().filter(|directive| is_builtin_directive(self.redeclared, directive))
        {
            reader.report_unknown_arguments(directive);
            match directive.name.as_str() {
                "resource" => path = reader.text_argument(directive, "path").map(str::to_owned),
                "renamedFrom" => renamed_from = reader.text_argument(directive, "name").map(str::to_owned),
                _ => {}
            }
        }
        let fields = ty.fields.values().enumerate();
        let mut fields: Vec<Field> =
            fields.map(|(i, def)| self.read_field(ty, def, id, FieldId(i))).collect();
        let key = self.keys[ty.name.as_str()];
        let key_position = key.field.and_then(|name| ty.fields.get_index_of(name));
        let key_position = key_position.unwrap_or_else(|| {
            fields.push(hidden_key(key.form));
            fields.len() - 1
        });
        self.partial_model.records.push(RecordType {
            name: ty.name.to_string(),
            path: path.unwrap_or_else(|| names::collection_path(&ty.name)),
            table: names::table_name(&ty.name),
            description: ty.description.as_ref().map(|text| text.to_string()),
            fields,
            title: RecordTitle::default(),
            display: RecordDisplay::default(),
            key: FieldId(key_position),
            key_form: key.form,
            is_key_hidden: key.field.is_none(),
            key_source: key.source,
            has_global_ids: false,
            indexes: Vec::new(),
            renamed_from,
        });
    }

    /// Reads embedded types until none is left; they may contain each other.
    fn read_embedded_types(&mut self) {
        while let Some(name) = self.pending_embedded.pop() {
            let Some(ty) =
                self.schema.get_object(name).filter(|_| !self.partial_model.embedded.contains_key(name))
            else {
                continue;
            };
            // Inserted before its fields are read, so that a type may contain itself.
            self.partial_model
                .embedded
                .insert(name.to_owned(), EmbeddedType { name: name.to_owned(), fields: Vec::new() });
            let fields = ty.fields.values().map(|def| self.read_embedded_field(ty, def)).collect();
            self.partial_model
                .embedded
                .insert(name.to_owned(), EmbeddedType { name: name.to_owned(), fields });
        }
    }

    fn read_field(
        &mut self,
        ty: &'a ObjectType,
        def: &'a FieldDefinition,
        owner: RecordTypeId,
        id: FieldId,
    ) -> Field {
        let directives =
            DirectiveReader { log: self.log, redeclared: self.redeclared }.read_field(&def.directives);
        let key = self.keys[ty.name.as_str()];
        let is_key = key.field.is_some_and(|name| def.name == name);
        let mut shape =
            if is_key { TypeShape::Value(ValueType::Key(key.form)) } else { self.type_shape(&def.ty) };
        if is_key {
            // `@resolver` on it is reported below.
        } else if directives.resolver.is_some() {
            shape = TypeShape::Unstored(UnstoredReason::HasResolver);
        } else if self.summarises_list(ty, def) {
            shape = TypeShape::Unstored(UnstoredReason::IsSummary);
        } else if !def.arguments.is_empty() && matches!(shape, TypeShape::Value(_) | TypeShape::Record(_)) {
            shape = TypeShape::Unstored(UnstoredReason::HasArguments);
        }
        let mut field = self.base_field(def, &directives);
        match shape {
            TypeShape::Value(ValueType::Key(form)) => {
                field.column = names::KEY_COLUMN.into();
                field.kind = FieldKind::Id(form);
                field.required = true;
            }
            TypeShape::Value(value_type) => {
                field.column = names::column_name(&def.name);
                field.kind = FieldKind::Value(value_type);
            }
            TypeShape::Record(target) => {
                field.column = names::reference_column(&def.name);
                field.input_name = names::reference_column(&def.name);
                let on_delete = self.reference_on_delete(ty, def, &directives);
                let key_form = self.key_form(target);
                field.kind =
                    FieldKind::Relation(Relation::Reference(Reference { target, key_form, on_delete }));
                if let Some((inverse, _)) =
                    directives.reference.as_ref().and_then(|reference| reference.inverse)
                {
                    self.partial_model.named_inverses.push((owner, id, inverse.to_owned()));
                }
            }
            TypeShape::RecordList(target) => {
                let inverse = directives.reference.as_ref().and_then(|reference| reference.inverse);
                let inverse = inverse.map(|(name, _)| name.to_owned());
                self.check_list_directives(ty, def, &directives);
                let is_wrapped = !def.ty.is_list();
                self.partial_model.lists.push(RecordListField {
                    owner,
                    field: id,
                    target,
                    inverse,
                    is_wrapped,
                });
                return field;
            }
            TypeShape::Unstored(reason) => {
                unstored_fields::warn_unstored(self.log, ty, def, reason);
                return field;
            }
        }
        self.check_directives(ty, def, &directives, &field.kind, FieldOwner::Record);
        // An id is always unique.
        field.unique = directives.unique && !field.kind.is_id();
        field.ignores_case = field.unique && directives.ignores_case.is_some();
        if let Some(directive) = directives.ignores_case.filter(|_| !field.kind.is_text()) {
            self.log
                .error(directive.location(), "DIRECTIVE_ARGUMENT", "`ignoreCase` is for text")
                .label("the field is no text")
                .help("remove the argument");
        }
        field.search_weight = self.search_weight(ty, &directives, &field.kind, key.form);
        field.value_source = self.value_source(ty, def, &directives);
        if field.value_source == ValueSource::RecordVersion {
            field.column = names::VERSION_COLUMN.into();
        }
        field
    }

    fn summarises_list(&self, ty: &ObjectType, def: &FieldDefinition) -> bool {
        summarises_list(self.schema, ty, def, |name| self.record_ids.contains_key(name))
    }

    fn key_form(&self, record: RecordTypeId) -> KeyForm {
        let name = self.record_ids.iter().find(|(_, id)| **id == record).map(|(name, _)| *name);
        name.map_or(KeyForm::Digits, |name| self.keys[name].form)
    }

    fn read_embedded_field(&mut self, ty: &'a ObjectType, def: &'a FieldDefinition) -> Field {
        let directives =
            DirectiveReader { log: self.log, redeclared: self.redeclared }.read_field(&def.directives);
        let mut field = self.base_field(def, &directives);
        let reason = match self.type_shape(&def.ty) {
            _ if directives.resolver.is_some() => UnstoredReason::HasResolver,
            TypeShape::Value(_) if !def.arguments.is_empty() => UnstoredReason::HasArguments,
            TypeShape::Value(value_type) => {
                field.kind = FieldKind::Value(value_type);
                self.check_directives(ty, def, &directives, &field.kind, FieldOwner::EmbeddedValue);
                return field;
            }
            TypeShape::Record(_) | TypeShape::RecordList(_) => UnstoredReason::HoldsRecords,
            TypeShape::Unstored(reason) => reason,
        };
        unstored_fields::warn_unstored(self.log, ty, def, reason);
        field
    }

    fn base_field(&self, def: &FieldDefinition, directives: &FieldDirectives<'_>) -> Field {
        Field {
            name: def.name.to_string(),
            input_name: def.name.to_string(),
            column: String::new(),
            kind: FieldKind::Unstored,
            required: def.ty.is_non_null(),
            unique: false,
            unique_within: None,
            ignores_case: false,
            search_weight: None,
            display: directives.display.clone(),
            rules: directives.rules.clone(),
            messages: directives.messages.clone(),
            default: None,
            default_from: None,
            value_source: ValueSource::Client,
            description: def.description.as_ref().map(|text| text.to_string()),
            renamed_from: directives.renamed_from.clone(),
            arguments: read_arguments(self.schema, &def.arguments),
            may_be_hidden: false,
            name_words: OnceLock::new(),
        }
    }

    fn type_shape(&mut self, ty: &'a Type) -> TypeShape {
        match ty {
            Type::Named(name) | Type::NonNullNamed(name) => self.named_type_shape(name),
            Type::List(item) | Type::NonNullList(item) => match self.type_shape(item) {
                TypeShape::Value(value_type) => TypeShape::Value(ValueType::List(Box::new(ListItem {
                    value_type,
                    required: item.is_non_null(),
                }))),
                TypeShape::Record(target) => TypeShape::RecordList(target),
                TypeShape::RecordList(_) => TypeShape::Unstored(UnstoredReason::ListOfLists),
                TypeShape::Unstored(reason) => TypeShape::Unstored(reason),
            },
        }
    }

    fn named_type_shape(&mut self, name: &'a str) -> TypeShape {
        if let Some(id) = self.record_ids.get(name) {
            return TypeShape::Record(*id);
        }
        match self.schema.types.get(name) {
            Some(ExtendedType::Scalar(_)) => {
                let scalar = Scalar::from_name(name).unwrap_or_else(|| {
                    self.unknown_scalars.insert(name);
                    Scalar::Json
                });
                TypeShape::Value(ValueType::Scalar(scalar))
            }
            Some(ExtendedType::Enum(_)) => TypeShape::Value(ValueType::Enum(name.to_owned())),
            Some(ExtendedType::Object(object)) => self.object_shape(object),
            Some(ExtendedType::Interface(_)) => TypeShape::Unstored(UnstoredReason::Interface),
            Some(ExtendedType::Union(_)) => TypeShape::Unstored(UnstoredReason::Union),
            // Reported by GraphQL validation.
            Some(ExtendedType::InputObject(_)) | None => TypeShape::Unstored(UnstoredReason::AlreadyReported),
        }
    }

    /// The shape of a field whose type is an object type that is no record type.
    fn object_shape(&mut self, ty: &'a ObjectType) -> TypeShape {
        if self.roots.contains(ty.name.as_str()) {
            return TypeShape::Unstored(UnstoredReason::RootType);
        }
        let wrapped = related_record(self.schema, ty, |name| self.record_ids.contains_key(name));
        if let Some(target) = wrapped.and_then(|name| self.record_ids.get(name)) {
            return TypeShape::RecordList(*target);
        }
        if ty.fields.contains_key("edges") && ty.fields.contains_key("pageInfo") {
            return TypeShape::Unstored(UnstoredReason::Connection);
        }
        if self.holds_records(ty) {
            return TypeShape::Unstored(UnstoredReason::HoldsRecords);
        }
        self.pending_embedded.push(&ty.name);
        TypeShape::Value(ValueType::Embedded(ty.name.to_string()))
    }

    fn holds_records(&self, ty: &ObjectType) -> bool {
        ty.fields.values().any(|field| self.record_ids.contains_key(field.ty.inner_named_type().as_str()))
    }

    fn reference_on_delete(
        &mut self,
        ty: &ObjectType,
        def: &FieldDefinition,
        directives: &FieldDirectives<'_>,
    ) -> OnDelete {
        let Some(reference) = &directives.reference else { return OnDelete::Refuse };
        let on_delete = reference.on_delete.unwrap_or(OnDelete::Refuse);
        if on_delete == OnDelete::SetNull && def.ty.is_non_null() {
            let message = format!("`{}.{}` is required and cannot be set to null", ty.name, def.name);
            self.log
                .error(reference.directive.location(), "REFERENCE", message)
                .label("SET_NULL needs a nullable field")
                .help(format!("write `{}: {}` or `onDelete: CASCADE`", def.name, def.ty.inner_named_type()));
        }
        on_delete
    }

    fn value_source(
        &mut self,
        ty: &ObjectType,
        def: &FieldDefinition,
        directives: &FieldDirectives<'_>,
    ) -> ValueSource {
        let Some(first) = directives.value_sources.first() else { return ValueSource::Client };
        let second = directives.value_sources.get(1).copied();
        let default = directives.directives.iter().copied().find(|directive| directive.name == "default");
        if let Some(other) = second.or(default) {
            let message = format!("`{}.{}` is already set by `@{}`", ty.name, def.name, first.name);
            self.log
                .error(other.location(), "DIRECTIVE_PLACE", message)
                .label("conflicting directive")
                .help("remove one of them");
        }
        match first.name.as_str() {
            "createdAt" => ValueSource::CreationTime,
            "updatedAt" => ValueSource::UpdateTime,
            "createdBy" => ValueSource::CreatingAccount,
            "updatedBy" => ValueSource::UpdatingAccount,
            _ => ValueSource::RecordVersion,
        }
    }
}
