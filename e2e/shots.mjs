// Pictures of every page, for people who change how pages look: node shots.mjs FOLDER
//
// 1280 and 360 pixels wide, light and dark; few and a thousand records, long words, Arabic, Hebrew and Chinese.
// SERVER_BIN names the program; a second argument takes only the pages whose name contains it.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { catalog, EVERY_KIND, sample } from './pages/catalog.mjs'
import { fillKinds } from './pages/kinds.mjs'
import { Site } from './pages/site.mjs'

const [folder, wanted = ''] = process.argv.slice(2)
assert.ok(folder, 'usage: node shots.mjs FOLDER [PART OF A NAME]')
mkdirSync(folder, { recursive: true })

const WIDTHS = [1280, 360]
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
const folders = [sample(), sample({ isEmpty: true })]
try {
  await Promise.all([shop.open([folders[0]]), bare.open([folders[1]]), kinds.open([EVERY_KIND]), crowd.open([folders[1]])])
  await fill()
  const pages = [...catalog(shop, bare, kinds), ...crowded()].filter(({ name }) => name.includes(wanted))
  for (const entry of pages) await take(entry)
  console.log(`${pages.length} pages, ${pages.length * WIDTHS.length * 2} pictures in ${folder}`)
} finally {
  for (const site of [shop, bare, kinds, crowd]) await site.close()
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
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: width > 1000 ? 800 : 740 })
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      const file = `${name.replace(/[^\w]+/g, '-')}-${width}-${colorScheme}.png`
      await page.screenshot({ path: join(folder, file), fullPage: true })
    }
  }
  await context.close()
}
