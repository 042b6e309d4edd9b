// JSON Web Tokens of a real issuer (oidc-provider), of forgers, and of an issuer whose keys change, hang, swell or are gone.

import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import Provider from 'oidc-provider'
import { binary, start } from './server.mjs'

const AUDIENCE = 'shop-api'
const SCHEMA = `
  type Note @allow(read: "role(READER, EDITOR)", create: "role(EDITOR)", delete: "claim('tenant.name') == owner") {
    id: ID!
    text: String! @notBlank
    owner: String
  }
  type Notice @allow(read: true) {
    id: ID!
    text: String!
  }
`

const encoded = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const now = () => Math.floor(Date.now() / 1000)

/** A key pair as the issuer keeps it. */
function rsaKey(kid) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { kid, privateKey, publicKey, jwk: { ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' } }
}

/** An issuer on a port of its own. `keys` are what it signs with; `mode` is what becomes of requests for them. */
class Issuer {
  constructor() {
    this.mode = 'well'
    this.fetches = 0
    this.server = createServer((request, response) => {
      if (request.url.startsWith('/jwks')) {
        this.fetches += 1
        if (this.mode === 'gone') return request.socket.destroy()
        if (this.mode === 'slow') return
        if (this.mode === 'huge') {
          const padding = 'x'.repeat(300 * 1024)
          response.setHeader('content-type', 'application/json')
          return response.end(JSON.stringify({ keys: [publicJwk(this.keys[0])], padding }))
        }
        if (this.mode === 'elsewhere') {
          response.writeHead(302, { location: `${this.url}/jwks-of-another` })
          return response.end()
        }
      }
      this.handle(request, response)
    })
  }

  async listen() {
    this.server.listen(0, 'localhost')
    await once(this.server, 'listening')
    this.url = `http://localhost:${this.server.address().port}`
    this.use([rsaKey('first')])
    return this
  }

  /** Signs with these keys from now on, and publishes no others. */
  use(keys) {
    this.keys = keys
    const provider = new Provider(this.url, {
      jwks: { keys: keys.map((key) => key.jwk) },
      clients: [
        {
          client_id: 'robot',
          client_secret: 'a secret of a robot',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
        },
      ],
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_, resource) => ({
            scope: 'api',
            audience: resource.replace('urn:', ''),
            accessTokenFormat: 'jwt',
            accessTokenTTL: 600,
            jwt: { sign: { alg: 'RS256' } },
          }),
        },
      },
      extraTokenClaims: () => this.claims,
    })
    this.handle = provider.callback()
  }

  /** A token that the issuer gives to a client of its own. */
  async token(audience = AUDIENCE, claims = { realm: { roles: ['editors', 'unheard-of'] } }) {
    this.claims = claims
    const answer = await fetch(`${this.url}/token`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${Buffer.from(`robot:${encodeURIComponent('a secret of a robot')}`).toString('base64')}`,
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource: `urn:${audience}` }),
    })
    const body = await answer.json()
    assert.equal(answer.status, 200, JSON.stringify(body))
    return body.access_token
  }

  /** Claims that are all right, but for those that are given. */
  payload(changes = {}) {
    const good = {
      iss: this.url,
      aud: AUDIENCE,
      sub: 'robot',
      iat: now(),
      exp: now() + 600,
      realm: { roles: ['editors'] },
    }
    const claims = { ...good, ...changes }
    return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
  }

  stop() {
    this.server.closeAllConnections()
    this.server.close()
  }
}

function publicJwk(key) {
  return { ...key.publicKey.export({ format: 'jwk' }), kid: key.kid, alg: 'RS256', use: 'sig' }
}

/** A token signed with RS256 by a key that need not be the issuer's. */
function signed(key, payload, header = {}) {
  const head = { alg: 'RS256', typ: 'at+jwt', kid: key.kid, ...header }
  const text = `${encoded(head)}.${encoded(payload)}`
  return `${text}.${sign('sha256', Buffer.from(text), key.privateKey).toString('base64url')}`
}

function signedWithSecret(secret, payload, header = {}) {
  const text = `${encoded({ alg: 'HS256', typ: 'JWT', ...header })}.${encoded(payload)}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

/** An application that takes the tokens of an issuer. */
function application(issuer, more = '') {
  const folder = mkdtempSync(join(tmpdir(), 'trefoil-tokens-'))
  mkdirSync(join(folder, 'graphql'))
  mkdirSync(join(folder, 'seed'))
  writeFileSync(join(folder, 'graphql/notes.graphqls'), SCHEMA)
  writeFileSync(join(folder, 'seed/notes.json'), JSON.stringify([{ id: 1, text: 'of the red ones', owner: 'red' }]))
  writeFileSync(join(folder, 'seed/notices.json'), JSON.stringify([{ id: 1, text: 'for all' }]))
  writeFileSync(
    join(folder, 'trefoil.toml'),
    `name = "Notes"
[[auth.jwt]]
issuer = "${issuer.url}"
audience = "${AUDIENCE}"
roles = "realm.roles"
role-map = { "editors" = "EDITOR", "readers" = "READER" }
${more}`,
  )
  return folder
}

/** Asks with a token; gives status, headers and body. */
async function ask(server, token, path = '/notes', options = {}) {
  const headers = { accept: 'application/json', ...options.headers }
  if (token) headers.authorization = `Bearer ${token}`
  const answer = await fetch(server.url + path, { redirect: 'manual', ...options, headers })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

/** Asks until the keys of the issuer are there. */
async function askUntil(server, token, status, within = 20_000) {
  const end = Date.now() + within
  for (;;) {
    const answer = await ask(server, token)
    if (answer.status === status || Date.now() > end) return answer
    await sleep(100)
  }
}

describe('an issuer that is well', () => {
  let issuer, server, folder
  before(async () => {
    issuer = await new Issuer().listen()
    folder = application(issuer)
    server = await start(binary(), [folder])
    const first = await askUntil(server, await issuer.token(), 200)
    assert.equal(first.status, 200, first.text)
  })
  after(async () => {
    await server?.stop()
    issuer?.stop()
    if (folder) rmSync(folder, { recursive: true, force: true })
  })

  test('its token reads and writes as its roles say', async () => {
    const token = await issuer.token()
    const created = await ask(server, token, '/notes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'made with a token', owner: 'blue' }),
    })
    assert.equal(created.status, 201, created.text)
    const reader = await issuer.token(AUDIENCE, { realm: { roles: ['readers'] } })
    assert.equal((await ask(server, reader)).status, 200)
    const refused = await ask(server, reader, '/notes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'no' }),
    })
    assert.equal(refused.status, 403, refused.text)
    assert.equal(JSON.parse(refused.text).code, 'FORBIDDEN')
  })

  test('a claim is compared with a field', async () => {
    const roles = { realm: { roles: ['readers'] } }
    const blue = await issuer.token(AUDIENCE, { ...roles, tenant: { name: 'green' } })
    assert.equal((await ask(server, blue, '/notes/1', { method: 'DELETE' })).status, 403)
    const red = await issuer.token(AUDIENCE, { ...roles, tenant: { name: 'red' } })
    assert.equal((await ask(server, red, '/notes/1', { method: 'DELETE' })).status, 204)
  })

  test('a token without roles is signed in and may do nothing', async () => {
    const token = await issuer.token(AUDIENCE, {})
    assert.equal((await ask(server, token)).status, 403)
    assert.equal((await ask(server, token, '/notices')).status, 200)
  })

  test('without a token only what is public is there', async () => {
    const answer = await ask(server)
    assert.equal(answer.status, 401, answer.text)
    assert.equal(answer.headers.get('www-authenticate'), 'Bearer realm="Notes"')
    assert.equal((await ask(server, undefined, '/notices')).status, 200)
  })

  test('answers to somebody are for nobody else', async () => {
    const answer = await ask(server, await issuer.token(), '/notices')
    assert.match(answer.headers.get('cache-control'), /private/)
    assert.match(answer.headers.get('vary'), /authorization/i)
  })

  const stranger = rsaKey('first')
  const refusals = {
    'for another audience': () => issuer.token('another-api'),
    'without an audience': () => signed(issuer.keys[0], issuer.payload({ aud: undefined })),
    'of another issuer': () => signed(issuer.keys[0], issuer.payload({ iss: 'http://localhost:1' })),
    'whose issuer differs by a slash': () => signed(issuer.keys[0], issuer.payload({ iss: `${issuer.url}/` })),
    'without an issuer': () => signed(issuer.keys[0], issuer.payload({ iss: undefined })),
    'that has expired': () => signed(issuer.keys[0], issuer.payload({ exp: now() - 60 })),
    'without an end': () => signed(issuer.keys[0], issuer.payload({ exp: undefined })),
    'whose end is a text': () => signed(issuer.keys[0], issuer.payload({ exp: String(now() + 600) })),
    'whose end is null': () => signed(issuer.keys[0], issuer.payload({ exp: null })),
    'that is not good yet': () => signed(issuer.keys[0], issuer.payload({ nbf: now() + 600 })),
    'whose beginning is a text': () => signed(issuer.keys[0], issuer.payload({ nbf: 'now' })),
    'of a key of the same name': () => signed(stranger, issuer.payload()),
    'without an algorithm': () => `${encoded({ alg: 'none', typ: 'JWT' })}.${encoded(issuer.payload())}.`,
    'without an algorithm, in capitals': () => `${encoded({ alg: 'NONE' })}.${encoded(issuer.payload())}.`,
    'without an algorithm, with a signature': () => {
      const parts = signed(issuer.keys[0], issuer.payload()).split('.')
      return `${encoded({ alg: 'none', kid: 'first' })}.${parts[1]}.${parts[2]}`
    },
    'signed with the public key as a secret, as PEM': () =>
      signedWithSecret(issuer.keys[0].publicKey.export({ type: 'spki', format: 'pem' }), issuer.payload(), { kid: 'first' }),
    'signed with the public key as a secret, as PKCS #1': () =>
      signedWithSecret(issuer.keys[0].publicKey.export({ type: 'pkcs1', format: 'pem' }), issuer.payload(), { kid: 'first' }),
    'signed with the public key as a secret, as DER': () =>
      signedWithSecret(issuer.keys[0].publicKey.export({ type: 'spki', format: 'der' }), issuer.payload(), { kid: 'first' }),
    'signed with the public key as a secret, as JSON': () =>
      signedWithSecret(JSON.stringify(publicJwk(issuer.keys[0])), issuer.payload(), { kid: 'first' }),
    'signed with nothing as a secret': () => signedWithSecret('', issuer.payload(), { kid: 'first' }),
    'that brings its key along': () =>
      signed(stranger, issuer.payload(), { kid: undefined, jwk: publicJwk(stranger) }),
    'that tells where its key is': () => signed(stranger, issuer.payload(), { jku: `${issuer.url}/jwks-of-another` }),
    'that is marked as critical': () => signed(issuer.keys[0], issuer.payload(), { crit: ['exp'] }),
    'of another type': () => signed(issuer.keys[0], issuer.payload(), { typ: 'logout+jwt' }),
    'whose payload was changed': () => {
      const parts = signed(issuer.keys[0], issuer.payload({ realm: { roles: ['readers'] } })).split('.')
      return `${parts[0]}.${encoded(issuer.payload())}.${parts[2]}`
    },
    'without a signature': () => `${signed(issuer.keys[0], issuer.payload()).split('.').slice(0, 2).join('.')}.`,
    'of two parts': () => signed(issuer.keys[0], issuer.payload()).split('.').slice(0, 2).join('.'),
    'of five parts': () => `${signed(issuer.keys[0], issuer.payload())}.x.y`,
    'above 8 KiB': () => signed(issuer.keys[0], issuer.payload({ more: 'x'.repeat(8 * 1024) })),
    'that is no JSON': () => 'a.b.c',
  }
  for (const [name, make] of Object.entries(refusals)) {
    test(`a token ${name} is refused, on what is public too`, async () => {
      const token = await make()
      for (const path of ['/notes', '/notices']) {
        const answer = await ask(server, token, path)
        assert.equal(answer.status, 401, answer.text)
        assert.match(answer.headers.get('www-authenticate'), /^Bearer realm="Notes".*error="invalid_token"/)
      }
      const answer = await ask(server, token, '/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query: '{ notes { text } }' }),
      })
      assert.equal(answer.status, 401, answer.text)
      assert.doesNotMatch(answer.text, /red ones/)
    })
  }

  test('a clock may be 30 seconds off', async () => {
    const slow = signed(issuer.keys[0], issuer.payload({ exp: now() - 10 }))
    assert.equal((await ask(server, slow)).status, 200)
    const fast = signed(issuer.keys[0], issuer.payload({ nbf: now() + 10 }))
    assert.equal((await ask(server, fast)).status, 200)
  })

  test('a token that was good ends with its time', async () => {
    const token = signed(issuer.keys[0], issuer.payload({ exp: now() - 27 }))
    assert.equal((await ask(server, token)).status, 200)
    await sleep(5_000)
    assert.equal((await ask(server, token)).status, 401)
  })

  test('of several audiences one is enough, and the type may be absent', async () => {
    const token = signed(issuer.keys[0], issuer.payload({ aud: ['another-api', AUDIENCE] }), { typ: undefined })
    assert.equal((await ask(server, token)).status, 200)
  })

  test('roles may be words in a text', async () => {
    const token = signed(issuer.keys[0], issuer.payload({ realm: { roles: 'unheard-of editors' } }))
    assert.equal((await ask(server, token)).status, 200)
  })

  test('no part of a token is in the log', async () => {
    const token = await issuer.token('another-api')
    await ask(server, token)
    await ask(server, await issuer.token())
    const log = server.output()
    for (const part of token.split('.').slice(1)) assert.ok(!log.includes(part), 'a token is in the log')
  })

  test('unknown keys are looked for once in 30 seconds', async () => {
    const before = issuer.fetches
    const unknown = (number) => signed({ ...stranger, kid: `unknown-${number}` }, issuer.payload())
    const answers = await Promise.all(Array.from({ length: 30 }, (_, number) => ask(server, unknown(number))))
    for (const answer of answers) assert.equal(answer.status, 401, answer.text)
    assert.ok(issuer.fetches - before <= 1, `the keys were fetched ${issuer.fetches - before} times`)
  })
})

