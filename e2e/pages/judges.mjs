// The judges of a page: axe for people with assistive technology, html-validate for the markup.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { HtmlValidate } from 'html-validate'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** What depends on colours: the rest is the same in light and dark. */
export const COLOURS = ['color-contrast', 'link-in-text-block']

/** What depends on the width. */
export const WIDTHS = ['target-size', 'scrollable-region-focusable', 'meta-viewport', 'color-contrast']

const EXCEPTIONS = {
  // Templates put their parts on lines of their own; what a person sees is the same.
  'no-trailing-whitespace': 'off',
}

const validator = new HtmlValidate({ extends: ['html-validate:recommended'], rules: EXCEPTIONS })

/** What axe finds on the page as it is shown; `rules` where only these are wanted. */
export async function axe(page, rules = undefined) {
  // Not as an element: the policy of the page would refuse it.
  await page.evaluate(`window.axe || (() => { ${AXE} })()`)
  const runOnly = rules ? { type: 'rule', values: rules } : { type: 'tag', values: TAGS }
  const { violations } = await page.evaluate((only) => window.axe.run(document, { runOnly: only, resultTypes: ['violations'] }), runOnly)
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target.join(' ')} (${node.any[0]?.message ?? node.all[0]?.message ?? node.none[0]?.message})`).join('; ')}`)
}

/** What html-validate finds in the markup. */
export async function markup(html) {
  const { results } = await validator.validateString(html)
  return results.flatMap(({ messages }) => messages.map(({ ruleId, message, line, column }) => `${ruleId} ${line}:${column} ${message}: ${html.split('\n')[line - 1]?.trim().slice(0, 160)}`))
}
