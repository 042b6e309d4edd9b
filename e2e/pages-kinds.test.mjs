// A record with every kind of field goes through its pages: what is typed is stored, what is stored is shown and edited.

import assert from 'node:assert/strict'
import { assertRefused, control, fill, values } from './pages/controls.mjs'
import { EVERY_KIND } from './pages/catalog.mjs'
import { FULL, fillKinds } from './pages/kinds.mjs'
import { fact, follow, following, heading, press, site, titles } from './pages/site.mjs'
import { bothWays } from './pages/ways.mjs'

const kinds = site([EVERY_KIND], fillKinds)

const whole = (id) => kinds.json(`/plants/${id}?fields=*`)

bothWays((journey, mark) => {
  journey('create with a value of every kind', async (t, options) => {
    const page = await kinds.window(t, '/plants/new', options)
    await fill(page, {
      Title: `Moss ${mark}`,
      Description: 'Soft.',
      Rating: '5',
      Amount: '7',
      Weight: '2.5e-3',
      Count: '-9223372036854775808',
      Price: '0.10',
      Trace: FULL.trace,
      Website: FULL.website,
      Contact: FULL.contact,
      'Seen on': '2026-02-28',
      Extra: '{"a": [1, {"b": null}]}',
      Words: 'one\ntwo words\nשלוש',
      Marks: '3\n-1',
      'External id': 'e-1',
    })
    await page.getByRole('checkbox', { name: /rare/i }).first().check()
    await page.getByLabel(/sold/i).selectOption({ label: 'No' })
    await page.getByRole('radio', { name: 'Large' }).check()
    await control(page, 'Colour').selectOption({ label: 'Indigo' })
    await page.getByRole('group', { name: /^Sizes/ }).getByLabel('Small').check()
    await page.getByRole('group', { name: /^Address/ }).getByLabel(/^Street/).fill('1 Long Lane')
    await page.getByRole('group', { name: /^Parts/ }).getByLabel(/^Name/).first().fill('Stem')
    await control(page, 'Owner').selectOption({ label: 'Grace' })
    await page.getByRole('group', { name: /^Tags/ }).getByLabel('heavy').check()
    const answer = await press(page, 'Create plant')
    assert.equal(answer.status(), 200, await page.locator('main').innerText())
    const [made] = await kinds.named('/plants', 'title', `Moss ${mark}`)
    const { title, description, rating, amount, weight, count, price, isRare, isSold, size, colour, seenOn, trace, website, contact, extra, words, marks, sizes, address, parts, ownerId, placeId } = await whole(made.id)
    assert.deepEqual(
      { title, description, rating, amount, weight, count, price, isRare, isSold, size, colour, seenOn, trace, website, contact, extra, words, marks, sizes, ownerId, placeId },
      { title: `Moss ${mark}`, description: 'Soft.', rating: 5, amount: 7, weight: 0.0025, count: '-9223372036854775808', price: '0.10', isRare: true, isSold: false, size: 'LARGE', colour: 'INDIGO', seenOn: '2026-02-28', trace: FULL.trace, website: FULL.website, contact: FULL.contact, extra: { a: [1, { b: null }] }, words: ['one', 'two words', 'שלוש'], marks: [3, -1], sizes: ['SMALL'], ownerId: '2', placeId: null },
    )
    assert.equal(address.street, '1 Long Lane')
    assert.deepEqual(parts.map(({ name }) => name), ['Stem'])
  })

  journey('an edit that changes nothing leaves everything as it is', async (t, options) => {
    const before = await whole(1)
    const page = await kinds.window(t, '/plants/1/edit', options)
    await press(page, /^Save/)
    assert.equal(kinds.path(page), '/plants/1')
    const { updatedAt, ...rest } = before
    const { updatedAt: later, ...same } = await whole(1)
    assert.deepEqual(same, rest)
    assert.ok(later >= updatedAt)
  })

  journey('an edit of one field leaves the others as they are', async (t, options) => {
    const before = await whole(1)
    const page = await kinds.window(t, '/plants/1/edit', options)
    await fill(page, { Rating: mark === 'plain' ? '2' : '3' })
    await press(page, /^Save/)
    assert.equal(await fact(page, 'Rating'), mark === 'plain' ? '2' : '3')
    const after = await whole(1)
    assert.deepEqual({ ...after, rating: 0, updatedAt: 0 }, { ...before, rating: 0, updatedAt: 0 })
  })

  journey('the page of a record tells all of it', async (t, options) => {
    const page = await kinds.window(t, '/plants/1', options)
    assert.equal(await heading(page), 'Fern')
    const told = await page.locator('main').innerText()
    for (const words of ['FRN-1', 'Grows in the shade.', '0.125', '9007199254740993', '12.50', 'moss & stone', 'שלום', '1 Long Lane', 'Leaf', 'Root', '28 Feb 2026', FULL.trace, FULL.website, 'Ada', 'Place 1', 'rare', 'אדום', 'First', 'Second', 'Child']) {
      assert.ok(told.includes(words), `${words} in ${told}`)
    }
    await follow(page, 'Ada', page.locator('main'))
    assert.match(kinds.path(page), /^\/owners\/1$/)
  })

  journey('a list of them, filtered and sorted', async (t, options) => {
    const page = await kinds.window(t, '/plants?size=LARGE', options)
    assert.equal((await page.goto('/plants?size.eq=LARGE')).status(), 200)
    assert.ok((await titles(page)).includes('Fern'))
    await page.goto('/plants?sort=title&q=a')
    const found = await titles(page)
    assert.deepEqual(found, [...found].sort())
  })

  journey('several parts are added, filled and taken away', async (t, options) => {
    const page = await kinds.window(t, '/plants/new', options)
    await fill(page, { Title: `Parts ${mark}` })
    await control(page, 'Owner').selectOption({ label: 'Ada' })
    const parts = page.getByRole('group', { name: /^Parts/ })
    const names = () => parts.getByLabel(/^Name/)
    await names().first().fill('one')
    const count = await names().count()
    await press(page, /^Add another/)
    assert.equal(await names().count(), count + 1)
    assert.equal(await names().first().inputValue(), 'one', 'what was typed is kept')
    assert.deepEqual(await kinds.named('/plants', 'title', `Parts ${mark}`), [], 'nothing is stored yet')
    await names().last().fill('two')
    await press(page, 'Create plant')
    const [made] = await kinds.named('/plants', 'title', `Parts ${mark}`)
    assert.deepEqual(made.parts.map(({ name }) => name), ['one', 'two'])
  })

  journey('one of two thousand places is looked for', async (t, options) => {
    const page = await kinds.window(t, '/plants/new', options)
    await fill(page, { Title: `Placed ${mark}` })
    await control(page, 'Owner').selectOption({ label: 'Zoë' })
    await page.getByLabel(/^Find: Place/).fill('Place 1234')
    await press(page, /^Find ?: Place/)
    assert.deepEqual(await values(page, ['Title']), [`Placed ${mark}`], 'what was typed is kept')
    await control(page, 'Place').selectOption({ label: 'Place 1234' })
    await press(page, 'Create plant')
    const [made] = await kinds.named('/plants', 'title', `Placed ${mark}`)
    assert.equal(made.placeId, '1234')
    await page.goto(`/plants/${made.id}/edit`)
    await fill(page, { Amount: '9' })
    await press(page, /^Save/)
    assert.equal((await whole(made.id)).placeId, '1234', 'an edit keeps it')
  })

  journey('the return key looks for what stands to be found, and then sends the form', async (t, options) => {
    const page = await kinds.window(t, '/plants/new', options)
    await fill(page, { Title: `Entered ${mark}` })
    await control(page, 'Owner').selectOption({ label: 'Zoë' })
    await page.getByLabel(/^Find: Place/).fill('Place 1234')
    await page.getByLabel(/^Find: Place/).press('Enter')
    await page.getByText('1 found.').waitFor()
    // Without script nothing tells a second press in the same field from one that sends the form.
    if (options.javaScriptEnabled !== false) await following(page, () => page.getByLabel(/^Find: Place/).press('Enter'))
    assert.deepEqual(await kinds.named('/plants', 'title', `Entered ${mark}`), [], 'nothing was sent')
    await control(page, 'Place').selectOption({ label: 'Place 1234' })
    await control(page, 'Title').press('Enter')
    await page.locator('form[method=post]').waitFor({ state: 'detached' })
    const [made] = await kinds.named('/plants', 'title', `Entered ${mark}`)
    assert.equal(made.placeId, '1234')
  })

  journey('what is wrong in a value inside a value is told beside it', async (t, options) => {
    const page = await kinds.window(t, '/plants/new', options)
    await fill(page, { Title: '', Rating: '9', Price: '-1', Trace: 'x', Website: 'no', Contact: 'no', Extra: '{', Marks: '1\ntwo', Count: '1.5', Code: 'abc' })
    const answer = await press(page, 'Create plant')
    assert.equal(answer.status(), 400)
    await assertRefused(page, { Title: /./, Rating: /5/, Price: /0/, Trace: /./, Website: /./, Contact: /./, Extra: /./, Marks: /./, Count: /./, Code: /./ })
    assert.deepEqual(await values(page, ['Rating', 'Extra', 'Marks']), ['9', '{', '1\ntwo'])
  })

  journey('a value that another record has is told beside it', async (t, options) => {
    const page = await kinds.window(t, '/places/new', options)
    await fill(page, { Name: 'Place 7' })
    const answer = await press(page, 'Create place')
    assert.equal(answer.status(), 409)
    await assertRefused(page, { Name: /taken|already/ })
  })

  journey('a record that others need cannot go, and the page says who', async (t, options) => {
    const page = await kinds.window(t, '/owners/1/delete', options)
    assert.match(await page.locator('main').innerText(), /plant/)
    assert.equal(await page.getByRole('button', { name: /^Delete/ }).count(), 0)
  })

  journey('a record that others need by the time it is to go stays, and the page leads to them', async (t, options) => {
    const owner = await kinds.create('/owners', { name: `Needed ${mark}` })
    const page = await kinds.window(t, `/owners/${owner.id}/delete`, options)
    const plants = []
    for (const title of ['First', 'Second']) plants.push(await kinds.create('/plants', { title: `${title} of ${mark}`, isRare: false, ownerId: owner.id }))
    assert.equal((await press(page, /^Delete/)).status(), 409)
    assert.equal(await heading(page), `Needed ${mark} cannot be deleted yet`)
    assert.equal(await page.getByRole('button', { name: /^Delete/ }).count(), 0)
    assert.deepEqual(await kinds.json(`/owners/${owner.id}`), owner, 'it is still there')
    for (const plant of plants) assert.equal((await whole(plant.id)).ownerId, owner.id)
    await follow(page, '2 plants require their owner', page.locator('main'))
    assert.deepEqual(await titles(page), [`First of ${mark}`, `Second of ${mark}`])
    await page.goto(`/owners/${owner.id}/delete`)
    await follow(page, 'Back to the owner', page.locator('main'))
    assert.equal(kinds.path(page), `/owners/${owner.id}`)
  })

  journey('what a record takes along and what it lets go is told before', async (t, options) => {
    const parent = await kinds.create('/plants', { title: `Parent ${mark}`, isRare: false, ownerId: '1' })
    const child = await kinds.create('/plants', { title: `Orphan ${mark}`, isRare: false, ownerId: '1', parentId: parent.id })
    await kinds.create('/notes', { body: 'goes too', plantId: parent.id })
    const page = await kinds.window(t, `/plants/${parent.id}/delete`, options)
    const told = await page.locator('main').innerText()
    assert.match(told, /1 note/)
    assert.match(told, /1 plant/)
    await following(page, () => page.getByRole('button', { name: /^Delete/ }).click())
    assert.equal((await whole(child.id)).parentId, null)
    assert.deepEqual(await kinds.named('/notes', 'body', 'goes too'), [])
  })
})
