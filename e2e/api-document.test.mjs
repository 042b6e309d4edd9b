// Schemathesis holds the server to its own document: what it describes is accepted and answered as it says, the rest refused.
//
// LONG_CHECKS=1 tries many more cases, the types of the sample that repeat others, and operators where they are repeated. SCHEMATHESIS_SEED=n takes another seed; a
// failure tells its own. It takes the longest of all, and files are run in the order of their names: hence this one.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { environment } from './python.mjs'
import { binary, start } from './server.mjs'

const HERE = new URL('./schemathesis', import.meta.url).pathname
const LONG = process.env.LONG_CHECKS === '1'

// The coverage of each operation is the same in both; made-up cases are what grows.
const EXAMPLES = LONG ? 40 : 4
const AT_LEAST = LONG ? 5_000 : 1_000
// Their shapes are those of users and orders.
const LEFT_OUT = LONG ? [] : ['--exclude-path-regex', '^/(products|customers|articles)']
const WITHIN = LONG ? 3_600_000 : 900_000

let server
before(async () => {
  server = await start(binary())
})
after(() => server?.stop())

test('the server does what /openapi.json says', { timeout: WITHIN }, async () => {
  // The long run looks elsewhere each time; the short one tells whether something became worse.
  const seed = process.env.SCHEMATHESIS_SEED ?? (LONG ? String(Date.now() % 1_000_000) : '1')
  const options = ['-n', String(EXAMPLES), '--seed', seed, '--no-color', ...LEFT_OUT]
  const { code, printed } = await run([...options, `${server.url}/openapi.json`])
  const summary = printed.slice(printed.indexOf(' SUMMARY '))
  assert.equal(code, 0, printed)
  for (const phase of ['Examples', 'Coverage', 'Fuzzing', 'Stateful']) assert.match(summary, new RegExp(`✅ ${phase}`))
  const [, tried, passed] = /(\d+) generated, (\d+) passed/.exec(summary) ?? assert.fail(summary)
  assert.equal(tried, passed)
  assert.ok(Number(tried) >= AT_LEAST, `only ${tried} cases were tried`)
})

async function run(options) {
  const child = spawn(join(environment('schemathesis', HERE), 'bin/st'), ['--config-file', 'schemathesis.toml', 'run', ...options], {
    cwd: HERE,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  const read = (text) => (printed += text)
  child.stdout.setEncoding('utf8').on('data', read)
  child.stderr.setEncoding('utf8').on('data', read)
  const [code] = await once(child, 'close')
  return { code, printed }
}
