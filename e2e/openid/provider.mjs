// OpenID providers for tests: a real one (oidc-provider) with people who sign in on its pages, and one that says what it is told to.

import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import Provider from 'oidc-provider'

export const CLIENT = 'trefoil'
export const SECRET = 'a secret: of one & the other+side/100%'

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
const now = () => Math.floor(Date.now() / 1000)

function rsaKey(kid) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const more = { kid, alg: 'RS256', use: 'sig' }
  return { kid, privateKey, jwk: { ...privateKey.export({ format: 'jwk' }), ...more }, publicJwk: { ...publicKey.export({ format: 'jwk' }), ...more } }
}

class Listener {
  async listen(port = 0) {
    this.server = createServer((request, response) => this.answer(request, response))
    this.server.listen(port, '127.0.0.1')
    await once(this.server, 'listening')
    this.port = this.server.address().port
    this.url = `http://127.0.0.1:${this.port}`
    return this
  }

  async stop() {
    this.server.closeAllConnections()
    this.server.close()
    await once(this.server, 'close')
  }
}

/** People sign in with their name on a page; `people` are their claims by subject. `options` go to oidc-provider. */
export class RealProvider extends Listener {
  constructor(people, options = {}) {
    super()
    this.people = people
    this.options = options
    this.key = rsaKey('first')
  }

  /** Signs people in for the servers at these addresses. `secret` is none for a public client. */
  serve(origins, { secret = SECRET, method = 'client_secret_basic' } = {}) {
    const people = this.people
    const provider = new Provider(this.url, {
      jwks: { keys: [this.key.jwk] },
      clients: [
        {
          client_id: CLIENT,
          ...(secret ? { client_secret: secret, token_endpoint_auth_method: method } : { token_endpoint_auth_method: 'none' }),
          redirect_uris: origins.flatMap((origin) => [1, 2].map((number) => `${origin}/_/oidc/${number}/callback`)),
          grant_types: ['authorization_code'],
          response_types: ['code'],
        },
      ],
      scopes: ['openid', 'email', 'profile', 'groups'],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
      findAccount: (_, subject) => people[subject] && { accountId: subject, claims: () => ({ sub: subject, ...people[subject] }) },
      conformIdTokenClaims: false,
      pkce: { required: () => true },
      cookies: { keys: ['for tests'] },
      ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
      // Whoever signs in has agreed.
      loadExistingGrant: async (ctx) => {
        const { client, session } = ctx.oidc
        const grant = new ctx.oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId })
        grant.addOIDCScope('openid email profile groups')
        await grant.save()
        return grant
      },
      ...this.options,
    })
    provider.on('server_error', (_, error) => console.error(error))
    this.provider = provider
    this.handle = provider.callback()
    return this
  }

  async answer(request, response) {
    if (request.url.startsWith('/interaction/')) return this.interact(request, response)
    if (this.handle) return this.handle(request, response)
    // Before it is told for whom it signs people in.
    response.writeHead(503)
    response.end()
  }

  /** The page where somebody says who they are, or that they do not want to. */
  async interact(request, response) {
    if (request.method === 'GET') {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      return response.end(`<!doctype html><html lang="en"><title>The provider</title><form method="post">
        <label>Subject <input name="subject"></label> <button name="do" value="sign-in">Sign in</button>
        <button name="do" value="refuse">Refuse</button></form></html>`)
    }
    let body = ''
    for await (const part of request) body += part
    const form = new URLSearchParams(body)
    const result =
      form.get('do') === 'refuse'
        ? { error: 'access_denied', error_description: 'somebody said no' }
        : { login: { accountId: form.get('subject') } }
    await this.provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }
}

/** Leads everybody straight back. `say` changes what it says: `answer` the address that it leads to, `claims` the ID token. */
export class LyingProvider extends Listener {
  constructor() {
    super()
    this.key = rsaKey('first')
    this.reset()
  }

  reset() {
    this.claims = {}
    this.header = {}
    this.signer = this.key
    this.configuration = {}
    this.token = {}
    this.userInfo = undefined
    this.status = 200
    this.isSilent = false
    this.codes = 0
    this.asked = undefined
    this.redirects = false
  }

  async answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.url)
    const json = (value, status = 200) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(value))
    }
    if (pathname === '/.well-known/openid-configuration') {
      const own = (path) => `${this.url}${path}`
      return json({
        issuer: this.url,
        jwks_uri: own('/keys'),
        authorization_endpoint: own('/auth?tenant=a'),
        token_endpoint: own('/token'),
        ...(this.userInfo ? { userinfo_endpoint: own('/me') } : {}),
        ...this.configuration,
      })
    }
    if (pathname === '/keys') return json({ keys: [this.key.publicJwk] })
    if (pathname === '/me') return json(this.userInfo)
    if (pathname === '/auth') {
      this.asked = searchParams
      return response.end('an authorization page')
    }
    if (pathname !== '/token') return json({}, 404)
    let body = ''
    for await (const part of request) body += part
    this.exchanged = new URLSearchParams(body)
    this.codes += 1
    if (this.isSilent) return
    if (this.redirects) {
      response.writeHead(307, { location: '/token-of-another' })
      return response.end()
    }
    if (this.status !== 200) return json({ error: 'invalid_grant', error_description: 'an <old> code' }, this.status)
    const claims = {
      iss: this.url,
      aud: CLIENT,
      sub: 'ada-1',
      iat: now(),
      exp: now() + 300,
      nonce: this.asked?.get('nonce'),
      email: 'ada@example.org',
      email_verified: true,
      ...this.claims,
    }
    const header = { alg: 'RS256', kid: this.signer.kid, ...this.header }
    const text = `${encoded(header)}.${encoded(claims)}`
    const idToken = `${text}.${sign('sha256', Buffer.from(text), this.signer.privateKey).toString('base64url')}`
    return json({ access_token: 'an access token', token_type: 'Bearer', id_token: idToken, ...this.token })
  }
}

export const stranger = rsaKey('first')
