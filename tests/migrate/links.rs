//! Migration of link tables: they are added, follow renamed types, and are dropped only when allowed.

use super::*;

on_both!(
    link_is_enforced_and_cascades,
    link_follows_renamed_types_and_fields,
    link_pairs_survive_reordered_types,
    link_removal_needs_allow_drop,
    removed_type_names_its_references_and_links,
);

const OLD: &str = "type Student { id: ID! courses: [Course] } type Course { id: ID! students: [Student] }";

fn store(on: On) -> Store {
    let store =
        Store::with(on, OLD, "INSERT INTO students DEFAULT VALUES; INSERT INTO courses DEFAULT VALUES");
    store.run("INSERT INTO students_courses (\"studentId\", \"courseId\") VALUES (1, 1)");
    store
}

fn link_is_enforced_and_cascades(on: On) {
    let store = store(on);
    store.refusal("INSERT INTO students_courses (\"studentId\", \"courseId\") VALUES (1, 2)");
    store.refusal("INSERT INTO students_courses (\"studentId\", \"courseId\") VALUES (1, 1)");
    store.run("DELETE FROM students");
    assert_eq!(store.rows("SELECT count(*) FROM students_courses"), ["0"]);
}

fn link_follows_renamed_types_and_fields(on: On) {
    let store = store(on);
    let sdl = "type Pupil @renamedFrom(name: \"Student\") { id: ID! classes: [Course] @renamedFrom(name: \"courses\") }
               type Course { id: ID! students: [Pupil] }";
    let report = store.start(sdl).unwrap();
    assert!(
        report.steps.iter().any(|step| step.to_string() == "Pupil.classes: link renamed; kept: 1 pair"),
        "{:?}",
        report.steps
    );
    assert_eq!(store.rows("SELECT \"pupilId\", \"courseId\" FROM pupils_classes"), ["1|1"]);
    assert_eq!(store.start(sdl).unwrap().steps, []);
    store.run("DELETE FROM pupils");
    assert_eq!(store.rows("SELECT count(*) FROM pupils_classes"), ["0"]);
}

fn link_pairs_survive_reordered_types(on: On) {
    let store = store(on);
    store.run("INSERT INTO courses DEFAULT VALUES; INSERT INTO students_courses (\"studentId\", \"courseId\") VALUES (1, 2)");
    store
        .start("type Course { id: ID! students: [Student] } type Student { id: ID! courses: [Course] }")
        .unwrap();
    assert_eq!(
        store.rows("SELECT \"courseId\", \"studentId\" FROM courses_students ORDER BY 1"),
        ["1|1", "2|1"]
    );
}

fn link_removal_needs_allow_drop(on: On) {
    let store = store(on);
    let sdl = "type Student { id: ID! } type Course { id: ID! }";
    let error = store.start(sdl).unwrap_err().to_string();
    assert!(error.contains("Student.courses: link removed; lost: 1 pair"), "{error}");
    store.apply(sdl, &["Student.courses"]).unwrap();
    assert!(!store.relations().iter().any(|name| name.starts_with("students_")));
    store.start(OLD).unwrap();
    assert_eq!(store.rows("SELECT count(*) FROM students_courses"), ["0"]);
}

fn removed_type_names_its_references_and_links(on: On) {
    let old = "type Student { id: ID! courses: [Course] home: School } type Course { id: ID! students: [Student] } type School { id: ID! }";
    let store = Store::with(
        on,
        old,
        "INSERT INTO schools DEFAULT VALUES; INSERT INTO students (\"homeId\") VALUES (1)",
    );
    let sdl = "type Student { id: ID! }";
    let plan = store.plan(sdl);
    assert!(plan.ends_with("To apply: trefoil migrate --apply --allow-drop Student.home --allow-drop Student.courses --allow-drop Course --allow-drop School\n"), "{plan}");
    store.apply(sdl, &["Student.home", "Student.courses", "Course", "School"]).unwrap();
    assert_eq!(store.rows("SELECT * FROM students"), ["1|1"]);
}
