// Records in memory with the rules of the contract, as graphql-js resolvers: what the server's store is compared with.

import { getNamedType, getNullableType, isLeafType, isListType, isNonNullType, isObjectType, valueFromASTUntyped } from 'graphql'
import { coerce, compare, same } from './scalars.mjs'

/** On PostgreSQL an id that was given to a record which the store then refused is used up. */
const LEAVES_GAPS = process.env.STORE === 'postgres'

/** What only the store can find out, when it is about to write. */
class Refused extends Error {}

const isRecordType = (type) => isObjectType(type) && String(type.getFields().id?.type) === 'ID!'

/** Records of every record type in `schema`, filled from `seed` (type name → array of records, ids given). */
export class Records {
  constructor(schema, seed) {
    this.schema = schema
    this.types = Object.values(schema.getTypeMap()).filter(isRecordType)
    this.tables = new Map(this.types.map((type) => [type.name, new Map()]))
    this.next = new Map(this.types.map((type) => [type.name, 1]))
    /** `Book.shelves` → pairs of ids; `Shelf.books` is the same array seen from the other side. */
    this.links = new Map()
    // A seed's references may point forward.
    this.seeding = true
    for (const type of this.types) for (const record of seed[type.name] ?? []) this.#insert(type, record, record.id)
    this.seeding = false
  }

  get(typeName, id) {
    return this.tables.get(typeName).get(String(id))
  }

  all(typeName) {
    return [...this.tables.get(typeName).values()]
  }

  /** Gives every field of a record type, and every root field with a name by the rules, its resolver. */
  bind() {
    for (const type of this.types) for (const field of Object.values(type.getFields())) this.#bindField(type, field)
    for (const field of fieldsOf(this.schema.getQueryType())) this.#bindQuery(field)
    for (const field of fieldsOf(this.schema.getMutationType())) this.#bindMutation(field)
  }

  #bindField(type, field) {
    const target = getNamedType(field.type)
    if (!isRecordType(target)) return
    if (!isListType(getNullableType(field.type))) {
      field.resolve = (record) => nullable(record[`${field.name}Id`], (id) => this.#seen(record).get(target.name, id))
      return
    }
    const reference = inverseOf(type, field)
    field.resolve = reference
      ? (record) => this.#seen(record).all(target.name).filter((other) => other[`${reference.name}Id`] === record.id)
      : (record) => this.#seen(record).linked(type, field, record.id)
  }

