// The official clients subscribe with their default settings, and, with the lines of the document, miss nothing whatever
// becomes of their connection or of the server.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { gql } from '@apollo/client'
import { createClient as createSse } from 'graphql-sse'
import { createClient as createWs } from 'graphql-ws'
import { WebSocket } from 'ws'
import { open } from './browser.mjs'
import { Client } from './client.mjs'
import { openProxy } from './proxy.mjs'
import { examples } from './recipes.mjs'
import { binary, dataFolder, start } from './server.mjs'
import * as clients from './subscribers.mjs'

const DEADLINE = Number(process.env.SUBSCRIPTIONS_DEADLINE ?? 90_000)
const BEATS = ['--heartbeat', '1s']

const bin = process.env.SUBSCRIPTIONS_BIN ?? binary()
const data = dataFolder()
const created = []
let server
let proxy

before(async () => {
  server = await start(bin, BEATS, {}, data)
  proxy = await openProxy(server.url)
})
after(async () => {
  await proxy?.close()
  await server?.stop()
  rmSync(data, { recursive: true, force: true })
})

test('with default settings every event comes, in order', async () => {
  const subscribers = followAll(clients.plain)
  // None of them tells when it has begun: a first event does.
  await until('every client has begun', subscribers, ({ names }) => names.length > 0, () => create(1))
  await create(50)
  await until('every client has them all', subscribers, hasLast)
  for (const each of subscribers) {
    assert.deepEqual(each.names, created.slice(-each.names.length), each.client)
    each.stop()
  }
})

test('with the lines of the document nothing is missed and nothing comes twice', async (t) => {
  const connections = proxy.accepted()
  const from = created.length
  const { begun } = clients
  const subscribers = followAll(clients.resuming)
  await waitFor('every client knows its place', () => clients.begun >= begun + subscribers.length)

  const holds = async (name, trouble) => {
    await t.test(name, async () => {
      await trouble()
      await create(10)
      await until(name, subscribers, hasLast)
      for (const each of subscribers) assert.deepEqual(each.names, created.slice(from), each.client)
    })
  }

  await holds('when the connection is cut before anything came', cutWhile(() => create(10)))
  await holds('when the connection is cut', cutWhile(() => create(10)))
  await holds('when the connection is cut in the middle of events', async () => {
    for (let round = 0; round < 5; round++) {
      const writing = create(40)
      await later(50 + 40 * round)
      proxy.cut()
      await writing
    }
  })
  await holds('when nobody listens for a while', async () => {
    proxy.refuse(true)
    await cutWhile(() => create(10))()
    await later(1_500)
    proxy.refuse(false)
  })
  await holds('when the connection dies without a word', async () => {
    proxy.swallow()
    await create(10)
  })
  await holds('when the server is killed and comes back', async () => {
    const writing = create(20)
    await later(30)
    await server.kill()
    await writing
    server = await start(bin, BEATS, {}, data)
    proxy.lead(server.url)
    await reconcile()
    await create(10)
  })
  await holds('when the server is stopped and comes back', async () => {
    await server.stop()
    server = await start(bin, BEATS, {}, data)
    proxy.lead(server.url)
  })

  assert.ok(proxy.accepted() >= connections + 7 * subscribers.length, 'every trouble met every client')
  for (const each of subscribers) each.stop()
})

test('the EventSource of a browser comes back by itself', async (t) => {
  if (process.env.SUBSCRIPTIONS_BIN) return t.skip('the stand-in has no pages')
  const browser = await open()
  try {
    await browser.page.goto(`${proxy.url}/graphql`)
    const each = { client: 'EventSource', names: [] }
    await browser.page.exposeFunction('received', (name) => each.names.push(name))
    const from = created.length
    await browser.page.evaluate(`new Promise((opened) => {
      const source = new EventSource('/graphql?query=' + encodeURIComponent('subscription { userCreated { id name } }'))
      source.onopen = opened
      source.addEventListener('next', ({ data }) => received(JSON.parse(data).data.userCreated.name))
    })`)
    // The place comes with the head of the answer or right behind it; a first event shows that it was understood.
    for (let round = 0; round < 3; round++) {
      await create(5)
      await until('the browser has them', [each], hasLast)
      proxy.cut()
      await create(5)
    }
    await until('the browser has them all', [each], hasLast)
    assert.deepEqual(each.names, created.slice(from))
  } finally {
    await browser.close()
  }
})

