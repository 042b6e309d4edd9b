// Every page in every state, before axe (WCAG 2.2 AA) and html-validate: in light and dark, wide and 320 pixels narrow.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { catalog, EVERY_KIND, sample } from './pages/catalog.mjs'
import { COLOURS, WIDTHS, axe, markup } from './pages/judges.mjs'
import { fillKinds } from './pages/kinds.mjs'
import { Site } from './pages/site.mjs'

const shop = new Site()
const bare = new Site()
const kinds = new Site()
const folders = [sample(), sample({ isEmpty: true })]

before(async () => {
  await Promise.all([shop.open([folders[0]]), bare.open([folders[1]]), kinds.open([EVERY_KIND])])
  for (const value of ['milk', 'honey']) await shop.fetch('/samples', { method: 'POST', body: value })
  await fillKinds(kinds)
})
after(async () => {
  for (const site of [shop, bare, kinds]) await site.close()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

describe('nothing is found on', () => {
  for (const { site, name, status, visit } of catalog(shop, bare, kinds)) {
    test(name, async (t) => {
      const page = await site.window(t)
      const answer = await visit(page)
      assert.equal(answer.status(), status)
      assert.match(answer.headers()['content-type'], /^text\/html/)
      const found = [...(await markup(await answer.text())), ...(await shown(page))]
      assert.deepEqual(found, [])
    })
  }
})

/** Everything judged by what is on the screen. */
async function shown(page) {
  const found = await axe(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  found.push(...(await axe(page, COLOURS)).map((each) => `dark: ${each}`))
  await page.setViewportSize({ width: 320, height: 640 })
  found.push(...(await axe(page, WIDTHS)).map((each) => `320 px, dark: ${each}`))
  await page.emulateMedia({ colorScheme: 'light' })
  const { width, widest } = await page.evaluate(overflow)
  if (width > 320) found.push(`320 px: the page is ${width} px wide because of ${widest}`)
  return found
}

/** How wide the page is, and what makes it so. */
function overflow() {
  const width = document.documentElement.scrollWidth
  const inside = (element) => element.parentElement?.closest('[role=region], pre, .scroll')
  const beyond = [...document.body.querySelectorAll('*')].filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !inside(element))
  return { width, widest: beyond.map((element) => element.outerHTML.slice(0, 100)).at(-1) }
}
