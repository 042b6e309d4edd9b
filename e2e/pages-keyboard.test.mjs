// Everything by keyboard alone: each control is reached with Tab, seen while it has the focus, and worked with Enter.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flash } from './pages/controls.mjs'
import { following, heading, site, titles } from './pages/site.mjs'

const shop = site()
const MOST = 120

test('create and delete without a mouse', async (t) => {
  const page = await shop.window(t, '/')
  await enter(page, /^Customers$/)
  await enter(page, /^New customer$/)
  await tabTo(page, /^Name/)
  await page.keyboard.press('Control+A')
  await page.keyboard.type('Keyboard Kim')
  await tabTo(page, /^Email/)
  await page.keyboard.type('kim@example.com')
  await enter(page, /^Create customer$/)
  assert.equal(shop.path(page), '/customers')
  assert.match(await flash(page), /^Customer created/)
  const [kim] = await shop.named('/customers', 'name', 'Keyboard Kim')
  assert.equal(kim.email, 'kim@example.com')

  await enter(page, /^Keyboard Kim$/)
  assert.equal(await heading(page), 'Keyboard Kim')
  await enter(page, /^Delete$/)
  await enter(page, /^Delete customer/)
  assert.equal(shop.path(page), '/customers')
  assert.deepEqual(await shop.named('/customers', 'name', 'Keyboard Kim'), [])
})

test('the return key in a field sends the form', async (t) => {
  const page = await shop.window(t, '/articles/new')
  await tabTo(page, /^Title/)
  await page.keyboard.press('Control+A')
  await page.keyboard.type('Returned')
  await following(page, () => page.keyboard.press('Enter'))
  assert.equal(shop.path(page), '/articles')
  assert.equal((await shop.named('/articles', 'title', 'Returned')).length, 1)
})

test('the first stop leads past the navigation', async (t) => {
  const page = await shop.window(t, '/users')
  await page.keyboard.press('Tab')
  assert.match((await focused(page)).name, /^Skip/)
  const { x, y } = await page.getByRole('link', { name: /^Skip/ }).boundingBox()
  assert.ok(Math.min(x, y) >= 5, `its ring has no room: ${x}, ${y}`)
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  assert.equal((await focused(page)).inMain, true)
})

test('a radio is chosen with arrows, a filter opened and worked', async (t) => {
  const page = await shop.window(t, '/orders/1/edit')
  await tabTo(page, /^Shipped$/i)
  await page.keyboard.press('ArrowDown')
  await enter(page, /^Save/)
  assert.notEqual((await shop.json('/orders/1')).status, 'SHIPPED')

  await page.goto('/orders')
  await tabTo(page, /^Filters/)
  await page.keyboard.press('Enter')
  await tabTo(page, /^Status$/)
  await page.keyboard.type('paid')
  await enter(page, /^(Search|Apply)$/)
  assert.deepEqual((await titles(page)).filter((title) => title === 'Gift card'), ['Gift card'])
  assert.match(shop.path(page), /status=PAID/)
})

test('the search has an access key', async (t) => {
  const page = await shop.window(t, '/products')
  // As a keyboard sends it: what Playwright presses beside Alt says no character.
  const keyboard = await page.context().newCDPSession(page)
  await keyboard.send('Input.dispatchKeyEvent', { type: 'keyDown', modifiers: 1, key: '/', code: 'Slash', unmodifiedText: '/', windowsVirtualKeyCode: 191 })
  assert.match((await focused(page)).name, /^Search/)
})

/** Presses Tab until the focus is on something named so. */
async function tabTo(page, name) {
  // A new form begins with the focus in its first control.
  if (name.test((await focused(page)).name ?? '')) return
  const passed = []
  for (let pressed = 0; pressed < MOST; pressed += 1) {
    await page.keyboard.press('Tab')
    const now = await focused(page)
    if (now.name !== undefined) assert.equal(now.isSeen, true, `the focus on "${now.name}" cannot be seen`)
    if (name.test(now.name ?? '')) return
    passed.push(now.name)
  }
  assert.fail(`no way by Tab to ${name}: ${passed.join(' | ')}`)
}

/** To a link or button, and presses it. */
async function enter(page, name) {
  await tabTo(page, name)
  await following(page, () => page.keyboard.press('Enter'))
}

/** What has the focus: how it is named, and whether it shows that it has it. */
function focused(page) {
  return page.evaluate(() => {
    const element = document.activeElement
    if (!element || element === document.body) return {}
    const label = element.labels?.[0] ?? element
    const name = (element.getAttribute('aria-label') ?? label.innerText).trim().replace(/\s+/g, ' ')
    const marks = [element, element.parentElement, element.closest('tr, li, .card')].filter(Boolean).map((each) => getComputedStyle(each))
    // A browser's own part of a control, such as the button of a calendar, shows its focus itself.
    const isInside = element.matches(':focus-within:not(:focus)')
    const isSeen = isInside || marks.some((style) => (style.outlineStyle !== 'none' && style.outlineWidth !== '0px') || style.boxShadow !== 'none')
    return { name, isSeen, inMain: document.querySelector('main').contains(element) }
  })
}
