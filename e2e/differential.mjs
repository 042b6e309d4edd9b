// Asks a server and graphql-js the same and gathers where they differ, but for the differences that are known.

import { readFileSync } from 'node:fs'
import { caseAt, operationOf } from './cases.mjs'
import { Client } from './client.mjs'
import { difference } from './compare.mjs'
import { ORDER_QUERY, adoptOrder, judge } from './judge.mjs'
import { shrink } from './shrink.mjs'

const CONNECTIONS = 8
const SHOWN = 5

export class Known {
  constructor(entries = JSON.parse(readFileSync(new URL('known-differences.json', import.meta.url), 'utf8'))) {
    this.entries = entries.map((entry) => ({ ...entry, met: 0 }))
  }

  /** The entry that this difference falls under, if any. */
  find(found, { query = '', variables } = {}, answer = {}) {
    const messages = (answer.body?.errors ?? []).map(({ message }) => message).join('\n')
    const texts = { kind: found.kind, expected: String(found.expected), actual: String(found.actual), document: query, variables: JSON.stringify(variables ?? {}), message: messages }
    const entry = this.entries.find(({ match }) => Object.entries(match).every(([key, pattern]) => new RegExp(pattern, 's').test(texts[key])))
    if (entry) entry.met++
    return entry
  }

  unmet() {
    return this.entries.filter(({ met }) => met === 0).map(({ name }) => name)
  }
}

/** One server against one judge. */
export class Differential {
  static async open(name, url, { folder, resolvers, pools, known, seed }) {
    const client = new Client(url, CONNECTIONS)
    const sdl = await client.get('/graphql/schema.graphqls')
    const run = new Differential()
    Object.assign(run, { name, client, known, seed, pools, folder, resolvers, sdl, judge: judge(sdl, folder, resolvers) })
    Object.assign(run, { counts: { executed: 0, partial: 0, rejected: 0 }, ways: new Map(), failures: [], total: 0 })
    await run.#takeOrder()
    return run
  }

  async #takeOrder() {
    const { body } = await this.client.post({ query: ORDER_QUERY })
    for (const text of adoptOrder(this.judge.schema, body.data.__schema)) {
      const found = { kind: 'introspection', expected: text, actual: '' }
      if (!this.known.find(found)) this.failures.push({ request: { index: -1, way: 'introspection', query: ORDER_QUERY }, found })
    }
  }

  /** Requests that change nothing and were written by hand. */
  async these(requests) {
    for (const request of requests) await this.#compare({ index: -1, way: 'by hand', ...request })
  }

  /** Requests that change nothing, several at a time. */
  async read(count, from = 0) {
    let next = from
    const worker = async () => {
      while (next < from + count) {
        const request = caseAt(this.judge.schema, this.seed, next++, { pools: this.pools })
        const kind = operationOf(request)
        if (kind === 'mutation' || kind === 'subscription') continue
        await this.#compare(request)
      }
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  }

  /** Requests that write, one after another, each followed by reads of what is there now. */
  async write(count, from = 1_000_000) {
    for (let index = from; index < from + count && !this.failures.length; index++) {
      const request = caseAt(this.judge.schema, this.seed, index, { kind: index % 3 ? 'mutation' : 'query', pools: this.pools })
      if (operationOf(request) !== 'subscription') await this.#compare(request)
    }
  }

  async #compare(request) {
    const { expected, answer, found } = await this.#ask(request)
    if (!expected) return
    this.total++
    this.ways.set(request.way, (this.ways.get(request.way) ?? 0) + 1)
    this.counts[!('data' in expected) ? 'rejected' : expected.errors ? 'partial' : 'executed']++
    if (found && !this.known.find(found, request, answer)) this.failures.push({ request, found, expected, answer })
  }

  async #ask({ query, variables, operationName }) {
    const judged = this.judge.ask({ query, variables, operationName })
    if (!judged) return {}
    const expected = JSON.parse(JSON.stringify(judged))
    const answer = await this.client.post({ query, variables, operationName })
    return { expected, answer, found: difference(expected, answer) }
  }

  /** What a person needs to see: the smallest request that fails, what was expected and what came. */
  async report() {
    const shortest = this.failures.sort((a, b) => a.request.query.length - b.request.query.length).slice(0, SHOWN)
    const parts = []
    for (const failure of shortest) parts.push(await this.#describe(failure))
    return `${this.failures.length} of ${this.total} requests to the ${this.name} schema differ (seed ${this.seed}); the shortest:\n\n${parts.join('\n\n')}`
  }

  async #describe({ request, found }) {
    const writes = request.index >= 1_000_000
    const stillFails = async (candidate) => {
      const kind = operationOf(candidate)
      if (kind === 'mutation' || kind === 'subscription') return false
      const { found: again, answer } = await this.#ask(candidate)
      return again?.kind === found.kind && !this.known.find(again, candidate, answer)
    }
    const small = writes || request.index < 0 ? request : await shrink(request, stillFails)
    const last = writes || request.index < 0 ? { found } : await this.#ask(small)
    return [
      `── ${found.kind} (case ${request.index}, ${request.way})`,
      small.query,
      `variables ${JSON.stringify(small.variables)}  operationName ${JSON.stringify(small.operationName)}`,
      `graphql-js: ${last.found?.expected}`,
      `server:     ${last.found?.actual}`,
      ...(last.answer ? [`graphql-js answers ${clip(last.expected)}`, `server answers     ${last.answer.status} ${clip(last.answer.body)}`] : []),
    ].join('\n')
  }

  close() {
    this.client.close()
  }
}

function clip(value) {
  const text = JSON.stringify(value)
  return text.length > 1500 ? `${text.slice(0, 1500)} …` : text
}
