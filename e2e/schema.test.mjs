// The schema that `trefoil schema` prints is the one that introspection tells, with generated operations too.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { buildClientSchema, buildSchema, getIntrospectionQuery, lexicographicSortSchema, parse, printSchema, validate } from 'graphql'
import { binary, start } from './server.mjs'

// Every kind of field, relation and key, and nothing but types.
const TYPES = `
  type Author { id: ID! name: String! @unique born: Date books: [Book!]! }
  type Book @generate(subscriptions: false) {
    bookId: Int!
    isbn: String! @unique
    title: String! @notBlank
    author: Author!
    tags: [Tag!]!
    genre: Genre @default(value: OTHER)
    price: Decimal
    address: Address
    words: [String!]
    addedAt: DateTime @createdAt
    version: Int @version
  }
  type Tag { _id: ID! name: String books: [Book!]! }
  type News { id: ID! text: String size: Int input: String }
  type Address { city: String! inner: Address }
  enum Genre { NOVEL OTHER }
`

// Interfaces, a union, a connection over an interface, and Relay's node.
const ABSTRACT_TYPES = `
  interface Node { id: ID! }
  interface Animal implements Node { id: ID! name: String! }
  type Dog implements Animal & Node { id: ID! name: String! age: Int barks: Boolean }
  type Cat implements Animal & Node { id: ID! name: String! age: Float lives: Int! }
  type Owner implements Node { id: ID! name: String }
  union SearchResult = Dog | Cat | Owner
  type AnimalConnection { edges: [AnimalEdge!]! pageInfo: PageInfo! }
  type AnimalEdge { cursor: String! node: Animal! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query {
    node(id: ID!): Node
    nodes(ids: [ID!]!): [Node]!
    animals: [Animal!]!
    animalsConnection(first: Int, after: String): AnimalConnection!
    search(text: String!): [SearchResult!]!
    searchResultCount: Int!
  }
`

let folder, abstractFolder
before(() => {
  folder = applicationFolder(TYPES)
  abstractFolder = applicationFolder(ABSTRACT_TYPES)
})
after(() => [folder, abstractFolder].forEach((path) => rmSync(path, { recursive: true, force: true })))

function applicationFolder(types) {
  const path = mkdtempSync(join(tmpdir(), 'trefoil-e2e-schema-'))
  mkdirSync(join(path, 'graphql'))
  writeFileSync(join(path, 'graphql/types.graphqls'), types)
  return path
}

const run = (...args) => execFileSync(binary(), args, { encoding: 'utf8' })
const sorted = (schema) => printSchema(lexicographicSortSchema(schema))

async function withServer(path, use) {
  const server = await start(binary(), [path])
  const request = async (query) => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${server.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
    return response.json()
  }
  try {
    return await use(request, server.url)
  } finally {
    await server.stop()
  }
}

const introspected = (path = folder) =>
  withServer(path, async (request) => sorted(buildClientSchema((await request(getIntrospectionQuery())).data)))

test('the printed schema is the introspected one, before and after it is written', async () => {
  const printed = sorted(buildSchema(run('schema', folder)))
  assert.match(printed, /createNews\(data: NewsCreate!\): News!/)
  assert.match(printed, /bookByIsbn\(isbn: String!\): Book/)
  assert.doesNotMatch(printed, /bookChanged/)
  assert.equal(await introspected(), printed)
  run('schema', folder, '--write')
  assert.equal(sorted(buildSchema(run('schema', folder))), printed)
  assert.equal(await introspected(), printed)
})

test('interfaces and unions are introspected, and the tabs of GraphiQL for them are valid and answered', async () => {
  const printed = buildSchema(run('schema', abstractFolder))
  assert.equal(await introspected(abstractFolder), sorted(printed))
  await withServer(abstractFolder, async (request, url) => {
    const tabs = await (await fetch(`${url}/_/graphiql/tabs.json`)).json()
    assert.equal(tabs.length, 3, 'for Node, Animal and SearchResult')
    for (const { query } of tabs) {
      const document = parse(query)
      assert.deepEqual(validate(printed, document), [], query)
      for (const { loc } of document.definitions) {
        assert.equal((await request(query.slice(loc.start, loc.end))).errors, undefined, query)
      }
    }
  })
})
