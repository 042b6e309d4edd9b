// Lighthouse gives home, list, detail and form full marks for accessibility and best practices. LONG_CHECKS=1 only.
//
// It brings more packages than everything else here together, so it has a folder of its own, installed when it is needed.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { tabs } from './browser.mjs'
import { binary, start } from './server.mjs'

const HERE = new URL('./lighthouse/', import.meta.url)
const PAGES = { home: '/', list: '/users', detail: '/users/1', form: '/orders/new' }
const skip = process.env.LONG_CHECKS === '1' ? false : 'a long check'

let server
let browser
let lighthouse
before(async () => {
  if (skip) return
  execFileSync('npm', ['ci', '--loglevel=error', '--no-audit', '--no-fund', '--prefer-offline'], { cwd: HERE.pathname, stdio: 'inherit' })
  lighthouse = (await import(new URL('node_modules/lighthouse/core/index.js', HERE))).default
  server = await start(binary())
  browser = await tabs()
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

for (const [name, path] of Object.entries(PAGES)) {
  for (const formFactor of ['desktop', 'mobile']) {
    test(`${name}, ${formFactor}`, { skip }, async () => {
      const screen = formFactor === 'mobile' ? undefined : { mobile: false, width: 1280, height: 800, deviceScaleFactor: 1, disabled: false }
      const settings = { onlyCategories: ['accessibility', 'best-practices'], formFactor, screenEmulation: screen, maxWaitForLoad: 120_000 }
      const { lhr } = await lighthouse(`${server.url}${path}`, { port: browser.port, logLevel: 'error' }, { extends: 'lighthouse:default', settings })
      const failed = Object.values(lhr.audits).filter(({ score, scoreDisplayMode }) => score !== null && score < 1 && scoreDisplayMode !== 'informative')
      const scores = Object.fromEntries(Object.values(lhr.categories).map(({ id, score }) => [id, score]))
      assert.deepEqual(scores, { accessibility: 1, 'best-practices': 1 }, JSON.stringify(failed.map(({ id, title, details }) => ({ id, title, items: details?.items })), null, 1).slice(0, 4000))
    })
  }
}
