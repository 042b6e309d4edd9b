// Lists that update by themselves: what others write appears, nothing that is read moves, and only what is seen listens.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tabs, watch } from './browser.mjs'
import { axe } from './pages/judges.mjs'
import { isComplaint, site, titles } from './pages/site.mjs'

const shop = site()
const PATIENCE = { timeout: 60_000 }

let number = 0
const person = () => `Live ${(number += 1)}`
const create = (name) => shop.create('/users', { name, email: `${name.replace(' ', '.')}@example.com` })

test('a row appears in every window, and what is read stays where it is', async (t) => {
  const [first, second] = [await shop.window(t, '/users?size=1000'), await shop.window(t, '/users?size=1000')]
  for (const page of [first, second]) await isLive(page)
  const place = () => first.locator('main tbody tr').first().boundingBox()
  const before = { place: await place(), titles: await titles(first) }
  const name = person()
  await create(name)
  for (const page of [first, second]) await page.locator('main tbody tr', { hasText: name }).waitFor()
  assert.deepEqual({ place: await place(), titles: (await titles(first)).slice(0, -1) }, before)
  const count = (await shop.json('/users?fields=id&size=1000')).length
  await first.waitForFunction((words) => document.querySelector('main caption').textContent.includes(words), ` of ${count} `)
  assert.equal(await first.locator('main tbody tr', { hasText: name }).getByRole('link', { name }).first().getAttribute('href'), `/users/${(await shop.named('/users', 'name', name))[0].id}`)
})

test('a record that belongs above what is read is told of, and shown when asked for', async (t) => {
  const page = await shop.window(t, '/users?sort=-id&size=5')
  await isLive(page)
  const before = { titles: await titles(page), place: await page.locator('main tbody tr').first().boundingBox() }
  const [one, two] = [person(), person()]
  await create(one)
  await create(two)
  const notice = page.getByRole('link', { name: /2 new .*Show/ })
  await notice.waitFor()
  assert.deepEqual({ titles: await titles(page), place: await page.locator('main tbody tr').first().boundingBox() }, before, 'nothing moved')
  await notice.click()
  await page.locator('main tbody tr', { hasText: two }).waitFor()
  assert.deepEqual((await titles(page)).slice(0, 2), [two, one])
})

test('what goes over to the next page is not called gone, and what is gone is', async (t) => {
  for (const letter of 'ABDE') await create(`Edge ${letter}`)
  const page = await shop.window(t, '/users?q=Edge&sort=name&size=3')
  await isLive(page)
  const struck = page.locator('main tbody tr.is-gone')
  await create('Edge C')
  await page.getByRole('link', { name: /1 new .*Show/ }).waitFor()
  assert.deepEqual(await titles(page), ['Edge A', 'Edge B', 'Edge D'])
  assert.equal(await struck.count(), 0, 'it is on the next page')
  const [{ id }] = await shop.named('/users', 'name', 'Edge A')
  assert.equal((await shop.fetch(`/users/${id}`, { method: 'DELETE', headers: { accept: 'application/json' } })).status, 204)
  // The schema tells of new users alone.
  await create(person())
  await struck.waitFor()
  assert.match(await struck.textContent(), /Edge A.*no longer in this list/s)
})

test('what has just come and what is gone can be read', async (t) => {
  for (const colorScheme of ['light', 'dark']) {
    const [kept, gone, name] = Array.from({ length: 3 }, () => `${person()} read`)
    for (const each of [kept, gone]) await create(each)
    const page = await shop.window(t, '/users?q=read&size=1000', { colorScheme })
    await isLive(page)
    const [{ id }] = await shop.named('/users', 'name', gone)
    assert.equal((await shop.fetch(`/users/${id}`, { method: 'DELETE', headers: { accept: 'application/json' } })).status, 204)
    await create(name)
    await page.locator('main tbody tr.is-gone').waitFor()
    const running = await page.locator('main tbody tr', { hasText: name }).evaluate((row) =>
      row.getAnimations().map((each) => {
        each.pause()
        each.currentTime = 0
        return each.animationName
      }),
    )
    assert.deepEqual(running, ['fresh'])
    assert.deepEqual(await axe(page), [], colorScheme)
  }
})

