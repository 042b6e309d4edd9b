// A TCP proxy on a port of its own that cuts its connections, swallows what they carry, or refuses new ones, on command.

import { createServer, connect } from 'node:net'
import { once } from 'node:events'

export async function openProxy(target) {
  const pairs = new Set()
  let port = Number(new URL(target).port)
  let refusing = false
  let accepted = 0

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (refusing) return client.destroy()
    accepted++
    const pair = { client, upstream: connect({ port, host: '127.0.0.1', allowHalfOpen: true }), swallowing: false }
    pairs.add(pair)
    join(pair, client, pair.upstream)
    join(pair, pair.upstream, client)
    const end = () => {
      pairs.delete(pair)
      client.destroy()
      pair.upstream.destroy()
    }
    // Nothing is passed on any more from a black hole, not even that it is over.
    for (const socket of [client, pair.upstream]) socket.on('error', () => {}).on('close', () => pair.swallowing || end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** Where new connections go. */
    lead: (url) => (port = Number(new URL(url).port)),
    refuse: (whether) => (refusing = whether),
    /** How many connections there have been. */
    accepted: () => accepted,
    /** Resets every connection. */
    cut() {
      for (const { client, upstream } of pairs) {
        client.resetAndDestroy()
        upstream.resetAndDestroy()
      }
      pairs.clear()
    },
    /** Keeps every connection open and passes on nothing more. New ones work. */
    swallow() {
      for (const pair of pairs) pair.swallowing = true
    },
    async close() {
      for (const { client, upstream } of pairs) {
        client.destroy()
        upstream.destroy()
      }
      server.close()
    },
  }
}

function join(pair, from, to) {
  from.on('data', (chunk) => {
    if (pair.swallowing) return
    if (!to.write(chunk)) from.pause()
  })
  to.on('drain', () => from.resume())
  from.on('end', () => pair.swallowing || to.end())
}
