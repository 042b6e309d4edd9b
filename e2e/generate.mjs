// Makes random documents that a schema allows, with variables, from a seeded generator of random choices.

import {
  GraphQLNonNull,
  Kind,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  doTypesOverlap,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isLeafType,
  isNonNullType,
  isRequiredArgument,
  isUnionType,
  print,
  stripIgnoredCharacters,
} from 'graphql'
import * as ast from './ast.mjs'
import { Values, toJson, toLiteral } from './values.mjs'

/**
 * One request: a document of one or more operations and the variables of the one to run.
 * `kind` is the operation to run; `pools` gives arguments values by name.
 */
export function generate(schema, random, { kind = 'query', pools } = {}) {
  const several = random.chance(0.15)
  const main = new Scope(schema, random, pools, 'A')
  const own = main.operation(kind, several || random.chance(0.3) ? main.fresh('Op') : undefined)
  const definitions = [own, ...main.fragments]
  if (several) {
    const beside = new Scope(schema, random, pools, 'B')
    const otherKind = schema.getSubscriptionType() && random.chance(0.3) ? 'subscription' : random.chance(0.2) ? 'mutation' : 'query'
    definitions.push(beside.operation(otherKind, beside.fresh('Op')), ...beside.fragments)
  }
  const mustName = several || (own.name && random.chance(0.4))
  return {
    document: { kind: Kind.DOCUMENT, definitions: random.chance(0.3) ? random.shuffle(definitions) : definitions },
    variables: main.values,
    operationName: mustName ? own.name.value : undefined,
  }
}

/** One operation under construction: its variables, its fragments, and the arguments that a response name stands for. */
class Scope {
  constructor(schema, random, pools, prefix) {
    Object.assign(this, { schema, random, prefix, count: 0 })
    this.inputs = new Values(random, pools)
    this.fragments = []
    this.definitions = []
    this.values = {}
    this.argumentsOf = new Map()
    this.budget = 12 + random.below(40)
  }

  fresh(word) {
    return `${word}${this.prefix}${this.count++}`
  }

  operation(kind, name) {
    const root = { query: this.schema.getQueryType(), mutation: this.schema.getMutationType(), subscription: this.schema.getSubscriptionType() }[kind]
    const depth = 1 + this.random.below(6)
    const set = kind === 'query' ? this.set(root, depth) : [this.field(this.random.pick(Object.values(root.getFields())), depth)]
    // graphql-js cannot judge a condition on a subscription's root field: its rule throws.
    if (kind === 'subscription') set[0].directives = []
    if (kind === 'mutation') set.unshift(...this.#before(root, depth))
    const marks = kind === 'query' ? this.marks('QUERY') : []
    return ast.operation(kind, name ?? (this.definitions.length && this.random.chance(0.5) ? this.fresh('Op') : undefined), this.definitions, set, marks)
  }

  /**
   * Fields of a mutation that come before another. None is non-null: when such a field fails, graphql-js does not run
   * those after it and Trefoil does (docs/differences.md), so that their records would not be the same any more.
   */
  #before(root, depth) {
    const fields = Object.values(root.getFields()).filter(({ type }) => !isNonNullType(type))
    const set = []
    while (fields.length && this.random.chance(0.4)) set.push(this.field(this.random.pick(fields), depth))
    return set
  }

  set(type, depth) {
    const count = 1 + this.random.below(isUnionType(type) ? 3 : 4)
    const items = Array.from({ length: count }, () => this.selection(type, depth)).filter(Boolean)
    return items.length ? items : [ast.field('__typename')]
  }

  selection(type, depth) {
    const roll = this.random.next()
    if (roll < 0.07) return ast.field('__typename', { alias: this.random.chance(0.3) ? this.fresh('t') : undefined, directives: this.conditions() })
    if (this.budget-- > 0 && depth > 0) {
      if (roll < (isAbstractType(type) ? 0.45 : 0.16)) return this.inlineFragment(type, depth)
      if (roll < (isAbstractType(type) ? 0.65 : 0.28)) return this.namedFragment(type, depth)
    }
    if (isUnionType(type)) return this.budget > 0 ? this.inlineFragment(type, depth) : ast.field('__typename')
    const choice = this.#choose(type, depth)
    return choice && this.field(choice, depth)
  }