  #bindQuery(field) {
    const type = getNamedType(field.type)
    if (!isRecordType(type)) return
    if (isListType(getNullableType(field.type))) field.resolve = (_, given) => this.#list(type, given)
    else if (field.args.some(({ name }) => name === 'id'))
      field.resolve = (_, { id }) => this.get(type.name, coerce('Long', id, 'id'))
  }

  #bindMutation(field) {
    const [, deed, name] = /^(create|update|delete)(\w+)$/.exec(field.name) ?? []
    const type = this.types.find((candidate) => candidate.name === name)
    if (!type) return
    const answer = (record) => answerAs(type, getNamedType(field.type), record)
    if (deed === 'create') field.resolve = (_, given) => answer(this.create(type, given.input ?? given))
    if (deed === 'update') field.resolve = (_, { id, expectedVersion, input, ...given }) => answer(this.update(type, id, input ?? given, expectedVersion))
    if (deed === 'delete') field.resolve = (_, { id, expectedVersion }) => answer(this.delete(type, id, expectedVersion))
  }

  #list(type, { page, size, orderBy, ...filters }) {
    let found = this.all(type.name)
    for (const [name, wanted] of Object.entries(filters)) {
      const scalar = scalarOf(type, name)
      const value = wanted === null ? null : coerce(scalar, wanted, name)
      found = found.filter((record) => same(scalar, record[name] ?? null, value))
    }
    found.sort(byOrder(type, orderBy ?? []))
    if (page == null && size == null) return found
    if ((page ?? 1) < 1 || (size ?? 20) < 1 || size > 1000) throw new Error('page and size count from 1, size up to 1,000')
    const start = ((page ?? 1) - 1) * (size ?? 20)
    return found.slice(start, start + (size ?? 20))
  }

  create(type, given) {
    const number = this.next.get(type.name)
    try {
      return this.#whole(() => this.#insert(type, given, number))
    } catch (error) {
      if (LEAVES_GAPS && error instanceof Refused) this.next.set(type.name, number + 1)
      throw error
    }
  }

  /** The record, none if there is none; an error when it has changed since the version that is expected. */
  #current(type, id, expectedVersion) {
    const record = this.get(type.name, coerce('Long', id, 'id'))
    if (record && expectedVersion != null && expectedVersion !== record._version) throw new Error(`version ${record._version}, not ${expectedVersion}`)
    return record
  }

  update(type, id, given, expectedVersion) {
    const old = this.#current(type, id, expectedVersion)
    if (!old) return undefined
    // An update that names no field changes nothing.
    const record = { ...old, _version: old._version + (Object.keys(given).length ? 1 : 0) }
    for (const field of stored(type)) if (field.key in given) record[field.key] = this.#accept(field, given[field.key])
    return this.#whole(() => {
      this.#check(type, record)
      this.tables.get(type.name).set(record.id, record)
      this.#link(type, record.id, given)
      return record
    })
  }

  delete(type, id, expectedVersion) {
    const record = this.#current(type, id, expectedVersion)
    if (!record) return undefined
    const before = this.#copy()
    this.#whole(() => this.#remove(type, record))
    return new Past(before).get(type.name, record.id)
  }

  #remove(type, record) {
    this.tables.get(type.name).delete(record.id)
    for (const [key, pairs] of this.links) {
      const side = this.#sides(key).indexOf(type.name)
      if (side >= 0) this.links.set(key, pairs.filter((pair) => pair[side] !== record.id))
    }
    for (const other of this.types)
      for (const field of stored(other).filter((candidate) => candidate.target === type.name))
        for (const holder of this.all(other.name))
          if (holder[field.key] === record.id) this.#release(other, holder, field)
  }

  #release(type, holder, field) {
    const rule = argumentOf(field.field, 'reference', 'onDelete')
    if (rule === 'CASCADE') this.#remove(type, holder)
    else if (rule === 'SET_NULL') this.tables.get(type.name).set(holder.id, { ...holder, [field.key]: null, _version: holder._version + 1 })
    else throw new Error(`${type.name} ${holder.id} still needs it`)
  }

  #insert(type, given, number) {
    const record = { __typename: type.name, id: String(number), _version: 1 }
    for (const field of stored(type)) {
      const value = given[field.key]
      record[field.key] = value === undefined ? field.default : this.#accept(field, value)
    }
    for (const field of Object.values(type.getFields()))
      if (isLink(type, field)) given[`${singular(field.name)}Ids`]?.forEach((one) => coerce('Long', one, field.name))
    this.#check(type, record)
    this.tables.get(type.name).set(record.id, record)
    this.next.set(type.name, Math.max(this.next.get(type.name), Number(number) + 1))
    this.#link(type, record.id, given)
    return record
  }

  #accept(field, value) {
    return value === null ? null : field.list ? value.map((item) => nullable(item, (one) => coerce(field.scalar, one, field.key))) : coerce(field.scalar, value, field.key)
  }

  #check(type, record) {
    for (const { field, key } of stored(type)) {
      const value = record[key]
      if (value === null && isNonNullType(field.type)) throw new Error(`${key} is required`)
      if (value !== null) broken(field, value)
    }
    for (const { field, key, target } of stored(type)) {
      const value = record[key]
      if (value === null) continue
      if (target && !this.seeding && !this.get(target, value)) throw new Refused(`${key} points nowhere`)
      const taken = ({ id, ...other }) => id !== record.id && other[key] === value
      if (directive(field, 'unique') && this.all(type.name).some(taken)) throw new Refused(`${key} is taken`)
    }
  }

  #link(type, id, given) {
    for (const field of Object.values(type.getFields())) {
      const ids = given[`${singular(field.name)}Ids`]
      if (!ids || !isLink(type, field)) continue
      const { key, side } = linkKey(type, field)
      const pairs = (this.links.get(key) ?? []).filter((pair) => pair[side] !== id)
      const target = getNamedType(field.type).name
      for (const other of new Set(ids.map((one) => coerce('Long', one, field.name)))) {
        if (!this.seeding && !this.get(target, other)) throw new Refused(`${field.name} points nowhere`)
        pairs.push(side === 0 ? [id, other] : [other, id])
      }
      this.links.set(key, pairs)
    }
  }

  linked(type, field, id) {
    const { key, side } = linkKey(type, field)
    const others = (this.links.get(key) ?? []).filter((pair) => pair[side] === id).map((pair) => pair[1 - side])
    return others.sort((a, b) => a - b).map((other) => this.get(getNamedType(field.type).name, other))
  }

  /** The records among which this one is to be seen: those of now, unless it was deleted. */
  #seen(record) {
    return record[PAST] ?? this
  }

  /** Records and lists of links are replaced, never changed. */
  #copy() {
    const tables = new Map([...this.tables].map(([name, table]) => [name, new Map(table)]))
    return { tables, links: new Map(this.links), next: new Map(this.next) }
  }

  /** A write that fails leaves nothing behind. */
  #whole(write) {
    const before = this.#copy()
    try {
      return write()
    } catch (error) {
      Object.assign(this, before)
      throw error
    }
  }

  #sides(key) {
    return key.split(' ').map((half) => half.split('.')[0])
  }
}

const PAST = Symbol('past')

