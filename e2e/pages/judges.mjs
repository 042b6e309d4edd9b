// The judges of a page: axe for people with assistive technology, html-validate for the markup.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { HtmlValidate } from 'html-validate'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

const EXCEPTIONS = {
  // Templates put their parts on lines of their own; what a person sees is the same.
  'no-trailing-whitespace': 'off',
}

const validator = new HtmlValidate({ extends: ['html-validate:recommended'], rules: EXCEPTIONS })

/** The rules of axe that read colours. */
export const COLOURS = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] }

/** The rules of axe that read where things are and what can be seen of them. */
export const LAYOUT = { type: 'rule', values: ['color-contrast', 'scrollable-region-focusable', 'target-size'] }

/** What axe finds on the page as it is shown, by all rules or by some. */
export async function axe(page, rules = TAGS) {
  // Not as an element: the policy of the page would refuse it. The value is not that of `window.axe`, which takes a second to send.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(`(() => { ${AXE} })()`)
  const options = { runOnly: rules, resultTypes: ['violations'], preload: false }
  const violations = await page.evaluate(async (given) => (await window.axe.run(document, given)).violations, options)
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target.join(' ')} (${[...node.any, ...node.all, ...node.none][0]?.message})`).join('; ')}`)
}

/** What html-validate finds in the markup. */
export async function markup(html) {
  const rows = html.split('\n')
  const { results } = await validator.validateString(html)
  const messages = results.flatMap((result) => result.messages)
  return messages
    .map(({ ruleId, message, line, column }) => ({ ruleId, text: `${ruleId} ${line}:${column} ${message}: ${rows[line - 1]?.trim().slice(0, 160)}` }))
    .filter((found) => !isOneAnswer(found))
    .map(({ text }) => text)
}

/** Boxes of one name, behind a hidden value for "none of them", are one answer, and so are the keys of groups: the rule knows only one control alone. */
function isOneAnswer({ ruleId, text }) {
  return ruleId === 'form-dup-name' && (text.includes('type="checkbox"') || text.includes('<select id="group'))
}