  #choose(type, depth) {
    const { random } = this
    if (type === this.schema.getQueryType() && random.chance(0.12)) return random.pick([SchemaMetaFieldDef, TypeMetaFieldDef])
    // Fields that fail are worth meeting, but a document full of them has no data to compare.
    const fields = Object.values(type.getFields()).filter(({ name }) => (!/^(fails|broken|bad|idol|sequel)/.test(name) || random.chance(0.25)))
    const deeper = depth > 0 && this.budget > 0
    const composites = fields.filter((field) => !isLeafType(getNamedType(field.type)))
    const leaves = fields.filter((field) => isLeafType(getNamedType(field.type)))
    if (deeper && composites.length && (random.chance(0.45) || !leaves.length)) return random.pick(composites)
    return leaves.length ? random.pick(leaves) : undefined
  }

  field(definition, depth) {
    const args = this.arguments(definition)
    const named = getNamedType(definition.type)
    return ast.field(definition.name, {
      alias: this.#alias(definition, args),
      args,
      directives: [...this.conditions(), ...this.marks('FIELD')],
      set: isCompositeType(named) ? this.set(named, depth - 1) : undefined,
    })
  }

  /** Two fields with one response name must be the same with the same arguments, or the document is invalid. */
  #alias(definition, args) {
    const signature = args.map(print).sort().join()
    const known = this.argumentsOf.get(definition.name)
    if (known === undefined) this.argumentsOf.set(definition.name, signature)
    if ((known ?? signature) !== signature) return this.fresh(this.random.pick(['a', 'alias_', '_x']))
    return this.random.chance(0.12) ? this.fresh('b') : undefined
  }

  arguments(definition) {
    const { random } = this
    const likely = definition.args.length > 4 ? 0.3 : 0.5
    const given = definition.args.filter((arg) => isRequiredArgument(arg) || random.chance(likely))
    return random.shuffle(given).map((arg) => {
      const where = definition.name === 'node' ? 'node' : definition === TypeMetaFieldDef ? 'typeName' : arg.name
      return ast.argument(arg.name, this.value(arg.type, where, arg.defaultValue !== undefined))
    })
  }

  value(type, where, hasDefault) {
    if (this.random.chance(0.35)) return this.variable(type, where, hasDefault)
    const substitute = (inner, key) => (this.random.chance(0.08) ? this.variable(inner, key ?? where) : undefined)
    return toLiteral(this.inputs.plain(type, where), type, this.random, substitute)
  }

  /** A variable that may stand where `type` is expected. */
  variable(type, where, hasDefault = false) {
    const { random } = this
    const required = isNonNullType(type)
    const nullable = required ? type.ofType : type
    const known = this.definitions.filter((definition) => print(definition.type) === String(type))
    if (known.length && random.chance(0.25)) return ast.variable(random.pick(known).variable.name.value)
    const name = this.fresh('v')
    const loose = required ? hasDefault || random.chance(0.25) : random.chance(0.8)
    const withDefault = required && loose ? !hasDefault || random.chance(0.4) : random.chance(0.2)
    const plain = () => this.inputs.plain(required || !loose ? toNonNull(type) : type, where)
    const initial = withDefault ? toLiteral(plain(), type, random) : undefined
    this.definitions.push(ast.variableDefinition(name, loose ? nullable : `${nullable}!`, initial, this.marks('VARIABLE_DEFINITION')))
    if (!loose && !withDefault) this.values[name] = toJson(plain())
    else if (random.chance(0.75)) this.values[name] = loose && random.chance(0.15) ? null : toJson(plain())
    return ast.variable(name)
  }

  inlineFragment(type, depth) {
    if (this.random.chance(0.3)) return ast.inline(undefined, this.set(type, depth), [...this.conditions(), ...this.marks('INLINE_FRAGMENT')])
    const on = this.#overlapping(type)
    return ast.inline(on.name, this.set(on, depth), this.conditions())
  }

  namedFragment(type, depth) {
    const usable = this.fragments.filter(({ typeCondition }) => doTypesOverlap(this.schema, this.schema.getType(typeCondition.name.value), type))
    if (usable.length && this.random.chance(0.4)) return ast.spread(this.random.pick(usable).name.value, this.conditions())
    const on = this.#overlapping(type)
    const name = this.fresh('F')
    // Finished before it is offered for re-use, so that no cycle arises.
    const made = ast.fragment(name, on.name, this.set(on, depth), this.marks('FRAGMENT_DEFINITION'))
    this.fragments.push(made)
    return ast.spread(name, [...this.conditions(), ...this.marks('FRAGMENT_SPREAD')])
  }

  #overlapping(type) {
    const candidates = Object.values(this.schema.getTypeMap()).filter(
      (other) => isCompositeType(other) && doTypesOverlap(this.schema, other, type),
    )
    return this.random.chance(0.4) ? type : this.random.pick(candidates)
  }

  conditions() {
    const { random } = this
    if (!random.chance(0.1)) return []
    return random.some(['skip', 'include'], 1, 2).map((name) => ast.directive(name, [ast.argument('if', this.#condition())]))
  }

  #condition() {
    const { random } = this
    if (random.chance(0.5)) return ast.boolean(random.chance(0.5))
    return this.variable(toNonNull(this.schema.getType('Boolean')), 'if')
  }

  /** Directives of the schema's own that have no effect. */
  marks(location) {
    const { random, schema } = this
    if (!random.chance(0.04)) return []
    const usable = schema.getDirectives().filter(({ name, locations }) => ['mark', 'once'].includes(name) && locations.includes(location))
    if (!usable.length) return []
    const chosen = random.pick(usable)
    // A variable may not be used where variables are defined.
    const given = chosen.args.filter(() => random.chance(0.5)).map((arg) => ast.argument(arg.name, toLiteral(this.inputs.plain(arg.type, arg.name), arg.type, random)))
    return Array.from({ length: chosen.isRepeatable ? 1 + random.below(3) : 1 }, () => ast.directive(chosen.name, given))
  }
}

function toNonNull(type) {
  return isNonNullType(type) ? type : new GraphQLNonNull(type)
}

/** The document as text, sometimes written in an unusual but equal way. */
export function write(document, random) {
  const text = print(document)
  const roll = random.next()
  if (roll < 0.05) return `\uFEFF${text}`
  if (roll < 0.1) return text.replace(/\n/g, '\r\n')
  if (roll < 0.15) return `# a comment with "quotes", { braces } and ünïcode\n${text.replace(/\n/g, ' # …\n')}#`.replace(/"""[^]*"""/g, (block) => block.replace(/ # …/g, ''))
  if (roll < 0.2) return text.replace(/\n/g, ' ,,\t\n')
  if (roll < 0.25) return stripIgnoredCharacters(text)
  return text
}
