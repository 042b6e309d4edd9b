//! Validation of field values: tables of JSON values, what is stored for them, and the JSON they are written as.

use proptest::prelude::*;
use trefoil_model::error::{PathSegment, Violation};
use trefoil_model::values::coerce;
use trefoil_model::values::json_text::{UnreadableCellError, write_cell, write_text};
use trefoil_model::{
    CellValue, Field, KeyForm, Model, RecordId, Scalar, SourceFile, StoredValue, Value, ValueType,
    parse_schema,
};

const LONG: &str = " TYPE Long must be a whole number between -9223372036854775808 and 9223372036854775807";

const SCHEMA: &str = r#"
scalar Long  scalar Decimal  scalar Date  scalar DateTime  scalar UUID  scalar URL  scalar Email  scalar JSON
enum Colour { RED GREEN }
type Size { width: Int!  height: Int @range(min: 1)  unit: String! @default(value: "cm")  inner: Size  big: Long  at: DateTime }
type Owner { id: ID!  things: [Thing!]! tags: [Tag!]! }
type Tag { id: ID! owners: [Owner!]! }
type Thing {
  id: ID!
  string: String  required: String!  int: Int  float: Float  boolean: Boolean  ref: ID
  long: Long  decimal: Decimal  date: Date  dateTime: DateTime  uuid: UUID  url: URL  email: Email  json: JSON
  colour: Colour  size: Size  ints: [Int!]  matrix: [[Int]]  sizes: [Size!]  decimals: [Decimal]  colours: [Colour!]
  owner: Owner
  notBlank: String @notBlank  short: String @length(min: 2, max: 3)  few: [Int] @length(min: 1, max: 2)
  price: Decimal @range(min: "0.01", max: "99999999999999999999.99")  ratio: Float @range(min: 0.1, max: 1)
  count: Int! @range(min: 1)  code: String @pattern(regex: "[A-Z]+|x")  mail: String @email
  many: String @notBlank @length(min: 3) @pattern(regex: "a+")
}
type Query { things: [Thing!]! }
"#;

fn model() -> Model {
    let files = [SourceFile { name: "t.graphqls".into(), text: SCHEMA.into() }];
    parse_schema(&files, &[]).expect("the schema is right").0
}

fn field<'a>(model: &'a Model, name: &str) -> &'a Field {
    let (owner, name) = name.split_once('.').unwrap_or(("Thing", name));
    let record = model.record(model.find_record(owner).unwrap());
    record.field(record.find_field(name).unwrap())
}

fn value(json: &str) -> Value {
    Value::from(serde_json::from_str::<serde_json::Value>(json).unwrap())
}

fn shown(field: &Field, stored: &StoredValue) -> String {
    let mut out = Vec::new();
    write_cell(&mut out, field.kind.value_type().unwrap(), stored.as_cell()).unwrap();
    String::from_utf8(out).unwrap()
}

