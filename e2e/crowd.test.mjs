// Many subscribers at once, in a process of their own (examples/crowd): each gets every event once and in order, whoever
// else is stuck, joins late or comes back. LONG_CHECKS=1 makes it ten thousand of each kind.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { binary, start } from './server.mjs'

const LONG = process.env.LONG_CHECKS === '1'
const STALL = 5

// One kind after the other where there are many: each connection takes a file, and few systems allow 20,000.
const crowds = LONG
  ? {
      '10,000 sockets': { sockets: 10_000, events: 300, rate: 8, stuck: 20 },
      '10,000 streams': { streams: 10_000, events: 300, rate: 8, stuck: 20 },
      'joining and coming back under load': { sockets: 5, streams: 5, events: 60_000, rate: 1_000, writers: 64, joiners: 60, wanderers: 20 },
    }
  : {
      '300 sockets and 300 streams': { sockets: 300, streams: 300, events: 300, rate: 60, stuck: 5 },
      'joining and coming back under load': { sockets: 5, streams: 5, events: 5_000, rate: 1_000, writers: 64, joiners: 40, wanderers: 15 },
    }

for (const [name, crowd] of Object.entries(crowds)) {
  test(name, async (t) => {
    const settings = { 'limit-stall-timeout': `${STALL}s`, heartbeat: crowd.wanderers ? '1s' : '30s', 'limit-connections': 20_000 }
    const server = await start(binary(), flags(settings))
    try {
      const options = crowd.stuck ? { ...crowd, 'stuck-for': STALL + 5 } : crowd
      const { code, printed } = await run(binary('CROWD_BIN'), [server.url.replace('localhost', '127.0.0.1'), server.pid, ...flags(options)])
      for (const line of printed.trim().split('\n')) t.diagnostic(line)
      assert.equal(code, 0, printed)
      const reasons = server.output().match(/did not read for [^"]*stall-timeout/g) ?? []
      assert.ok(reasons.length >= 2 * (crowd.stuck ?? 0), `${reasons.length} of the stuck were cut with a reason`)
    } finally {
      await server.stop()
    }
  })
}

function flags(values) {
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)])
}

async function run(bin, args) {
  const child = spawn(bin, args.map(String), { stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text) => (printed += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (printed += text))
  const [code] = await once(child, 'close')
  return { code, printed }
}
