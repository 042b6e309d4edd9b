// Swagger UI at /docs works in a real browser, from the binary alone and under the policy of the whole site.
//
// DOCS_SCREENSHOT=file.png keeps a picture of the page after its last request.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { open } from './browser.mjs'
import { binary, start } from './server.mjs'

let server
let browser
before(async () => {
  server = await start(binary())
  browser = await open()
  browser.page.setDefaultTimeout(180_000)
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

test('the page loads under a policy without inline script or style', async () => {
  const response = await browser.page.goto(`${server.url}/docs`)
  assert.equal(response.status(), 200)
  const policy = response.headers()['content-security-policy']
  assert.match(policy, /default-src 'none'/)
  assert.doesNotMatch(policy, /unsafe|\*|https?:/)
  await browser.page.waitForSelector('#operations-Product-listProducts')
  assert.match(await browser.page.textContent('.info .title'), /Sample Resource API/)
  assert.equal(await browser.page.locator('.errors-wrapper').count(), 0, 'the document has no mistakes')
})

test('a list is asked for', async () => {
  const operation = await opened('Product-listProducts')
  await operation.locator('tr[data-param-name="size"] input').fill('2')
  const { status, body } = await executed(operation)
  assert.equal(status, '200')
  assert.equal(JSON.parse(body).length, 2)
})

test('a record is made from the example as it stands', async () => {
  const operation = await opened('Customer-createCustomer')
  const { status, body } = await executed(operation)
  assert.equal(status, '201')
  const made = JSON.parse(body)
  const kept = await fetch(`${server.url}/customers/${made.id}`, { headers: { accept: 'application/json' } })
  assert.deepEqual(await kept.json(), made)
})

test('a record is changed and deleted', async () => {
  const patched = await executed(await opened('Article-updateArticle'))
  assert.equal(patched.status, '200')
  const deleted = await executed(await opened('Article-deleteArticle'))
  assert.equal(deleted.status, '204')
  const gone = await fetch(`${server.url}/articles/1`, { headers: { accept: 'application/json' } })
  assert.equal(gone.status, 404)
})

test('a text is added to a list', async () => {
  const { status, body } = await executed(await opened('Lists-addToItems'))
  assert.equal(status, '201')
  assert.match(body, /Added: milk/)
  if (process.env.DOCS_SCREENSHOT) await browser.page.screenshot({ path: process.env.DOCS_SCREENSHOT, fullPage: true })
})

test('a link leads home', async () => {
  assert.equal(await browser.page.getAttribute('a.home', 'href'), '/')
})

test('nothing was complained about and nothing was asked of another host', () => {
  assert.deepEqual(browser.complaints, [])
  const elsewhere = browser.seen.filter((url) => !/^(data|blob):/.test(url) && new URL(url).host !== new URL(server.url).host)
  assert.deepEqual(elsewhere, [])
  assert.ok(browser.seen.length > 5, 'the page loaded its parts')
})

/** An operation by its tag and id, opened and ready to be tried. */
async function opened(name) {
  const operation = browser.page.locator(`#operations-${name}`)
  await operation.locator('.opblock-summary-control').click()
  await operation.locator('.execute').waitFor()
  return operation
}

/** What Swagger UI shows of the answer. */
async function executed(operation) {
  await operation.locator('.execute').click()
  const live = operation.locator('.live-responses-table')
  await live.waitFor()
  const status = (await live.locator('tbody .response-col_status').first().innerText()).trim().split(/\s/)[0]
  const code = live.locator('.response-col_description .highlight-code code').first()
  const body = (await code.count()) ? await code.innerText() : ''
  return { status, body }
}
