// Every page there is, in every state it can be in: how to come to each.

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync, appendFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { control } from './controls.mjs'
import { following, press } from './site.mjs'

const SAMPLE = new URL('../../app', import.meta.url).pathname
export const EVERY_KIND = new URL('../every-kind', import.meta.url).pathname

/** The record types of the sample, with the label of the field that may not be blank. */
export const RESOURCES = { users: 'Name', products: 'Name', orders: 'Item', customers: 'Name', articles: 'Title' }

/** Those whose pages are looked at in every state: the others repeat them. */
const LOOKED_AT = process.env.LONG_CHECKS === '1' ? Object.keys(RESOURCES) : ['users', 'orders']

const OWN_PAGES = `
[[text]]
path = "/about"
view = "about"

[[text]]
path = "/broken"
view = "broken"
`

/** A copy of the sample with a page of its own and one that is broken; without records where there is no seed. */
export function sample({ isEmpty = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'trefoil-sample-'))
  cpSync(SAMPLE, folder, { recursive: true })
  if (isEmpty) rmSync(join(folder, 'seed'), { recursive: true })
  appendFileSync(join(folder, 'trefoil.toml'), OWN_PAGES)
  mkdirSync(join(folder, 'views'), { recursive: true })
  writeFileSync(join(folder, 'views/about.html'), '{% extends "layout.html" %}\n{% block content %}\n<h1>About us</h1>\n<p>A page of our own.</p>\n{% endblock %}\n')
  writeFileSync(join(folder, 'views/broken.html'), '{% extends "layout.html" %}\n{% block content %}\n{{ head.nothing.at.all }}\n{% endblock %}\n')
  return folder
}

/**
 * The pages of a filled site (`shop`), of one without records (`bare`), of one with every kind of field (`kinds`) and of one
 * whose store is away.
 * Each has a name, the site it is of, a `visit(page)` that leads there and gives the answer, and the status it must have.
 */
export function catalog(shop, bare, kinds, away) {
  return [...reading(shop), ...empty(bare), ...writing(shop), ...failing(shop), ...everyKind(kinds), ...storeless(away)]
}

function reading(shop) {
  const pages = [at(shop, 'home', '/'), at(shop, 'a page of our own', '/about'), at(shop, 'nested list', '/users/1/orders'), at(shop, 'nested detail', '/users/1/orders/1')]
  for (const name of LOOKED_AT) {
    pages.push(
      at(shop, `${name}: list`, `/${name}`),
      at(shop, `${name}: filtered`, `/${name}?q=a&sort=-id&size=3`),
      at(shop, `${name}: nothing matches`, `/${name}?q=no+such+thing`),
      at(shop, `${name}: past the end`, `/${name}?page=99`),
      at(shop, `${name}: summary`, `/${name}/-/summary`),
      at(shop, `${name}: detail`, `/${name}/1`),
      at(shop, `${name}: new`, `/${name}/new`),
      at(shop, `${name}: edit`, `/${name}/1/edit`),
      at(shop, `${name}: delete`, `/${name}/1/delete`),
    )
  }
  pages.push(at(shop, 'samples: list', '/samples'), at(shop, 'samples: past the end', '/samples?page=99'))
  pages.push(
    at(shop, 'summary over time', '/orders/-/summary?group=month(placedAt)&aggregate=sum(quantity)'),
    at(shop, 'summary in several lines', '/orders/-/summary?group=day(placedAt)&group=status&aggregate=count,avg(quantity)'),
    at(shop, 'summary by reference, filtered', '/orders/-/summary?group=user&aggregate=max(quantity)&quantity.gte=1&q=a'),
    at(shop, 'summary that cannot be made', '/orders/-/summary?group=statsu&group=item&aggregate=sum(item)&having=x', 400),
  )
  pages.push(at(shop, 'products: a filter that cannot be read', '/products?price.gte=cheap', 400))
  return pages
}

function empty(bare) {
  const names = [...LOOKED_AT, 'samples']
  return [at(bare, 'home of nothing', '/'), ...names.map((name) => at(bare, `${name}: empty`, `/${name}`)), at(bare, 'summary of nothing', '/orders/-/summary')]
}

function writing(shop) {
  const invalid = LOOKED_AT.map((name) =>
    by(shop, `${name}: invalid`, 400, async (page) => {
      await page.goto(`/${name}/new`)
      await control(page, RESOURCES[name]).fill(' ')
      return press(page, /^Create/)
    }),
  )
  return [
    ...invalid,
    by(shop, 'samples: invalid', 400, async (page) => {
      await page.goto('/samples')
      return press(page, /^Add/)
    }),
    by(shop, 'products: just created', 200, async (page) => {
      await page.goto('/products/new')
      return press(page, /^Create/)
    }),
    by(shop, 'customers: conflict', 409, async (page) => {
      const { id } = await shop.create('/customers', { name: 'Contested', email: 'one@example.com' })
      await page.goto(`/customers/${id}/edit`)
      await shop.change(`/customers/${id}`, { email: 'two@example.com', phone: '2' })
      await control(page, 'Email').fill('three@example.com')
      return press(page, /^Save/)
    }),
  ]
}

