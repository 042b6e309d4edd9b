// The files of the pages: the same content in every coding, and the project's own as they stand in the repository.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { FOLDERS } from './pack.mjs'
import { binary, start } from './server.mjs'

const ROOT = new URL('..', import.meta.url).pathname
const DECODE = { br: brotliDecompressSync, gzip: gunzipSync, undefined: (bytes) => bytes }

let server
before(async () => {
  server = await start(binary())
})
after(() => server?.stop())

function get(path, headers) {
  return new Promise((resolve, reject) => {
    request(new URL(path, server.url), { headers }, (response) => {
      const parts = []
      response.on('data', (part) => parts.push(part))
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) }))
    })
      .on('error', reject)
      .end()
  })
}

async function assets() {
  const found = new Set()
  for (const page of ['/graphql', '/docs', '/users']) {
    const { body } = await get(page, { accept: 'text/html' })
    for (const [url] of body.toString().matchAll(/\/_\/(?:assets|docs|pages)\/[\w.-]+/g)) found.add(url)
  }
  return [...found]
}

test('every file is the same in each coding', async () => {
  const urls = await assets()
  assert.ok(urls.length >= 12, `${urls}`)
  for (const url of urls) {
    const [, stem, extension] = /\/([\w-]+)\.\w{16}\.(\w+)$/.exec(url)
    const own = FOLDERS.map((folder) => join(ROOT, folder, `${stem}.${extension}`)).find(existsSync)
    const plain = await get(url, { 'accept-encoding': 'identity' })
    assert.equal(plain.status, 200, url)
    if (own) assert.deepEqual(plain.body, readFileSync(own), `${own} was changed: run \`npm run pack\` in e2e/`)
    for (const [accepted, coding] of [
      ['br, gzip', 'br'],
      ['gzip', 'gzip'],
      ['br;q=0, *', 'gzip'],
      ['gzip;q=0, br;q=0', undefined],
      [undefined, undefined],
    ]) {
      const { status, headers, body } = await get(url, accepted && { 'accept-encoding': accepted })
      assert.deepEqual([status, headers['content-encoding'], headers.vary], [200, coding, 'accept-encoding'], `${url}: ${accepted}`)
      assert.deepEqual(DECODE[coding](body), plain.body, `${url}: ${accepted}`)
    }
  }
})
