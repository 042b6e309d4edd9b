// Every way in which graphql-ws's own client can bring a server to close the socket, and what it must not close it for.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { binary, start } from './server.mjs'

const QUERY = 'subscription { userCreated { id } }'
const LIMITS = ['--limit-socket-init-timeout', '1s', '--limit-socket-message', '20000', '--limit-socket-subscriptions', '5']
const DEADLINE = 30_000

let server
const opened = []
before(async () => (server = await start(process.env.SUBSCRIPTIONS_BIN ?? binary(), LIMITS)))
after(async () => {
  await Promise.all(opened.map((client) => client.dispose()))
  await server?.stop()
})

test('4400: a message that is none', async () => {
  for (const text of ['not JSON', '{}', '{"type":"what"}', '{"type":"subscribe"}', '[]']) {
    const { code, reason } = await closed({ on: { opened: (socket) => socket.send(text) } })
    assert.equal(code, 4400, text)
    assert.match(reason, /invalid message/i)
  }
})

test('4400: a message in binary', async (t) => {
  if (process.env.SUBSCRIPTIONS_BIN) return t.skip('graphql-ws on ws takes it for text')
  assert.equal((await closed({ on: { opened: (socket) => socket.send(Buffer.from('{"type":"ping"}')) } })).code, 4400)
})

test('4401: a subscription before the server has acknowledged', async () => {
  const subscribe = JSON.stringify({ id: '1', type: 'subscribe', payload: { query: QUERY } })
  const { code, reason } = await closed({ on: { opened: (socket) => socket.send(subscribe) } })
  assert.deepEqual([code, reason], [4401, 'Unauthorized'])
})

test('4406: no subprotocol', async () => {
  const bare = new WebSocket(socketUrl())
  assert.equal(await new Promise((resolve) => bare.on('close', resolve)), 4406)
})

test('4406: another subprotocol', async (t) => {
  if (process.env.SUBSCRIPTIONS_BIN) return t.skip('graphql-ws on ws names none, and its client then hides the code')
  class Legacy extends WebSocket {
    constructor(url) {
      super(url, 'graphql-ws')
    }
  }
  const { code, reason } = await closed({ webSocketImpl: Legacy })
  assert.equal(code, 4406)
  assert.match(reason, /subprotocol not acceptable/i)
})

test('4408: no connection_init in time', async () => {
  const { code, reason } = await closed({ connectionParams: () => new Promise(() => {}) })
  assert.equal(code, 4408)
  assert.match(reason, /connection initialisation timeout/i)
})

test('4409: an id that is in use', async () => {
  const client = open({ generateID: () => 'the same' })
  const first = ended(client, QUERY)
  const second = ended(client, QUERY)
  for (const { code, reason } of [await first, await second]) {
    assert.deepEqual([code, reason], [4409, 'Subscriber for the same already exists'])
  }
})

test('an id is free again once its operation is over', async () => {
  const client = open({ generateID: () => 'the same', lazy: false, onNonLazyError: assert.fail })
  for (let round = 0; round < 3; round++) {
    assert.equal(await ended(client, '{ getAllUsers { id } }'), 'completed')
    assert.ok(Array.isArray(await ended(client, '{ nothing }')))
  }
})

test('4429: connection_init twice', async () => {
  const { code, reason } = await closed({ on: { opened: (socket) => socket.send('{"type":"connection_init"}') } })
  assert.deepEqual([code, reason], [4429, 'Too many initialisation requests'])
})

test('1009: a message beyond the limit', async () => {
  assert.equal((await closed({}, { query: QUERY, variables: { large: 'x'.repeat(20_000) } })).code, 1009)
})

test('403: a page of another site', async () => {
  class Elsewhere extends WebSocket {
    constructor(url, protocol) {
      super(url, protocol, { origin: 'https://elsewhere.example' })
    }
  }
  const error = await closed({ webSocketImpl: Elsewhere })
  assert.match(error.message ?? error.error?.message, /40[13]/)
})

