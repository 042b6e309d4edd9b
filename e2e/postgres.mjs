// A PostgreSQL server of its own for the tests of one process, kept by tests/postgres/cluster; gone with the process.

import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const SCRIPT = new URL('../tests/postgres/cluster', import.meta.url).pathname

let shared

/** The URL of a new, empty database on the server that this process shares. */
export async function database() {
  shared ??= new Cluster()
  return shared.database()
}

class Cluster {
  constructor() {
    const child = spawn(SCRIPT, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.stdin = child.stdin
    this.answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    // It waits for the pipe to close, so it must not keep this process from ending.
    for (const held of [child, child.stdin, child.stdout]) held.unref()
    this.last = this.ask('start')
  }

  /** Commands go one at a time, in the order they were asked for. */
  ask(command) {
    const before = this.last
    return (this.last = (async () => {
      await before
      const alive = setInterval(() => {}, 1000) // while an answer is awaited
      this.stdin.write(`${command}\n`)
      const { value = 'error it has ended' } = await this.answers.next()
      clearInterval(alive)
      if (!/^ok\b/.test(value)) throw new Error(`PostgreSQL for tests, ${command}: ${value}`)
      return value.slice(3)
    })())
  }

  database() {
    return this.ask('database')
  }
}
