// People with accounts: the first one, links, signing in and out, sessions, passwords, and forms that outlive a session.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { tabs } from './browser.mjs'
import { control, fill, flash, hasFocus, values } from './pages/controls.mjs'
import { axe, markup } from './pages/judges.mjs'
import { follow, following, heading, press, site } from './pages/site.mjs'
import { bothWays } from './pages/ways.mjs'

const APP = new URL('accounts', import.meta.url).pathname
const PASSWORD = 'correct horse battery'
const ADA = 'ada@example.org'

const notes = site([APP], async (made) => makeFirst(made))

/** The link that a start prints while there is no account, as a path. */
async function firstLink(made) {
  for (let left = 100; left; left -= 1) {
    const found = /\/_\/link\?token=tfl_[\w-]+/.exec(made.server.output())
    if (found) return found[0]
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`no link for the first account:\n${made.server.output()}`)
}

/** Makes the first account in a window. */
async function makeFirst(made, options = {}) {
  const context = await made.browser.context(options)
  const page = await made.watched(context)
  await page.goto(await firstLink(made))
  await fill(page, { Name: 'Ada', Email: ADA, 'New password': PASSWORD, 'The same again': PASSWORD })
  await page.locator('main').getByRole('radio', { name: /^admin$/i }).check()
  await press(page, 'Make account')
  await page.done()
}

async function signIn(page, login, password = PASSWORD) {
  await fill(page, { Email: login, Password: password })
  return press(page, /^Sign in$/)
}

/** Somebody in a window of their own, signed in, with an account that they made themselves. */
async function somebody(t, name, options) {
  const login = `${name.toLowerCase().replaceAll(' ', '.')}@example.org`
  const page = await notes.window(t, '/_/sign-up', options)
  await fill(page, { Name: name, Email: login, 'New password': PASSWORD, 'The same again': PASSWORD })
  await press(page, 'Make account')
  assert.equal(await actor(page), name)
  return { page, login }
}

/** Who is signed in, as every page says; empty for nobody. */
async function actor(page) {
  const link = page.locator('header a[href="/_/account"] bdi')
  return (await link.count()) ? link.innerText() : ''
}

/** Nothing that axe or html-validate would find, in light and dark and on a narrow screen. */
async function assertSound(page, answer, { javaScriptEnabled = true } = {}) {
  const found = await markup(await answer.text())
  // axe is a script of the page.
  if (!javaScriptEnabled) return assert.deepEqual(found, [])
  for (const [colorScheme, width] of [['light', 1280], ['dark', 320]]) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 800 })
    found.push(...(await axe(page)).map((each) => `${colorScheme}, ${width} px: ${each}`))
    const widest = await page.evaluate(() => document.documentElement.scrollWidth)
    if (widest > width) found.push(`${widest} px wide on ${width} px`)
  }
  assert.deepEqual(found, [])
}

describe('the first account', () => {
  const fresh = site([APP])

  test('is made with the link in the log, by whoever runs the server', async (t) => {
    const page = await fresh.window(t, '/_/sign-in')
    assert.match(await page.locator('main').innerText(), /there is no account/)
    assert.doesNotMatch(await page.content(), /tfl_/)
    const link = await firstLink(fresh)
    const answer = await page.goto(link)
    assert.equal(answer.status(), 200)
    await assertSound(page, answer)
    // What is wrong keeps what was typed, and the link stays good.
    await fill(page, { Name: 'Ada', Email: ADA, 'New password': 'short', 'The same again': 'short' })
    assert.equal((await press(page, 'Make account')).status(), 400)
    assert.deepEqual(await values(page, ['Name', 'Email', 'New password', 'The same again']), ['Ada', ADA, '', ''])
    await fill(page, { 'New password': PASSWORD, 'The same again': PASSWORD })
    await page.locator('main').getByRole('radio', { name: /^admin$/i }).check()
    await press(page, 'Make account')
    assert.equal(fresh.path(page), '/_/sign-in?set=1')
    await signIn(page, ADA)
    assert.equal(await actor(page), 'Ada')
    await page.goto('/users/1')
    assert.match(await page.locator('main').innerText(), /ADMIN/i)
    assert.equal((await page.goto(link)).status(), 404)
  })
})