test('1001: the server stops, and its clients try again', async () => {
  const other = await start(process.env.SUBSCRIPTIONS_BIN ?? binary())
  const codes = []
  const connected = new Promise((resolve) => {
    const client = open({
      url: socketUrl(other.url),
      retryAttempts: 1,
      retryWait: async () => codes.push('again'),
      on: { connected: resolve, closed: ({ code }) => codes.push(code) },
    })
    ended(client, QUERY)
  })
  await connected
  await other.stop()
  await waitFor(() => codes.includes('again'))
  assert.deepEqual(codes.slice(0, 2), [1001, 'again'])
})

test('a request that is wrong ends with its errors and leaves the socket open', async () => {
  const closes = []
  const client = open({ lazy: false, onNonLazyError: assert.fail, on: { closed: (event) => closes.push(event.code) } })
  for (const query of ['subscription { nothing }', 'subscription {', 'subscription { userCreated { id } again: userCreated { id } }']) {
    const errors = await ended(client, query)
    assert.ok(Array.isArray(errors) && errors[0].message, `${query}: ${JSON.stringify(errors)}`)
  }
  assert.equal(await ended(client, '{ getAllUsers { id } }'), 'completed')
  assert.equal(await ended(client, 'mutation { createUser(name: "a", email: "") { id } }'), 'completed')
  assert.deepEqual(closes, [])
})

test('one subscription too many ends with the limit’s name and leaves the others', async () => {
  const client = open()
  const ends = Array.from({ length: 6 }, () => ended(client, QUERY))
  const errors = await Promise.race(ends)
  assert.match(errors[0].message, /limits\.socket-subscriptions/)
})

test('the client’s own closes are taken calmly', async () => {
  const client = open({ retryAttempts: 0 })
  const terminated = ended(client, QUERY)
  await new Promise((resolve) => client.on('connected', resolve))
  client.terminate()
  assert.equal((await terminated).code, 4499)

  const normal = []
  const second = open({ on: { closed: ({ code }) => normal.push(code) } })
  assert.equal(await ended(second, '{ getAllUsers { id } }'), 'completed')
  await waitFor(() => normal.length > 0)
  assert.deepEqual(normal, [1000])
  assert.equal(await ended(open(), '{ getAllUsers { id } }'), 'completed', 'the server goes on')
})

test('pings are answered with what they carry, at any time', async () => {
  const payloads = []
  let socket
  const client = open({
    lazy: false,
    onNonLazyError: assert.fail,
    on: { opened: (it) => (socket = it), pong: (received, payload) => received && payloads.push(payload) },
  })
  await new Promise((resolve) => client.on('connected', resolve))
  socket.send('{"type":"ping","payload":{"a":[1,"ü"]}}')
  socket.send('{"type":"pong"}')
  socket.send('{"type":"ping"}')
  await waitFor(() => payloads.length === 2)
  assert.deepEqual(payloads, [{ a: [1, 'ü'] }, undefined])
})

const socketUrl = (url = server.url) => `${url.replace('http', 'ws')}/graphql`

function open(options = {}) {
  const client = createClient({ url: socketUrl(), webSocketImpl: WebSocket, retryAttempts: 0, ...options })
  opened.push(client)
  return client
}

/** How an operation ended: its error or close event, or `completed`. */
function ended(client, query, rest = {}) {
  return new Promise((resolve) => {
    client.subscribe({ query, ...rest }, { next() {}, error: resolve, complete: () => resolve('completed') })
  })
}

/** The close event that a client with these options brings about. */
function closed(options, { query = QUERY, ...rest } = {}) {
  return ended(open(options), query, rest)
}

async function waitFor(holds) {
  for (const end = Date.now() + DEADLINE; !holds(); ) {
    assert.ok(Date.now() < end, 'not within the deadline')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
