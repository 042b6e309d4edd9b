// Breaks the text of a document: cut, garbled, and with every kind of token that a lexer can get wrong.

const PIECES = [
  '"\\x"', '"\\u12"', '"\\uD800"', '"\\uDE00\\uD83D"', '"\\uD83D\\uDE00"', '"\\u{1F600}"', '"\\u{110000}"', '"\\u{}"', '"unterminated', '"line\nbreak"',
  '"""block "quoted" \\""" end"""', '"""open', '"\t"', '"\u0007"', '"\uFEFF"', '"a" "b"', '""""""', '"\\/\\b\\f\\n\\r\\t"',
  '01', '-', '-01', '1.', '.5', '1e', '1e+', '1.5e-3', '0x1F', '1a', '1_000', '-0', '0.0', '00', '1.2.3', '9223372036854775808', '1e1000', '+1',
  '\u0000', '\u0007', '\uFEFF', '\u00A0', '\u2028', '😀', 'é', '?', '%', '^', '~', '`', '\\', "'single'", ';', '<', '>', '/', '*',
  '...', '..', '.', '....', '@', '$', '&', '|', '!', ':', '=', '(', ')', '[', ']', '{', '}', '{}', '()', '[]', '$$', '@@', '# comment', ',', ',,,',
  'true', 'false', 'null', 'on', 'query', 'fragment', 'fragment on on Query { __typename }', 'fragment F(on: Int) on Query { a }', '$v', '@skip', '...on', 'on on',
]

const WHOLE = [
  '', ' ', '\n', '#', '# only a comment', ',', '{', '}', '{}', '{ }', 'query', 'query {}', 'query Q', 'query Q() { __typename }', 'query ($a) { __typename }', 'query ($a: Int =) { __typename }',
  'query ($a: ) { __typename }', '{ __typename', '{ __typename }}', '{ __typename } }', '{ __typename } garbage', 'queri { __typename }', 'QUERY { __typename }', '{ ...on }', '{ ...on Query }',
  '{ ... on Query { __typename } }', '{ ...on Query { __typename } }', '{...{__typename}}', 'query q{__typename}query r{__typename}', 'query null { __typename }', 'query true { __typename }', 'query on { __typename }',
  'query query { query: __typename }', '{ on: __typename fragment: __typename null: __typename true: __typename }', '{ a: b: __typename }', '{ :a }', '{ a: }', '{ __typename() }', '{ __typename @ }', '{ __typename @skip() }',
  '{ __typename @skip (if:false) }', '{ __typename @include(if: true,) }', '{ __type(name: "Query" name: "Query") { name } }', '{ __type(name: """Query""") { name } }', '{ __type(name: """\n  Query\n""") { name } }',
  '{ __type(name: "Que\\u0072y") { name } }', '{ __type(name: "\\u{51}uery") { name } }', '{__type(name:"Query"){name}}', '{ __type(name: $n) { name } }', 'query ($n: String! = "Query") { __type(name: $n) { name } }',
  '{ __type(name: "Query"){name}, __typename,,, }', '\uFEFF{ __typename }', '\uFEFF\uFEFF{ __typename }', '{ \uFEFF __typename }', '{ __typename } \u0000', '# \u0000\n{ __typename }', '{ __typename }\r# end', '{\r\n__typename\r\n}', '{\r__typename\r}',
  '{ \t__typename\t }', '{ \f__typename }', '{ __typename\u00A0}', '{ tüp: __typename }', '{ \\u0061: __typename }', '{ a1: __typename _: __typename __: __typename }', '{ 1a: __typename }', '{ a-b: __typename }',
  'subscription { __typename }', 'mutation { __typename }', 'extend { __typename }', 'type Query { a: Int }', 'fragment F on Query { __typename }', 'fragment F on Query { __typename } { ...F }', '{ ...F } fragment F on Query { }', 'fragment on on Query { __typename } { ...on }',
  'fragment F { __typename } { ...F }', '{ ...F @skip(if: true) __typename } fragment F on Query { t: __typename }', 'query @skip(if: true) { __typename }', 'query Q @ { __typename }', 'query Q($a: Int, $a: Int) { __typename }', 'query Q($a: Int!!) { __typename }', 'query Q($a: [Int) { __typename }', 'query Q($a: []) { __typename }',
  '"""described""" query Q { __typename }', '"described" { __typename }', '{ __typename }'.padEnd(3000, ' '), `${'{ __typename }'}${'#'.repeat(2000)}`, '"lonely string"', '[]', '42', 'null', '{ "a" }', '{ a: "b" }', '{ a(b:) }', '{ a(b: {c}) }', '{ a(b: {c:}) }', '{ a(b: [,]) }', '{ __type(name: ["Query"]) { name } }',
]

/** A text that is probably no document any more. */
export function breakSyntax(text, random) {
  const roll = random.next()
  if (roll < 0.3) return random.pick(WHOLE)
  const at = random.below(text.length + 1)
  if (roll < 0.4) return text.slice(0, at)
  if (roll < 0.5) return text.slice(0, at) + text.slice(at + 1 + random.below(3))
  if (roll < 0.55) return text.slice(0, at) + text.slice(Math.max(0, at - 5))
  if (roll < 0.65) return swapToken(text, random)
  return insertBetween(text, random, random.pick(PIECES))
}

/** Puts a piece where a token could begin. */
function insertBetween(text, random, piece) {
  const gaps = [...text.matchAll(/[\s({[:]/g)].map(({ index }) => index + 1)
  const at = gaps.length ? random.pick(gaps) : 0
  return `${text.slice(0, at)}${piece} ${text.slice(at)}`
}

/** Replaces a literal, a name or a mark by a piece. */
function swapToken(text, random) {
  const tokens = [...text.matchAll(/"[^"\n]*"|\w+|[{}()[\]:!$@=]|\.\.\./g)]
  if (!tokens.length) return text
  const { 0: token, index } = random.pick(tokens)
  return text.slice(0, index) + random.pick(PIECES) + text.slice(index + token.length)
}
