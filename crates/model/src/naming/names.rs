//! The only place where a schema name becomes a table, a column, a path, a label or an operation name.

use heck::{ToKebabCase, ToLowerCamelCase, ToSnakeCase};

use crate::naming::inflection::{plural, singular};

/// The collection of a type: `order-lines` for `OrderLine`.
pub fn collection_path(type_name: &str) -> String {
    plural(&type_name.to_kebab_case())
}

/// The table of a type: `order_lines` for `OrderLine`, whatever its path.
pub fn table_name(type_name: &str) -> String {
    plural(&type_name.to_snake_case())
}

/// The column of a field that is no reference; `_version` is taken by the record's version, and a few names by PostgreSQL.
pub fn column_name(field_name: &str) -> String {
    if field_name.eq_ignore_ascii_case(VERSION_COLUMN) {
        return format!("{VERSION_COLUMN}_");
    }
    if SYSTEM_COLUMNS.contains(&field_name) { format!("{field_name}_") } else { field_name.into() }
}

/// What stands in the path of a record's own list: `order-lines` for `orderLines`.
pub fn path_segment(field_name: &str) -> String {
    field_name.to_kebab_case()
}

/// The column every record table has for its version.
pub const VERSION_COLUMN: &str = "_version";

/// Columns that every table of PostgreSQL has already.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];

/// The column, and the name in bodies and forms, of a reference: `userId` for `user`.
pub fn reference_column(field_name: &str) -> String {
    format!("{field_name}Id")
}

/// The name in bodies and forms of a link: `courseIds` for `courses`.
pub fn link_input_name(field_name: &str) -> String {
    format!("{}Ids", singular_camel(field_name))
}

/// The table behind two lists of each other, named after the first of them: `students_courses`.
pub fn link_table(first_table: &str, first_field: &str) -> String {
    format!("{first_table}_{}", first_field.to_snake_case())
}

/// The two columns of a link table, each named after what it leads to; the sides are given as type and
/// list field. From a type to itself the fields tell the columns apart: `userId` and `friendId`.
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
        let other = format!("other{}", heck::ToUpperCamelCase::to_upper_camel_case(to_second.as_str()));
        return (to_first, other);
    }
    (to_first, to_second)
}

/// A name for people: `Order line` for `orderLine`.
pub fn display_label(name: &str) -> String {
    let words = name.to_snake_case().replace('_', " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => name.to_owned(),
    }
}

/// What operations on a type are called; the first of two names is the longer habit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationNames {
    /// `getAllUsers`, `users`
    pub list: [String; 2],
    /// `getUserById`, `user`; for uncountable nouns the second equals the list's.
    pub get: [String; 2],
    pub create: String,
    pub update: String,
    pub delete: String,
    pub created: String,
    pub updated: String,
    pub deleted: String,
}

pub fn operation_names(type_name: &str) -> OperationNames {
    let lower = type_name.to_lower_camel_case();
    OperationNames {
        list: [format!("getAll{}", plural_camel(type_name)), plural_camel(&lower)],
        get: [format!("get{type_name}ById"), lower.clone()],
        create: format!("create{type_name}"),
        update: format!("update{type_name}"),
        delete: format!("delete{type_name}"),
        created: format!("{lower}Created"),
        updated: format!("{lower}Updated"),
        deleted: format!("{lower}Deleted"),
    }
}

/// The candidate someone most likely meant by `name`, if one is near enough to suggest.
pub fn nearest_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // What is longer was never meant to be a name; the table below would grow with it.
    if name.len() > 64 {
        return None;
    }
    let wanted = name.to_lowercase();
    let most = |candidate: &str| (wanted.len().max(candidate.len()) / 3).max(1);
    candidates
        .into_iter()
        // Every letter too many is a step: most candidates are out before they are compared.
        .filter(|candidate| *candidate != name && wanted.len().abs_diff(candidate.len()) <= most(candidate))
        .map(|candidate| (edit_distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(steps, candidate)| *steps <= most(candidate))
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut steps = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                steps = steps.min(rows[i - 2][j - 2] + 1);
            }
            row.push(steps);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The plural of a camel-case name, its capitals kept: `APIs`, `OAuthTokens`, `People`.
fn plural_camel(name: &str) -> String {
    inflect_last_word(name, plural)
}

fn singular_camel(name: &str) -> String {
    inflect_last_word(name, singular)
}

/// Inflects the last word alone and keeps the case of all letters that stay.
fn inflect_last_word(name: &str, bend: fn(&str) -> String) -> String {
    let lower = name.to_snake_case();
    let last = lower.rsplit('_').next().unwrap_or(&lower);
    let inflected = bend(last);
    let shared = last.bytes().zip(inflected.bytes()).take_while(|(a, b)| a == b).count();
    let kept = name.trim_end_matches('_').len() - (last.len() - shared);
    format!("{}{}", &name[..kept], &inflected[shared..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_become_paths_tables_and_operations() {
        for (name, wanted_path, wanted_table, all, many, one) in [
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
            assert_eq!(collection_path(name), wanted_path, "path of {name}");
            assert_eq!(table_name(name), wanted_table, "table of {name}");
            assert_eq!(names.list, [all, many], "list of {name}");
            assert_eq!(names.get[1], one, "get of {name}");
        }
        let user = operation_names("User");
        assert_eq!(user.get[0], "getUserById");
        assert_eq!((user.create.as_str(), user.updated.as_str()), ("createUser", "userUpdated"));
    }

    #[test]
    fn fields_become_columns_inputs_and_labels() {
        assert_eq!(reference_column("user"), "userId");
        assert_eq!(column_name("_version"), "_version_");
        assert_eq!(column_name("_Version"), "_version_");
        assert_eq!(column_name("xmin"), "xmin_");
        assert_eq!(column_name("fullName"), "fullName");
        assert_eq!(link_input_name("courses"), "courseIds");
        assert_eq!(link_input_name("relatedPeople"), "relatedPersonIds");
        assert_eq!(link_table("students", "favouriteCourses"), "students_favourite_courses");
        for (first, second, wanted) in [
            (("Student", "courses"), ("Course", "students"), ("studentId", "courseId")),
            (("User", "followers"), ("User", "following"), ("followingId", "followerId")),
            (("User", "friends"), ("User", "friends"), ("userId", "friendId")),
            (("User", "users"), ("User", "users"), ("userId", "otherUserId")),
        ] {
            let (to_first, to_second) = link_columns(first, second);
            assert_eq!((to_first.as_str(), to_second.as_str()), wanted);
        }
        assert_eq!(display_label("orderLine"), "Order line");
        assert_eq!(display_label("userId"), "User id");
        assert_eq!(display_label("_"), "_");
    }

    #[test]
    fn the_nearest_name_is_suggested_only_when_near() {
        let known = ["Order", "OrderLine", "User", "String"];
        for (name, wanted) in [
            ("Oder", Some("Order")),
            ("Ordre", Some("Order")),
            ("order", Some("Order")),
            ("Usre", Some("User")),
            ("Strng", Some("String")),
            ("Strings", Some("String")),
            ("Invoice", None),
            ("Ur", None),
            ("", None),
        ] {
            assert_eq!(nearest_name(name, known), wanted, "{name}");
        }
        assert_eq!(nearest_name("LogFormat", ["log-file", "log-format"]), Some("log-format"));
        assert_eq!(nearest_name("max_page_size", ["page-size", "max-page-size"]), Some("max-page-size"));
    }
}
