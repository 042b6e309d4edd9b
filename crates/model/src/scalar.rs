//! The scalars, with the properties by which other code tells them apart in one table.

/// A type of single values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    String,
    Int,
    Float,
    Boolean,
    Id,
    Long,
    Decimal,
    Date,
    DateTime,
    /// What clocks show, without a zone. Columns hold it like a time in UTC.
    LocalDateTime,
    Uuid,
    Url,
    Email,
    Json,
}

/// The scalars that filters, rules and pages treat alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarGroup {
    /// Free text, which can be searched.
    Text,
    Number,
    Boolean,
    Time,
    Uuid,
    Json,
}

/// The variant of [`crate::StoredValue`] that holds the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageClass {
    Integer,
    Real,
    Text,
}

/// The form of the values in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonForm {
    Text,
    Number,
    Boolean,
    Any,
}

impl Scalar {
    pub const ALL: [Scalar; 14] = [
        Scalar::String,
        Scalar::Int,
        Scalar::Float,
        Scalar::Boolean,
        Scalar::Id,
        Scalar::Long,
        Scalar::Decimal,
        Scalar::Date,
        Scalar::DateTime,
        Scalar::LocalDateTime,
        Scalar::Uuid,
        Scalar::Url,
        Scalar::Email,
        Scalar::Json,
    ];

    const fn properties(self) -> (&'static str, ScalarGroup, StorageClass, JsonForm) {
        match self {
            Scalar::String => ("String", ScalarGroup::Text, StorageClass::Text, JsonForm::Text),
            Scalar::Int => ("Int", ScalarGroup::Number, StorageClass::Integer, JsonForm::Number),
            Scalar::Float => ("Float", ScalarGroup::Number, StorageClass::Real, JsonForm::Number),
            Scalar::Boolean => ("Boolean", ScalarGroup::Boolean, StorageClass::Integer, JsonForm::Boolean),
            Scalar::Id => ("ID", ScalarGroup::Text, StorageClass::Text, JsonForm::Text),
            Scalar::Long => ("Long", ScalarGroup::Number, StorageClass::Integer, JsonForm::Text),
            Scalar::Decimal => ("Decimal", ScalarGroup::Number, StorageClass::Text, JsonForm::Text),
            Scalar::Date => ("Date", ScalarGroup::Time, StorageClass::Text, JsonForm::Text),
            Scalar::DateTime => ("DateTime", ScalarGroup::Time, StorageClass::Text, JsonForm::Text),
            Scalar::LocalDateTime => ("LocalDateTime", ScalarGroup::Time, StorageClass::Text, JsonForm::Text),
            Scalar::Uuid => ("UUID", ScalarGroup::Uuid, StorageClass::Text, JsonForm::Text),
            Scalar::Url => ("URL", ScalarGroup::Text, StorageClass::Text, JsonForm::Text),
            Scalar::Email => ("Email", ScalarGroup::Text, StorageClass::Text, JsonForm::Text),
            Scalar::Json => ("JSON", ScalarGroup::Json, StorageClass::Text, JsonForm::Any),
        }
    }

    /// The scalar of this name in a schema, also by the names that other servers use.
    pub fn from_name(name: &str) -> Option<Scalar> {
        let own = Scalar::ALL.into_iter().find(|scalar| scalar.name() == name);
        own.or_else(|| Scalar::from_alias(name))
    }

    fn from_alias(name: &str) -> Option<Scalar> {
        match name.to_ascii_lowercase().as_str() {
            "nonemptystring" | "char" => Some(Scalar::String),
            "short" | "byte" | "positiveint" | "nonnegativeint" => Some(Scalar::Int),
            "double" | "positivefloat" | "nonnegativefloat" => Some(Scalar::Float),
            "long" | "bigint" | "int64" | "biginteger" | "awstimestamp" => Some(Scalar::Long),
            "decimal" | "bigdecimal" | "numeric" => Some(Scalar::Decimal),
            "date" | "localdate" | "isodate" | "graphqldate" | "awsdate" => Some(Scalar::Date),
            "datetime" | "time" | "instant" | "offsetdatetime" | "zoneddatetime" | "timestamp"
            | "timestamptz" | "isodatetime" | "datetimeiso" | "iso8601datetime" | "graphqldatetime"
            | "awsdatetime" => Some(Scalar::DateTime),
            "localdatetime" | "naivedatetime" | "plaindatetime" => Some(Scalar::LocalDateTime),
            "uuid" | "guid" => Some(Scalar::Uuid),
            "url" | "uri" | "awsurl" => Some(Scalar::Url),
            "email" | "emailaddress" | "awsemail" => Some(Scalar::Email),
            "json" | "jsonobject" | "jsonb" | "object" | "map" | "any" | "awsjson" => Some(Scalar::Json),
            _ => None,
        }
    }

    /// True if GraphQL answers the number as text, because clients would lose digits of it.
    pub fn is_number_as_text(self) -> bool {
        self.group() == ScalarGroup::Number && self.json_form() == JsonForm::Text
    }

    /// True for a date with a time of the day.
    pub fn has_clock(self) -> bool {
        matches!(self, Scalar::DateTime | Scalar::LocalDateTime)
    }

    /// The scalar as which columns hold the values.
    pub const fn column_scalar(self) -> Scalar {
        match self {
            Scalar::LocalDateTime => Scalar::DateTime,
            Scalar::String
            | Scalar::Int
            | Scalar::Float
            | Scalar::Boolean
            | Scalar::Id
            | Scalar::Long
            | Scalar::Decimal
            | Scalar::Date
            | Scalar::DateTime
            | Scalar::Uuid
            | Scalar::Url
            | Scalar::Email
            | Scalar::Json => self,
        }
    }

    pub const fn name(self) -> &'static str {
        self.properties().0
    }

    pub const fn group(self) -> ScalarGroup {
        self.properties().1
    }

    pub const fn storage_class(self) -> StorageClass {
        self.properties().2
    }

    pub const fn json_form(self) -> JsonForm {
        self.properties().3
    }
}
