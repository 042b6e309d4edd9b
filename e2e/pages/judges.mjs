// The judges of a page: axe for people with assistive technology, html-validate for the markup.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { HtmlValidate } from 'html-validate'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

const EXCEPTIONS = {
  // Templates put their parts on lines of their own; what a person sees is the same.
  'no-trailing-whitespace': 'off',
  // Boxes of one name are one answer with several values, as a form has always sent them.
  'form-dup-name': ['error', { shared: ['radio', 'button', 'reset', 'submit', 'checkbox'] }],
}

const validator = new HtmlValidate({ extends: ['html-validate:recommended'], rules: EXCEPTIONS })

/** What axe finds on the page as it is shown. */
export async function axe(page) {
  // Not as an element: the policy of the page would refuse it.
  await page.evaluate(`window.axe || (() => { ${AXE} })()`)
  const options = { runOnly: TAGS, resultTypes: ['violations'], preload: false }
  const { violations } = await page.evaluate((given) => window.axe.run(document, given), options)
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target.join(' ')} (${[...node.any, ...node.all, ...node.none][0]?.message})`).join('; ')}`)
}

/** What html-validate finds in the markup. */
export async function markup(html) {
  const { results } = await validator.validateString(html)
  return results.flatMap(({ messages }) => messages.map(({ ruleId, message, line, column }) => `${ruleId} ${line}:${column} ${message}: ${html.split('\n')[line - 1]?.trim().slice(0, 160)}`))
}