/** Records as they were before a deletion: what is selected of a deleted record, relations included, is what it was. */
class Past {
  constructor({ tables, links }) {
    Object.assign(this, { tables, links })
  }

  get(typeName, id) {
    const record = this.tables.get(typeName).get(String(id))
    return record && { ...record, [PAST]: this }
  }

  all(typeName) {
    return [...this.tables.get(typeName).keys()].map((id) => this.get(typeName, id))
  }

  linked(type, field, id) {
    return Records.prototype.linked.call(this, type, field, id)
  }
}

/** What an update or a deletion answers; only a Boolean says that there was no such record without an error. */
function answerAs(type, declared, record) {
  if (declared.name === 'Boolean') return record !== undefined
  if (!record) throw new Error(`no such ${type.name}`)
  return declared.name === 'ID' ? record.id : record
}

function nullable(value, then) {
  return value === null || value === undefined ? null : then(value)
}

const fieldsOf = (type) => Object.values(type?.getFields() ?? {})
const singular = (name) => name.replace(/ves$/, 'f').replace(/ies$/, 'y').replace(/s$/, '')

function directive(field, name) {
  return field.astNode?.directives?.find((candidate) => candidate.name.value === name)
}

function argumentOf(field, name, argument) {
  const found = directive(field, name)?.arguments.find((candidate) => candidate.name.value === argument)
  return found && valueFromASTUntyped(found.value)
}

/** Fields with a column: leaves, embedded values, lists of those, and references under the key `userId`. */
function stored(type) {
  return Object.values(type.getFields()).flatMap((field) => {
    const named = getNamedType(field.type)
    const list = isListType(getNullableType(field.type))
    if (field.name === 'id' || field.args.length > 0 || (list && isRecordType(named))) return []
    const fallback = argumentOf(field, 'default', 'value') ?? null
    if (isRecordType(named)) return [{ field, key: `${field.name}Id`, scalar: 'Long', target: named.name, default: null }]
    if (!isLeafType(named) && !isObjectType(named)) return []
    if (field.resolve && !isRecordType(named)) return []
    return [{ field, key: field.name, scalar: named.name, list, default: fallback }]
  })
}

function scalarOf(type, key) {
  const found = stored(type).find((candidate) => candidate.key === key)
  if (!found) throw new Error(`${type.name} has no field ${key} to filter by`)
  return found.scalar
}

/** The reference on the other side that this list is the inverse of; none for a link. */
function inverseOf(type, field) {
  const target = getNamedType(field.type)
  const references = Object.values(target.getFields()).filter((candidate) => getNullableType(candidate.type) === type)
  const named = references.find((candidate) => argumentOf(candidate, 'reference', 'inverse') === field.name)
  return named ?? references.find((candidate) => !argumentOf(candidate, 'reference', 'inverse') && !candidate.resolve?.registered)
}

const isLink = (type, field) =>
  isListType(getNullableType(field.type)) && isRecordType(getNamedType(field.type)) && !inverseOf(type, field)

function linkKey(type, field) {
  const other = getNamedType(field.type)
  const back = Object.values(other.getFields()).find((candidate) => isLink(other, candidate) && getNamedType(candidate.type) === type)
  const own = `${type.name}.${field.name}`
  const far = `${other.name}.${back?.name}`
  return own < far ? { key: `${own} ${far}`, side: 0 } : { key: `${far} ${own}`, side: 1 }
}

/** Throws when a constraint does not hold. */
function broken(field, value) {
  if (directive(field, 'notBlank') && !value.trim()) throw new Error(`${field.name} is blank`)
  if (directive(field, 'length')) within(field, [...value].length, argumentOf(field, 'length', 'min'), argumentOf(field, 'length', 'max'))
  if (directive(field, 'range')) within(field, Number(value), argumentOf(field, 'range', 'min'), argumentOf(field, 'range', 'max'))
  if (directive(field, 'email') && !/^[^@\s]+@[^@\s]+$/.test(value)) throw new Error(`${field.name} is no e-mail address`)
}

function within(field, value, min = -Infinity, max = Infinity) {
  if (value < min || value > max) throw new Error(`${field.name} is out of range`)
}

/** `"-price"` or `"name"`; nulls last either way, ties by id. */
function byOrder(type, order) {
  const keys = order.map((text) => {
    const [, minus, name] = /^(-?)(\w+)$/.exec(text) ?? []
    if (!name) throw new Error(`${text} is no order`)
    return { name, scalar: name === 'id' ? 'Long' : scalarOf(type, name), sign: minus ? -1 : 1 }
  })
  return (a, b) => {
    for (const { name, scalar, sign } of keys) {
      const [left, right] = [a[name] ?? null, b[name] ?? null]
      if (left === null || right === null) {
        if (left !== right) return left === null ? 1 : -1
        continue
      }
      const decided = compare(scalar, left, right) * sign
      if (decided) return decided
    }
    return a.id - b.id
  }
}
