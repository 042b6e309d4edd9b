// Writing through pages: create, invalid, edit, conflict, delete, and what a hand does that trembles or goes back.

import assert from 'node:assert/strict'
import { assertRefused, control, fill, flash, hasFocus, values } from './pages/controls.mjs'
import { fact, follow, following, heading, press, reaches, site, titles } from './pages/site.mjs'
import { bothWays } from './pages/ways.mjs'

const shop = site()

bothWays((journey, mark) => {
  journey('create: from the list to the form and back, told once', async (t, options) => {
    const name = `Lamp ${mark}`
    const page = await shop.window(t, '/products', options)
    await follow(page, 'New product')
    assert.equal(shop.path(page), '/products/new')
    await fill(page, { Name: name, Category: `light ${mark}`, Price: '12.50', Description: 'Warm.\nDimmable.' })
    await press(page, 'Create product')
    assert.equal(shop.path(page), '/products')
    assert.match(await flash(page), /^Product created/)
    const [product] = await shop.named('/products', 'name', name)
    assert.deepEqual(product, { id: product.id, name, category: `light ${mark}`, price: '12.50', description: product.description })
    assert.match(product.description, /^Warm\.\r?\nDimmable\.$/)

    await page.reload()
    assert.equal(await flash(page), '', 'told once')
    await page.goto(`/products?category=${encodeURIComponent(`light ${mark}`)}`)
    assert.deepEqual(await titles(page), [name])
    await follow(page, name)
    assert.equal(shop.path(page), `/products/${product.id}`)
    assert.equal(await heading(page), name)
    assert.equal(await fact(page, 'Price'), '12.50')
  })

  journey('what was just done is told with a way to it', async (t, options) => {
    const page = await shop.window(t, '/articles/new', options)
    await fill(page, { Title: `Told ${mark}` })
    await press(page, 'Create article')
    await following(page, () => page.locator('main .note[role=status] a').first().click())
    assert.match(shop.path(page), /^\/articles\/\d+$/)
    assert.equal(await heading(page), `Told ${mark}`)
    assert.equal(await flash(page), '')
  })

  journey('invalid: all messages, the focus on the summary, what was typed kept, nothing stored', async (t, options) => {
    const before = await shop.json('/products?fields=id&size=1000')
    const page = await shop.window(t, '/products/new', options)
    await fill(page, { Name: '   ', Price: 'twelve', Category: 'a "quoted" <b>one</b>', Description: '\n\n two lines before' })
    const answer = await press(page, 'Create product')
    assert.equal(answer.status(), 400)
    await assertRefused(page, { Name: /./, Price: /./ })
    const [category, description] = await values(page, ['Category', 'Description'])
    assert.deepEqual(await values(page, ['Name', 'Price']), ['   ', 'twelve'])
    assert.equal(category, 'a "quoted" <b>one</b>')
    assert.equal(description, '\n\n two lines before')
    assert.deepEqual(await shop.json('/products?fields=id&size=1000'), before)

    await fill(page, { Name: `Mended ${mark}`, Price: '12' })
    await press(page, 'Create product')
    assert.equal(shop.path(page), '/products')
    const [mended, ...others] = await shop.named('/products', 'name', `Mended ${mark}`)
    assert.deepEqual([mended.category, others.length], ['a "quoted" <b>one</b>', 0])
  })

  journey('edit: the whole record is shown, changed and overwritten', async (t, options) => {
    const made = await shop.create('/customers', { name: `Before ${mark}`, email: 'before@example.com', phone: '+49 30 1' })
    const page = await shop.window(t, `/customers/${made.id}`, options)
    await follow(page, 'Edit', page.locator('main'))
    assert.equal(shop.path(page), `/customers/${made.id}/edit`)
    assert.deepEqual(await values(page, ['Name', 'Email', 'Phone']), [`Before ${mark}`, 'before@example.com', '+49 30 1'])
    await fill(page, { Name: `After ${mark}`, Phone: '' })
    await press(page, /^Save/)
    assert.equal(shop.path(page), `/customers/${made.id}`)
    assert.match(await flash(page), /^Customer /)
    assert.equal(await heading(page), `After ${mark}`)
    assert.equal(await fact(page, 'Phone'), 'Not set')
    assert.deepEqual(await shop.json(`/customers/${made.id}`), { ...made, name: `After ${mark}`, phone: null })
  })

  journey('an edit that does not pass leaves the record alone', async (t, options) => {
    const made = await shop.create('/orders', { item: `Whole ${mark}`, quantity: 2 })
    const page = await shop.window(t, `/orders/${made.id}/edit`, options)
    await fill(page, { Quantity: '0' })
    const answer = await press(page, /^Save/)
    assert.equal(answer.status(), 400)
    await assertRefused(page, { Quantity: /1/ })
    assert.deepEqual(await shop.json(`/orders/${made.id}`), made)
  })

  journey('conflict: both versions are shown, and mine can be saved all the same', async (t, options) => {
    const { made, second } = await collide(t, options, mark)
    assert.deepEqual(await shop.json(`/customers/${made.id}`), { ...made, name: `First ${mark}` }, 'nothing is lost yet')
    assert.equal(await control(second, 'Name').inputValue(), `Second ${mark}`)
    assert.match(await second.locator('main').innerText(), new RegExp(`First ${mark}`))
    await press(second, /mine|anyway|^Save/i)
    assert.equal(shop.path(second), `/customers/${made.id}`)
    assert.deepEqual(await shop.json(`/customers/${made.id}`), { ...made, name: `Second ${mark}`, phone: '2' })
  })

  journey('conflict: theirs can be kept', async (t, options) => {
    const { made, second } = await collide(t, options, mark)
    await follow(second, /theirs|keep/i, second.locator('main'))
    assert.equal(shop.path(second).replace('/edit', ''), `/customers/${made.id}`)
    assert.deepEqual(await shop.json(`/customers/${made.id}`), { ...made, name: `First ${mark}` })
  })

  journey('delete: says what else goes, and can be left', async (t, options) => {
    const user = await shop.create('/users', { name: `Leaving ${mark}`, email: '' })
    for (const item of ['Desk', 'Chair']) await shop.create('/orders', { item: `${item} ${mark}`, userId: user.id })
    const page = await shop.window(t, `/users/${user.id}`, options)
    await follow(page, 'Delete', page.locator('main'))
    assert.equal(shop.path(page), `/users/${user.id}/delete`)
    assert.match(await page.locator('main').innerText(), /2 orders/)
    await follow(page, /^Keep/)
    assert.equal(shop.path(page), `/users/${user.id}`)
    await page.goto(`/users/${user.id}/delete`)
    await press(page, /^Delete/)
    assert.equal(shop.path(page), '/users')
    assert.match(await flash(page), /^User deleted/)
    assert.equal((await shop.fetch(`/users/${user.id}`)).status, 404)
    assert.deepEqual(await shop.named('/orders', 'item', `Desk ${mark}`), [])
  })

  journey('what is gone meanwhile is not found, and not made again', async (t, options) => {
    const made = await shop.create('/articles', { title: `Gone ${mark}` })
    const page = await shop.window(t, `/articles/${made.id}/edit`, options)
    await shop.fetch(`/articles/${made.id}`, { method: 'DELETE' })
    await fill(page, { Title: `Changed ${mark}` })
    assert.equal((await press(page, /^Save/)).status(), 404)
    assert.deepEqual(await shop.named('/articles', 'title', `Changed ${mark}`), [])
  })

  journey('a double click makes one record', async (t, options) => {
    const page = await shop.window(t, '/products/new', options)
    await fill(page, { Name: `Twice ${mark}` })
    // The second click aborts the navigation of the first, so neither can be waited for.
    await page.getByRole('button', { name: 'Create product' }).dblclick()
    await reaches(page, '/products')
    assert.equal((await shop.named('/products', 'name', `Twice ${mark}`)).length, 1)
  })

  journey('going back after a write shows the form again, and another record can be made of it', async (t, options) => {
    const page = await shop.window(t, '/articles', options)
    await follow(page, 'New article')
    await fill(page, { Title: `Back one ${mark}` })
    await press(page, 'Create article')
    await page.goBack()
    assert.equal(shop.path(page), '/articles/new')
    const button = page.getByRole('button', { name: 'Create article' })
    assert.equal(await button.isEnabled(), true)
    await fill(page, { Title: `Back two ${mark}` })
    await press(page, 'Create article')
    assert.equal(shop.path(page), '/articles')
    for (const title of [`Back one ${mark}`, `Back two ${mark}`]) assert.equal((await shop.named('/articles', 'title', title)).length, 1)
    await page.reload()
    assert.equal((await shop.named('/articles', 'title', `Back two ${mark}`)).length, 1, 'a reload writes nothing')
  })

  journey('the plain list: a value is added, a blank one refused', async (t, options) => {
    const page = await shop.window(t, '/samples', options)
    await fill(page, { Value: `milk & <honey> ${mark}` })
    await press(page, /^Add/)
    assert.equal(shop.path(page), '/samples')
    assert.match(await flash(page), /added/i)
    assert.ok((await shop.json('/samples')).includes(`milk & <honey> ${mark}`))
    assert.match(await page.locator('main table').innerText(), new RegExp(`milk & <honey> ${mark}`))
    const length = (await shop.json('/samples')).length
    await fill(page, { Value: '  ' })
    assert.equal((await press(page, /^Add/)).status(), 400)
    await assertRefused(page, { Value: /./ })
    assert.equal((await shop.json('/samples')).length, length)
    assert.equal(await hasFocus(control(page, 'Value')), true)
  })
})

/** Two windows edit one record; the first has saved, the second was told that it is late. */
async function collide(t, options, mark) {
  const made = await shop.create('/customers', { name: `Shared ${mark}`, email: 'shared@example.com', phone: '1' })
  const first = await shop.window(t, `/customers/${made.id}/edit`, options)
  const second = await shop.window(t, `/customers/${made.id}/edit`, options)
  await fill(first, { Name: `First ${mark}` })
  await press(first, /^Save/)
  await fill(second, { Name: `Second ${mark}`, Phone: '2' })
  const answer = await press(second, /^Save/)
  assert.equal(answer.status(), 409)
  return { made, second }
}
