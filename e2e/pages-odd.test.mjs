// Every resource, every page, every odd input: never a 500, never markup made of text, and the same text comes back.
//
// The fields of some resources are all found in others: LONG_CHECKS=1 tries these resources, too.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { EVERY_KIND, RESOURCES } from './pages/catalog.mjs'
import { fillKinds } from './pages/kinds.mjs'
import { ODD, carried, read, spaces } from './pages/odd.mjs'
import { Site } from './pages/site.mjs'

const shop = new Site()
const kinds = new Site()
let eyes

before(async () => {
  await Promise.all([shop.open(), kinds.open([EVERY_KIND])])
  await fillKinds(kinds)
  eyes = await (await shop.browser.context({ javaScriptEnabled: true })).newPage()
})
after(async () => {
  for (const site of [shop, kinds]) await site.close()
})

const LONG = process.env.LONG_CHECKS === '1'
const [SHOP, KINDS] = LONG ? [Object.keys(RESOURCES), ['plants', 'places', 'tags', 'notes']] : [['users', 'orders'], ['plants', 'places']]
const PLACES = [...SHOP.map((name) => [shop, name]), ...KINDS.map((name) => [kinds, name])]

for (const [site, name] of PLACES) {
  describe(name, () => {
    for (const [kind, text] of Object.entries(ODD)) {
      test(`${kind}: in addresses`, () => addresses(site, name, text))
      test(`${kind}: in forms`, () => forms(site, name, text))
    }
  })
}

describe('samples', () => {
  for (const [kind, text] of Object.entries(ODD)) {
    test(kind, async () => {
      const added = await post(shop, '/samples', { value: text })
      const pages = ['/samples', '/samples?page=2', `/samples?page=${encodeURIComponent(text)}`]
      const answers = [added, ...(await Promise.all(pages.map((path) => get(shop, path))))]
      const seen = await judged(answers)
      if (added.status === 303) assert.ok((await shop.json('/samples')).includes(text))
      else assert.deepEqual(typed(seen[0], 'value'), [carried(text)])
    })
  }
})

test('a cookie that nobody set says nothing', async () => {
  for (const text of [...Object.values(ODD), 'created.users.999999', 'created.nothing.1', 'deleted.users.1']) {
    const cookie = `flash=${encodeURIComponent(text)}`
    await judged([await get(shop, '/users', { cookie }), await get(shop, '/users', { cookie: `flash=${text.replace(/[^ -~]|[;,]/g, '')}` })])
  }
})

test('bodies that are no form, and forms with odd names', async () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const bodies = ['name=%FF%FE', 'name=%', '%00=%00', 'name=a&name=b', '-key=x&-version=y&name=z', '-version=99999999999999999999&name=z', '-find=&-add=', '&&&===', 'address.=1&.x=2&a..b=3&name.0.1=4', `${'a.'.repeat(500)}b=1`, 'parts.99999999999.name=x']
  const answers = []
  for (const body of bodies) {
    for (const path of ['/products', '/products/1', '/users/1']) answers.push(await ask(shop, path, { method: 'POST', headers: form, body }))
    for (const path of ['/plants', '/plants/1']) answers.push(await ask(kinds, path, { method: 'POST', headers: form, body }))
  }
  await judged(answers)
})

test('text that becomes markup is seen', async () => {
  const bad = ['markup', 'a way out of an attribute', 'script', 'an address that is a program'].map((kind) => ODD[kind])
  const pages = bad.map((text) => `<main><input name="a" value="${text}"><a href="${text}">${text}</a></main>`)
  for (const [i, { strange }] of (await read(eyes, pages)).entries()) assert.ok(strange.length > 0, bad[i])
})

