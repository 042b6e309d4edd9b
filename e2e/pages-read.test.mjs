// Reading pages: home, nested lists, search, filters, order, paging forth and back, and what is not there.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { control } from './pages/controls.mjs'
import { fact, follow, heading, press, site, titles } from './pages/site.mjs'
import { bothWays } from './pages/ways.mjs'

const RESOURCES = ['users', 'products', 'orders', 'customers', 'articles']
const PARTS = Array.from({ length: 45 }, (_, i) => ({ name: `Part ${String(i + 1).padStart(2, '0')}`, category: 'parts', price: `${100 - i}.00` }))

const shop = site([], async () => assert.equal((await shop.send('POST', '/products', PARTS)).status, 201))

bothWays((journey) => {
  journey('home is a map of everything', async (t, options) => {
    const page = await shop.window(t, '/', options)
    assert.equal(await heading(page), 'Sample Resource API')
    const links = await page.locator('a[href]').evaluateAll((all) => [...new Set(all.map((link) => link.getAttribute('href')))])
    for (const path of [...RESOURCES, 'samples'].map((name) => `/${name}`)) assert.ok(links.includes(path), path)
    for (const path of ['/graphql', '/docs', '/graphql/schema.graphqls', '/openapi.json']) assert.ok(links.includes(path), path)
    for (const path of links.filter((link) => link.startsWith('/'))) {
      assert.equal((await shop.fetch(path, { headers: { accept: 'text/html' } })).status, 200, path)
    }
    const products = page.locator('main li', { has: page.getByRole('link', { name: 'Products', exact: true }) })
    const count = (await shop.json('/products?fields=id&size=1000')).length
    assert.match(await products.innerText(), new RegExp(`\\b${count}\\b`))
  })

  journey('the lines for a shell on the start page work', async (t, options) => {
    const page = await shop.window(t, '/', options)
    const lines = await page.locator('main div > .code pre').allTextContents()
    assert.ok(lines.length >= 3, `only ${lines.length} lines`)
    for (const line of lines) {
      assert.match(line, /curl /)
      const said = execFileSync('sh', ['-c', line.replace(/\bcurl /g, 'curl -sS --fail-with-body ')], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
      assert.ok(said.length > 0, line)
      assert.doesNotMatch(said, /"errors"/, line)
    }
  })

  journey('every list leads to its records and their forms', async (t, options) => {
    const page = await shop.window(t, undefined, options)
    for (const name of RESOURCES) {
      assert.equal((await page.goto(`/${name}`)).status(), 200)
      assert.equal((await heading(page)).toLowerCase(), name)
      const row = page.locator('main tbody tr').first()
      await row.getByRole('link').first().click()
      assert.match(shop.path(page), new RegExp(`^/${name}/\\d+$`))
      await follow(page, 'Edit', page.locator('main'))
      await follow(page, 'Cancel')
      assert.match(shop.path(page), new RegExp(`^/${name}/\\d+$`))
    }
  })

  journey('a filtered list is downloaded as it is on screen', async (t, options) => {
    const page = await shop.window(t, '/products?category=parts&sort=-price&size=7', options)
    await follow(page, /Next/)
    const shown = await titles(page)
    assert.deepEqual([shown.length, shown[0]], [7, 'Part 08'])
    const save = async (name, file) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name, exact: true }).click()])
      assert.equal(download.suggestedFilename(), file)
      return readFileSync(await download.path(), 'utf8')
    }
    const csv = await save('This page as CSV', 'products.csv')
    // Another program reads the table: Python's csv, as strict as it can be.
    const read = 'import csv,json,sys; print(json.dumps(list(csv.DictReader(open(sys.argv[1], encoding="utf-8-sig", newline=""), strict=True))))'
    const file = join(mkdtempSync(join(tmpdir(), 'sheet-')), 'products.csv')
    writeFileSync(file, csv)
    const rows = JSON.parse(execFileSync('python3', ['-c', read, file], { encoding: 'utf8' }))
    assert.deepEqual(rows.map((row) => row.name), shown)
    assert.deepEqual(Object.keys(rows[0]), ['id', 'name', 'category', 'price', 'description'])
    const lines = (await save('This page as NDJSON', 'products.ndjson')).trim().split('\n').map((line) => JSON.parse(line))
    assert.deepEqual(lines.map((row) => row.name), shown)
    const all = (await save('All pages as NDJSON', 'products.ndjson')).trim().split('\n').map((line) => JSON.parse(line).name)
    assert.deepEqual(all, PARTS.map((part) => part.name))
    assert.equal((await save('All pages as CSV', 'products.csv')).split('\r\n').length, PARTS.length + 2)
    await page.getByRole('link', { name: 'This page as JSON', exact: true }).click()
    assert.deepEqual(JSON.parse(await page.locator('pre').innerText()).map((row) => row.name), shown)
  })

  journey('nested: the orders of a user, with the way back', async (t, options) => {
    const page = await shop.window(t, '/users/1', options)
    await follow(page, /^Orders/, page.locator('main'))
    assert.equal(shop.path(page), '/users/1/orders')
    assert.deepEqual(await titles(page), ['Walnut desk', 'Fountain pen'])
    assert.ok((await page.locator('main').getByRole('link', { name: 'Ada Lovelace' }).count()) > 0)
    assert.doesNotMatch(await page.locator('main thead').innerText(), /user/i, 'what all have in common is no column')
    await follow(page, 'Fountain pen')
    assert.equal(await heading(page), 'Fountain pen')
    assert.match(await fact(page, 'User'), /Ada Lovelace/)
    assert.equal((await page.goto('/users/1/orders/2')).status(), 200)
    assert.equal((await page.goto('/users/2/orders/1')).status(), 404)
    assert.equal((await page.goto('/users/999/orders')).status(), 404)
  })

  journey('nested: a new order knows whose it is', async (t, options) => {
    const user = await shop.create('/users', { name: 'Nested Nell', email: '' })
    const page = await shop.window(t, `/users/${user.id}/orders`, options)
    await page.getByRole('link', { name: /New order/ }).first().click()
    await page.waitForURL('**/orders/new?**')
    assert.equal(await control(page, 'User').inputValue(), String(user.id))
    await control(page, 'Item').fill('Nest box')
    await press(page, 'Create order')
    assert.equal((await shop.named('/orders', 'item', 'Nest box')).at(-1).userId, user.id)
  })

  journey('search finds, and says so when it does not', async (t, options) => {
    const page = await shop.window(t, '/users', options)
    await page.getByRole('searchbox').fill('Hopper')
    await press(page, /^(Search|Apply)$/)
    assert.deepEqual(await titles(page), ['Grace Hopper'])
    assert.equal(await page.getByRole('searchbox').inputValue(), 'Hopper')
    await page.getByRole('searchbox').fill('<nobody>')
    await press(page, /^(Search|Apply)$/)
    assert.equal(await page.locator('main table').count(), 0)
    assert.match(await page.locator('main').innerText(), /match/)
    await follow(page, /^Clear/, page.locator('main'))
    assert.equal(shop.path(page), '/users')
    assert.ok((await titles(page)).includes('Grace Hopper'))
  })

  journey('filters: by choice, by number, together, and cleared', async (t, options) => {
    const page = await shop.window(t, '/orders', options)
    await page.getByText('Filters', { exact: false }).first().click()
    await page.locator('main search').getByLabel('Status').selectOption('SHIPPED')
    await press(page, /^(Search|Apply)$/)
    assert.deepEqual((await titles(page)).slice(0, 3), ['Walnut desk', "Chef's knife", 'Espresso cup'])
    await page.goto('/products?category=parts&price.gte=98')
    assert.deepEqual(await titles(page), ['Part 01', 'Part 02', 'Part 03'])
    assert.equal(await page.locator('main search').getByLabel(/Price.*(from|least)/i).inputValue(), '98')
    await follow(page, /^Clear/, page.locator('main'))
    assert.ok((await titles(page)).length > 3)
  })

  journey('a filter that cannot be read is told beside it', async (t, options) => {
    const page = await shop.window(t, undefined, options)
    assert.equal((await page.goto('/products?price.gte=cheap')).status(), 400)
    assert.equal(await page.locator('main search').getByLabel(/Price.*(from|least)/i).inputValue(), 'cheap')
    assert.equal(await page.locator('main tbody tr').count(), 0)
  })

  journey('order: by a column, the other way round, and kept while searching', async (t, options) => {
    const page = await shop.window(t, '/products?category=parts', options)
    const sort = (name) => follow(page, name, page.locator('main thead'))
    const order = () => page.locator('main thead th', { hasText: 'Price' }).getAttribute('aria-sort')
    assert.equal((await titles(page))[0], 'Part 01')
    await sort('Price')
    assert.deepEqual([(await titles(page))[0], await order()], ['Part 45', 'ascending'])
    await sort('Price')
    assert.deepEqual([(await titles(page))[0], await order()], ['Part 01', 'descending'])
    await page.getByRole('searchbox').fill('Part 1')
    await press(page, /^(Search|Apply)$/)
    assert.deepEqual([(await titles(page)).slice(0, 2), await order()], [['Part 01', 'Part 10'], 'descending'])
  })

  journey('paging: forth to the end and back to the start', async (t, options) => {
    const page = await shop.window(t, '/products?category=parts', options)
    const caption = () => page.locator('main caption').innerText()
    const seen = [await titles(page)]
    assert.match(await caption(), /1 to 20 of 45/)
    assert.equal(await page.getByRole('link', { name: /Previous/ }).count(), 0)
    for (const expected of [/21 to 40 of 45/, /41 to 45 of 45/]) {
      await follow(page, /Next/)
      assert.match(await caption(), expected)
      seen.push(await titles(page))
    }
    assert.deepEqual(seen.flat(), PARTS.map(({ name }) => name))
    assert.equal(await page.getByRole('link', { name: /Next/ }).count(), 0)
    await follow(page, /Previous/)
    assert.deepEqual(await titles(page), seen[1])
    await follow(page, /Previous/)
    assert.deepEqual(await titles(page), seen[0])
    await page.goBack()
    assert.deepEqual(await titles(page), seen[1])
    assert.equal((await page.goto('/products?page=1000')).status(), 200)
    assert.equal(await page.locator('main tbody tr').count(), 0)
    assert.equal(await page.locator('main nav[aria-label=Pages]').count(), 0)
    await follow(page, 'Go to the last page')
    assert.ok((await titles(page)).length > 0)
  })

  journey('what cannot be shown is a page with its status, a request id and ways on', async (t, options) => {
    const page = await shop.window(t, undefined, options)
    for (const [path, status] of [['/users/abc', 400], ['/users/999999', 404], ['/nowhere', 404], ['/users/1/nothing', 404], ['/products?page=0', 400], ['/users/', 404]]) {
      const answer = await page.goto(path)
      assert.equal(answer.status(), status, path)
      assert.ok((await heading(page)).length > 0)
      const id = answer.headers()['x-request-id']
      assert.ok((await page.locator('main').innerText()).includes(id), `${path} tells its request id`)
      await follow(page, 'Users', page.locator('header'))
      assert.equal(shop.path(page), '/users')
    }
  })
})
