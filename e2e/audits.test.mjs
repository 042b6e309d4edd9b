// Every server audit of the GraphQL over HTTP specification, MUST, SHOULD and MAY, as the package graphql-http has them.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { serverAudits } from 'graphql-http'
import { binary, start } from './server.mjs'

const AUDITS = 61

let server
before(async () => (server = await start(binary())))
after(() => server?.stop())

const audits = serverAudits({ url: () => `${server.url}/graphql` })

test(`there are ${AUDITS} audits`, () => assert.equal(audits.length, AUDITS))

for (const audit of audits) {
  test(`${audit.id} ${audit.name}`, async () => {
    const result = await audit.fn()
    const answer = result.response && `${result.response.status} ${await result.response.text().catch(() => '')}`
    assert.equal(result.status, 'ok', `${result.reason}\nanswered ${answer}`)
  })
}