describe('the first account, without scripts', () => {
  const fresh = site([APP])

  test('is made and signs in', async (t) => {
    const options = { javaScriptEnabled: false }
    const page = await fresh.window(t, await firstLink(fresh), options)
    await assertSound(page, await page.reload(), options)
    await fill(page, { Name: 'Ada', Email: ADA, 'New password': PASSWORD, 'The same again': PASSWORD })
    await page.locator('main').getByRole('radio', { name: /^admin$/i }).check()
    await press(page, 'Make account')
    assert.equal(fresh.path(page), '/_/sign-in?set=1')
    await signIn(page, ADA)
    assert.equal(await actor(page), 'Ada')
  })
})

bothWays((journey, mark) => {
  journey('signing in leads back to the page that needed it, and out to nowhere', async (t, options) => {
    const { page, login } = await somebody(t, `Bob ${mark}`, options)
    await page.goto('/notes/new')
    await fill(page, { Title: `Secret ${mark}` })
    await press(page, 'Create note')
    await press(page, 'Sign out')
    assert.deepEqual([notes.path(page), await actor(page)], ['/', ''])
    // Neither from the browser's own memory nor from the server.
    for (const back of [1, 2]) {
      await page.goBack({ waitUntil: 'load' }).catch(() => {})
      assert.doesNotMatch(await page.content(), new RegExp(`Secret ${mark}|Bob ${mark}`), `back ${back}`)
    }
    await page.goto(`/notes?title=${encodeURIComponent(`Secret ${mark}`)}`)
    assert.match(notes.path(page), /^\/_\/sign-in\?next=/)
    await signIn(page, login)
    assert.match(notes.path(page), /^\/notes\?title=/)
    assert.match(await page.locator('main').innerText(), new RegExp(`Secret ${mark}`))
    assert.equal(await actor(page), `Bob ${mark}`)
    const [cookie, ...others] = await page.context().cookies()
    assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite, others.length], ['trefoil', true, 'Lax', 0])
    assert.match(cookie.value, /^tfs_/)
  })

  journey('a wrong password keeps the login and says nothing else', async (t, options) => {
    const { page, login } = await somebody(t, `Cleo ${mark}`, options)
    await press(page, 'Sign out')
    await follow(page, 'Sign in')
    const wrong = await signIn(page, login, 'not the password')
    assert.equal(wrong.status(), 401)
    await assertSound(page, wrong, options)
    assert.deepEqual(await values(page, ['Email', 'Password']), [login, ''])
    const summary = page.locator('main [tabindex="-1"]', { has: page.getByRole('alert') })
    assert.equal(await hasFocus(summary), true)
    const told = await summary.innerText()
    assert.equal((await signIn(page, `nobody.${mark}@example.org`)).status(), 401)
    assert.equal(await summary.innerText(), told)
    await signIn(page, login.toUpperCase())
    assert.equal(await actor(page), `Cleo ${mark}`)
  })

  journey('who manages accounts makes links, each good once', async (t, options) => {
    const { page: dan, login } = await somebody(t, `Dan ${mark}`, options)
    const ada = await notes.window(t, '/_/sign-in?next=/users', options)
    await signIn(ada, ADA)
    await follow(ada, `Dan ${mark}`, ada.locator('main'))
    const made = await press(ada, 'Make a link for a new password')
    assert.equal(made.status(), 200)
    await assertSound(ada, made, options)
    const link = await ada.locator('main pre').innerText()
    assert.ok(link.startsWith(`${notes.url}/_/link?token=tfl_`), link)

    const other = await notes.window(t, link, options)
    await assertSound(other, await other.reload(), options)
    assert.equal(await control(other, 'New password').getAttribute('autocomplete'), 'new-password')
    await fill(other, { 'New password': 'a new password of his own', 'The same again': 'another one, by mistake' })
    assert.equal((await press(other, 'Set password')).status(), 400)
    await fill(other, { 'New password': 'a new password of his own', 'The same again': 'a new password of his own' })
    await press(other, 'Set password')
    assert.match(await other.locator('main').innerText(), /Your password is set/)
    assert.equal((await signIn(other, login)).status(), 401)
    await signIn(other, login, 'a new password of his own')
    assert.equal(await actor(other), `Dan ${mark}`)
    // All sessions that began before are over.
    await dan.goto('/')
    assert.equal(await actor(dan), '')
    const again = await other.goto(link)
    assert.equal(again.status(), 404)
    await assertSound(other, again, options)
  })

  journey('the account page ends sessions and changes the password', async (t, options) => {
    const { page, login } = await somebody(t, `Eve ${mark}`, options)
    const [second, third] = [await notes.window(t, '/_/sign-in', options), await notes.window(t, '/_/sign-in', options)]
    for (const window of [second, third]) await signIn(window, login)
    await follow(page, `Eve ${mark}`)
    assert.equal(await heading(page), `Eve ${mark}`)
    await assertSound(page, await page.reload(), options)
    assert.equal(await page.locator('main dt').count(), 3)
    await following(page, () => page.getByRole('button', { name: /^End the session/ }).first().click())
    assert.match(await flash(page), /session is ended/)
    assert.equal(await page.locator('main dt').count(), 2)
    const over = []
    for (const window of [second, third]) {
      await window.goto('/')
      over.push(await actor(window))
    }
    assert.deepEqual(over.toSorted(), ['', `Eve ${mark}`])

    const change = async (current, password, again = password) => {
      await fill(page, { 'Current password': current, 'New password': password, 'The same again': again })
      return (await press(page, 'Change password')).status()
    }
    assert.equal(await change('not the password', 'quite another password'), 401)
    assert.equal(await change(PASSWORD, 'quite another password', 'quite an other password'), 400)
    assert.equal(await change(PASSWORD, login), 400)
    assert.equal(await change(PASSWORD, 'quite another password'), 200)
    assert.match(await flash(page), /password is changed/)
    assert.equal(await actor(page), `Eve ${mark}`)
    for (const window of [second, third]) {
      await window.goto('/')
      assert.equal(await actor(window), '')
    }
    assert.equal((await second.goto('/_/account')).status(), 200)
    assert.equal(notes.path(second), '/_/sign-in?next=%2F_%2Faccount')
    await signIn(second, login, 'quite another password')
    assert.equal(notes.path(second), '/_/account')
  })

  journey('one button ends all other sessions', async (t, options) => {
    const { page, login } = await somebody(t, `Ida ${mark}`, options)
    const others = [await notes.window(t, '/_/sign-in', options), await notes.window(t, '/_/sign-in', options)]
    for (const window of others) await signIn(window, login)
    await page.goto('/_/account')
    await press(page, 'End all other sessions')
    assert.match(await flash(page), /other sessions are ended/)
    assert.equal(await page.locator('main dt').count(), 1)
    assert.equal(await page.getByRole('button', { name: 'End all other sessions' }).count(), 0)
    for (const window of others) {
      await window.goto('/')
      assert.equal(await actor(window), '')
    }
    await page.goto('/')
    assert.equal(await actor(page), `Ida ${mark}`)
  })

  journey('who manages accounts sees their sessions and ends them', async (t, options) => {
    const { page: jo, login } = await somebody(t, `Jo ${mark}`, options)
    await signIn(await notes.window(t, '/_/sign-in', options), login)
    const ada = await notes.window(t, '/_/sign-in?next=/users', options)
    await signIn(ada, ADA)
    await follow(ada, `Jo ${mark}`, ada.locator('main'))
    await assertSound(ada, await ada.reload(), options)
    const sessions = ada.getByRole('region', { name: 'Where this account is signed in' })
    assert.equal(await sessions.locator('dt').count(), 2)
    assert.match(await sessions.innerText(), /Chrome on Linux[^]*from (127\.0\.0\.1|::1)/)
    await press(ada, 'End all sessions')
    assert.match(await sessions.innerText(), /Nowhere/)
    await jo.goto('/')
    assert.equal(await actor(jo), '')
    assert.equal(await actor(ada), 'Ada')
  })

  journey('a password that is sent after the session ended asks to sign in', async (t, options) => {
    const { page, login } = await somebody(t, `Kim ${mark}`, options)
    await page.goto('/_/account')
    const other = await notes.beside(t, page, '/')
    await press(other, 'Sign out')
    await fill(page, { 'Current password': PASSWORD, 'New password': 'quite another password', 'The same again': 'quite another password' })
    const lost = await press(page, 'Change password')
    assert.equal(lost.status(), 401)
    await assertSound(page, lost, options)
    assert.doesNotMatch(await page.content(), /quite another/)
    await follow(page, 'Sign in', page.locator('main'))
    await signIn(page, login)
    assert.equal(notes.path(page), '/_/account')
  })

  journey('a form that is sent after the session ended loses nothing', async (t, options) => {
    const { page, login } = await somebody(t, `Fay ${mark}`, options)
    await page.goto('/notes/new')
    const text = `Two lines\nof <b>${mark}</b> that nobody types again`
    await fill(page, { Title: `Kept ${mark}`, Text: text })
    const other = await notes.beside(t, page, '/_/account')
    await press(other, 'Sign out')
    const lost = await press(page, 'Create note')
    assert.equal(lost.status(), 401)
    await assertSound(page, lost, options)
    assert.deepEqual(await values(page, ['Title', 'Text']), [`Kept ${mark}`, text])
    const [window] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('link', { name: /^Sign in, in another/ }).click()])
    await window.waitForLoadState()
    await signIn(window, login)
    await press(page, 'Send again')
    assert.equal(notes.path(page), '/notes')
    await follow(page, `Kept ${mark}`, page.locator('main'))
    assert.match(await page.locator('main').innerText(), new RegExp(`of <b>${mark}</b> that nobody`))
  })

  journey('a record that is not theirs is a sign-in for strangers and not there for others', async (t, options) => {
    const { page } = await somebody(t, `Gil ${mark}`, options)
    await page.goto('/notes/new')
    await fill(page, { Title: `Own ${mark}` })
    await press(page, 'Create note')
    await follow(page, `Own ${mark}`, page.locator('main'))
    const path = notes.path(page)
    const stranger = await notes.window(t, path, options)
    assert.equal(notes.path(stranger), `/_/sign-in?next=${encodeURIComponent(path)}`)
    const { page: other } = await somebody(t, `Hal ${mark}`, options)
    assert.equal((await other.goto(path)).status(), 404)
    assert.equal((await other.goto('/users/1')).status(), 404)
  })
})

