// Takes GraphiQL and React from their npm packages and stores them compressed for the binary, with VENDORED.md
// and the licences. Run it with `npm run vendor` after changing a version below; `cargo build` never needs it.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const ROOT = new URL('..', import.meta.url).pathname
const ASSETS = join(ROOT, 'src/faces/graphql/assets')

const PACKAGES = { graphiql: '4.1.2', react: '18.3.1', 'react-dom': '18.3.1' }

const FILES = [
  { from: 'react', path: 'umd/react.production.min.js', as: 'react.js', change: script },
  { from: 'react-dom', path: 'umd/react-dom.production.min.js', as: 'react-dom.js', change: script },
  { from: 'graphiql', path: 'graphiql.min.js', as: 'graphiql.js', change: script },
  { from: 'graphiql', path: 'graphiql.min.css', as: 'graphiql.css', change: withoutFonts },
]

const home = mkdtempSync(join(tmpdir(), 'trefoil-vendor-'))
try {
  install(home, Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`))
  const rows = FILES.map(store)
  writeFileSync(join(ASSETS, 'LICENSES.txt'), licences())
  writeFileSync(join(ROOT, 'VENDORED.md'), report(rows))
} finally {
  rmSync(home, { recursive: true })
}

function install(prefix, packages) {
  execFileSync('npm', ['install', '--no-save', '--ignore-scripts', '--prefix', prefix, ...packages], { stdio: 'inherit' })
}

function store({ from, path, as, change }) {
  const original = readFileSync(join(home, 'node_modules', from, path))
  const kept = Buffer.from(change(original.toString('utf8')))
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: kept.length }
  const stored = { br: brotliCompressSync(kept, { params }), gz: gzipSync(kept, { level: 9 }) }
  for (const [suffix, bytes] of Object.entries(stored)) writeFileSync(join(ASSETS, `${as}.${suffix}`), bytes)
  return { from, path, as, original, kept, stored }
}

/** Source maps are not stored, so nothing may ask for them. */
function script(text) {
  return text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, '\n')
}

/** The fonts are two thirds of the sheet; the page sets system fonts instead. */
function withoutFonts(text) {
  const kept = text.replace(/@font-face\s*\{[^}]*\}/g, '')
  if (/@font-face|@import|url\((?!["']?data:image)/.test(kept)) throw new Error('the sheet still loads something')
  return kept
}

/** Every package whose code is inside the stored files, told by the bundle's source map. */
function bundled() {
  const map = JSON.parse(readFileSync(join(home, 'node_modules/graphiql/graphiql.min.js.map'), 'utf8'))
  const names = new Set(Object.keys(PACKAGES))
  for (const source of map.sources) {
    const outside = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)
    const sibling = /^\.\.\/\.\.\/(graphiql|graphql|codemirror)-([^/]+)\//.exec(source)
    if (outside) names.add(outside[1])
    else if (sibling) names.add(sibling[1] === 'graphiql' ? `@graphiql/${sibling[2]}` : `${sibling[1]}-${sibling[2]}`)
  }
  names.add('scheduler')
  return [...names].sort()
}

function licences() {
  const byText = new Map()
  const names = bundled()
  // Some that were bundled are no dependencies of today's versions any more.
  const gone = names.filter((name) => !existsSync(join(home, 'node_modules', name)))
  if (gone.length) install(join(home, 'gone'), gone)
  for (const name of names) {
    const { licence, text } = licenceOf(join(home, gone.includes(name) ? 'gone' : '', 'node_modules', name))
    const holders = byText.get(text) ?? byText.set(text, { licence, names: [] }).get(text)
    holders.names.push(name)
  }
  const parts = [...byText].map(([text, { licence, names }]) => `${names.join(', ')} (${licence})\n\n${text}\n`)
  const line = `\n${'-'.repeat(100)}\n\n`
  return `Licences of the code inside react.js, react-dom.js, graphiql.js and graphiql.css.\n${line}${parts.join(line)}`
}

function licenceOf(folder) {
  const { license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((entry) => /^licen[sc]e/i.test(entry))
  if (file) return { licence: license, text: readFileSync(join(folder, file), 'utf8').replace(/\r\n/g, '\n').trim() }
  const holder = typeof author === 'string' ? author : author?.name
  return { licence: license, text: `The package carries no licence text; its package.json says ${license}${holder ? `, ${holder}` : ''}.` }
}

function report(rows) {
  const digest = (bytes) => createHash('sha256').update(bytes).digest('hex')
  const lock = JSON.parse(readFileSync(join(home, 'node_modules/.package-lock.json'), 'utf8')).packages
  const packages = Object.entries(PACKAGES).map(
    ([name, version]) => `| ${name} | ${version} | MIT | \`${lock[`node_modules/${name}`].integrity}\` |`,
  )
  const files = rows.flatMap(({ from, path, as, original, kept, stored }) => [
    `| \`${from}/${path}\` | as published | ${original.length} | \`${digest(original)}\` |`,
    `| \`${as}\` | as served, uncompressed | ${kept.length} | \`${digest(kept)}\` |`,
    ...Object.entries(stored).map(([suffix, bytes]) => `| \`${as}.${suffix}\` | stored | ${bytes.length} | \`${digest(bytes)}\` |`),
  ])
  return `# Code of others in this repository

The GraphQL page at \`/graphql\` is GraphiQL, served from the binary itself. Its files come from npm packages and are
stored compressed in \`src/faces/graphql/assets/\`, so that building needs neither Node.js nor a network.
This file is written by \`e2e/vendor.mjs\`.

| package | version | licence | npm integrity of the tarball |
|---|---|---|---|
${packages.join('\n')}

GraphiQL's bundle contains further packages; their licences are all in \`src/faces/graphql/assets/LICENSES.txt\`.

Changes made: the \`@font-face\` rules are removed from the style sheet (the page uses the system's fonts), and the
scripts' \`sourceMappingURL\` lines, because the maps are not stored. Nothing else.

| file | which | bytes | sha256 |
|---|---|---:|---|
${files.join('\n')}

To renew: change a version at the top of \`e2e/vendor.mjs\`, run \`npm ci && npm run vendor\` in \`e2e/\`, then the
browser test (\`node --test graphiql.test.mjs\`), and commit what changed. GraphiQL 4.1.2 is the last release that runs
from published files under a Content-Security-Policy without \`unsafe-inline\`; version 5 needs a bundler.
`
}
