#!/usr/bin/env node
// Behaves as `trefoil serve FOLDER --port 0` for these tests, but with graphql-js behind graphql-http: the tests must
// find no fault with it, and, when STANDIN_BREAK names a fault, must find that one (harness.test.mjs).

import { createServer } from 'node:http'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { GraphQLInt, specifiedRules, validate } from 'graphql'
import { createHandler } from 'graphql-http/lib/use/http'
import { judge } from './judge.mjs'
import { page } from './standin-page.mjs'
import { resolvers } from './harder/resolvers.mjs'

const DIRECTIVES = `
scalar TrefoilValue
enum TrefoilOnDelete { REFUSE CASCADE SET_NULL }
directive @notBlank on FIELD_DEFINITION
directive @unique on FIELD_DEFINITION
directive @range(min: TrefoilValue, max: TrefoilValue) on FIELD_DEFINITION
directive @email on FIELD_DEFINITION
directive @default(value: TrefoilValue!) on FIELD_DEFINITION
directive @reference(inverse: String, onDelete: TrefoilOnDelete) on FIELD_DEFINITION
`

const folder = process.argv[3]?.startsWith('--') === false ? process.argv[3] : new URL('../app', import.meta.url).pathname
const fault = process.env.STANDIN_BREAK ?? ''

const files = readdirSync(join(folder, 'graphql')).sort()
const sdl = [DIRECTIVES, ...files.map((file) => readFileSync(join(folder, 'graphql', file), 'utf8'))].join('\n')
const { schema } = judge(sdl, folder, sdl.includes('union SearchResult') ? resolvers : undefined)

const [kind, detail] = fault.split(':')
if (kind === 'coerce') GraphQLInt.parseValue = Number
const rules = specifiedRules.filter(({ name }) => !(kind === 'rule' && name === detail))

const handler = createHandler({
  schema,
  // graphql-http adds rules to graphql-js's own; here the whole list is ours.
  validate: (theSchema, document) => validate(theSchema, document, rules),
  onOperation: (_request, _given, result) => ('data' in result ? faulty(result) : refused(result)),
})

/** graphql-http answers 200 when variables do not fit; the specification asks for 4xx where there is no data. */
function refused(result) {
  const headers = { 'content-type': 'application/graphql-response+json; charset=utf-8' }
  return [JSON.stringify(result), { status: 400, statusText: 'Bad Request', headers }]
}

function faulty(result) {
  if (kind === 'order' && result.data) return { ...result, data: Object.fromEntries(Object.entries(result.data).reverse()) }
  if (kind === 'path') return { ...result, errors: result.errors?.map(({ message }) => ({ message, path: [] })) }
  if (kind === 'swallow') return { data: result.data }
  if (kind === 'value') return JSON.parse(JSON.stringify(result).replaceAll('"NOVEL"', '"POETRY"').replaceAll('"PAID"', '"NEW"'))
  if (kind === 'nulls' && result.data === null) return { ...result, data: {} }
  return result
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost')
  if (pathname === '/graphql/schema.graphqls') return response.setHeader('content-type', 'text/plain; charset=utf-8').end(sdl)
  if (page(request, response)) return
  if (pathname === '/graphql') return handler(request, response)
  response.writeHead(404).end()
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}`))

process.on('SIGTERM', () => process.exit(0))