test('signing in, around and out by keyboard alone', async (t) => {
  const page = await notes.window(t, '/_/sign-in?next=/notes')
  assert.equal(await hasFocus(control(page, 'Email')), true)
  await page.keyboard.type(ADA)
  await page.keyboard.press('Tab')
  await page.keyboard.type(PASSWORD)
  await following(page, () => page.keyboard.press('Enter'))
  assert.deepEqual([notes.path(page), await actor(page)], ['/notes', 'Ada'])
  await page.getByRole('button', { name: 'Sign out' }).focus()
  await following(page, () => page.keyboard.press('Enter'))
  assert.equal(await actor(page), '')
})

test('after a sign-out Back leads to no earlier page, also where browsers keep whole pages', async (t) => {
  // Playwright's own browsers keep none.
  const browser = await tabs()
  t.after(browser.close)
  const page = browser.first
  await page.goto(`${notes.url}/_/sign-in?next=/notes`)
  await signIn(page, ADA)
  await page.goto(`${notes.url}/notes`)
  await page.goto(`${notes.url}/docs`)
  // A page that was kept is not loaded again.
  const back = async () => {
    await page.goBack({ waitUntil: 'commit' })
    await page.waitForFunction(() => document.readyState === 'complete')
  }
  await back()
  assert.equal(await actor(page), 'Ada')
  await press(page, 'Sign out')
  // The page with the button was in sight until the answer came, and a browser may keep it after that: docs/security.md.
  await back()
  for (const step of [2, 3]) {
    await back()
    assert.doesNotMatch(await page.content(), /Ada/, `back ${step}`)
  }
})

test('password managers know the controls', async (t) => {
  const page = await notes.window(t, '/_/sign-in')
  const known = async (label) => control(page, label).getAttribute('autocomplete')
  assert.deepEqual([await known('Email'), await known('Password')], ['username', 'current-password'])
  await page.goto('/_/sign-up')
  assert.deepEqual([await known('Email'), await known('New password'), await known('The same again')], ['username', 'new-password', 'new-password'])
  await assertSound(page, await page.reload())
})
