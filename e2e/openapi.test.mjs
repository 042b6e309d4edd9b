// Clients made from /openapi.json work: openapi-typescript reads it, tsc checks a client against it, and the client runs.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import openapi, { astToString } from 'openapi-typescript'
import { visit } from './openapi/client.mjs'
import { binary, start } from './server.mjs'

const HERE = new URL('.', import.meta.url).pathname

let server
before(async () => (server = await start(binary())))
after(() => server?.stop())

test('openapi-typescript makes types of it, and a client that uses them passes tsc', async () => {
  const types = astToString(await openapi(new URL(`${server.url}/openapi.json`)))
  mkdirSync(`${HERE}.cache/openapi`, { recursive: true })
  writeFileSync(`${HERE}.cache/openapi/schema.d.ts`, types)
  const tsc = `${HERE}node_modules/typescript/bin/tsc`
  const checked = await promisify(execFile)(process.execPath, [tsc, '-p', `${HERE}openapi`]).catch((error) => error)
  assert.equal(checked.code ?? 0, 0, checked.stdout)
})

test('the client makes, pages, changes with If-Match and deletes', async () => {
  const { made, seen, changed, found, stale, gone } = await visit(server.url)
  assert.deepEqual({ name: made.name, price: made.price, category: made.category }, { name: 'Samovar', price: '120.00', category: 'Kitchen' })
  const all = await fetch(`${server.url}/products?price.gte=5&sort=-price&size=1000&fields=id,name`)
  const expected = (await all.json()).map(({ name }) => name)
  assert.ok(expected.length > 5, 'there is more than one page')
  assert.deepEqual(seen.filter((name) => name !== 'Samovar'), expected)
  assert.ok(seen.includes('Samovar'))
  assert.deepEqual(changed, { ...made, price: '110.5', description: null })
  assert.ok(found.length > 0)
  for (const order of found) assert.equal(JSON.parse(order).user.orders[0].user.name, 'Ada Lovelace')
  assert.equal(stale, 'STALE')
  assert.equal(gone, 404)
})
