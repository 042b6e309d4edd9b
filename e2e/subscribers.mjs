// The official clients behind one face: each entry subscribes to new users, as the library comes or as the document says.

import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { Client, fetchExchange, subscriptionExchange } from '@urql/core'
import { createClient as createSse } from 'graphql-sse'
import { createClient as createWs } from 'graphql-ws'
import { WebSocket } from 'ws'
import { recipe } from './recipes.mjs'

const { resuming: resumingWs } = await recipe('resuming-ws.mjs')
const { resuming: resumingSse } = await recipe('resuming-sse.mjs')
const { resumingLink } = await recipe('resuming-apollo.mjs')
const { resumingExchanges } = await recipe('resuming-urql.mjs')

const QUERY = 'subscription Created { userCreated { id name } }'

/** Silence after which a client of these tests takes its connection for dead; servers are told to beat more often. */
export const SILENCE = 5_000

const socketUrl = (url) => `${url.replace('http', 'ws')}/graphql`
const socket = (url) => ({ url: socketUrl(url), webSocketImpl: WebSocket, on: { connected: () => begun++ } })
const ws = (url) => createWs(socket(url))
const sse = (url) => createSse({ url: `${url}/graphql` })
const lasting = (url) => ({ ...socket(url), retryAttempts: Infinity, shouldRetry: () => true })

/** How many connections have told their clients the place, counted over all clients of this process. */
export let begun = 0

const originalFetch = globalThis.fetch
globalThis.fetch = async (...given) => {
  const response = await originalFetch(...given)
  if (!/^(text.event-stream|multipart.mixed)/.test(response.headers.get('content-type'))) return response
  const reader = response.body.getReader()
  let reads = 0
  const pull = async (controller) => {
    // Who asks for more has understood the beginning.
    if (++reads === 2) begun++
    const { value, done } = await reader.read()
    return done ? controller.close() : controller.enqueue(value)
  }
  return new Response(new ReadableStream({ pull, cancel: (reason) => reader.cancel(reason) }, { highWaterMark: 0 }), response)
}

/** As each library comes, with its default settings. */
export const plain = {
  'graphql-ws': (url, sink) => overClient(ws(url), sink),
  'graphql-sse': (url, sink) => overClient(sse(url), sink),
  'Apollo Client, multipart': (url, sink) => overApollo(new HttpLink({ uri: `${url}/graphql` }), sink),
  'Apollo Client, graphql-ws': (url, sink) => overApollo(new GraphQLWsLink(ws(url)), sink),
  'urql, graphql-ws': (url, sink) => overUrql(url, { exchanges: [forwarding(ws(url))] }, sink),
  'urql, graphql-sse': (url, sink) => overUrql(url, { exchanges: [forwarding(sse(url))] }, sink),
  'urql, fetchSubscriptions': (url, sink) => overUrql(url, { fetchSubscriptions: true, exchanges: [fetchExchange] }, sink),
}

/** With the lines of docs/subscriptions-clients.md. */
export const resuming = {
  'graphql-ws': (url, sink) => overClient(resumingWs(lasting(url), SILENCE), sink),
  'graphql-sse': (url, sink) => overClient(resumingSse({ url: `${url}/graphql`, retryAttempts: Infinity }, SILENCE), sink),
  'Apollo Client, multipart': (url, sink) => overApollo(resumingLink({ uri: `${url}/graphql` }, SILENCE), sink),
  'Apollo Client, graphql-ws': (url, sink) => overApollo(new GraphQLWsLink(resumingWs(lasting(url), SILENCE)), sink),
  'urql, graphql-ws': (url, sink) => overUrql(url, { exchanges: [forwarding(resumingWs(lasting(url), SILENCE))] }, sink),
  'urql, graphql-sse': (url, sink) =>
    overUrql(url, { exchanges: [forwarding(resumingSse({ url: `${url}/graphql`, retryAttempts: Infinity }, SILENCE))] }, sink),
  'urql, fetchSubscriptions': (url, sink) =>
    overUrql(url, { fetchSubscriptions: true, exchanges: [...resumingExchanges(SILENCE), fetchExchange] }, sink),
}

function overClient(client, sink) {
  return client.subscribe({ query: QUERY }, sink)
}

function overApollo(link, sink) {
  const client = new ApolloClient({ link: ApolloLink.from([link]), cache: new InMemoryCache() })
  const running = client.subscribe({ query: gql(QUERY) }).subscribe({
    next: (result) => (result.error ? sink.error(result.error) : sink.next(result)),
    error: (error) => sink.error(error),
    complete: () => sink.complete(),
  })
  return () => running.unsubscribe()
}

function forwarding(client) {
  return subscriptionExchange({
    forwardSubscription: (request) => ({ subscribe: (sink) => ({ unsubscribe: client.subscribe(request, sink) }) }),
  })
}

function overUrql(url, options, sink) {
  const client = new Client({ url: `${url}/graphql`, ...options })
  const running = client.subscription(QUERY, {}).subscribe((result) => {
    if (result.error) return sink.error(result.error)
    // urql shows its last result once more when a stream has ended.
    if (result.hasNext === false) return sink.complete()
    sink.next(result)
  })
  return () => running.unsubscribe()
}
