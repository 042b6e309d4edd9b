// A site under test with people before it: windows that hold every page to the same rules, and what journeys have in common.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { launch, watch } from '../browser.mjs'
import { binary, start } from '../server.mjs'

/** How long anything may take on a machine that has much else to do. */
const PATIENCE = Number(process.env.PATIENCE ?? 60_000)

/** Makes a server and a browser before the tests of a file, `filled` where there is more to do, and ends both after them. */
export function site(args = [], filled = async () => {}) {
  const made = new Site()
  before(async () => {
    await made.open(args)
    await filled(made)
  })
  after(() => made.close())
  return made
}

export class Site {
  async open(args = []) {
    this.server = await start(binary(), args)
    this.browser = await launch()
    this.url = this.server.url
  }

  async close() {
    await this.browser?.close()
    await this.server?.stop()
  }

  /**
   * A new person's window at `path`. What it must not do is asserted when the test `t` ends: ask another host, break
   * the policy, say anything on the console, load a part that fails.
   */
  async window(t, path = undefined, options = {}) {
    const context = await this.browser.context(options)
    const page = await this.watched(context)
    t.after(() => page.done())
    if (path !== undefined) await page.goto(path)
    return page
  }

  /** One more window of the same person. */
  async beside(t, page, path = undefined) {
    const other = await this.watched(page.context(), false)
    t.after(() => other.done())
    if (path !== undefined) await other.goto(path)
    return other
  }

  async watched(context, isLast = true) {
    const page = await context.newPage()
    page.setDefaultTimeout(PATIENCE)
    const { seen, complaints } = await watch(page)
    page.on('response', (response) => {
      if (response.status() >= 400 && !response.request().isNavigationRequest()) complaints.push(`${response.status()}: ${response.url()}`)
    })
    const plain = page.goto.bind(page)
    page.goto = (path, options) => plain(new URL(path, this.url).href, options)
    page.judge = () => {
      const [said, asked] = [complaints.splice(0), seen.splice(0)]
      assert.deepEqual(said.filter(isComplaint), [], `at ${page.url()}`)
      assert.deepEqual(asked.filter((url) => !url.startsWith(`${this.url}/`) && !/^(about|data|blob):/.test(url)), [], 'asked of another host')
    }
    page.done = async () => {
      await (isLast ? context.close() : page.close())
      page.judge()
    }
    return page
  }

  fetch(path, options = {}) {
    return fetch(`${this.url}${path}`, { redirect: 'manual', ...options })
  }

  /** What REST says is at `path`. */
  async json(path) {
    const reply = await this.fetch(path, { headers: { accept: 'application/json' } })
    const text = await reply.text()
    assert.equal(reply.status, 200, `${path}: ${text}`)
    return JSON.parse(text)
  }

  /** Makes a record through REST. */
  async create(path, record) {
    const reply = await this.send('POST', path, record)
    assert.equal(reply.status, 201, await reply.clone().text())
    return reply.json()
  }

  async change(path, fields) {
    const reply = await this.send('PATCH', path, fields, 'application/merge-patch+json')
    assert.equal(reply.status, 200, await reply.clone().text())
    return reply.json()
  }

  send(method, path, body, type = 'application/json') {
    return this.fetch(path, { method, headers: { 'content-type': type, accept: 'application/json' }, body: JSON.stringify(body) })
  }

  /** Records of `path` whose `field` is `value`. */
  named(path, field, value) {
    return this.json(`${path}?fields=*&${new URLSearchParams({ [field]: value })}`)
  }

  path(page) {
    return page.url().slice(this.url.length)
  }
}

/** Chromium tells of every page with a status of 400 and more, and of streams that a person ends by going on. */
export function isComplaint(text) {
  return !/^Failed to load resource: the server responded with a status of \d+|net::ERR_ABORTED/.test(text.replace(/^failed: \S+ /, ''))
}

/** Presses the button and waits for the page that the answer leads to. */
export async function press(page, name) {
  const button = page.getByRole('button', { name })
  return following(page, () => button.click())
}

/** Follows a link. */
export async function follow(page, name, where = page) {
  return following(page, () => where.getByRole('link', { name }).first().click())
}

/** The answer that the page shows after `act`, behind any redirects. */
export async function following(page, act) {
  const [response] = await Promise.all([page.waitForNavigation(), act()])
  return response
}

/** Waits until the page is at this path, however it gets there. */
export async function reaches(page, path) {
  const end = Date.now() + 15_000
  while (new URL(page.url()).pathname !== path) {
    if (Date.now() > end) throw new Error(`still at ${page.url()} instead of ${path}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await page.waitForLoadState()
}

/** The text of each row's first cell, in order. */
export function titles(page) {
  return page.locator('main table').first().locator('tbody th').allInnerTexts()
}

/** What a record's page says of a field. */
export function fact(page, label) {
  return page.locator('main dl > div', { has: page.locator('dt', { hasText: new RegExp(`^${label}$`) }) }).first().locator('dd').innerText()
}

export function heading(page) {
  return page.locator('h1').innerText()
}
