// Signing in by OpenID providers: a real one (oidc-provider) in a browser, and one that lies, on both kinds of store.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { launch } from './browser.mjs'
import { CLIENT, LyingProvider, RealProvider, SECRET, stranger } from './openid/provider.mjs'
import { axe, markup } from './pages/judges.mjs'
import { database } from './postgres.mjs'
import { binary, dataFolder, start } from './server.mjs'

const PASSWORD = 'correct horse battery'
const schema = (more = '', email = '@allow(write: "role(ADMIN)")') => `
  enum Role { EDITOR ADMIN }
  extend schema @allow(all: "role(ADMIN)")
  type User @account(login: "email", roles: "role", if: "!blocked"${more})
    @allow(read: "this == me || role(EDITOR)", update: "this == me", delete: "role(EDITOR)") {
    id: ID!
    name: String! @notBlank
    email: String! @unique @email ${email}
    role: Role @allow(write: "role(ADMIN)")
    blocked: Boolean! @default(value: false) @allow(write: "role(ADMIN)")
  }
  type Note @allow(read: "signedIn", create: "role(EDITOR)") {
    id: ID!
    title: String!
  }
`
const USERS = [
  { id: 1, name: 'Ada Lovelace', email: 'ada@example.org', role: 'ADMIN' },
  { id: 2, name: 'Bob', email: 'bob@example.org' },
  { id: 3, name: 'Eve', email: 'eve@example.org', blocked: true },
]

const provider = (name, url, more = '') => `
[[auth.oidc]]
name = "${name}"
issuer = "${url}"
client-id = "${CLIENT}"
account = { claim = "email", field = "email" }
${more}`

/** An application on a store of its own. */
class Application {
  constructor(store, manifest, { more, email } = {}) {
    this.folder = mkdtempSync(join(tmpdir(), 'trefoil-sign-in-'))
    this.store = store
    this.data = dataFolder()
    mkdirSync(join(this.folder, 'graphql'))
    mkdirSync(join(this.folder, 'seed'))
    writeFileSync(join(this.folder, 'graphql/schema.graphqls'), schema(more, email))
    writeFileSync(join(this.folder, 'seed/users.json'), JSON.stringify(USERS))
    writeFileSync(join(this.folder, 'seed/notes.json'), JSON.stringify([{ id: 1, title: 'The first' }]))
    // So that a test does not hash for long.
    const auth = '\n[auth]\npassword-memory = "64 KiB"\npassword-rounds = 1\n'
    writeFileSync(join(this.folder, 'trefoil.toml'), manifest + auth)
    this.servers = []
  }

  async flags() {
    if (this.store === 'postgres') return ['--database', (this.address ??= await database())]
    return ['--database', 'sqlite:']
  }

  async serve(more = []) {
    const data = this.servers.length ? dataFolder() : this.data
    const server = await start(binary(), [this.folder, ...(await this.flags()), ...more], { SHOP_SECRET: SECRET }, data)
    this.servers.push(server)
    return server
  }

  /** Runs a command beside the server; `input` is what it reads. */
  async command(args, input = '') {
    const child = spawn(binary(), [...args, this.folder, ...(await this.flags()), '--data', this.data], { env: { ...process.env, SHOP_SECRET: SECRET } })
    let printed = ''
    child.stdout.on('data', (text) => (printed += text))
    child.stderr.on('data', (text) => (printed += text))
    child.stdin.end(input)
    const [code] = await once(child, 'exit')
    assert.equal(code, 0, printed)
    return printed
  }

  async close() {
    for (const server of this.servers) await server.stop()
    rmSync(this.folder, { recursive: true, force: true })
    rmSync(this.data, { recursive: true, force: true })
  }
}

/** Somebody with a browser's cookies, who follows nothing by themselves. */
class Visitor {
  constructor(url, headers = {}) {
    this.url = url
    this.headers = headers
    this.cookies = new Map()
  }