describe('an issuer whose keys change', () => {
  let issuer, server, folder
  before(async () => {
    issuer = await new Issuer().listen()
    folder = application(issuer)
    server = await start(binary(), [folder])
  })
  after(async () => {
    await server?.stop()
    issuer?.stop()
    if (folder) rmSync(folder, { recursive: true, force: true })
  })

  test('a new key is found at once, and an old one that is gone ends its tokens', async () => {
    const old = await issuer.token()
    assert.equal((await askUntil(server, old, 200)).status, 200)
    const [first] = issuer.keys
    issuer.use([rsaKey('second'), first])
    const both = await issuer.token()
    assert.equal((await ask(server, old)).status, 200)
    assert.equal((await askUntil(server, both, 200, 40_000)).status, 200)
    issuer.use([rsaKey('third')])
    const third = await issuer.token()
    assert.equal((await askUntil(server, third, 200, 40_000)).status, 200)
    assert.equal((await ask(server, old)).status, 401, 'its key is gone, also if it was verified before')
    assert.equal((await ask(server, both)).status, 401)
  })

})

/** Asks with unknown keys until the server has looked for them at the issuer once more, which it does once in 30 seconds. */
async function fetchAgain(server, issuer) {
  const before = issuer.fetches
  for (const end = Date.now() + 45_000; issuer.fetches === before; await sleep(500)) {
    assert.ok(Date.now() < end, `${issuer.mode}: the keys are not fetched again`)
    const unknown = await ask(server, signed(rsaKey('nobody'), issuer.payload()))
    assert.equal(unknown.status, 401, unknown.text)
  }
}

