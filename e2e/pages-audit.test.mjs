// Every page in every state, before axe (WCAG 2.2 AA) and html-validate: in light and dark, wide and 320 pixels narrow.
//
// Dark differs from light in nothing but colours, which the width does not change, and narrow from wide in nothing but the layout:
// only LONG_CHECKS=1 tries the other rules of axe there, too, and dark pages that are narrow.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { Away } from './pages/away.mjs'
import { catalog, EVERY_KIND, sample } from './pages/catalog.mjs'
import { axe, COLOURS, LAYOUT, markup } from './pages/judges.mjs'
import { fillKinds } from './pages/kinds.mjs'
import { Site } from './pages/site.mjs'

const shop = new Site()
const bare = new Site()
const kinds = new Site()
const away = new Away()
const folders = [sample(), sample({ isEmpty: true })]

const LONG = process.env.LONG_CHECKS === '1'
// Each look, and the rules that are tried of it; all of them without.
const LOOKS = LONG
  ? [['light', 1280], ['dark', 1280], ['dark', 320], ['light', 320]]
  : [['light', 1280], ['dark', 1280, COLOURS], ['light', 320, LAYOUT]]
const pages = new Map()

before(async () => {
  await Promise.all([shop.open([folders[0]]), bare.open([folders[1]]), kinds.open([EVERY_KIND]), away.open([folders[0]])])
  away.leave()
  for (const value of ['milk', 'honey']) await shop.fetch('/samples', { method: 'POST', body: value })
  await fillKinds(kinds)
  for (const site of [shop, bare, kinds, away]) pages.set(site, await site.watched(await site.browser.context()))
})
after(async () => {
  for (const site of [shop, bare, kinds, away]) await site.close()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

describe('nothing is found on', () => {
  for (const { site, name, status, visit } of catalog(shop, bare, kinds, away)) {
    test(name, async () => {
      const page = pages.get(site)
      const answer = await visit(page)
      assert.equal(answer.status(), status)
      assert.match(answer.headers()['content-type'], /^text\/html/)
      const found = await markup(await answer.text())
      for (const [colorScheme, width, rules] of LOOKS) {
        await look(page, colorScheme, width)
        found.push(...(await axe(page, rules)).map((each) => `${colorScheme}, ${width} px: ${each}`))
      }
      const { width, widest } = await page.evaluate(overflow)
      if (width > 320) found.push(`at 320 px the page is ${width} px wide because of ${widest}`)
      assert.deepEqual(found, [])
      page.judge()
    })
  }
})

test('a word of any length stays in its cell', async () => {
  const word = 'W'.repeat(120)
  const user = await shop.create('/users', { name: word, email: `${'w'.repeat(60)}@example.com` })
  const order = await shop.create('/orders', { item: word, userId: user.id })
  const places = [[shop, '/users'], [shop, '/orders'], [shop, `/users/${user.id}`], [shop, `/orders/${order.id}`], [kinds, '/notes']]
  for (const [site, path] of places) {
    for (const width of [1280, 320]) {
      const page = pages.get(site)
      await look(page, 'light', width)
      await page.goto(path)
      const beyond = await page.evaluate(() => [...document.querySelectorAll('main :is(th, td, dd, h1)')].filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.outerHTML.slice(0, 200)))
      assert.deepEqual(beyond, [], `${path}, ${width} px`)
    }
  }
})

test('the judges find what is wrong', async () => {
  const page = pages.get(bare)
  const wrong = '<!doctype html><html><title>x</title><main><p>pale</p><input name="a"><input name="a"></main></html>'
  await page.goto('/')
  await page.setContent(wrong)
  await page.evaluate(() => (document.querySelector('p').style.color = '#bbb'))
  const found = [...(await markup(wrong)), ...(await axe(page))].join('\n')
  for (const rule of ['form-dup-name', 'html-has-lang', 'color-contrast', 'label']) assert.match(found, new RegExp(`^${rule}\\b`, 'm'))
  assert.match((await axe(page, COLOURS)).join('\n'), /^color-contrast\b/)
  await page.setContent('<main><a href="/a" style="font-size: 8px">a</a><br><a href="/b" style="font-size: 8px">b</a></main>')
  assert.match((await axe(page, LAYOUT)).join('\n'), /^target-size\b/)
})

async function look(page, colorScheme, width) {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await page.setViewportSize({ width, height: 800 })
}

/** How wide the page is, and what makes it so. */
function overflow() {
  const width = document.documentElement.scrollWidth
  const inside = (element) => element.parentElement?.closest('[role=region], pre, .scroll')
  const beyond = [...document.body.querySelectorAll('*')].filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !inside(element))
  return { width, widest: beyond.map((element) => element.outerHTML.slice(0, 100)).at(-1) }
}
