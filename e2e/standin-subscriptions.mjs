#!/usr/bin/env node
// Behaves as `trefoil serve` for the tests of subscriptions, on the official server parts of graphql-ws and graphql-sse:
// what these tests ask of the server must be what the clients' own authors serve.

import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { GraphQLError, buildSchema, createSourceEventStream, execute, getOperationAST, graphql, parse, validate } from 'graphql'
import { createHandler } from 'graphql-sse'
import { useServer } from 'graphql-ws/use/ws'
import { WebSocketServer } from 'ws'

const schema = buildSchema(readFileSync(new URL('../app/graphql/users.graphqls', import.meta.url), 'utf8').replace(/ @notBlank/g, ''))
const option = (name, otherwise) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : otherwise)
const seconds = (name, otherwise) => parseFloat(option(name, otherwise)) * 1000
const MOST_BYTES = Number(option('--limit-socket-message', '262144'))
const MOST_OPERATIONS = Number(option('--limit-socket-subscriptions', '100'))
const file = join(option('--data'), 'log')
const heartbeat = seconds('--heartbeat', '15s')

const users = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []
const stirred = new EventEmitter().setMaxListeners(0)
const idOf = (number) => `standin-${number}`
const numberOf = (id) => {
  const found = /^standin-(\d+)$/.exec(id)
  if (!found || found[1] > users.length) throw new GraphQLError('no such event id', { extensions: { code: 'EVENT_ID_UNKNOWN' } })
  return Number(found[1])
}

const root = {
  getAllUsers: () => users,
  getUserById: ({ id }) => users[id - 1],
  createUser({ name, email }) {
    const user = { id: String(users.length + 1), name, email }
    appendFileSync(file, JSON.stringify(user) + '\n')
    users.push(user)
    stirred.emit('more')
    return user
  },
  async *userCreated(_args, { place }) {
    for (let at = place.number; ; ) {
      while (at < users.length) yield { userCreated: users[at], eventId: idOf((place.number = ++at)) }
      await once(stirred, 'more')
    }
  },
}

/** graphql-js's own subscribe, with the event's id beside its data. */
async function subscribe(args) {
  const source = await createSourceEventStream(args)
  if (!(Symbol.asyncIterator in source)) return source
  return (async function* () {
    for await (const event of source) {
      yield { ...(await execute({ ...args, rootValue: event })), extensions: { eventId: event.eventId } }
    }
  })()
}

function prepare({ query, variables, operationName, extensions }) {
  const document = parse(query)
  const last = extensions?.lastEventId
  const place = { number: last === undefined ? users.length : numberOf(last) }
  return { schema, document, variableValues: variables, operationName, rootValue: root, contextValue: { place } }
}

function prepareOrRefuse(payload) {
  try {
    const args = prepare(payload)
    const errors = validate(schema, args.document)
    return errors.length > 0 ? { errors } : { args }
  } catch (error) {
    return { errors: [error] }
  }
}

// graphql-sse's handler, with the ids that it does not write.
const sse = createHandler({
  schema,
  subscribe,
  onSubscribe({ raw }, params) {
    const { args, errors } = prepareOrRefuse(params)
    raw.place = args?.contextValue.place
    return args ?? (async function* () { yield { errors } })()
  },
})

async function overSse(body, { method, url }, response) {
  const raw = { place: undefined }
  const headers = new Map([['accept', 'text/event-stream'], ['content-type', 'application/json']])
  const [events, { status, headers: given }] = await sse({ method, url, headers, body, raw, context: {} })
  response.writeHead(status, given)
  if (typeof events !== 'object') return response.end(events)
  const told = () => (raw.place ? `id: ${idOf(raw.place.number)}\n` : '')
  const timer = setInterval(() => response.write(`:\n${told()}\n`), heartbeat)
  response.on('close', () => (clearInterval(timer), events.return()))
  response.write(`:\n${told()}\n`)
  for await (const event of events) response.write(event.startsWith('event: next') ? told() + event : event)
  response.end()
}

async function overMultipart(body, request, response) {
  const { args, errors } = prepareOrRefuse(body)
  if (errors) return answer(response, 400, { errors })
  response.writeHead(200, { 'content-type': 'multipart/mixed;boundary="graphql";subscriptionSpec=1.0' })
  const { place } = args.contextValue
  const part = (value) => response.write(`\r\ncontent-type: application/json; charset=utf-8; last-event-id="${idOf(place.number)}"\r\n\r\n${JSON.stringify(value)}\r\n--graphql`)
  response.write('--graphql')
  part({})
  const timer = setInterval(() => part({}), heartbeat)
  const results = await subscribe(args)
  response.on('close', () => (clearInterval(timer), results.return()))
  for await (const payload of results) part({ payload })
}

function answer(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/graphql-response+json; charset=utf-8' }).end(JSON.stringify(body))
}

async function ordinary(body, response) {
  const { query: source, variables: variableValues, operationName } = body
  answer(response, 200, await graphql({ schema, source, variableValues, operationName, rootValue: root }))
}

const server = createServer(async (request, response) => {
  if (!request.url.startsWith('/graphql')) return response.writeHead(404).end()
  if (request.method !== 'POST') return response.writeHead(405).end()
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = JSON.parse(Buffer.concat(chunks))
  const accept = request.headers.accept ?? ''
  const isSubscription = operationOf(body) === 'subscription'
  if (isSubscription && accept.includes('subscriptionSpec')) return overMultipart(body, request, response)
  if (isSubscription || accept === 'text/event-stream') return overSse(body, request, response)
  return ordinary(body, response)
})

function operationOf({ query, operationName }) {
  try {
    return getOperationAST(parse(query), operationName)?.operation
  } catch {
    return undefined
  }
}

let sockets
useServer(
  {
    schema,
    subscribe,
    connectionInitWaitTimeout: seconds('--limit-socket-init-timeout', '10s'),
    onConnect({ extra: { socket } }) {
      const timer = setInterval(() => socket.send(JSON.stringify({ type: 'ping', payload: { lastEventId: idOf(users.length) } })), heartbeat)
      socket.on('close', () => clearInterval(timer))
      return { lastEventId: idOf(users.length) }
    },
    onSubscribe({ subscriptions }, _id, payload) {
      if (Object.keys(subscriptions).length > MOST_OPERATIONS) return [new GraphQLError('too many (limits.socket-subscriptions)')]
      const { args, errors } = prepareOrRefuse(payload)
      return args ?? errors
    },
  },
  (sockets = new WebSocketServer({
    server,
    path: '/graphql',
    maxPayload: MOST_BYTES,
    verifyClient: ({ origin }) => !origin || new URL(origin).hostname === '127.0.0.1',
  })),
)

server.keepAliveTimeout = 60_000
server.listen(Number(option('--port', '0')), '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}`))
process.on('SIGTERM', () => {
  for (const socket of sockets.clients) socket.close(1001, 'Going away')
  setTimeout(() => process.exit(0), 200)
})