test('the examples of the document run', async (t) => {
  const printed = []
  t.mock.method(console, 'log', (user) => printed.push(user.name))
  globalThis.WebSocket ??= WebSocket
  const [ws, sse, apollo, urql, ...others] = (await examples(server.url)).map(({ client }) => client)
  assert.deepEqual(others, [])
  assert.ok(ws.subscribe && sse.subscribe, 'both print each user themselves')
  const query = 'subscription { userCreated { id name } }'
  const following = [
    apollo.subscribe({ query: gql(query) }).subscribe(({ data }) => console.log(data.userCreated)),
    urql.subscription(query, {}).subscribe(({ data }) => console.log(data.userCreated)),
  ]
  const count = () => printed.filter((name) => name === created.at(-1)).length
  const more = async () => {
    await create(1)
    await later(500)
  }
  await waitFor('each of the four prints the last one', () => count() === 4, more)
  for (const each of following) each.unsubscribe()
  const list = '{ getAllUsers { id } }'
  assert.ok((await apollo.query({ query: gql(list) })).data.getAllUsers.length > 0, 'queries go the ordinary way')
  assert.ok((await urql.query(list, {})).data.getAllUsers.length > 0)
  await ws.dispose()
  sse.dispose()
})

test('with a place that is not known, every client tells why', async () => {
  // Through graphql-ws and graphql-sse alone: the request is the same for those that are built on them.
  const request = { query: 'subscription { userCreated { id } }', extensions: { lastEventId: 'nowhere-17' } }
  const overSocket = await firstOf(createWs({ url: `${server.url.replace('http', 'ws')}/graphql`, webSocketImpl: WebSocket }), request)
  assert.equal(overSocket.error?.[0]?.extensions?.code, 'EVENT_ID_UNKNOWN', JSON.stringify(overSocket))
  const overSse = await firstOf(createSse({ url: `${server.url}/graphql`, retryAttempts: 0 }), request)
  assert.equal(overSse.next?.errors?.[0]?.extensions?.code, 'EVENT_ID_UNKNOWN', String(overSse.error ?? JSON.stringify(overSse)))
})

function firstOf(client, request) {
  return new Promise((resolve) => {
    client.subscribe(request, {
      next: (next) => resolve({ next }),
      error: (error) => resolve({ error }),
      complete: () => resolve({ complete: true }),
    })
  })
}

/** Subscribes with each of these clients through the proxy and keeps what each receives. */
function followAll(clients) {
  return Object.entries(clients).map(([client, subscribe]) => {
    const each = { client, names: [], ended: undefined }
    each.stop = subscribe(proxy.url, {
      next: ({ data, errors }) => each.names.push(data?.userCreated?.name ?? `no data: ${JSON.stringify({ data, errors })}`),
      error: (error) => (each.ended ??= `failed: ${error?.message ?? JSON.stringify(error) ?? error}`),
      complete: () => (each.ended ??= 'completed'),
    })
    return each
  })
}

/** Makes that many users, one after the other; those that were not acknowledged are left out. */
async function create(count) {
  const client = new Client(server.url, 1)
  try {
    for (let made = 0; made < count; made++) {
      const name = `user ${created.length + 1}.${Math.random().toString(36).slice(2)}`
      const { body } = await client.post({ query: 'mutation ($name: String!) { createUser(name: $name, email: "") { id } }', variables: { name } })
      assert.equal(body.errors, undefined, JSON.stringify(body))
      created.push(name)
    }
  } catch (error) {
    if (!/socket hang up|ECONN/.test(`${error.code} ${error.message}`)) throw error
  } finally {
    client.close()
  }
}

/** After a crash: what was stored and not acknowledged exists all the same. */
async function reconcile() {
  const client = new Client(server.url, 1)
  const { body } = await client.post({ query: '{ getAllUsers { name } }' })
  client.close()
  const stored = body.data.getAllUsers.map(({ name }) => name)
  const first = stored.indexOf(created[0])
  assert.deepEqual(stored.slice(first, first + created.length), created, 'every acknowledged write is there')
  created.push(...stored.slice(first + created.length))
}

function cutWhile(deed) {
  return async () => {
    proxy.cut()
    await deed()
  }
}

const hasLast = ({ names }) => names.at(-1) === created.at(-1)

async function until(what, subscribers, holds, meanwhile = () => {}) {
  const missing = () => subscribers.filter((each) => !holds(each))
  const told = () => missing().map(({ client, names, ended }) => `${client}: ${names.length} events, the last ${names.at(-1)}, ${ended ?? 'running'}`)
  await waitFor(what, () => missing().length === 0, meanwhile, told)
}

async function waitFor(what, holds, meanwhile = () => {}, told = () => []) {
  for (const end = Date.now() + DEADLINE; !holds(); ) {
    if (Date.now() > end) assert.fail(`not within ${DEADLINE} ms: ${what}\n${told().join('\n')}\nafter ${created.length} users`)
    await meanwhile()
    await later(50)
  }
}

function later(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
