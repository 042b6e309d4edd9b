// The tests tested: with graphql-js in the server's place the differential test must be content, and with any one fault
// in it, such as a validation rule left out, it must not be. LONG_CHECKS=1 leaves out every rule in turn, else every fourth.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { specifiedRules } from 'graphql'
import { Differential, Known } from './differential.mjs'
import { resolvers } from './harder/resolvers.mjs'
import { start } from './server.mjs'

const STANDIN = new URL('standin.mjs', import.meta.url).pathname
const FOLDER = new URL('harder', import.meta.url).pathname
const SEED = 7
const MOST = 6000
const STEP = 100

const LONG = process.env.LONG_CHECKS === '1'
const RULES = specifiedRules.filter((_, index) => LONG || index % 4 === 0)
const FAULTS = ['order', 'path', 'swallow', 'value', 'nulls', 'coerce', ...RULES.map(({ name }) => `rule:${name}`)]

test('no fault is found where there is none', async () => {
  assert.equal((await failuresWith('')).length, 0)
})

for (const fault of FAULTS) {
  test(`the fault ${fault} is found`, async () => {
    assert.notEqual((await failuresWith(fault)).length, 0)
  })
}

/** Stops at the first failures, since one is proof enough. */
async function failuresWith(fault) {
  const server = await start(STANDIN, [FOLDER], { STANDIN_BREAK: fault })
  try {
    const run = await Differential.open('harder', server.url, { folder: FOLDER, resolvers, known: new Known([]), seed: SEED })
    for (let from = 0; from < (fault ? MOST : LONG ? 1000 : 300) && !run.failures.length; from += STEP) await run.read(STEP, from)
    run.close()
    return run.failures
  } finally {
    await server.stop()
  }
}
