// The controls of a form as people find them: by their labels.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** The control under `label`, marked as optional or not; the outermost where values inside have the same name. */
export function control(page, label) {
  return page.locator('main').getByLabel(new RegExp(`^${label}( optional)?$`)).first()
}

export async function fill(page, values) {
  for (const [label, value] of Object.entries(values)) await control(page, label).fill(value)
}

export async function values(page, labels) {
  return Promise.all(labels.map((label) => control(page, label).inputValue()))
}

/** Whether the keyboard is in, or on, what `locator` finds; a browser gives the focus only when it next draws the page. */
export async function hasFocus(locator) {
  for (let attempt = 0; attempt < 40; attempt++) {
    if (await locator.evaluate((element) => element.contains(document.activeElement))) return true
    await sleep(50)
  }
  return false
}

/** A form that did not pass says so where people look first, and beside each control named. */
export async function assertRefused(page, complaints) {
  assert.match(await page.title(), /^Error: /)
  const summary = page.locator('main [tabindex="-1"]', { has: page.getByRole('alert') })
  assert.equal(await hasFocus(summary), true, 'the summary has the focus')
  for (const [label, message] of Object.entries(complaints)) {
    const bad = control(page, label)
    assert.equal(await bad.getAttribute('aria-invalid'), 'true', label)
    const told = await described(page, bad)
    assert.match(told, message)
    const link = summary.locator(`a[href="#${await bad.getAttribute('id')}"]`)
    assert.match(await link.innerText(), message)
    await link.click()
    assert.equal(await hasFocus(bad), true, `the summary leads to ${label}`)
  }
}

/** What a screen reader says after the label of a control. */
export async function described(page, locator) {
  const ids = ((await locator.getAttribute('aria-describedby')) ?? '').split(' ').filter(Boolean)
  const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).innerText()))
  return texts.join(' ')
}

/** What the page tells of the thing just done; empty where nothing was. */
export async function flash(page) {
  const notes = await page.locator('main .note[role=status]').allInnerTexts()
  return notes.join(' ').trim()
}