/** In the path, in every filter, in what a form is filled with beforehand. */
async function addresses(site, name, text) {
  const odd = encodeURIComponent(text)
  const [list, blank] = await judged([await get(site, `/${name}`), await get(site, `/${name}/new`)])
  const search = `/${name}?q=${odd}`
  const paths = [search, `/${name}/${odd}`, `/${name}/${odd}/edit`, `/${name}/${odd}/delete`, `/${name}/1/${odd}`, `/${name}/1?flash=${odd}`]
  for (const parameter of ['sort', 'page', 'size', 'after', 'fields', encodeURIComponent(text.slice(0, 100)), ...list.names]) paths.push(`/${name}?${parameter}=${odd}`)
  for (const field of some(blank.names, text)) paths.push(`/${name}/new?${encodeURIComponent(field)}=${odd}`)
  const answers = await each(paths, (path) => get(site, path))
  const [found] = await judged(answers)
  if (answers[0].status === 200) assert.deepEqual(typed(found, 'q'), typed(found, 'q').map(() => carried(text)))
}

/** In a field of a form alone, in all that take it, and in all; then on every page of the record that it made. */
async function forms(site, name, text) {
  const [record] = await judged([await get(site, `/${name}/1/edit`)])
  const whole = Object.fromEntries(record.typed)
  const oddIn = (fields) => ({ ...whole, ...Object.fromEntries(fields.map((field) => [field, text])) })
  const tried = some(Object.keys(whole), text)
  const taken = []
  for (const field of tried) if (await isTaken(site, name, oddIn([field]))) taken.push(field)
  await isTaken(site, name, oddIn(Object.keys(whole)))
  if (taken.length > 0 && (await isTaken(site, name, oddIn(taken)))) await stored(site, name, taken, text)
}

/** Whether a form passes. One that does not comes back as it was typed. */
async function isTaken(site, name, values) {
  const made = await post(site, `/${name}`, values)
  const [shown] = await judged([made])
  if (made.status === 303) return true
  for (const [field, value] of Object.entries(values)) {
    // A value inside a list that says nothing is no value.
    if (/\.\d+\./.test(field) && value.trim() === '') continue
    assert.deepEqual(typed(shown, field), [carried(value)], `${field} is kept`)
  }
  return false
}

/** What was stored is the same on every page of the newest record. */
async function stored(site, name, fields, text) {
  const [record] = await site.json(`/${name}?fields=*&sort=-id&size=1`)
  const paths = [`/${name}/${record.id}`, `/${name}/${record.id}/edit`, `/${name}/${record.id}/delete`, `/${name}?sort=-id&size=2`]
  const [detail, edit] = await judged(await each(paths, (path) => get(site, path)))
  for (const field of fields.filter((name) => record[name] === text)) {
    assert.deepEqual(typed(edit, field), [carried(text)], `${field} to edit`)
    assert.ok(spaces(detail.text).includes(spaces(text)), `${field} in full`)
  }
}

/** All fields of a form where there are few; of many a part that is another one for each input. */
function some(fields, text) {
  const parts = Math.ceil(fields.length / 8)
  const part = Object.values(ODD).indexOf(text) % parts
  return fields.filter((_, i) => i % parts === part)
}

/** The answers to all, a few at a time. */
async function each(items, ask) {
  const answers = []
  for (let from = 0; from < items.length; from += 8) answers.push(...(await Promise.all(items.slice(from, from + 8).map(ask))))
  return answers
}

function typed(seen, field) {
  return seen.typed.filter(([name]) => name === field).map(([, value]) => carried(value))
}

async function judged(answers) {
  const pages = await read(eyes, answers.map(({ body }) => body))
  answers.forEach(({ status, type, asked }, i) => {
    assert.ok(status < 500, `${asked}: ${status} ${spaces(pages[i].text).slice(0, 200)}`)
    if (status !== 303) assert.match(type, /^text\/html/, asked)
    assert.deepEqual(pages[i].strange, [], asked)
  })
  return pages
}

function get(site, path, headers = {}) {
  return ask(site, path, { headers })
}

function post(site, path, values) {
  return ask(site, path, { method: 'POST', headers: {}, body: new URLSearchParams(values) })
}

async function ask(site, path, options) {
  const reply = await site.fetch(path, { ...options, headers: { accept: 'text/html', ...options.headers } })
  const asked = `${options.method ?? 'GET'} ${path.slice(0, 200)} ${String(options.body ?? '').slice(0, 200)}`
  return { asked, status: reply.status, type: reply.headers.get('content-type'), body: await reply.text() }
}
