// The client that openapi-python-client makes of /openapi.json, without any settings, writes and reads records.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { environment } from './python.mjs'
import { binary, start } from './server.mjs'

const HERE = new URL('./openapi-python', import.meta.url).pathname
const CLIENT = new URL('./.cache/openapi_python_generated', import.meta.url).pathname

let server
before(async () => (server = await start(binary())))
after(() => server?.stop())

test('openapi-python-client generates bodies that can be sent', { timeout: 300_000 }, async () => {
  const tools = join(environment('openapi-python', HERE), 'bin')
  // It looks for ruff, which formats what it writes, among the programs.
  const env = { ...process.env, PATH: `${tools}${delimiter}${process.env.PATH}`, PYTHONDONTWRITEBYTECODE: '1' }
  const run = (program, options, more = {}) => promisify(execFile)(join(tools, program), options, { env: { ...env, ...more } })
  rmSync(CLIENT, { recursive: true, force: true })
  mkdirSync(join(CLIENT, '..'), { recursive: true })
  await run('openapi-python-client', ['generate', '--url', `${server.url}/openapi.json`, '--output-path', CLIENT, '--meta', 'none'])
  const { stdout } = await run('python', [join(HERE, 'client.py'), server.url], { PYTHONPATH: join(CLIENT, '..') })
  assert.deepEqual(JSON.parse(stdout), {
    created: ['Samovar', '120.00'],
    many: ['Cup', 'Saucer'],
    replaced: ['Urn', null],
    changed: ['Urn', '9.50'],
    gone: 404,
  })
})