describe('issuers that were well', { concurrency: true }, () => {
  for (const mode of ['gone', 'slow', 'huge', 'elsewhere']) {
    test(`keys stay when the issuer is ${mode}`, async () => {
      const issuer = await new Issuer().listen()
      const folder = application(issuer)
      const server = await start(binary(), [folder])
      try {
        const good = (number) => signed(issuer.keys[0], issuer.payload({ jti: `${mode}-${number}` }))
        assert.equal((await askUntil(server, good(0), 200)).status, 200)
        issuer.mode = mode
        await fetchAgain(server, issuer)
        // Until the fetch has failed, and afterwards; no token was verified before.
        for (let number = 1; number <= 7; number += 1) {
          const answer = await ask(server, good(number))
          assert.equal(answer.status, 200, answer.text)
          await sleep(1_000)
        }
        issuer.mode = 'well'
        issuer.use([rsaKey('second')])
        const second = signed(issuer.keys[0], issuer.payload())
        assert.equal((await askUntil(server, second, 200, 45_000)).status, 200, 'it is asked again')
      } finally {
        await server.stop()
        issuer.stop()
        rmSync(folder, { recursive: true, force: true })
      }
    })
  }
})

for (const mode of ['gone', 'slow', 'huge', 'elsewhere']) {
  describe(`an issuer whose keys are ${mode} at the start`, () => {
    let issuer, server, folder
    before(async () => {
      issuer = await new Issuer().listen()
      issuer.mode = mode
      folder = application(issuer)
      server = await start(binary(), [folder])
    })
    after(async () => {
      await server?.stop()
      issuer?.stop()
      if (folder) rmSync(folder, { recursive: true, force: true })
    })

    test('its tokens wait, and everybody else is answered', async () => {
      const token = signed(issuer.keys[0], issuer.payload())
      const begin = Date.now()
      const answer = await ask(server, token)
      assert.equal(answer.status, 503, answer.text)
      assert.match(answer.headers.get('retry-after'), /^\d+$/)
      assert.ok(Date.now() - begin < 2_000, 'a request does not wait for the issuer')
      assert.equal((await ask(server, undefined, '/notices')).status, 200)
      assert.equal((await ask(server)).status, 401)
      issuer.mode = 'well'
      // A fetch that hangs is given up after 5 seconds; the next one comes by itself.
      assert.equal((await askUntil(server, token, 200, 60_000)).status, 200)
    })
  })
}