function failing(shop) {
  return [
    at(shop, 'error 400', '/users/abc', 400),
    by(shop, 'error 403', 403, async (page) => {
      await page.goto('about:blank')
      await page.setContent(`<form method="post" action="${shop.url}/products"><button>Send</button></form>`)
      return press(page, 'Send')
    }),
    at(shop, 'error 404', '/users/999999', 404),
    at(shop, 'error 404, unknown path', '/productz', 404),
    by(shop, 'error 405', 405, (page) => post(page, '/users/1/edit', 'x')),
    by(shop, 'error 413', 413, (page) => post(page, '/articles', 'x'.repeat(1_100_000))),
    at(shop, 'error 500', '/broken', 500),
  ]
}

function everyKind(kinds) {
  const all = ['plants', 'owners', 'tags', 'notes', 'places']
  const pages = all.flatMap((name) => [
    at(kinds, `${name}: list`, `/${name}`),
    // The name of a place is unique: there is nothing to group by.
    at(kinds, `${name}: summary`, `/${name}/-/summary`, name === 'places' ? 404 : 200),
    at(kinds, `${name}: detail`, `/${name}/1`),
    at(kinds, `${name}: new`, `/${name}/new`),
    at(kinds, `${name}: edit`, `/${name}/1/edit`),
  ])
  return [
    ...pages,
    at(kinds, 'blocked delete', '/places/1/delete'),
    by(kinds, 'blocked deletion', 409, async (page) => {
      const { id } = await kinds.create('/places', { name: 'Needed meanwhile' })
      await page.goto(`/places/${id}/delete`)
      await kinds.create('/plants', { title: 'Needs it', isRare: false, ownerId: '1', placeId: id })
      return press(page, /^Delete/)
    }),
    by(kinds, 'plants: invalid', 400, async (page) => {
      await page.goto('/plants/new')
      return press(page, /^Create/)
    }),
    by(kinds, 'plants: rows added', 200, async (page) => {
      await page.goto('/plants/1/edit')
      return press(page, 'Add note')
    }),
    by(kinds, 'plants: rows invalid', 400, async (page) => {
      await page.goto('/plants/1/edit')
      await page.getByRole('group', { name: 'Note 2', exact: true }).getByLabel(/^Body/).fill('')
      return press(page, /^Save/)
    }),
    by(kinds, 'plants: rows conflict', 409, async (page) => {
      const { id: plantId } = await kinds.create('/plants', { title: 'Contested', isRare: false, ownerId: '1' })
      const [one, two] = [await kinds.create('/notes', { body: 'one', plantId }), await kinds.create('/notes', { body: 'two', plantId })]
      await page.goto(`/plants/${plantId}/edit`)
      await kinds.change(`/notes/${one.id}`, { body: 'theirs' })
      await kinds.send('DELETE', `/notes/${two.id}`)
      for (const body of await page.getByLabel(/^Body/).all()) await body.fill('mine')
      return press(page, /^Save/)
    }),
    by(kinds, 'plants: too many rows', 200, async (page) => {
      const { id: plantId } = await kinds.create('/plants', { title: 'Noted', isRare: false, ownerId: '1' })
      await kinds.send('POST', '/notes', Array.from({ length: 101 }, (_, i) => ({ body: `Note ${i}`, plantId })))
      return page.goto(`/plants/${plantId}/edit`)
    }),
  ]
}

function storeless(away) {
  return [
    at(away, 'home without a store', '/'),
    at(away, 'error 503', '/users', 503),
    at(away, 'error 503, form', '/orders/new', 503),
  ]
}

function at(site, name, path, status = 200) {
  return by(site, name, status, (page) => page.goto(path))
}

function by(site, name, status, visit) {
  return { site, name, status, visit }
}

/** Sends a form that no page has, from a page of the site itself. */
async function post(page, path, title) {
  await page.goto('/')
  return following(page, () =>
    page.evaluate(
      ([action, value]) => {
        const form = Object.assign(document.createElement('form'), { method: 'post', action })
        form.append(Object.assign(document.createElement('textarea'), { name: 'title', value }))
        document.body.append(form)
        form.submit()
      },
      [path, title],
    ),
  )
}