/// Field, JSON in, JSON out.
#[test]
fn accepted_values_and_their_json() {
    let model = model();
    for (name, given, wanted) in [
        ("string", r#""""#, r#""""#),
        ("string", r#""a\n\"\\\u0001é😀""#, r#""a\n\"\\\u0001é😀""#),
        ("string", "null", "null"),
        ("int", "2147483647", "2147483647"),
        ("int", "-2147483648", "-2147483648"),
        ("int", "1.0", "1"),
        ("int", "1e2", "100"),
        ("float", "1", "1"),
        ("float", "1.0", "1"),
        ("float", "-0.0", "0"),
        ("float", "0.1", "0.1"),
        ("float", "1e300", "1e+300"),
        ("float", "1.5e-9", "1.5e-9"),
        ("float", "123456789012345680000", "123456789012345680000"),
        ("float", "1e21", "1e+21"),
        ("float", "0.000001", "0.000001"),
        ("float", "0.0000001", "1e-7"),
        ("float", "5e-324", "5e-324"),
        ("float", "5.960464477539063e-8", "5.960464477539063e-8"),
        ("float", "2023347301156851.25", "2023347301156851.2"),
        ("float", "1.7976931348623157e308", "1.7976931348623157e+308"),
        ("boolean", "true", "true"),
        ("boolean", "false", "false"),
        ("ref", "7", r#""7""#),
        ("ref", r#""abc""#, r#""abc""#),
        ("long", "9223372036854775807", r#""9223372036854775807""#),
        ("long", r#""-9223372036854775808""#, r#""-9223372036854775808""#),
        ("decimal", "12.50", r#""12.50""#),
        ("decimal", r#""-000.10""#, r#""-0.10""#),
        ("decimal", "1e3", r#""1000""#),
        (
            "decimal",
            "123456789012345678901234567890.123456789",
            r#""123456789012345678901234567890.123456789""#,
        ),
        ("date", r#""2024-02-29""#, r#""2024-02-29""#),
        ("date", r#""0001-01-01""#, r#""0001-01-01""#),
        ("dateTime", r#""2026-01-02T03:04:05Z""#, r#""2026-01-02T03:04:05Z""#),
        ("dateTime", r#""2026-01-02T03:04:00.100Z""#, r#""2026-01-02T03:04:00.1Z""#),
        ("dateTime", r#""2026-01-02T03:04:05.123456000+02:00""#, r#""2026-01-02T01:04:05.123456Z""#),
        ("dateTime", r#""2025-12-31t23:00:00-02:30""#, r#""2026-01-01T01:30:00Z""#),
        ("dateTime", r#""2026-01-02T03:00:00z""#, r#""2026-01-02T03:00:00Z""#),
        ("dateTime", r#""2026-01-02T03:00:00-00:00""#, r#""2026-01-02T03:00:00Z""#),
        ("dateTime", r#""9999-12-31T23:59:59.999999Z""#, r#""9999-12-31T23:59:59.999999Z""#),
        ("dateTime", r#""9999-12-31T23:59:59+23:59""#, r#""9999-12-31T00:00:59Z""#),
        ("dateTime", r#""0001-01-01T00:00:00Z""#, r#""0001-01-01T00:00:00Z""#),
        ("uuid", r#""123E4567-E89B-12D3-A456-426614174000""#, r#""123e4567-e89b-12d3-a456-426614174000""#),
        ("url", r#""https://example.com/a?b#c""#, r#""https://example.com/a?b#c""#),
        ("email", r#""a.b+c@x-y.example""#, r#""a.b+c@x-y.example""#),
        (
            "json",
            r#"{"b": [1, 2.50, null, "x\u0001"], "a": {}, "c": []}"#,
            r#"{"b":[1,2.50,null,"x\u0001"],"a":{},"c":[]}"#,
        ),
        ("json", r#""text""#, r#""text""#),
        ("colour", r#""RED""#, r#""RED""#),
        ("ints", "[1, 2]", "[1,2]"),
        ("ints", "[]", "[]"),
        ("matrix", "[[1, null], null, []]", "[[1,null],null,[]]"),
        ("decimals", r#"["1.10", 2, null]"#, r#"["1.10","2",null]"#),
        ("colours", r#"["RED", "GREEN"]"#, r#"["RED","GREEN"]"#),
        (
            "size",
            r#"{"height": 2, "width": 1, "big": 5, "at": "2026-01-02T03:04:05.5Z"}"#,
            r#"{"width":1,"height":2,"unit":"cm","inner":null,"big":"5","at":"2026-01-02T03:04:05.5Z"}"#,
        ),
        ("owner", r#""12""#, r#""12""#),
        ("owner", "12", r#""12""#),
        ("short", r#""ab""#, r#""ab""#),
        ("short", r#""😀😀😀""#, r#""😀😀😀""#),
        ("price", r#""99999999999999999999.990""#, r#""99999999999999999999.990""#),
        ("ratio", "0.1", "0.1"),
        ("code", r#""ABC""#, r#""ABC""#),
        ("code", r#""x""#, r#""x""#),
    ] {
        let field = field(&model, name);
        let stored = coerce::coerce_field(&model, field, &value(given));
        let stored = stored.unwrap_or_else(|wrong| panic!("{name} {given}: {wrong:?}"));
        assert_eq!(shown(field, &stored), wanted, "{name} {given}");
        if stored != StoredValue::Null {
            let again = coerce::coerce_field(&model, field, &value(&shown(field, &stored)));
            assert_eq!(again, Ok(stored), "what {name} shows can be given back: {given}");
        }
    }
}

fn said(violations: &[Violation]) -> Vec<String> {
    let path = |violation: &Violation| {
        let steps = violation.path.iter().map(|step| match step {
            PathSegment::Field(name) => format!(".{name}"),
            PathSegment::Index(i) => format!("[{i}]"),
        });
        steps.collect::<String>()
    };
    violations.iter().map(|found| format!("{} {} {}", path(found), found.code, found.message)).collect()
}

/// Field, JSON in, errors: path, code, message.
#[test]
fn rejected_values_and_their_errors() {
    let model = model();
    let deep = r#"{"height": 0, "depth": 1, "inner": {"width": "w", "inner": {}}}"#;
    for (name, given, wanted) in [
        ("required", "null", &[" REQUIRED Required is required"][..]),
        ("string", "1", &[" TYPE String must be text, not an integer"]),
        ("string", r#""a\u0000b""#, &[" NUL String must not contain the character U+0000"]),
        ("json", r#"{"a": ["\u0000"]}"#, &[" NUL Json must not contain the character U+0000"]),
        ("json", r#"{"\u0000": 1}"#, &[" NUL Json must not contain the character U+0000"]),
        ("int", "2147483648", &[" TYPE Int must be a whole number between -2147483648 and 2147483647"]),
        ("int", "1.5", &[" TYPE Int must be a whole number between -2147483648 and 2147483647"]),
        ("int", r#""1""#, &[" TYPE Int must be a whole number between -2147483648 and 2147483647, not text"]),
        (
            "int",
            "true",
            &[" TYPE Int must be a whole number between -2147483648 and 2147483647, not a boolean"],
        ),
        ("float", r#""1""#, &[" TYPE Float must be a finite number, not text"]),
        ("float", "1e999", &[" TYPE Float must be a finite number"]),
        ("boolean", "1", &[" TYPE Boolean must be true or false, not an integer"]),
        ("boolean", r#""true""#, &[" TYPE Boolean must be true or false, not text"]),
        ("ref", "1.5", &[" TYPE Ref must be an id (text or a whole number)"]),
        ("long", "9223372036854775808", &[LONG]),
        ("long", r#""9223372036854775808""#, &[LONG]),
        ("long", r#""+1""#, &[LONG]),
        (
            "long",
            "true",
            &[
                " TYPE Long must be a whole number between -9223372036854775808 and 9223372036854775807, not a boolean",
            ],
        ),
        ("decimal", r#""12,50""#, &[" DECIMAL Decimal must be a decimal number such as 12.50"]),
        ("decimal", "1e1000", &[" DECIMAL Decimal must have at most 1000 digits"]),
        ("decimal", "false", &[" TYPE Decimal must be a decimal number, not a boolean"]),
        ("date", r#""2023-02-29""#, &[" DATE Date must be a date such as 2026-01-31"]),
        ("date", r#""20230228""#, &[" DATE Date must be a date such as 2026-01-31"]),
        ("date", r#""0000-01-01""#, &[" DATE Date must be a date such as 2026-01-31"]),
        ("colour", r#""GREN""#, &[" ENUM Colour must be one of RED, GREEN; did you mean GREEN?"]),
        ("colour", "1", &[" TYPE Colour must be one of RED, GREEN, not an integer"]),
        ("ints", "1", &[" TYPE Ints must be a list, not an integer"]),
        (
            "ints",
            r#"[1, null, "x"]"#,
            &[
                "[1] REQUIRED Ints must not contain null",
                "[2] TYPE Ints must be a whole number between -2147483648 and 2147483647, not text",
            ],
        ),
        ("size", "[]", &[" TYPE Size must be an object, not a list"]),
        (
            "size",
            deep,
            &[
                ".depth UNKNOWN Size has no field depth",
                ".width REQUIRED Width is required",
                ".height RANGE Height must be at least 1",
                ".inner.width TYPE Width must be a whole number between -2147483648 and 2147483647, not text",
                ".inner.inner.width REQUIRED Width is required",
            ],
        ),
        ("size", r#"{"width": 1, "unit": null}"#, &[".unit REQUIRED Unit is required"]),
        ("sizes", r#"[{"width": 1}, {}]"#, &["[1].width REQUIRED Width is required"]),
        ("owner", r#""x""#, &[" TYPE Owner must be an id (a whole number)"]),
        ("Owner.things", "[]", &[" READ_ONLY Things cannot be set"]),
        ("notBlank", r#"" \t\u00a0""#, &[" NOT_BLANK Not blank must not be blank"]),
        ("short", r#""a""#, &[" LENGTH Short must have at least 2 characters, not 1"]),
        ("short", r#""abcd""#, &[" LENGTH Short must have at most 3 characters, not 4"]),
        ("few", "[]", &[" LENGTH Few must have at least 1 element, not 0"]),
        ("few", "[1,2,3]", &[" LENGTH Few must have at most 2 elements, not 3"]),
        ("price", "0.009", &[" RANGE Price must be at least 0.01"]),
        ("price", r#""100000000000000000000""#, &[" RANGE Price must be at most 99999999999999999999.99"]),
        ("ratio", "1.0000000000000002", &[" RANGE Ratio must be at most 1"]),
        ("count", "0", &[" RANGE Count must be at least 1"]),
        ("code", r#""ABx""#, &[" PATTERN Code is not written as it must be"]),
        ("code", r#""AB\n""#, &[" PATTERN Code is not written as it must be"]),
        ("mail", r#""a@b@c""#, &[" EMAIL Mail must be an email address, such as name@example.com"]),
        ("mail", r#""""#, &[" EMAIL Mail must be an email address, such as name@example.com"]),
        ("email", r#""a b@c""#, &[" EMAIL Email must be an email address, such as name@example.com"]),
        ("uuid", r#""123""#, &[" UUID Uuid must be a UUID such as 123e4567-e89b-12d3-a456-426614174000"]),
        ("url", r#""example.com""#, &[" URL Url must be an absolute URL such as https://example.com/"]),
        ("url", r#""https://a b/""#, &[" URL Url must be an absolute URL such as https://example.com/"]),
        (
            "many",
            r#""""#,
            &[
                " NOT_BLANK Many must not be blank",
                " LENGTH Many must have at least 3 characters, not 0",
                " PATTERN Many is not written as it must be",
            ],
        ),
    ] {
        let wrong = coerce::coerce_field(&model, field(&model, name), &value(given)).unwrap_err();
        assert_eq!(said(&wrong), wanted, "{name} {given}");
    }
    for text in [
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04Z",
        "2026-01-02T03:04:60Z",
        "2026-01-02T24:00:00Z",
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05.1234567Z",
        "2026-01-02T03:04:05+99:00",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05-01:60",
        "2026-01-02T03:04:05.5",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "2026-01-02T03:04:05Z ",
        "é026-01-02T03:04:05Z",
    ] {
        let wrong =
            coerce::coerce_field(&model, field(&model, "dateTime"), &Value::String(text.into())).unwrap_err();
        assert_eq!(wrong[0].code, "DATE_TIME", "{text}");
    }
}

#[test]
fn filter_values_check_types_but_no_rules() {
    let model = model();
    let compare =
        |name: &str, json: &str| coerce::coerce_comparable(&model, field(&model, name), &value(json));
    assert_eq!(compare("count", "0"), Ok(StoredValue::Int(0)));
    assert_eq!(compare("count", "null"), Ok(StoredValue::Null));
    assert_eq!(compare("code", r#""lower""#), Ok(StoredValue::Text("lower".into())));
    assert_eq!(compare("id", r#""5""#), Ok(StoredValue::Int(5)));
    assert_eq!(compare("owner", "5"), Ok(StoredValue::Int(5)));
    assert_eq!(
        compare("dateTime", r#""2026-01-02T03:04:05Z""#),
        Ok(StoredValue::Text("2026-01-02T03:04:05.000000Z".into()))
    );
    assert_eq!(compare("colour", r#""BLUE""#).unwrap_err()[0].code, "ENUM");
    for name in ["json", "size", "ints", "Owner.things"] {
        assert_eq!(compare(name, "1").unwrap_err()[0].code, "CONDITION", "{name}");
    }
}

#[test]
fn link_fields_take_lists_of_ids() {
    let model = model();
    let tags = field(&model, "Owner.tags");
    let link = tags.kind.link().expect("a link");
    assert_eq!(
        coerce::link_ids(link, tags, &value(r#"[3, "1", 3]"#)),
        Ok(vec![RecordId::Number(3), RecordId::Number(1)])
    );
    assert_eq!(said(&coerce::link_ids(link, tags, &value("[1, null, {}]")).unwrap_err()).len(), 2);
    assert_eq!(coerce::link_ids(link, tags, &Value::Null).unwrap_err()[0].code, "TYPE");
    for not in ["9223372036854775808", " 1", "+1", "1.0", ""] {
        assert_eq!(Value::from(not).as_i64(), None, "{not}");
    }
}

/// Cells that another program wrote.
#[test]
fn cells_written_by_other_programs() {
    let scalar = ValueType::Scalar;
    for (value_type, cell, wanted) in [
        (scalar(Scalar::Int), CellValue::Int(1 << 40), None),
        (scalar(Scalar::Boolean), CellValue::Int(2), None),
        (scalar(Scalar::Float), CellValue::Int(3), Some("3")),
        (scalar(Scalar::Float), CellValue::Real(f64::INFINITY), None),
        (scalar(Scalar::Float), CellValue::Real(f64::NAN), None),
        (scalar(Scalar::Decimal), CellValue::Text("1e5"), None),
        (scalar(Scalar::Decimal), CellValue::Text("1.50"), Some(r#""1.50""#)),
        (scalar(Scalar::Date), CellValue::Text("2026-02-30"), None),
        (
            scalar(Scalar::DateTime),
            CellValue::Text("2026-01-02T03:04:05+01:00"),
            Some(r#""2026-01-02T02:04:05Z""#),
        ),
        (scalar(Scalar::DateTime), CellValue::Text("2026-01-02T25:04:05.000000Z"), None),
        (scalar(Scalar::DateTime), CellValue::Text("2026-01-02 03:04:05"), None),
        (scalar(Scalar::Json), CellValue::Text("{\"a\":}"), None),
        (scalar(Scalar::Json), CellValue::Text(" {\"a\": 1} "), Some(" {\"a\": 1} ")),
        (scalar(Scalar::String), CellValue::Int(1), None),
        (scalar(Scalar::String), CellValue::Unreadable, None),
        (scalar(Scalar::String), CellValue::Null, Some("null")),
        (ValueType::Key(KeyForm::Digits), CellValue::Int(-5), Some(r#""-5""#)),
        (ValueType::Key(KeyForm::Digits), CellValue::Int(i64::MIN), Some(r#""-9223372036854775808""#)),
    ] {
        let mut out = Vec::new();
        let written = write_cell(&mut out, &value_type, cell);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            written.map(|()| text.as_str()),
            wanted.ok_or(UnreadableCellError),
            "{value_type:?} {cell:?}"
        );
    }
}

proptest! {
    #[test]
    fn string_json_equals_serde_json(text in any::<String>(), pad in 0usize..70) {
        let text = format!("{}{text}{}", "p".repeat(pad), "q".repeat(pad));
        let mut out = Vec::new();
        write_text(&mut out, &text);
        prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
    }

    #[test]
    fn float_json_round_trips(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        prop_assume!(number.is_finite());
        let mut out = Vec::new();
        write_cell(&mut out, &ValueType::Scalar(Scalar::Float), CellValue::Real(number)).unwrap();
        prop_assert_eq!(String::from_utf8(out).unwrap().parse::<f64>().unwrap(), number);
    }

    #[test]
    fn long_json_round_trips(number in any::<i64>()) {
        let model = model();
        let long = field(&model, "long");
        let stored = coerce::coerce_field(&model, long, &Value::Int(number)).unwrap();
        prop_assert_eq!(shown(long, &stored), format!("\"{number}\""));
        let again = coerce::coerce_field(&model, long, &Value::String(number.to_string()));
        prop_assert_eq!(again, Ok(StoredValue::Int(number)));
    }

    #[test]
    fn datetime_round_trips_and_sorts_as_text(a in -62_000_000_000i64..253_000_000_000, b in -62_000_000_000i64..253_000_000_000, micros in 0u32..1_000_000) {
        let spell = |seconds: i64| {
            let moment = jiff::Timestamp::new(seconds, 0).unwrap();
            format!("{}.{micros:06}Z", moment.to_string().trim_end_matches('Z'))
        };
        let model = model();
        let at = field(&model, "dateTime");
        let keep = |text: String| coerce::coerce_field(&model, at, &Value::String(text)).unwrap();
        let (first, second) = (keep(spell(a)), keep(spell(b)));
        prop_assert_eq!(keep(value(&shown(at, &first)).as_str().unwrap().to_owned()), first.clone());
        let (StoredValue::Text(first), StoredValue::Text(second)) = (first, second) else { panic!("text") };
        prop_assert_eq!(first.cmp(&second), a.cmp(&b));
    }
}
