// What each kind of actor is told of the GraphQL schema of the example applications: valid schemas, as graphql-js judges
// them, the same by introspection and as a file, and tabs of GraphiQL that the actor may run.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  lexicographicSortSchema,
  parse,
  printSchema,
  validate,
  validateSchema,
} from 'graphql'
import { binary, dataFolder, start } from './server.mjs'

const APPS = {
  blog: { roles: ['AUTHOR', 'EDITOR', 'ADMIN'] },
  crm: { roles: ['MEMBER', 'OWNER'] },
  gradebook: { roles: ['PUPIL', 'GUARDIAN', 'TEACHER', 'OFFICE'] },
}

const sorted = (schema) => printSchema(lexicographicSortSchema(schema))
const REFUSED = ['FORBIDDEN', 'UNAUTHENTICATED']

for (const [app, { roles }] of Object.entries(APPS)) {
  describe(app, () => {
    const folder = fileURLToPath(new URL(`../examples/apps/${app}`, import.meta.url))
    const data = dataFolder()
    const keys = { anonymous: undefined }
    let server
    before(async () => {
      server = await start(binary(), [folder], {}, data)
      for (const role of roles) {
        const told = execFileSync(binary(), ['key', 'add', role, folder, '--role', role, '--data', data], { encoding: 'utf8' })
        keys[role] = told.match(/tfk_\S+/)[0]
      }
    })
    after(async () => {
      await server?.stop()
      rmSync(data, { recursive: true, force: true })
    })

    const headers = (actor) => (keys[actor] ? { authorization: `Bearer ${keys[actor]}` } : {})
    const read = async (actor, path) => (await fetch(`${server.url}${path}`, { headers: headers(actor) })).text()
    const ask = async (actor, query) => {
      const response = await fetch(`${server.url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers(actor) },
        body: JSON.stringify({ query }),
      })
      return response.json()
    }
    const schemaOf = async (actor) => buildClientSchema((await ask(actor, getIntrospectionQuery())).data)

    for (const actor of ['anonymous', ...roles]) {
      test(`${actor} is told a valid schema, the same in both forms`, async () => {
        const introspected = await schemaOf(actor)
        assert.deepEqual(validateSchema(introspected), [])
        const text = await read(actor, '/graphql/schema.graphqls')
        assert.doesNotMatch(text, /@(allow|rule|account)\b/, 'rules are not told')
        assert.equal(sorted(buildSchema(text)), sorted(introspected))
      })

      test(`${actor} may run what the tabs of GraphiQL have`, async () => {
        const schema = await schemaOf(actor)
        for (const { query } of JSON.parse(await read(actor, '/_/graphiql/tabs.json'))) {
          const document = parse(query)
          assert.deepEqual(validate(schema, document), [], query)
          for (const { loc, operation } of document.definitions.filter((one) => one.operation !== 'subscription')) {
            const { errors = [] } = await ask(actor, query.slice(loc.start, loc.end))
            const codes = errors.map((error) => error.extensions.code)
            // A rule may still refuse the record that an example makes or names.
            const refused = operation === 'query' && codes.filter((code) => REFUSED.includes(code))
            assert.deepEqual(refused || [], [], `${query}: ${JSON.stringify(errors)}`)
          }
        }
      })
    }

    test('descriptions are kept by class', async () => {
      for (const path of ['/graphql/schema.graphqls', '/openapi.json', '/', '/docs']) {
        const accept = { accept: path === '/docs' ? 'text/html' : '*/*' }
        const [nobody, somebody] = await Promise.all(
          ['anonymous', roles.at(-1)].map((actor) => fetch(`${server.url}${path}`, { headers: { ...accept, ...headers(actor) } })),
        )
        for (const answer of [nobody, somebody]) assert.match(answer.headers.get('vary'), /Authorization, Cookie/, path)
        assert.match(somebody.headers.get('cache-control'), /private/, path)
        const tags = [nobody, somebody].map((answer) => answer.headers.get('etag'))
        assert.ok(tags.every((tag) => tag?.includes('"')), path)
        // The page of Swagger UI tells nothing itself: it asks for the document.
        const isSame = path === '/docs' || (await nobody.text()) === (await somebody.text())
        assert.equal(tags[0] === tags[1], isSame, path)
        const again = await fetch(`${server.url}${path}`, {
          headers: { ...accept, ...headers(roles.at(-1)), 'if-none-match': tags[1] },
        })
        assert.equal(again.status, 304, path)
      }
    })

    test('whoever may do more is told more', async () => {
      const names = async (actor) => (await read(actor, '/graphql/schema.graphqls')).length
      const [nobody, somebody] = [await names('anonymous'), await names(roles.at(-1))]
      assert.ok(nobody < somebody, `${nobody} < ${somebody}`)
    })
  })
}
