// graphql-js as the judge: builds the schema that a server printed and answers requests to it in this process.

import { readFileSync, readdirSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { buildSchema, getNamedType, graphqlSync, isIntrospectionType, isListType, getNullableType } from 'graphql'
import { Records } from './records.mjs'
import { bindScalars } from './scalars.mjs'

/**
 * A judge over the application folder's seed. `resolvers(records)`, where given, registers resolvers by type and field.
 * `ask({ query, variables, operationName })` answers as GraphQL does; writes change the judge's own records.
 * The answer is undefined for the rare document that graphql-js itself fails on (`@skip` with a variable on the root
 * field of a subscription).
 */
export function judge(sdl, folder, resolvers = () => ({})) {
  const schema = buildSchema(sdl)
  bindScalars(schema)
  // Registered fields have no column, which the records must know before they are filled.
  register(schema, resolvers({ get() {}, all: () => [] }))
  const records = new Records(schema, seedOf(schema, folder))
  records.bind()
  register(schema, resolvers(records))
  const ask = ({ query, variables, operationName }) => {
    try {
      return graphqlSync({ schema, source: query, variableValues: variables, operationName, contextValue: {} })
    } catch (error) {
      if (query.includes('subscription') && error.stack.includes('SingleFieldSubscriptionsRule')) return undefined
      throw error
    }
  }
  return { schema, ask }
}

function register(schema, resolvers) {
  for (const [typeName, fields] of Object.entries(resolvers))
    for (const [name, resolve] of Object.entries(fields)) schema.getType(typeName).getFields()[name].resolve = registered(resolve)
}

const registered = (resolve) => Object.assign((...given) => resolve(...given), { registered: true })

/** The files of `seed/` by the type that they fill: `people.json` fills the type that the list `people` has. */
function seedOf(schema, folder) {
  const files = existsSync(join(folder, 'seed')) ? readdirSync(join(folder, 'seed')) : []
  return Object.fromEntries(
    files.map((file) => {
      const records = JSON.parse(readFileSync(join(folder, 'seed', file), 'utf8'))
      return [typeOfCollection(schema, file.replace('.json', '')), records.map((record, at) => ({ id: at + 1, ...record }))]
    }),
  )
}

function typeOfCollection(schema, collection) {
  const plain = (text) => text.toLowerCase().replace(/-/g, '')
  const field = Object.values(schema.getQueryType().getFields()).find(
    ({ name, type }) => isListType(getNullableType(type)) && plain(name).replace(/^getall/, '') === plain(collection),
  )
  if (!field) throw new Error(`no list of the schema is called ${collection}`)
  return getNamedType(field.type).name
}

/**
 * The order of types, directives and possible types is the server's own affair: take it over, so that everything else
 * can be compared as text. What only graphql-js knows about the schema's own types is taken from it, so that each such
 * part is one difference and not one in every document that happens to show it. `theirs` is the answer to ORDER_QUERY.
 * Gives back what one side has and the other lacks.
 */
export function adoptOrder(schema, theirs) {
  const unlike = []
  const arrange = (what, names, ours, nameOf = ({ name }) => name) => {
    const mine = new Map(ours.map((item) => [nameOf(item), item]))
    const both = names.filter((name) => mine.has(name))
    unlike.push(...names.filter((name) => !mine.has(name)).map((name) => `${what} ${name} is known to the server only`))
    unlike.push(...[...mine.keys()].filter((name) => !both.includes(name)).map((name) => `${what} ${name} is known to graphql-js only`))
    return both.map((name) => mine.get(name))
  }
  const types = arrange('type', theirs.types.map(({ name }) => name), Object.values(schema.getTypeMap()))
  const typeMap = Object.fromEntries(types.map((type) => [type.name, type]))
  schema.getTypeMap = () => typeMap
  const directives = arrange('directive', theirs.directives.map(({ name }) => name), [...schema.getDirectives()])
  schema.getDirectives = () => directives
  for (const { name, locations } of theirs.directives) {
    const directive = schema.getDirective(name)
    if (directive) directive.locations = arrange(`location of @${name}:`, locations, directive.locations, (location) => location)
  }
  const possible = schema.getPossibleTypes.bind(schema)
  const arranged = new Map()
  for (const { name, possibleTypes, fields, enumValues } of theirs.types) {
    const type = typeMap[name]
    if (type && possibleTypes) arranged.set(name, arrange(`possible type of ${name}:`, possibleTypes.map((one) => one.name), [...possible(type)]))
    if (type && fields && isIntrospectionType(type)) adoptFields(type, fields, arrange)
    if (type && enumValues && isIntrospectionType(type)) {
      const values = arrange(`value of ${name}:`, enumValues.map((value) => value.name), type.getValues())
      type.getValues = () => values
    }
  }
  schema.getPossibleTypes = (type) => arranged.get(type.name) ?? possible(type)
  return unlike
}

function adoptFields(type, fields, arrange) {
  const own = type.getFields()
  const both = arrange(`field of ${type.name}:`, fields.map(({ name }) => name), Object.values(own))
  for (const name of Object.keys(own)) delete own[name]
  for (const field of both) {
    own[field.name] = field
    const { args } = fields.find(({ name }) => name === field.name)
    field.args = arrange(`argument of ${type.name}.${field.name}:`, args.map(({ name }) => name), field.args)
  }
}

export const ORDER_QUERY = `{
  __schema {
    types {
      name
      possibleTypes { name }
      fields(includeDeprecated: true) { name args(includeDeprecated: true) { name } }
      enumValues(includeDeprecated: true) { name }
    }
    directives { name locations }
  }
}`