test('a row that has the focus is exchanged when the focus leaves it', async (t) => {
  const name = person()
  await create(name)
  const page = await shop.window(t, `/users?q=${encodeURIComponent(name)}`)
  await isLive(page)
  await page.locator('main tbody').getByRole('link', { name }).first().focus()
  const [{ id }] = await shop.named('/users', 'name', name)
  const headers = { 'content-type': 'application/merge-patch+json', accept: 'application/json' }
  assert.equal((await shop.fetch(`/users/${id}`, { method: 'PATCH', headers, body: JSON.stringify({ name: `${name} renamed` }) })).status, 200)
  // The schema tells of new users alone.
  await create(`${name} other`)
  await page.locator('main tbody tr', { hasText: `${name} other` }).waitFor()
  assert.deepEqual(await titles(page), [name, `${name} other`])
  await page.getByRole('searchbox').focus()
  await page.locator('main tbody tr', { hasText: `${name} renamed` }).waitFor()
})

test('a list without a subscription is as it is', async (t) => {
  const page = await shop.window(t, '/products')
  assert.equal(await page.locator('[data-live]').count(), 0)
})

test('a search takes what matches it, and nothing else', async (t) => {
  const page = await shop.window(t, '/users?q=Hopper')
  await isLive(page)
  await create(person())
  const name = `Hopper ${person()}`
  await create(name)
  await page.locator('main tbody tr', { hasText: name }).waitFor()
  assert.deepEqual(await titles(page), ['Grace Hopper', name])
  assert.equal(await page.getByRole('link', { name: /new .*Show/ }).count(), 0)
})

test('a list that was cut off catches up', async (t) => {
  // Its own window: being cut off is what it is expected to complain about.
  const context = await shop.browser.context()
  t.after(() => context.close())
  const page = await context.newPage()
  await page.goto(`${shop.url}/users?size=1000`, PATIENCE)
  await isLive(page)
  await page.context().setOffline(true)
  const missed = person()
  await create(missed)
  await page.context().setOffline(false)
  const next = person()
  await create(next)
  await page.locator('main tbody tr', { hasText: missed }).waitFor()
  await page.locator('main tbody tr', { hasText: next }).waitFor()
})

// Chromium opens six connections to a host: a list that listened while nobody looks would leave none for the seventh tab.
test('only the tab in front listens', async (t) => {
  const window = await tabs()
  t.after(() => window.close())
  const complaints = []
  const open = async (page) => {
    complaints.push((await watch(page)).complaints)
    await page.goto(`${shop.url}/users?size=1000`, PATIENCE)
    await isLive(page)
    return page
  }
  const pages = [await open(window.first)]
  while (pages.length < 8) pages.push(await open(await window.context.newPage()))
  const [first, ...others] = pages
  for (const page of pages.slice(0, -1)) await status(page, /Paused/)

  const name = person()
  await create(name)
  await pages.at(-1).locator('main tbody tr', { hasText: name }).waitFor(PATIENCE)
  for (const page of pages.slice(0, -1)) assert.equal(await page.locator('main tbody tr', { hasText: name }).count(), 0)
  await first.bringToFront()
  await first.locator('main tbody tr', { hasText: name }).waitFor(PATIENCE)
  await isLive(first)
  await status(others.at(-1), /Paused/)
  assert.deepEqual(complaints.flat().filter(isComplaint), [])
})

function isLive(page) {
  return status(page, /Live/)
}

/** What the list says of itself. */
function status(page, words) {
  return page.locator('main .live[role=status]').filter({ hasText: words }).waitFor(PATIENCE)
}