  async get(address, options = {}) {
    const url = new URL(address, this.url)
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { accept: 'text/html', ...this.headers, ...(cookie ? { cookie } : {}), ...options.headers }
    const answer = await fetch(url, { redirect: 'manual', ...options, headers })
    const text = await answer.text()
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)
      if (/max-age=0/i.test(line)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return { status: answer.status, location: answer.headers.get('location'), headers: answer.headers, text: text.replaceAll('&#x2f;', '/') }
  }

  async post(path, fields) {
    return this.get(path, { method: 'POST', body: new URLSearchParams(fields) })
  }

  async me() {
    return JSON.parse((await this.get('/_/me', { headers: { accept: 'application/json' } })).text)
  }

  /** Begins at the provider; gives what it was asked. */
  async begin(path = '/_/oidc/1') {
    const led = await this.get(path)
    assert.equal(led.status, 303, led.text)
    return { address: led.location, asked: new URL(led.location).searchParams, set: led.headers.getSetCookie() }
  }

  /** Goes there and comes back, without a browser: for a provider that asks nobody anything. */
  async comeBack(asked, more = {}) {
    const answer = { code: 'a-code', state: asked.get('state'), ...more }
    const query = new URLSearchParams(Object.entries(answer).filter(([, value]) => value !== undefined))
    return this.get(`${new URL(asked.get('redirect_uri')).pathname}?${query}`)
  }
}

/** Waits until the server has written something to its log, which it does in the background. */
async function logged(server, pattern) {
  for (let left = 50; left && !pattern.test(server.output()); left -= 1) await sleep(100)
  assert.match(server.output(), pattern)
}

const STALE = /begun in another browser or too long ago, or it is done already/

