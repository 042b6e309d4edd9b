//! The only place where a name in the schema becomes a table, column, path, label or operation name.

use heck::{ToKebabCase, ToLowerCamelCase, ToSnakeCase, ToUpperCamelCase};

use crate::naming::inflection::{plural, singular};
pub use crate::naming::nearest_name::{differ_by_one_edit, is_misspelling, name_suggestion, nearest_name};

/// Path of a type's collection: `order-lines` for `OrderLine`.
pub fn collection_path(type_name: &str) -> String {
    plural(&type_name.to_kebab_case())
}

/// Table of a type: `order_lines` for `OrderLine`, whatever its path.
pub fn table_name(type_name: &str) -> String {
    plural(&type_name.to_snake_case())
}

/// Column of a field that is not a reference. `_version` is taken by the record's version, and a few names by
/// PostgreSQL.
pub fn column_name(field_name: &str) -> String {
    if field_name.eq_ignore_ascii_case(VERSION_COLUMN) {
        return format!("{VERSION_COLUMN}_");
    }
    let is_taken = SYSTEM_COLUMNS.contains(&field_name) || field_name.eq_ignore_ascii_case(KEY_COLUMN);
    if is_taken { format!("{field_name}_") } else { field_name.into() }
}

/// Path segment of a list field: `order-lines` for `orderLines`.
pub fn path_segment(field_name: &str) -> String {
    field_name.to_kebab_case()
}

/// The key column of every record table, whatever the key is called in the schema.
pub const KEY_COLUMN: &str = "id";

/// The version column of every record table.
pub const VERSION_COLUMN: &str = "_version";

/// The name of a column with the key of the record that a reference leads to, or that a list belongs to, in what an
/// actor sees. No column of a table is called so.
pub fn key_column(name: &str) -> String {
    format!("{name}:key")
}

/// System columns that every PostgreSQL table has.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];

/// Column of a reference, also its name in bodies and forms: `userId` for `user`.
pub fn reference_column(field_name: &str) -> String {
    format!("{field_name}Id")
}

/// True if `name` means the key of a type: `bookId` and `book_id` for `Book`.
pub fn is_key_name(type_name: &str, name: &str) -> bool {
    name.to_snake_case() == format!("{}_id", type_name.to_snake_case())
}

/// True for `approvedBy` and `updatedBy`: who did that is not the user whom `userId` means. `createdBy` may be.
pub fn names_later_deed(field_name: &str) -> bool {
    let words = field_name.to_snake_case();
    let deed = words.strip_suffix("_id").unwrap_or(&words).strip_suffix("_by");
    deed.is_some_and(|deed| !CREATION_WORDS.contains(&deed))
}

/// What those did whose record it is.
const CREATION_WORDS: [&str; 12] = [
    "added",
    "authored",
    "booked",
    "created",
    "liked",
    "made",
    "ordered",
    "owned",
    "posted",
    "submitted",
    "uploaded",
    "written",
];

/// The words of a name in lower case, joined by `_`.
pub fn snake_words(name: &str) -> String {
    name.to_snake_case()
}

/// Name of a link in bodies and forms: `courseIds` for `courses`.
pub fn link_input_name(field_name: &str) -> String {
    format!("{}Ids", singular_camel(field_name))
}

/// Link table of two lists of each other, named after the first: `students_courses`.
pub fn link_table(first_table: &str, first_field: &str) -> String {
    format!("{first_table}_{}", first_field.to_snake_case())
}

/// The two columns of a link table, each named after the record it points to; a side is a type and its list field.
/// For a type linked to itself the field names tell the columns apart: `userId` and `friendId`.
pub fn link_columns(first: (&str, &str), second: (&str, &str)) -> (String, String) {
    let by_type = |name: &str| reference_column(&name.to_lower_camel_case());
    let by_field = |name: &str| reference_column(&singular_camel(name));
    let (to_first, to_second) = if first.0 != second.0 {
        (by_type(first.0), by_type(second.0))
    } else if first.1 != second.1 {
        (by_field(second.1), by_field(first.1))
    } else {
        (by_type(first.0), by_field(first.1))
    };
    if to_first.eq_ignore_ascii_case(&to_second) {
        let other = format!("other{}", to_second.to_upper_camel_case());
        return (to_first, other);
    }
    (to_first, to_second)
}

/// Label of a name: `Order line` for `orderLine`.
pub fn display_label(name: &str) -> String {
    let words = name.to_snake_case().replace('_', " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => name.to_owned(),
    }
}

/// Names of the operations on a type; of two names the first is the longer style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationNames {
    /// `getAllUsers`, `users`
    pub list: [String; 2],
    /// `getUserById`, `user`; for uncountable nouns the second equals the list's.
    pub get: [String; 2],
    /// `booksConnection`
    pub connection: String,
    /// `booksAggregate`
    pub aggregate: String,
    pub create: String,
    /// `createBooks`
    pub create_many: String,
    pub update: String,
    pub update_many: String,
    pub upsert: String,
    pub delete: String,
    pub delete_many: String,
    pub created: String,
    pub updated: String,
    pub deleted: String,
    /// `bookChanged`
    pub changed: String,
}

