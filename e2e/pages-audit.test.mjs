// Every page in every state, before axe (WCAG 2.2 AA) and html-validate: in light and dark, wide and 320 pixels narrow.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { catalog, EVERY_KIND, sample } from './pages/catalog.mjs'
import { axe, markup } from './pages/judges.mjs'
import { fillKinds } from './pages/kinds.mjs'
import { Site } from './pages/site.mjs'

const shop = new Site()
const bare = new Site()
const kinds = new Site()
const folders = [sample(), sample({ isEmpty: true })]

const pages = new Map()

before(async () => {
  await Promise.all([shop.open([folders[0]]), bare.open([folders[1]]), kinds.open([EVERY_KIND])])
  for (const value of ['milk', 'honey']) await shop.fetch('/samples', { method: 'POST', body: value })
  await fillKinds(kinds)
  for (const site of [shop, bare, kinds]) pages.set(site, await site.watched(await site.browser.context()))
})
after(async () => {
  for (const site of [shop, bare, kinds]) await site.close()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

describe('nothing is found on', () => {
  for (const { site, name, status, visit } of catalog(shop, bare, kinds)) {
    test(name, async () => {
      const page = pages.get(site)
      const answer = await visit(page)
      assert.equal(answer.status(), status)
      assert.match(answer.headers()['content-type'], /^text\/html/)
      const found = await markup(await answer.text())
      await look(page, 'light', 1280)
      found.push(...(await axe(page)).map((each) => `light, 1280 px: ${each}`))
      await look(page, 'dark', 320)
      found.push(...(await axe(page)).map((each) => `dark, 320 px: ${each}`))
      const { width, widest } = await page.evaluate(overflow)
      if (width > 320) found.push(`at 320 px the page is ${width} px wide because of ${widest}`)
      assert.deepEqual(found, [])
      page.judge()
    })
  }
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
