// The schema that `trefoil schema` prints is the one that introspection tells, with generated operations too.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { buildClientSchema, buildSchema, getIntrospectionQuery, lexicographicSortSchema, printSchema } from 'graphql'
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

let folder
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'trefoil-e2e-schema-'))
  mkdirSync(join(folder, 'graphql'))
  writeFileSync(join(folder, 'graphql/types.graphqls'), TYPES)
})
after(() => rmSync(folder, { recursive: true, force: true }))

const run = (...args) => execFileSync(binary(), args, { encoding: 'utf8' })
const sorted = (schema) => printSchema(lexicographicSortSchema(schema))

async function introspected() {
  const server = await start(binary(), [folder])
  try {
    const body = JSON.stringify({ query: getIntrospectionQuery() })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${server.url}/graphql`, { method: 'POST', headers, body })
    return sorted(buildClientSchema((await response.json()).data))
  } finally {
    await server.stop()
  }
}

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
