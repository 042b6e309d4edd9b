// The code blocks of docs/subscriptions-clients.md that have a file name, as modules: what users copy is what is tested.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'

const DOCUMENT = new URL('../docs/subscriptions-clients.md', import.meta.url)
const FOLDER = new URL('./.cache/recipes/', import.meta.url)

/** Writes every block that begins with `// NAME.mjs` below this folder, where the packages are found, and imports one. */
export async function recipe(name) {
  const blocks = [...readFileSync(DOCUMENT, 'utf8').matchAll(/^```js\n\/\/ ([\w-]+\.mjs)\n([^]*?)^```$/gm)]
  if (!blocks.some(([, file]) => file === name)) throw new Error(`the document has no ${name}`)
  mkdirSync(FOLDER, { recursive: true })
  for (const [, file, code] of blocks) writeFileSync(new URL(file, FOLDER), code)
  return import(new URL(name, FOLDER))
}
