// Generated documents, valid and invalid, are judged by the server as graphql-js judges them: same verdict, same data in
// the same order, same error paths. Known differences are in known-differences.json and in docs/differences.md.
//
// DIFF_SEED=n takes other documents, DIFF_TIMES=n takes n times as many; a part of them, as 0.25 does, meets not every known
// difference.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Differential, Known } from './differential.mjs'
import { resolvers } from './harder/resolvers.mjs'
import { binary, start } from './server.mjs'

const SEED = Number(process.env.DIFF_SEED ?? 20211026)
const TIMES = Number(process.env.DIFF_TIMES ?? 1)

// The server's own limits on documents are no part of the comparison.
const LIMITS = ['--limit-depth', '1000', '--limit-tokens', '100000', '--limit-aliases', '10000', '--limit-cost', '1000000000000000']
const FOLDERS = { app: new URL('../app', import.meta.url).pathname, harder: new URL('harder', import.meta.url).pathname }

const TYPE_NAMES = ['Query', 'Mutation', 'User', 'Person', 'Book', 'Node', 'SearchResult', 'Genre', 'OrderStatus', 'Probe', 'Decimal', 'String', '__Type', 'Nowhere', '']
const pools = { typeName: TYPE_NAMES }

// What chance may not bring up in every run.
const ALWAYS = [
  { query: '"It is described." query Q { __typename }' },
  { query: '"It is described." fragment F on Query { __typename } { ...F }' },
  { query: 'query ("It is described." $name: String!) { __type(name: $name) { name } }', variables: { name: 'Query' } },
  { query: '{ echo(ratio: 1e400) }' },
  { query: 'query ($no: Boolean = false) { __schema { types { name @skip(if: $no) } } __typename }', variables: { no: null } },
  { query: 'query ($no: Boolean = false) { __type(name: "Query") { fields { name @skip(if: $no) } } __typename }', variables: { no: null } },
  { query: 'query ($no: Boolean = false) { ...F ...F @skip(if: $no) } fragment F on Query { __typename }', variables: { no: null } },
  { query: 'query Q { __typename } subscription S { userCreated { id } userCreated { name } }', operationName: 'Q' },
  { query: 'query Q { __typename } subscription S { userCreated { id } ...F } fragment F on Subscription { b: userCreated { name } }', operationName: 'Q' },
]

// The stand-in is graphql-js itself and differs in nothing.
const known = new Known(binary().endsWith('standin.mjs') ? [] : undefined)
let requests = 0

after(() => console.log(`${requests} requests compared with graphql-js, seed ${SEED}`))

test('the sample answers as graphql-js does', async (t) => {
  await compare(t, 'sample', binary(), [], { folder: FOLDERS.app, pools }, times({ reads: 900, writes: 200 }))
})

test('the harder schema answers as graphql-js does', async (t) => {
  const texts = ['', 'a', 'A', 'o', 'Novel', 'ö', '🌍', 'Nin', 'nothing has this']
  await compare(t, 'harder', binary('HARDER_BIN'), [FOLDERS.harder], { folder: FOLDERS.harder, resolvers, pools: { ...pools, text: texts } }, times({ reads: 1500, writes: 250 }))
})

test('enough requests were compared and every known difference was met', () => {
  assert.ok(requests >= 2000 * TIMES, `only ${requests}`)
  if (TIMES >= 1) assert.deepEqual(known.unmet(), [], 'these differences are gone: take them out of known-differences.json and docs/differences.md')
})

function times({ reads, writes }) {
  return { reads: Math.ceil(reads * TIMES), writes: Math.ceil(writes * TIMES) }
}

async function compare(t, name, bin, args, options, { reads, writes }) {
  const server = await start(bin, [...args, ...LIMITS])
  t.after(server.stop)
  const run = await Differential.open(name, server.url, { ...options, known, seed: SEED })
  t.after(() => run.close())
  await run.these(ALWAYS)
  await run.read(reads)
  if (!run.failures.length) await run.write(writes)
  requests += run.total
  t.diagnostic(`${run.total} requests: ${JSON.stringify(run.counts)}`)
  if (run.failures.length) assert.fail(await run.report())
  // A generator that makes only errors, or none, would prove little.
  for (const [kind, count] of Object.entries(run.counts)) assert.ok(count > run.total / 20, `only ${count} of ${run.total} were ${kind}`)
}
