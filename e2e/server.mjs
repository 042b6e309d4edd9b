// Starts a server under test on a free port with a data folder or a database of its own, and stops it.
//
// STORE=postgres puts it on a new database of a PostgreSQL that is there for the tests.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { database } from './postgres.mjs'

const READY_WITHIN = 30_000
const STOPPED_WITHIN = 15_000

/** The program under test: SERVER_BIN for the server itself, HARDER_BIN for the one with resolvers of its own. */
export function binary(variable = 'SERVER_BIN') {
  const path = process.env[variable]
  if (!path) throw new Error(`${variable} names no program: build one and give its path, or ./standin.mjs`)
  return path
}

/** A data folder for servers that come after one another; `start` makes one of its own for a server that is alone. */
export function dataFolder() {
  return mkdtempSync(join(tmpdir(), 'trefoil-e2e-'))
}

/**
 * Starts `bin serve …args` and waits until it has told its address.
 * Gives its `url` (no slash at the end), its `pid`, what it has printed so far (`output()`), `stop()` and `kill()`, which
 * ends it as a crash would. A data folder that was given is left where it is.
 */
export async function start(bin, args = [], env = {}, given = undefined) {
  const data = given ?? dataFolder()
  const store = process.env.STORE === 'postgres' ? ['--database', await database()] : []
  const child = spawn(bin, ['serve', ...args, ...store, '--port', '0', '--data', data], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit').catch((error) => [error.message])
  let printed = ''
  const address = new Promise((resolve) => {
    const read = (text) => {
      printed += text
      // The log may name other addresses before, such as that of an issuer of tokens.
      const found = /listening on (http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]):\d+)/.exec(printed)
      if (found) resolve(found[1])
    }
    child.stdout.setEncoding('utf8').on('data', read)
    child.stderr.setEncoding('utf8').on('data', read)
  })

  const stop = async () => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOPPED_WITHIN)
    child.kill('SIGTERM')
    const [code, signal] = await exited
    clearTimeout(timer)
    if (!given) rmSync(data, { recursive: true, force: true })
    return { code, signal }
  }

  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }

  const url = await Promise.race([address, exited.then(() => undefined), later(READY_WITHIN)])
  if (!url) {
    const { code, signal } = await stop()
    throw new Error(`${bin} told no address and ended with ${code ?? signal}:\n${printed}`)
  }
  return { url, pid: child.pid, stop, kill, output: () => printed }
}

function later(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref())
}
