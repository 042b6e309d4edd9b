// GraphiQL at /graphql works in a real browser, from the binary alone and under a strict Content-Security-Policy.
//
// GRAPHIQL_SCREENSHOT=file.png keeps a picture of the page after its first query.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { open } from './browser.mjs'
import { binary, start } from './server.mjs'

let server
let browser
before(async () => {
  server = await start(binary())
  browser = await open({ colorScheme: process.env.GRAPHIQL_COLOURS ?? 'light' })
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

test('the page loads with its policy and a ready tab', async () => {
  const response = await browser.page.goto(`${server.url}/graphql`)
  assert.equal(response.status(), 200)
  const policy = response.headers()['content-security-policy']
  assert.match(policy, /default-src 'none'/)
  assert.doesNotMatch(policy, /unsafe|\*|https?:/)
  await browser.page.waitForSelector('.graphiql-query-editor .CodeMirror')
  assert.match(await editorText('.graphiql-query-editor'), /\{[^]*\w[^]*\}/)
})

test('a ready tab runs as it is and shows data', async () => {
  await browser.page.click('.graphiql-execute-button')
  const operation = browser.page.locator('.graphiql-dropdown-item, [role=menuitem]').first()
  await Promise.race([answered(), operation.waitFor().then(() => operation.click())])
  await answered()
  const shown = JSON.parse(await editorText('.result-window'))
  assert.ok(shown.data && Object.keys(shown.data).length > 0, JSON.stringify(shown))
  assert.equal(shown.errors, undefined)
  if (process.env.GRAPHIQL_SCREENSHOT) await browser.page.screenshot({ path: process.env.GRAPHIQL_SCREENSHOT })
})

test('the documentation shows the schema, and the settings open', async () => {
  await browser.page.click('[aria-label="Show Documentation Explorer"]')
  await browser.page.waitForSelector('.graphiql-doc-explorer-content >> text=Query')
  await browser.page.click('[aria-label="Open settings dialog"]')
  await browser.page.waitForSelector('.graphiql-dialog')
  await browser.page.keyboard.press('Escape')
})

test('a subscription shows what happens, for as long as it runs', async () => {
  const { page } = browser
  await setQuery('subscription Watch { userCreated { id name email } }')
  // With one operation there is nothing to choose from: GraphiQL has read the new text.
  await page.click('.graphiql-execute-button:not([aria-haspopup])')
  for (const name of ['Ada Lovelace', 'Grace "Amazing" Hopper']) {
    const shown = page.waitForFunction((words) => document.querySelector('.result-window .CodeMirror')?.CodeMirror.getValue().includes(words), JSON.stringify(name))
    const until = Date.now() + 20_000
    // The subscription begins at some moment after the click; what is created before is none of its events.
    while (!(await Promise.race([shown.then(() => true), create(name).then(() => later(250))]))) assert.ok(Date.now() < until, 'no event was shown')
    const { data, extensions } = JSON.parse(await editorText('.result-window'))
    assert.equal(data.userCreated.name, name)
    assert.match(extensions.eventId, /./)
  }
  await page.click('.graphiql-execute-button')
  await page.waitForSelector('.graphiql-execute-button[aria-label^="Execute"]')
  assert.ok(browser.seen.includes(`${server.url.replace('http', 'ws')}/graphql`), 'it came over a socket')
})

test('a link with a query opens it, ready to run', async () => {
  const { page } = browser
  const query = 'query Two {\n  products(page: 1, size: 2) { id name }\n}'
  // Once with tabs that were kept from before, once as a new visitor.
  for (const fresh of [false, true]) {
    if (fresh) await page.evaluate(() => localStorage.clear())
    await page.goto(`${server.url}/graphql?query=${encodeURIComponent(query)}`)
    await page.waitForSelector('.graphiql-query-editor .CodeMirror')
    assert.equal((await editorText('.graphiql-query-editor')).trim(), query)
    await page.click('.graphiql-execute-button:not([aria-haspopup])')
    await answered()
    assert.equal(JSON.parse(await editorText('.result-window')).data.products.length, 2)
  }
})

test('a link leads home', async () => {
  assert.equal(await browser.page.getAttribute('.graphiql-container a.home', 'href'), '/')
})

test('nothing was complained about and nothing was asked of another host', () => {
  assert.deepEqual(browser.complaints, [])
  const elsewhere = browser.seen.filter((url) => !/^(data|blob):/.test(url) && new URL(url).host !== new URL(server.url).host)
  assert.deepEqual(elsewhere, [])
  assert.ok(browser.seen.length > 5, 'the page loaded its parts')
})

function editorText(selector) {
  return browser.page.$eval(`${selector} .CodeMirror`, (element) => element.CodeMirror.getValue())
}

function answered() {
  return browser.page.waitForFunction(() => document.querySelector('.result-window .CodeMirror')?.CodeMirror.getValue().includes('"data"'))
}

function setQuery(text) {
  return browser.page.$eval('.graphiql-query-editor .CodeMirror', (element, value) => element.CodeMirror.setValue(value), text)
}

async function create(name) {
  const query = 'mutation ($name: String!) { createUser(name: $name, email: "ada@example.com") { id } }'
  const reply = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables: { name } }),
  })
  assert.equal((await reply.json()).errors, undefined)
}

function later(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds, false))
}
