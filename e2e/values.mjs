// Random input values for a schema's types, both as literals of a document and as JSON of its variables.

import { getNamedType, isEnumType, isInputObjectType, isListType, isNonNullType, isRequiredInputField, parseValue } from 'graphql'
import * as ast from './ast.mjs'

const TEXTS = ['', 'a', 'A', 'Ada', 'o', 'ö', 'Köln', '🌍', 'two words', 'tab\tand\nline', '"quoted" \\ slash', '\u0001', '  padded ', '<b>', 'null', '0']
const INTS = [0, 1, 2, 3, 7, -1, 20, 1000, 2147483647, -2147483648]
const FLOATS = [0, 1, 0.5, -2.25, 3.25, 4.5, 1e3, 123456.789, -7]
const KEYS = ['1', '2', '3', '4', '6', '999', '0', '-1', 1, 2, 5, 9007199254740993n]
const NODES = ['person-1', 'person-3', 'book-2', 'place-1', 'place-3', 'person-99', 'place-0', 'nothing', 'book-x', 7]
const LONGS = ['0', '3', '-12', '9007199254740993', '9223372036854775807', 3, -12, 'x', '9223372036854775808']
const DECIMALS = ['12.5', '0.1', '-3', '12345678901234567890.123456789', 12.5, 3, 'ten']
const DATES = ['1843-09-01', '2001-01-01', '2000-02-29', '2024-12-31', '2001-02-29', 'yesterday']
const MOMENTS = ['2024-02-29T12:00:00Z', '1999-12-31T23:59:59Z']
const ORDERS = ['id', '-id', 'name', '-name', 'name', '-nickname', 'nickname', 'followers', '-height', 'born', '-active', '-code', 'price', '-price']

const POOLS = { String: TEXTS, Int: INTS, Float: FLOATS, Boolean: [true, false], ID: KEYS, Long: LONGS, Decimal: DECIMALS, Date: DATES, DateTime: MOMENTS }

export class Values {
  /** `pools` overrides the values of arguments by name, such as texts that are found in the seed. */
  constructor(random, pools = {}) {
    this.random = random
    this.pools = pools
  }

  /** A plain value of the type: strings, numbers, bigints, booleans, null, arrays, objects. `where` is the argument's name. */
  plain(type, where, depth = 0) {
    const { random } = this
    if (isNonNullType(type)) return this.#present(type.ofType, where, depth)
    return random.chance(0.12) ? null : this.#present(type, where, depth)
  }

  #present(type, where, depth) {
    const { random } = this
    if (isListType(type)) {
      // A single value stands for a list of one.
      if (random.chance(0.1)) return this.#present(isNonNullType(type.ofType) ? type.ofType.ofType : type.ofType, where, depth + 1)
      return Array.from({ length: random.below(4) }, () => this.plain(type.ofType, where, depth + 1))
    }
    if (isInputObjectType(type)) return this.#object(type, depth)
    if (isEnumType(type)) return new Member(random.pick(type.getValues()).name)
    if (type.name === 'JSON') return random.pick([1, 'text', [1, 2], { a: { b: null } }, true])
    return random.pick(this.#pool(type, where))
  }

  #pool(type, where) {
    if (this.pools[where]) return this.pools[where]
    if (where === 'orderBy') return ORDERS
    if (where === 'ids' || where === 'node') return NODES
    return POOLS[type.name] ?? TEXTS
  }

  #object(type, depth) {
    const { random } = this
    const chosen = random.shuffle(Object.values(type.getFields())).filter((field) => {
      if (isRequiredInputField(field)) return true
      return random.chance(isInputObjectType(getNamedType(field.type)) ? 0.5 / (depth + 1) : 0.35)
    })
    return Object.fromEntries(chosen.map((field) => [field.name, this.plain(field.type, field.name, depth + 1)]))
  }
}

/** An enum value: a name in a document, a string in JSON. */
export class Member {
  constructor(name) {
    this.name = name
  }
}

/** `substitute(type, key)` may put something else, such as a variable, in the place of a value inside a list or object. */
export function toLiteral(value, type, random, substitute = () => undefined) {
  const inner = isNonNullType(type) ? type.ofType : type
  const nested = (item, itemType, key) => substitute(itemType, key) ?? toLiteral(item, itemType, random, substitute)
  if (value === null) return ast.nothing()
  if (Array.isArray(value)) return ast.list(value.map((item) => nested(item, isListType(inner) ? inner.ofType : inner)))
  if (value instanceof Member) return ast.member(value.name)
  if (typeof value === 'boolean') return ast.boolean(value)
  if (typeof value === 'bigint') return ast.int(value)
  if (typeof value === 'number') return Number.isInteger(value) ? ast.int(value) : ast.float(value)
  if (typeof value === 'string') return ast.string(value, random.chance(0.1) && isBlockable(value))
  const fields = getNamedType(inner).getFields?.()
  if (!fields) return untyped(value)
  return ast.object(Object.fromEntries(Object.entries(value).map(([key, item]) => [key, nested(item, fields[key].type, key)])))
}

/** A literal for a scalar that takes anything: JSON with bare keys. */
function untyped(value) {
  return parseValue(JSON.stringify(value).replace(/"(\w+)":/g, '$1: '), { noLocation: true })
}

/** Variables travel as JSON, where an enum value is a string and a large integer would lose digits. */
export function toJson(value) {
  if (value === null || typeof value !== 'object') return typeof value === 'bigint' ? String(value) : value
  if (value instanceof Member) return value.name
  if (Array.isArray(value)) return value.map(toJson)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item)]))
}

const isBlockable = (text) => !/[\u0000-\u0008\u000b-\u001f]/.test(text)
