// The code blocks of docs/subscriptions-clients.md that have a file name, as modules: what users copy is what is tested.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'

const DOCUMENT = new URL('../docs/subscriptions-clients.md', import.meta.url)
const FOLDER = new URL('./.cache/recipes/', import.meta.url)

/** The blocks that begin with their imports, as modules that also export their `client`, for a server at this URL. */
export async function examples(url) {
  const blocks = [...readFileSync(DOCUMENT, 'utf8').matchAll(/^```js\n(import [^]*?)^```$/gm)].map(([, code]) => code)
  const modules = blocks.map((code, index) => {
    const file = new URL(`example-${index}.mjs`, FOLDER)
    const there = code.replaceAll('http://localhost:8080', url).replaceAll('ws://localhost:8080', url.replace('http', 'ws'))
    writeFileSync(file, `${there}\nexport { client }\n`)
    return import(file)
  })
  return Promise.all(modules)
}

/** Writes every block that begins with `// NAME.mjs` below this folder, where the packages are found, and imports one. */
export async function recipe(name) {
  const blocks = [...readFileSync(DOCUMENT, 'utf8').matchAll(/^```js\n\/\/ ([\w-]+\.mjs)\n([^]*?)^```$/gm)]
  if (!blocks.some(([, file]) => file === name)) throw new Error(`the document has no ${name}`)
  mkdirSync(FOLDER, { recursive: true })
  for (const [, file, code] of blocks) writeFileSync(new URL(file, FOLDER), code)
  return import(new URL(name, FOLDER))
}