pub fn operation_names(type_name: &str) -> OperationNames {
    let lower = type_name.to_lower_camel_case();
    let plural = plural_camel(type_name);
    let many = if plural == type_name { format!("{type_name}List") } else { plural };
    OperationNames {
        list: [format!("getAll{}", plural_camel(type_name)), plural_camel(&lower)],
        get: [format!("get{type_name}ById"), lower.clone()],
        connection: format!("{}Connection", plural_camel(&lower)),
        aggregate: format!("{}Aggregate", plural_camel(&lower)),
        create: format!("create{type_name}"),
        create_many: format!("create{many}"),
        update: format!("update{type_name}"),
        update_many: format!("update{many}"),
        upsert: format!("upsert{type_name}"),
        delete: format!("delete{type_name}"),
        delete_many: format!("delete{many}"),
        created: format!("{lower}Created"),
        updated: format!("{lower}Updated"),
        deleted: format!("{lower}Deleted"),
        changed: format!("{lower}Changed"),
    }
}

impl OperationNames {
    /// The list under a name that no other operation has: `newsList` where `news` gets one.
    pub fn distinct_list(&self) -> String {
        let ([_, list], [_, get]) = (&self.list, &self.get);
        if list == get { format!("{list}List") } else { list.clone() }
    }
}

/// The operation that gets a record by a unique field: `bookByIsbn`.
pub fn unique_get_name(type_name: &str, field_name: &str) -> String {
    format!("{}By{}", type_name.to_lower_camel_case(), field_name.to_upper_camel_case())
}

/// The plural of a camel-case name, capitals preserved: `APIs`, `OAuthTokens`, `People`.
fn plural_camel(name: &str) -> String {
    inflect_last_word(name, plural)
}

fn singular_camel(name: &str) -> String {
    inflect_last_word(name, singular)
}

/// Inflects only the last word; the letters that stay keep their case.
fn inflect_last_word(name: &str, inflect: fn(&str) -> String) -> String {
    let lower = name.to_snake_case();
    let last = lower.rsplit('_').next().unwrap_or(&lower);
    let inflected = inflect(last);
    let shared = last.bytes().zip(inflected.bytes()).take_while(|(a, b)| a == b).count();
    let prefix_len = name.trim_end_matches('_').len() - (last.len() - shared);
    format!("{}{}", &name[..prefix_len], &inflected[shared..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types() {
        for (name, path, table, all, many, one) in [
            ("User", "users", "users", "getAllUsers", "users", "user"),
            ("OrderLine", "order-lines", "order_lines", "getAllOrderLines", "orderLines", "orderLine"),
            ("Category", "categories", "categories", "getAllCategories", "categories", "category"),
            ("Person", "people", "people", "getAllPeople", "people", "person"),
            (
                "SalesPerson",
                "sales-people",
                "sales_people",
                "getAllSalesPeople",
                "salesPeople",
                "salesPerson",
            ),
            ("Status", "statuses", "statuses", "getAllStatuses", "statuses", "status"),
            ("Series", "series", "series", "getAllSeries", "series", "series"),
            ("Child", "children", "children", "getAllChildren", "children", "child"),
            ("API", "apis", "apis", "getAllAPIs", "apis", "api"),
            (
                "OAuthToken",
                "o-auth-tokens",
                "o_auth_tokens",
                "getAllOAuthTokens",
                "oAuthTokens",
                "oAuthToken",
            ),
            ("_Internal", "internals", "internals", "getAll_Internals", "internals", "internal"),
            ("Users", "users", "users", "getAllUsers", "users", "users"),
            ("Address", "addresses", "addresses", "getAllAddresses", "addresses", "address"),
            ("Box", "boxes", "boxes", "getAllBoxes", "boxes", "box"),
            ("Order2", "order2s", "order2s", "getAllOrder2s", "order2s", "order2"),
        ] {
            let names = operation_names(name);
            assert_eq!(collection_path(name), path, "path of {name}");
            assert_eq!(table_name(name), table, "table of {name}");
            assert_eq!(names.list, [all, many], "list of {name}");
            assert_eq!(names.get[1], one, "get of {name}");
        }
        let user = operation_names("User");
        assert_eq!(user.get[0], "getUserById");
        assert_eq!((user.create.as_str(), user.updated.as_str()), ("createUser", "userUpdated"));
        assert_eq!(user.connection, "usersConnection");
        assert_eq!(user.distinct_list(), "users");
        assert_eq!(user.delete_many, "deleteUsers");
        assert_eq!(operation_names("News").distinct_list(), "newsList");
        assert_eq!(operation_names("News").update_many, "updateNewsList");
        assert_eq!(unique_get_name("OrderLine", "createdBy"), "orderLineByCreatedBy");
    }

    #[test]
    fn names_of_fields() {
        assert_eq!(reference_column("user"), "userId");
        assert_eq!(column_name("_version"), "_version_");
        assert_eq!(column_name("_Version"), "_version_");
        assert_eq!(column_name("xmin"), "xmin_");
        assert_eq!(column_name("fullName"), "fullName");
        assert_eq!(link_input_name("courses"), "courseIds");
        assert_eq!(link_input_name("relatedPeople"), "relatedPersonIds");
        assert_eq!(link_table("students", "favouriteCourses"), "students_favourite_courses");
        for (first, second, expected) in [
            (("Student", "courses"), ("Course", "students"), ("studentId", "courseId")),
            (("User", "followers"), ("User", "following"), ("followingId", "followerId")),
            (("User", "friends"), ("User", "friends"), ("userId", "friendId")),
            (("User", "users"), ("User", "users"), ("userId", "otherUserId")),
        ] {
            let (to_first, to_second) = link_columns(first, second);
            assert_eq!((to_first.as_str(), to_second.as_str()), expected);
        }
        assert_eq!(display_label("orderLine"), "Order line");
        assert_eq!(display_label("userId"), "User id");
        assert_eq!(display_label("_"), "_");
    }
}
