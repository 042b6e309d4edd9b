//! Link tables: they come, follow their types' names and go only with agreement.

use super::*;

const OLD: &str = "type Student { id: ID! courses: [Course] } type Course { id: ID! students: [Student] }";

fn store() -> Store {
    let store = Store::with(OLD, "INSERT INTO students DEFAULT VALUES; INSERT INTO courses DEFAULT VALUES");
    store.run("INSERT INTO students_courses (studentId, courseId) VALUES (1, 1)");
    store
}

#[test]
fn a_link_is_enforced_and_cascades() {
    let store = store();
    assert!(
        store
            .open()
            .execute_batch("INSERT INTO students_courses (studentId, courseId) VALUES (1, 2)")
            .is_err()
    );
    assert!(
        store
            .open()
            .execute_batch("INSERT INTO students_courses (studentId, courseId) VALUES (1, 1)")
            .is_err()
    );
    store.run("DELETE FROM students");
    assert_eq!(store.rows("SELECT count(*) FROM students_courses"), ["0"]);
}

#[test]
fn a_link_follows_renamed_types_and_fields() {
    let store = store();
    let sdl = "type Pupil @renamedFrom(name: \"Student\") { id: ID! classes: [Course] @renamedFrom(name: \"courses\") }
               type Course { id: ID! students: [Pupil] }";
    let report = store.start(sdl).unwrap();
    assert!(
        report.steps.iter().any(|step| step.to_string() == "Pupil.classes: link renamed; kept: 1 pair"),
        "{:?}",
        report.steps
    );
    assert_eq!(store.rows("SELECT pupilId, courseId FROM pupils_classes"), ["1|1"]);
    assert_eq!(store.start(sdl).unwrap().steps, []);
    store.run("DELETE FROM pupils");
    assert_eq!(store.rows("SELECT count(*) FROM pupils_classes"), ["0"]);
}

#[test]
fn the_order_of_types_does_not_matter_to_the_pairs() {
    let store = store();
    store.run("INSERT INTO courses DEFAULT VALUES; INSERT INTO students_courses (studentId, courseId) VALUES (1, 2)");
    store
        .start("type Course { id: ID! students: [Student] } type Student { id: ID! courses: [Course] }")
        .unwrap();
    assert_eq!(store.rows("SELECT courseId, studentId FROM courses_students"), ["1|1", "2|1"]);
}

#[test]
fn a_link_goes_only_with_agreement() {
    let store = store();
    let sdl = "type Student { id: ID! } type Course { id: ID! }";
    let error = store.start(sdl).unwrap_err().to_string();
    assert!(error.contains("Student.courses: link removed; lost: 1 pair"), "{error}");
    store.apply(sdl, &["Student.courses"]).unwrap();
    assert_eq!(
        store.rows("SELECT count(*) FROM sqlite_master WHERE name LIKE 'students!_%' ESCAPE '!'"),
        ["0"]
    );
    store.start(OLD).unwrap();
    assert_eq!(store.rows("SELECT count(*) FROM students_courses"), ["0"]);
}

#[test]
fn a_removed_type_takes_its_references_and_links_each_by_name() {
    let old = "type Student { id: ID! courses: [Course] home: School } type Course { id: ID! students: [Student] } type School { id: ID! }";
    let store =
        Store::with(old, "INSERT INTO schools DEFAULT VALUES; INSERT INTO students (homeId) VALUES (1)");
    let sdl = "type Student { id: ID! }";
    let plan = store.plan(sdl);
    assert!(plan.ends_with("To apply: trefoil migrate --apply --allow-drop Student.home --allow-drop Student.courses --allow-drop Course --allow-drop School\n"), "{plan}");
    store.apply(sdl, &["Student.home", "Student.courses", "Course", "School"]).unwrap();
    assert_eq!(store.rows("SELECT * FROM students"), ["1|1"]);
}