for (const store of ['sqlite', 'postgres']) {
  describe(`a real provider in a browser, on ${store}`, () => {
    const people = {
      'ada-1': { email: 'ada@example.org', email_verified: true, name: 'Ada of the provider', groups: ['staff', 'unheard-of'] },
      'bob-1': { email: 'bob@example.org', email_verified: true, name: 'Bob of the provider', groups: [] },
      'bob-2': { email: 'bob@example.org', email_verified: true, name: 'Another Bob' },
      'eve-1': { email: 'eve@example.org', email_verified: true, name: 'Eve' },
      'new-1': { email: 'new@example.org', email_verified: true, name: 'Newcomer', groups: ['staff'] },
      'bare-1': { email: 'bare@example.org', email_verified: true },
      'unverified-1': { email: 'mallory@example.org', email_verified: false, name: 'Mallory' },
    }
    let issuer, application, server, browser
    before(async () => {
      issuer = await new RealProvider(people).listen()
      const roles = 'scopes = ["openid", "email", "profile", "groups"]\nroles = "groups"\nrole-map = { staff = "EDITOR" }\n'
      const more = `client-secret-env = "SHOP_SECRET"\nfields = { name = "name", role = "groups" }\n${roles}`
      application = new Application(store, provider('Company login', issuer.url, more), { more: ', signUp: true, manage: "role(ADMIN)"' })
      server = await application.serve()
      issuer.serve([server.url])
      browser = await launch()
    })
    after(async () => {
      await browser?.close()
      await application?.close()
      await issuer?.stop()
    })

    /** Signs in on the provider's page, as somebody whom it does not know yet. */
    async function signIn(page, subject, path = '/notes') {
      const own = await page.context().cookies()
      await page.context().clearCookies()
      await page.context().addCookies(own.filter((cookie) => cookie.name.startsWith('trefoil')))
      await page.goto(`${server.url}/_/sign-in?next=${encodeURIComponent(path)}`)
      await page.getByRole('link', { name: 'Company login' }).click()
      await page.getByLabel('Subject').fill(subject)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL(`${server.url}/**`)
    }

    const me = (page) => page.evaluate(async () => (await fetch('/_/me', { headers: { accept: 'application/json' } })).json())

    for (const javaScriptEnabled of [true, false]) {
      test(`people sign in and come back, ${javaScriptEnabled ? 'with' : 'without'} JavaScript`, async () => {
        const context = await browser.context({ javaScriptEnabled })
        const page = await context.newPage()
        await signIn(page, 'ada-1')
        assert.equal(page.url(), `${server.url}/notes`)
        assert.match(await page.content(), /Ada Lovelace/)
        const cookies = await context.cookies()
        const session = cookies.find((cookie) => cookie.name === 'trefoil')
        assert.ok(session.httpOnly && session.sameSite === 'Lax', JSON.stringify(session))
        assert.ok(!cookies.some((cookie) => cookie.name === 'trefoil-sign-in'), 'what was begun is over')
        const told = await new Visitor(server.url, { cookie: `trefoil=${session.value}` }).me()
        assert.deepEqual([told.kind, told.me.id, told.roles], ['account', '1', ['ADMIN', 'EDITOR']])
        // What the record says is told apart from what the provider says of this session.
        await page.goto(`${server.url}/_/account`)
        const text = await page.locator('main').innerText()
        assert.match(text, /Roles: ADMIN\n/)
        assert.match(text, /Roles in this session: EDITOR/)
        await context.close()
      })
    }

    test('an account is found by its subject once it is linked, whatever becomes of the address', async () => {
      const context = await browser.context()
      const page = await context.newPage()
      await signIn(page, 'bob-1')
      assert.equal((await me(page)).me.id, '2')
      assert.deepEqual((await me(page)).roles, [], 'claims of others are not his')
      await context.clearCookies()
      people['bob-1'].email = 'robert@example.org'
      people['bob-1'].groups = ['staff']
      await signIn(page, 'bob-1', '/_/account')
      assert.equal((await me(page)).me.id, '2')
      assert.deepEqual((await me(page)).roles, ['EDITOR'])
      // Somebody else who has the address now is not Bob.
      await context.clearCookies()
      await signIn(page, 'bob-2')
      assert.match(await page.locator('main').innerText(), /no account here can be used with Company login/)
      assert.equal((await me(page)).kind, 'anonymous')
      await context.close()
    })

    test('a session is a new one each time, and ends the one that was there', async () => {
      const context = await browser.context()
      const page = await context.newPage()
      await signIn(page, 'ada-1')
      const first = (await context.cookies()).find((cookie) => cookie.name === 'trefoil').value
      await signIn(page, 'ada-1')
      const second = (await context.cookies()).find((cookie) => cookie.name === 'trefoil').value
      assert.notEqual(first, second)
      assert.equal((await new Visitor(server.url, { cookie: `trefoil=${first}` }).me()).kind, 'anonymous')
      await context.close()
    })

    test('who is not known yet gets an account, filled with what anybody may give', async () => {
      const context = await browser.context()
      const page = await context.newPage()
      await signIn(page, 'new-1', '/_/account')
      const told = await me(page)
      assert.deepEqual([told.me.name, told.me.email, told.me.role], ['Newcomer', 'new@example.org', null])
      assert.deepEqual(told.roles, ['EDITOR'])
      await context.clearCookies()
      await signIn(page, 'new-1')
      assert.equal((await me(page)).me.id, told.me.id, 'the same account')
      // Rules of fields hold: a name is required.
      await context.clearCookies()
      await signIn(page, 'bare-1')
      assert.match(await page.locator('main').innerText(), /no account here can be used/)
      await logged(server, /an account cannot be made of its claims: name REQUIRED/)
      assert.doesNotMatch(server.output(), /bare@example/)
      await context.close()
    })

    test('blocked accounts and addresses that nobody verified are refused alike', async () => {
      const pages = []
      for (const subject of ['eve-1', 'unverified-1']) {
        const context = await browser.context()
        const page = await context.newPage()
        await signIn(page, subject)
        assert.equal(page.url().startsWith(`${server.url}/_/oidc/1/callback`), true)
        pages.push(await page.locator('main').innerText())
        assert.equal(await page.title().then((title) => title.startsWith('Error: ')), true)
        assert.equal((await me(page)).kind, 'anonymous')
        await context.close()
      }
      assert.equal(pages[0], pages[1])
      assert.doesNotMatch(pages[0], /example\.org|blocked|verified/)
    })

    test('who refuses at the provider comes back to the sign-in', async () => {
      const context = await browser.context({ javaScriptEnabled: false })
      const page = await context.newPage()
      await page.goto(`${server.url}/_/sign-in?next=/notes`)
      await page.getByRole('link', { name: 'Company login' }).click()
      await page.getByRole('button', { name: 'Refuse' }).click()
      const text = await page.locator('main').innerText()
      assert.match(text, /cancelled or refused at Company login/)
      assert.doesNotMatch(text, /somebody said no/)
      // From there it goes on to where it was going.
      await page.getByRole('link', { name: 'Company login' }).click()
      await page.getByLabel('Subject').fill('ada-1')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL(`${server.url}/notes`)
      await context.close()
    })

    test('a callback that is loaded again signs nobody in', async () => {
      const context = await browser.context()
      const page = await context.newPage()
      const callbacks = []
      page.on('request', (request) => request.url().includes('/callback') && callbacks.push(request.url()))
      await page.goto(`${server.url}/_/oidc/1`)
      const begun = (await context.cookies()).find((cookie) => cookie.name === 'trefoil-sign-in')
      await page.getByLabel('Subject').fill('ada-1')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL(`${server.url}/`)
      assert.equal(callbacks.length, 1)
      // With the cookie too, as somebody has it who copied all.
      for (const cookies of [[], [begun]]) {
        const other = await browser.context()
        await other.addCookies(cookies)
        const again = await other.newPage()
        assert.equal((await again.goto(callbacks[0])).status(), 400)
        assert.match(await again.locator('main').innerText(), STALE)
        assert.equal((await me(again)).kind, 'anonymous')
        await other.close()
      }
      await logged(server, /it was used already/)
      await context.close()
    })

    test('nothing of it is in the log', () => {
      for (const secret of [SECRET, 'a%20secret', 'eyJhbGciOiJSUzI1NiI', 'ada@example.org', 'ada-1', 'code=']) {
        assert.ok(!server.output().includes(secret), secret)
      }
    })
  })

  describe(`a provider that lies, on ${store}`, () => {
    let issuer, other, application, server
    before(async () => {
      issuer = await new LyingProvider().listen()
      other = await new LyingProvider().listen()
      const manifest = provider('One', issuer.url, 'fields = { name = "name" }') + provider('Other', other.url)
      application = new Application(store, manifest)
      server = await application.serve()
    })
    after(async () => {
      await application?.close()
      await issuer?.stop()
      await other?.stop()
    })

    /** A sign-in from its beginning to its end, with the provider as it is now. */
    async function signIn(more = {}, visitor = new Visitor(server.url)) {
      const { address, asked } = await visitor.begin()
      await fetch(address)
      const answer = await visitor.comeBack(asked, more)
      return { answer, asked, visitor, kind: (await visitor.me()).kind }
    }

    test('the provider is asked as it should be', async () => {
      issuer.reset()
      const { answer, asked, kind } = await signIn()
      assert.deepEqual([answer.status, answer.location, kind], [303, '/', 'account'], answer.text)
      for (const [name, value] of Object.entries({
        tenant: 'a',
        response_type: 'code',
        client_id: CLIENT,
        redirect_uri: `${server.url}/_/oidc/1/callback`,
        scope: 'openid email profile',
        code_challenge_method: 'S256',
      })) {
        assert.equal(asked.get(name), value)
      }
      const verifier = issuer.exchanged.get('code_verifier')
      assert.equal(createHash('sha256').update(verifier).digest('base64url'), asked.get('code_challenge'))
      assert.equal(new Set([asked.get('state'), asked.get('nonce'), verifier]).size, 3)
      assert.equal(issuer.exchanged.get('client_id'), CLIENT)
      assert.equal(issuer.exchanged.get('client_secret'), null)
      assert.equal(issuer.exchanged.get('redirect_uri'), asked.get('redirect_uri'))
    })

    const lies = {
      'another nonce': () => ({ claims: { nonce: 'another' } }),
      'no nonce': () => ({ claims: { nonce: undefined } }),
      'another audience': () => ({ claims: { aud: 'another' } }),
      'several audiences without azp': () => ({ claims: { aud: [CLIENT, 'another'] } }),
      'another azp': () => ({ claims: { aud: [CLIENT, 'another'], azp: 'another' } }),
      'another issuer': () => ({ claims: { iss: other.url } }),
      'an end that is past': () => ({ claims: { exp: Math.floor(Date.now() / 1000) - 60 } }),
      'no end': () => ({ claims: { exp: undefined } }),
      'no subject': () => ({ claims: { sub: undefined } }),
      'a subject that is too long': () => ({ claims: { sub: 'x'.repeat(256) } }),
      'another access token': () => ({ claims: { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' } }),
      'a key that is not its own': () => ({ signer: stranger }),
      'no signature': () => ({ header: { alg: 'none' } }),
      'no ID token': () => ({ token: { id_token: undefined } }),
      'an ID token that is none': () => ({ token: { id_token: 'a.b.c' } }),
      'that the code is not good': () => ({ status: 400 }),
      'to ask elsewhere': () => ({ redirects: true }),
      'no verified address': () => ({ claims: { email_verified: undefined } }),
      'a verified address as a text': () => ({ claims: { email_verified: 'true', sub: 'x' } }),
      'nothing of an account': () => ({ claims: { email: 'nobody@example.org', sub: 'y' } }),
    }
    for (const [name, lie] of Object.entries(lies)) {
      test(`nobody is signed in where it says ${name}`, async () => {
        issuer.reset()
        const { claims = {}, ...more } = lie()
        Object.assign(issuer, more, { claims: { sub: `lie-${name.length}`, ...claims } })
        const { answer, kind } = await signIn()
        assert.equal(answer.status, 401, answer.text)
        assert.equal(kind, 'anonymous')
        assert.match(answer.text, /You are not signed in/)
        assert.doesNotMatch(answer.text, /nonce|invalid_grant|example\.org|signature/)
      })
    }

    test('the hash of its access token is compared', async () => {
      issuer.reset()
      const hash = createHash('sha256').update('an access token').digest().subarray(0, 16).toString('base64url')
      issuer.claims = { at_hash: hash }
      assert.equal((await signIn()).kind, 'account')
    })

    test('the answer must be of the issuer that was asked', async () => {
      issuer.reset()
      assert.equal((await signIn({ iss: issuer.url })).kind, 'account')
      const wrong = await signIn({ iss: other.url })
      assert.deepEqual([wrong.answer.status, wrong.kind], [401, 'anonymous'])
      assert.equal(issuer.codes, 1, 'a code of another is sent to nobody')
      // What was begun at one is not the answer of the other.
      const visitor = new Visitor(server.url)
      const { address, asked } = await visitor.begin('/_/oidc/1')
      await fetch(address)
      const mixed = await visitor.get(`/_/oidc/2/callback?code=a-code&state=${asked.get('state')}`)
      assert.equal(mixed.status, 400)
      assert.match(mixed.text, STALE)
      assert.equal(other.codes, 0)
      // Nothing is lost by that.
      assert.equal((await visitor.comeBack(asked)).status, 303)
    })

    test('a state is of one browser, and used once', async () => {
      issuer.reset()
      const [one, two, bare] = [new Visitor(server.url), new Visitor(server.url), new Visitor(server.url)]
      const begun = await one.begin('/_/oidc/1?next=/notes')
      await two.begin()
      await fetch(begun.address)
      for (const visitor of [two, bare]) {
        const answer = await visitor.comeBack(begun.asked)
        assert.equal(answer.status, 400)
        assert.match(answer.text, STALE)
        assert.equal((await visitor.me()).kind, 'anonymous')
      }
      for (const state of ['', 'x', begun.asked.get('nonce'), `${begun.asked.get('state')}A`]) {
        assert.equal((await one.comeBack(begun.asked, { state })).status, 400, state)
      }
      const twice = `/_/oidc/1/callback?code=a&code=b&state=${begun.asked.get('state')}`
      assert.equal((await one.get(twice)).status, 400)
      assert.equal(issuer.codes, 0, 'no code was exchanged')
      const copied = new Visitor(server.url)
      copied.cookies = new Map(one.cookies)
      const answer = await one.comeBack(begun.asked)
      assert.deepEqual([answer.status, answer.location], [303, '/notes'])
      assert.equal((await copied.comeBack(begun.asked)).status, 400)
      assert.equal(issuer.codes, 1, 'a code is exchanged once')
    })

    test('a sign-in that was begun too long ago is over, whatever its cookie says', async () => {
      issuer.reset()
      const visitor = new Visitor(server.url)
      const { asked, set } = await visitor.begin()
      assert.match(set[0], /^trefoil-sign-in=[^;]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/)
      const [expires, ...rest] = visitor.cookies.get('trefoil-sign-in').split('.')
      assert.ok(Math.abs(Number(expires) - Date.now() / 1000 - 600) < 30, expires)
      for (const other of [Number(expires) + 600, Number(expires) - 3_600]) {
        visitor.cookies.set('trefoil-sign-in', [other, ...rest].join('.'))
        assert.equal((await visitor.comeBack(asked)).status, 400)
      }
    })

    test('the way leads to no other site', async () => {
      issuer.reset()
      for (const next of ['https://evil.example/', '//evil.example/', '/\\evil.example', 'javascript:alert(1)']) {
        const visitor = new Visitor(server.url)
        const { address, asked } = await visitor.begin(`/_/oidc/1?next=${encodeURIComponent(next)}`)
        await fetch(address)
        assert.equal((await visitor.comeBack(asked)).location, '/', next)
        const page = await visitor.get(`/_/sign-in?next=${encodeURIComponent(next)}`)
        assert.doesNotMatch(page.text, /evil|alert\(1\)/)
      }
    })

    test('an error tells nothing of itself', async () => {
      issuer.reset()
      const denied = await signIn({ code: undefined, error: 'access_denied', error_description: '<b>no</b>' })
      assert.match(denied.answer.text, /cancelled or refused at One/)
      const broken = await signIn({ code: undefined, error: 'server_error\r\nx', error_description: 'a stack' })
      assert.equal(broken.answer.status, 401)
      assert.doesNotMatch(denied.answer.text + broken.answer.text, /<b>no|a stack|server_error/)
      await logged(server, /it answered server_errorx/)
    })

    test('more is asked where the ID token does not say it, of the same person alone', async () => {
      issuer.reset()
      other.reset()
      other.userInfo = { sub: 'ada-2', email: 'ada@example.org', email_verified: true }
      other.claims = { sub: 'ada-2', email: undefined, email_verified: undefined }
      // What the configuration said before is asked anew after a minute.
      const fresh = new Application(store, provider('Other', other.url))
      try {
        const { url } = await fresh.serve()
        const visitor = new Visitor(url)
        const come = async () => {
          const { address, asked } = await visitor.begin()
          await fetch(address)
          return visitor.comeBack(asked)
        }
        other.userInfo.sub = 'bob-2'
        assert.equal((await come()).status, 401)
        other.userInfo.sub = 'ada-2'
        assert.equal((await come()).status, 303)
        assert.equal((await visitor.me()).me.email, 'ada@example.org')
      } finally {
        await fresh.close()
        other.reset()
      }
    })

    test('a provider that hangs is given up', async () => {
      issuer.reset()
      issuer.isSilent = true
      const began = Date.now()
      const { answer, kind } = await signIn()
      assert.deepEqual([answer.status, kind], [503, 'anonymous'])
      assert.match(answer.text, /One does not answer at the moment/)
      assert.ok(Date.now() - began < 9_000)
    })

    test('what is no provider is not there', async () => {
      const visitor = new Visitor(server.url)
      for (const path of ['/_/oidc/0', '/_/oidc/3', '/_/oidc/x', '/_/oidc/3/callback']) {
        assert.equal((await visitor.get(path)).status, 404, path)
      }
    })
  })

  test(`a provider that is down leaves passwords and the others, on ${store}`, async () => {
    const [up, down] = [await new LyingProvider().listen(), await new LyingProvider().listen()]
    const port = down.port
    await down.stop()
    const application = new Application(store, provider('Up', up.url) + provider('Down', down.url))
    try {
      const server = await application.serve()
      const visitor = new Visitor(server.url)
      // Nobody has a password: only the providers are offered.
      const bare = await visitor.get('/_/sign-in?next=/notes')
      assert.match(bare.text, /href="\/_\/oidc\/1\?next=%2Fnotes"/)
      assert.match(bare.text, /href="\/_\/oidc\/2\?next=%2Fnotes"/)
      assert.doesNotMatch(bare.text, /type="password"|Nobody can sign in/)
      const browser = await launch()
      try {
        const page = await (await browser.context()).newPage()
        for (const path of ['/_/sign-in?next=/notes', '/_/oidc/2?next=/notes']) {
          await page.goto(`${server.url}${path}`)
          assert.deepEqual(await axe(page), [], path)
          assert.deepEqual(await markup((await (await fetch(`${server.url}${path}`, { headers: { accept: 'text/html' } })).text())), [], path)
        }
        const alert = page.getByRole('alert')
        assert.match(await alert.innerText(), /Down does not answer/)
      } finally {
        await browser.close()
      }
      const refused = await visitor.get('/_/oidc/2?next=/notes')
      assert.equal(refused.status, 503)
      assert.match(refused.headers.get('retry-after'), /^\d+$/)
      assert.match(refused.text, /Down does not answer at the moment/)
      assert.match(refused.text, /href="\/_\/oidc\/1\?next=%2Fnotes"/)
      // The other one works, and so do passwords.
      const { address, asked } = await visitor.begin('/_/oidc/1')
      await fetch(address)
      assert.equal((await visitor.comeBack(asked)).status, 303)
      const [entry] = (await application.command(['audit', '--format', 'ndjson'])).split('\n').filter((line) => line.includes('sign-in'))
      assert.match(entry, /account:1/)
      await application.command(['user', 'add', 'pat@example.org', '--set', 'name=Pat', '--password-stdin'], PASSWORD)
      const form = { login: 'pat@example.org', password: PASSWORD, next: '/notes' }
      const signed = await new Visitor(server.url).post('/_/sign-in', form)
      assert.deepEqual([signed.status, signed.location], [303, '/notes'], signed.text)
      assert.match((await visitor.get('/_/sign-in')).text, /type="password"/)
      // As soon as it is there again it signs people in.
      await down.listen(port)
      for (let left = 20; left; left -= 1) {
        if ((await visitor.get('/_/oidc/2')).status === 303) break
        assert.ok(left > 1, 'it is not found again')
        await sleep(1_000)
      }
    } finally {
      await application.close()
      await up.stop()
      await down.stop().catch(() => {})
    }
  })

  test(`an account that somebody made for themselves is taken over by whoever proves its address, on ${store}`, async () => {
    const issuer = await new LyingProvider().listen()
    const application = new Application(store, provider('One', issuer.url), { more: ', signUp: true', email: '' })
    try {
      const server = await application.serve()
      const squatter = new Visitor(server.url)
      const fields = { name: 'Squatter', email: 'victim@example.org', password: PASSWORD, again: PASSWORD }
      const made = await squatter.post('/_/sign-up', fields)
      assert.equal(made.status, 303, made.text)
      assert.equal((await squatter.me()).kind, 'account')
      issuer.claims = { sub: 'victim-1', email: 'victim@example.org' }
      const victim = new Visitor(server.url)
      const { address, asked } = await victim.begin()
      await fetch(address)
      assert.equal((await victim.comeBack(asked)).status, 303)
      assert.equal((await victim.me()).me.email, 'victim@example.org')
      assert.equal((await squatter.me()).kind, 'anonymous')
      const form = { login: 'victim@example.org', password: PASSWORD, next: '/' }
      assert.equal((await squatter.post('/_/sign-in', form)).status, 401)
      // Who was given a link has a password that nobody else chose: it stays.
      await application.command(['user', 'add', 'pat@example.org', '--set', 'name=Pat', '--password-stdin'], PASSWORD)
      issuer.claims = { sub: 'pat-1', email: 'pat@example.org' }
      const pat = new Visitor(server.url)
      const begun = await pat.begin()
      await fetch(begun.address)
      assert.equal((await pat.comeBack(begun.asked)).status, 303)
      assert.equal((await new Visitor(server.url).post('/_/sign-in', { ...form, login: 'pat@example.org' })).status, 303)
    } finally {
      await application.close()
      await issuer.stop()
    }
  })
}

test('behind a proxy the provider leads back to the address that the browser knows', async () => {
  const issuer = await new LyingProvider().listen()
  const manifest = `trusted-proxies = ["127.0.0.0/8", "::1"]\nallowed-hosts = ["shop.example"]\n${provider('One', issuer.url)}`
  const application = new Application('sqlite', manifest)
  try {
    const server = await application.serve()
    const proxied = { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'shop.example' }
    const visitor = new Visitor(server.url, proxied)
    const { address, asked, set } = await visitor.begin('/_/oidc/1?next=/notes')
    assert.equal(asked.get('redirect_uri'), 'https://shop.example/_/oidc/1/callback')
    assert.match(set[0], /^__Host-trefoil-sign-in=[^;]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
    await fetch(address)
    const answer = await visitor.comeBack(asked)
    assert.deepEqual([answer.status, answer.location], [303, '/notes'])
    assert.ok(visitor.cookies.has('__Host-trefoil'))
    assert.equal(issuer.exchanged.get('redirect_uri'), 'https://shop.example/_/oidc/1/callback')
    // Nobody signs in over plain http from elsewhere.
    const open = new Visitor(server.url, { ...proxied, 'x-forwarded-proto': 'http' })
    for (const path of ['/_/oidc/1', '/_/oidc/1/callback?code=a&state=b']) {
      const refused = await open.get(path)
      assert.equal(refused.status, 403, refused.text)
      assert.match(refused.text, /INSECURE|https/)
    }
  } finally {
    await application.close()
    await issuer.stop()
  }
})

test('a sign-in goes on at any node, and is used up for all of them', async () => {
  const issuer = await new LyingProvider().listen()
  const application = new Application('postgres', provider('One', issuer.url))
  try {
    const [first, second] = [await application.serve(), await application.serve()]
    const visitor = new Visitor(first.url)
    const { address, asked } = await visitor.begin()
    await fetch(address)
    // A balancer in front: the address is the same, the node another.
    const copied = new Visitor(first.url)
    copied.cookies = new Map(visitor.cookies)
    const balanced = `${second.url}/_/oidc/1/callback?code=a-code&state=${asked.get('state')}`
    const answer = await visitor.get(balanced, { headers: { host: new URL(first.url).host } })
    assert.equal(answer.status, 303, answer.text)
    visitor.url = first.url
    assert.equal((await visitor.me()).kind, 'account')
    assert.equal((await copied.comeBack(asked)).status, 400)
    assert.equal(issuer.codes, 1)
  } finally {
    await application.close()
    await issuer.stop()
  }
})

for (const [name, serve, more] of [
  ['public client', { secret: null }, ''],
  ['client with its secret in a file and in the body', { method: 'client_secret_post' }, 'client-secret-file = "client.secret"\n'],
]) {
  test(`a ${name} signs people in`, async () => {
    const people = { 'ada-1': { email: 'ada@example.org', email_verified: true } }
    const issuer = await new RealProvider(people, { clientAuthMethods: ['none', 'client_secret_post'], conformIdTokenClaims: true }).listen()
    const application = new Application('sqlite', provider('One', issuer.url, more))
    writeFileSync(join(application.folder, 'client.secret'), `${SECRET}\n`)
    const browser = await launch()
    try {
      const server = await application.serve()
      issuer.serve([server.url], serve)
      const page = await (await browser.context()).newPage()
      await page.goto(`${server.url}/_/oidc/1?next=/notes`)
      await page.getByLabel('Subject').fill('ada-1')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL(`${server.url}/notes`)
      assert.match(await page.content(), /Ada Lovelace/)
    } finally {
      await browser.close()
      await application.close()
      await issuer.stop()
    }
  })
}
