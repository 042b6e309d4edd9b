// The code of the guide that is neither a request nor a command, run as it stands: what users copy is what is tested.
//
// The recipes of docs/subscriptions-clients.md are run by subscriptions.test.mjs.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import openapi, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { WebSocket } from 'ws'
import { open } from './browser.mjs'
import { recipe } from './recipes.mjs'
import { binary, start } from './server.mjs'

const HERE = new URL('.', import.meta.url)
const FOLDER = new URL('./.cache/guide/', HERE)
const DEADLINE = 90_000

let server
let names = 0
before(async () => {
  mkdirSync(FOLDER, { recursive: true })
  server = await start(binary())
  // Browsers and newer versions of node have it.
  globalThis.WebSocket ??= WebSocket
})
after(() => server?.stop())

test('graphql.md: graphql-ws prints each new user', async (t) => {
  const printed = []
  t.mock.method(console, 'log', (answer) => printed.push(answer?.data?.userCreated?.name))
  const { client } = await imported('graphql-ws.mjs', `${block('graphql.md', 'js', 0)}\nexport { client }`)
  await newUsersAreIn(() => printed)
  await client.dispose()
})

test('graphql.md: the EventSource of a browser prints each new user', async () => {
  const browser = await open()
  try {
    const printed = []
    await browser.page.goto(`${server.url}/graphql`)
    await browser.page.exposeFunction('printed', (answer) => printed.push(answer.data.userCreated.name))
    await browser.page.evaluate(`console.log = printed; ${block('graphql.md', 'js', 1)}`)
    await newUsersAreIn(() => printed)
  } finally {
    await browser.close()
  }
})

test('subscriptions-clients.md: urql subscribes over the WebSocket of graphql-ws', async () => {
  await recipe('resuming-ws.mjs')
  const around = [
    `import { Client, fetchExchange, subscriptionExchange } from '@urql/core'`,
    `import { resuming } from '../recipes/resuming-ws.mjs'`,
    `const url = 'http://localhost:8080/graphql'`,
    `export const client = resuming({ url: 'ws://localhost:8080/graphql' })`,
    `export const urql = new Client({ url, exchanges: [fetchExchange, ${block('subscriptions-clients.md', 'js', 2)}] })`,
  ]
  const { client, urql } = await imported('urql-ws.mjs', around.join('\n'))
  const seen = []
  const following = urql.subscription('subscription { userCreated { name } }', {}).subscribe(({ data }) => seen.push(data?.userCreated.name))
  await newUsersAreIn(() => seen)
  following.unsubscribe()
  await client.dispose()
})

test('rest.md: the typed client passes tsc and reads what it asks for', async () => {
  const code = block('rest.md', 'ts', 0)
  writeFileSync(new URL('schema.d.ts', FOLDER), astToString(await openapi(new URL(`${server.url}/openapi.json`))))
  writeFileSync(new URL('typed.ts', FOLDER), `${code}\nexport { data }\n`)
  const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'es2022', '--moduleResolution', 'bundler']
  const tsc = new URL('node_modules/typescript/bin/tsc', HERE).pathname
  const checked = await promisify(execFile)(process.execPath, [tsc, ...options, new URL('typed.ts', FOLDER).pathname]).catch((error) => error)
  assert.equal(checked.code ?? 0, 0, checked.stdout)

  const target = { module: ts.ModuleKind.ES2022, target: ts.ScriptTarget.ES2022 }
  const script = ts.transpileModule(`${code}\nexport { data }\n`, { compilerOptions: target }).outputText
  const { data } = await imported('typed.mjs', script)
  const expected = await fetch(`${server.url}/products?price.gte=10&sort=-price&fields=*`)
  assert.deepEqual(data, await expected.json())
  assert.ok(data.length > 5)
})

/** The text of a page's block in this language, counted from 0. */
function block(page, language, index) {
  const text = readFileSync(new URL(`../docs/${page}`, HERE), 'utf8')
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))]
  return blocks[index]?.[1] ?? assert.fail(`${page} has ${blocks.length} blocks of ${language}`)
}

/** The code as a module, where the packages are found, for this server. */
function imported(name, code) {
  const file = new URL(name, FOLDER)
  const there = code.replaceAll('http://localhost:8080', server.url).replaceAll('ws://localhost:8080', server.url.replace('http', 'ws'))
  writeFileSync(file, there)
  return import(file)
}

/** Makes a user every second until one is told of: nothing says when a subscription has begun. */
async function newUsersAreIn(told) {
  const made = []
  for (const end = Date.now() + DEADLINE; !told().some((name) => made.includes(name)); ) {
    assert.ok(Date.now() < end, `none of ${made.length} users was told of, but ${JSON.stringify(told())}`)
    made.push(`guide ${(names += 1)}`)
    const headers = { 'content-type': 'text/plain' }
    const { status } = await fetch(`${server.url}/users`, { method: 'POST', headers, body: made.at(-1) })
    assert.equal(status, 201)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}
