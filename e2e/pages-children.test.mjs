// Records that belong to another one, on its form: rows are added, filled, changed, removed and saved at once.

import assert from 'node:assert/strict'
import { EVERY_KIND } from './pages/catalog.mjs'
import { assertRefused, control, fill, hasFocus } from './pages/controls.mjs'
import { fillKinds } from './pages/kinds.mjs'
import { follow, following, press, reaches, site } from './pages/site.mjs'
import { bothWays } from './pages/ways.mjs'

const kinds = site([EVERY_KIND], fillKinds)

const notes = (page) => page.getByRole('group', { name: /^Notes$/ })
const row = (page, number) => page.getByRole('group', { name: `Note ${number}`, exact: true })
const body = (page, number) => row(page, number).getByLabel(/^Body/)
const stored = (plant) => kinds.json(`/plants/${plant}/notes?fields=id,body&sort=id`)
const bodies = async (plant) => (await stored(plant)).map((note) => note.body)

async function planted(title, texts = []) {
  const { id } = await kinds.create('/plants', { title, isRare: false, ownerId: '1' })
  for (const text of texts) await kinds.create('/notes', { body: text, plantId: id })
  return id
}

bothWays((journey, mark) => {
  journey('a new record is saved together with what belongs to it', async (t, options) => {
    const page = await kinds.window(t, '/plants/new', options)
    await fill(page, { Title: `Noted ${mark}` })
    await control(page, 'Owner').selectOption({ label: 'Ada' })
    assert.equal(await row(page, 1).count(), 0)
    await press(page, 'Add note')
    assert.equal(await hasFocus(body(page, 1)), true, 'the new row has the focus')
    await body(page, 1).fill('one')
    await press(page, 'Add note')
    assert.equal(await body(page, 1).inputValue(), 'one', 'what was typed is kept')
    await body(page, 2).fill('two')
    await press(page, 'Add note')
    await press(page, 'Add note')
    await body(page, 4).fill('four')
    assert.equal(await control(page, 'Title').inputValue(), `Noted ${mark}`)
    await press(page, 'Remove Note 2')
    assert.equal(await hasFocus(page.getByRole('button', { name: 'Add note' })), true)
    assert.deepEqual(await kinds.named('/plants', 'title', `Noted ${mark}`), [], 'nothing is stored yet')
    await press(page, 'Create plant')
    const [made] = await kinds.named('/plants', 'title', `Noted ${mark}`)
    assert.deepEqual(await bodies(made.id), ['one', 'four'], 'the row that was left empty is ignored')
  })

  journey('rows are added, changed, deleted and left alone in one save', async (t, options) => {
    const id = await planted(`Four ways ${mark}`, ['stays', 'changes', 'goes'])
    const page = await kinds.window(t, `/plants/${id}`, options)
    await follow(page, 'Edit')
    await body(page, 2).fill('changed')
    await row(page, 3).getByRole('checkbox', { name: 'Delete this note' }).check()
    await press(page, 'Add note')
    assert.equal(await row(page, 3).getByRole('checkbox', { name: 'Delete this note' }).isChecked(), true)
    await body(page, 4).fill('added')
    await press(page, /^Save/)
    assert.equal(kinds.path(page), `/plants/${id}`)
    assert.deepEqual(await bodies(id), ['stays', 'changed', 'added'])
  })

  journey('the return key saves and neither adds nor removes', async (t, options) => {
    const id = await planted(`Returned ${mark}`, ['kept'])
    const page = await kinds.window(t, `/plants/${id}/edit`, options)
    await fill(page, { Amount: '5' })
    await control(page, 'Amount').press('Enter')
    await reaches(page, `/plants/${id}`)
    assert.deepEqual(await bodies(id), ['kept'])
    assert.equal((await kinds.json(`/plants/${id}`)).amount, 5)
  })

  journey('what is wrong in a row is told beside it, and nothing is saved', async (t, options) => {
    const id = await planted(`Wrong ${mark}`, ['first', 'second'])
    const page = await kinds.window(t, `/plants/${id}/edit`, options)
    await body(page, 1).fill('new first')
    await body(page, 2).fill('')
    await fill(page, { Rating: '9' })
    const answer = await press(page, /^Save/)
    assert.equal(answer.status(), 400)
    await assertRefused(page, { Rating: /5/ })
    const link = page.getByRole('link', { name: /^Note 2: Body/ })
    await link.click()
    assert.equal(await hasFocus(body(page, 2)), true, 'the summary leads to the row')
    assert.equal(await body(page, 2).getAttribute('aria-invalid'), 'true')
    assert.equal(await body(page, 1).inputValue(), 'new first')
    assert.deepEqual(await bodies(id), ['first', 'second'])
    await body(page, 2).fill('mended')
    await fill(page, { Rating: '5' })
    await press(page, /^Save/)
    assert.deepEqual(await bodies(id), ['new first', 'mended'])
  })

  journey('what somebody else changed or deleted meanwhile is told, and nothing is lost', async (t, options) => {
    const id = await planted(`Contested ${mark}`, ['mine', 'gone', 'quiet'])
    const [mine, gone, quiet] = await stored(id)
    const page = await kinds.window(t, `/plants/${id}/edit`, options)
    await kinds.change(`/notes/${mine.id}`, { body: 'theirs' })
    await kinds.send('DELETE', `/notes/${gone.id}`)
    await body(page, 1).fill('still mine')
    await body(page, 2).fill('not gone')
    const answer = await press(page, /^Save/)
    assert.equal(answer.status(), 409)
    assert.match(await page.getByRole('alert').innerText(), /changed notes of this plant/)
    assert.match(await row(page, 1).innerText(), /Saved value: theirs/)
    assert.match(await row(page, 2).innerText(), /deleted or moved/)
    assert.deepEqual(await stored(id), [{ ...mine, body: 'theirs' }, quiet], 'nothing is saved')
    await press(page, 'Save my changes anyway')
    assert.deepEqual(await bodies(id), ['still mine', 'quiet', 'not gone'])
  })

  journey('a list that is too long for a form is a link', async (t, options) => {
    const id = await planted(`Long ${mark}`)
    const many = Array.from({ length: 101 }, (_, i) => ({ body: `${i}`, plantId: id }))
    assert.equal((await kinds.send('POST', '/notes', many)).status, 201)
    const page = await kinds.window(t, `/plants/${id}/edit`, options)
    assert.equal(await row(page, 1).count(), 0)
    await following(page, () => notes(page).getByRole('link', { name: 'All notes' }).click())
    assert.equal(kinds.path(page), `/plants/${id}/notes`)
  })
})
