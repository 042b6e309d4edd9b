// Pictures of every page, for people who change how pages look: node shots.mjs FOLDER
//
// 1280 and 360 pixels wide, light and dark; few and a thousand records, long words, Arabic, Hebrew and Chinese. One of each
// kind also on paper, with more contrast and with colours of the reader's own.
// SERVER_BIN names the program; a second argument takes only the pages whose name contains it.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Away } from './pages/away.mjs'
import { catalog, EVERY_KIND, sample } from './pages/catalog.mjs'
import { fillKinds } from './pages/kinds.mjs'
import { Site } from './pages/site.mjs'

const [folder, wanted = ''] = process.argv.slice(2)
assert.ok(folder, 'usage: node shots.mjs FOLDER [PART OF A NAME]')
mkdirSync(folder, { recursive: true })

const LOOKS = [1280, 360].flatMap((width) => ['light', 'dark'].map((colorScheme) => ({ width, look: colorScheme, media: { colorScheme } })))
const RARE = [
  { width: 800, look: 'print', media: { colorScheme: 'light', media: 'print' } },
  { width: 1280, look: 'contrast', media: { colorScheme: 'light', media: 'screen', contrast: 'more' } },
  { width: 1280, look: 'forced', media: { colorScheme: 'dark', media: 'screen', contrast: 'no-preference', forcedColors: 'active' } },
]
const ONE_OF_EACH = /^(home|orders: (list|detail|edit|invalid)|users: delete|customers: conflict|samples: list|blocked delete|plants: (list|detail)|error 404)$/
const WORD = 'Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz'
const PEOPLE = [
  { name: `${WORD}${WORD}`, email: `${WORD.toLowerCase().replace(/[^a-z]/g, '')}@example.com` },
  { name: 'فاطمة الزهراء بنت عبد الرحمن', email: 'fatima@example.com' },
  { name: 'משה בן־מימון', email: 'moshe@example.com' },
  { name: '司馬懿 諸葛亮 歐陽修', email: 'sima@example.com' },
]

const shop = new Site()
const bare = new Site()
const kinds = new Site()
const crowd = new Site()
const away = new Away()
const folders = [sample(), sample({ isEmpty: true })]
try {
  await Promise.all([shop.open([folders[0]]), bare.open([folders[1]]), kinds.open([EVERY_KIND]), crowd.open([folders[1]]), away.open([folders[0]])])
  away.leave()
  await fill()
  const pages = [...catalog(shop, bare, kinds, away), ...crowded()].filter(({ name }) => name.includes(wanted))
  for (const entry of pages) await take(entry)
  console.log(`${pages.length} pages in ${folder}`)
} finally {
  for (const site of [shop, bare, kinds, crowd, away]) await site.close()
  for (const each of folders) rmSync(each, { recursive: true })
}

async function fill() {
  await fillKinds(kinds)
  for (const value of ['milk', 'honey', WORD, 'خبز وزيتون']) await shop.fetch('/samples', { method: 'POST', body: value })
  for (const person of PEOPLE) {
    const user = await crowd.create('/users', person)
    await crowd.create('/orders', { item: person.name, quantity: 2, userId: user.id, placedAt: '2026-03-01T09:30:00Z' })
    await crowd.create('/articles', { title: person.name, body: `${person.name}\n\n${`${person.name} `.repeat(30)}`, publishedOn: '2026-03-01' })
  }
  const many = Array.from({ length: 1000 }, (_, i) => ({ name: `Product ${i + 1}`, category: ['books', 'tools', 'food'][i % 3], price: `${(i * 7919) % 10000}.50`, description: 'One of a thousand that look alike.' }))
  assert.equal((await crowd.send('POST', '/products', many)).status, 201)
}

function crowded() {
  const paths = { home: '/', users: '/users', products: '/products', 'products, page 30': '/products?page=30', orders: '/orders', articles: '/articles', 'user detail': '/users/1', 'user detail, Arabic': '/users/2', 'article detail, Hebrew': '/articles/3', 'article edit, Chinese': '/articles/4/edit', 'user delete': '/users/1/delete', 'order new': '/orders/new' }
  return Object.entries(paths).map(([name, path]) => ({ site: crowd, name: `crowd ${name}`, visit: (page) => page.goto(path) }))
}

async function take({ site, name, visit }) {
  const context = await site.browser.context({ reducedMotion: 'reduce' })
  const page = await site.watched(context)
  await visit(page)
  for (const { width, look, media } of ONE_OF_EACH.test(name) ? [...LOOKS, ...RARE] : LOOKS) {
    await page.setViewportSize({ width, height: width > 1000 ? 800 : 740 })
    await page.emulateMedia(media)
    await page.screenshot({ path: join(folder, `${name.replace(/[^\w]+/g, '-')}-${width}-${look}.png`), fullPage: true })
  }
  await context.close()
}
