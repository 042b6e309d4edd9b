// Takes GraphiQL, React and Swagger UI from their npm packages and stores them compressed for the binary, with VENDORED.md
// and the licences. Run it with `npm run vendor` after changing a version below; `cargo build` never needs it.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { writePacked } from './pack.mjs'

const ROOT = new URL('..', import.meta.url).pathname

const PACKAGES = { graphiql: '4.1.2', react: '18.3.1', 'react-dom': '18.3.1', 'swagger-ui-dist': '5.34.1' }

// The pages, each with its folder, the files that are stored there, and the map that tells what its bundle is made of.
const PAGES = [
  {
    folder: 'crates/graphql/src/describe/assets',
    map: 'graphiql/graphiql.min.js.map',
    packages: ['graphiql', 'react', 'react-dom', 'scheduler'],
    files: [
      { from: 'react', path: 'umd/react.production.min.js', as: 'react.js', change: script },
      { from: 'react-dom', path: 'umd/react-dom.production.min.js', as: 'react-dom.js', change: script },
      { from: 'graphiql', path: 'graphiql.min.js', as: 'graphiql.js', change: script },
      { from: 'graphiql', path: 'graphiql.min.css', as: 'graphiql.css', change: withoutFonts },
    ],
  },
  {
    folder: 'crates/rest/src/assets',
    map: 'swagger-ui-dist/swagger-ui-bundle.js.map',
    packages: ['swagger-ui-dist'],
    files: [
      { from: 'swagger-ui-dist', path: 'swagger-ui-bundle.js', as: 'swagger-ui.js', change: script },
      { from: 'swagger-ui-dist', path: 'swagger-ui.css', as: 'swagger-ui.css', change: sheet },
    ],
  },
]

const home = mkdtempSync(join(tmpdir(), 'trefoil-vendor-'))
try {
  install(home, Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`))
  const rows = PAGES.flatMap((page) => page.files.map((file) => store(page.folder, file)))
  for (const page of PAGES) writeFileSync(join(ROOT, page.folder, 'LICENSES.txt'), licences(page))
  writeFileSync(join(ROOT, 'VENDORED.md'), report(rows))
} finally {
  rmSync(home, { recursive: true })
}

function install(prefix, packages) {
  // Nothing of it is run, so it does not matter which peers fit.
  const options = ['--no-save', '--ignore-scripts', '--legacy-peer-deps', '--prefix', prefix]
  execFileSync('npm', ['install', ...options, ...packages], { stdio: 'inherit' })
}

function store(folder, { from, path, as, change }) {
  const original = readFileSync(join(home, 'node_modules', from, path))
  const kept = Buffer.from(change(original.toString('utf8')))
  return { from, path, as, original, kept, stored: writePacked(folder, as, kept) }
}

/** Source maps are not stored, so nothing may ask for them. */
function script(text) {
  return text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, '\n')
}

/** The fonts are two thirds of the sheet; the page sets system fonts instead. */
function withoutFonts(text) {
  return sheet(text.replace(/@font-face\s*\{[^}]*\}/g, ''))
}

function sheet(text) {
  const kept = text.replace(/\n?\/\*# sourceMappingURL=.*?\*\/\s*$/, '\n')
  if (/@font-face|@import|url\((?!["']?data:image)/.test(kept)) throw new Error('the sheet still loads something')
  return kept
}

/** Every package whose code is inside a page's files, told by the bundle's source map. */
function bundled({ map, packages }) {
  const { sources } = JSON.parse(readFileSync(join(home, 'node_modules', map), 'utf8'))
  const names = new Set(packages)
  for (const source of sources) {
    const outside = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)
    const sibling = /^\.\.\/\.\.\/(graphiql|graphql|codemirror)-([^/]+)\//.exec(source)
    if (outside) names.add(outside[1])
    else if (sibling) names.add(sibling[1] === 'graphiql' ? `@graphiql/${sibling[2]}` : `${sibling[1]}-${sibling[2]}`)
  }
  return [...names].sort()
}

function licences(page) {
  const byText = new Map()
  const names = bundled(page)
  // What is inside a bundle is not always a dependency of its package.
  const gone = names.filter((name) => !existsSync(join(home, 'node_modules', name)))
  const apart = join('gone', page.packages[0])
  if (gone.length) install(join(home, apart), gone)
  for (const name of names) {
    const { licence, text } = licenceOf(join(home, gone.includes(name) ? apart : '', 'node_modules', name))
    const holders = byText.get(text) ?? byText.set(text, { licence, names: [] }).get(text)
    holders.names.push(name)
  }
  const parts = [...byText].map(([text, { licence, names }]) => `${names.join(', ')} (${licence})\n\n${text}\n`)
  const line = `\n${'-'.repeat(100)}\n\n`
  const files = page.files.map(({ as }) => as)
  return `Licences of the code inside ${files.slice(0, -1).join(', ')} and ${files.at(-1)}.\n${line}${parts.join(line)}`
}

function licenceOf(folder) {
  const { license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => entry.name)
  const file = files.find((entry) => /^licen[sc]e/i.test(entry))
  const notice = files.find((entry) => /^notice/i.test(entry))
  const read = (entry) => readFileSync(join(folder, entry), 'utf8').replace(/\r\n/g, '\n').trim()
  if (file) return { licence: license, text: [file, notice].filter(Boolean).map(read).join('\n\n') }
  const holder = typeof author === 'string' ? author : author?.name
  return { licence: license, text: `The package carries no licence text; its package.json says ${license}${holder ? `, ${holder}` : ''}.` }
}

function report(rows) {
  const digest = (bytes) => createHash('sha256').update(bytes).digest('hex')
  const lock = JSON.parse(readFileSync(join(home, 'node_modules/.package-lock.json'), 'utf8')).packages
  const packages = Object.entries(PACKAGES).map(
    ([name, version]) => `| ${name} | ${version} | ${lock[`node_modules/${name}`].license} | \`${lock[`node_modules/${name}`].integrity}\` |`,
  )
  const files = rows.flatMap(({ from, path, as, original, kept, stored }) => [
    `| \`${from}/${path}\` | as published | ${original.length} | \`${digest(original)}\` |`,
    `| \`${as}\` | as served, uncompressed | ${kept.length} | \`${digest(kept)}\` |`,
    ...Object.entries(stored).map(([suffix, bytes]) => `| \`${as}.${suffix}\` | stored | ${bytes.length} | \`${digest(bytes)}\` |`),
  ])
  return `# Code of others in this repository

The GraphQL page at \`/graphql\` is GraphiQL, the REST reference at \`/docs\` is Swagger UI, both served from the binary
itself. Their files come from npm packages and are stored compressed in \`crates/graphql/src/describe/assets/\` and
\`crates/rest/src/assets/\`, so that building needs neither Node.js nor a network. This file is written by \`e2e/vendor.mjs\`.

| package | version | licence | npm integrity of the tarball |
|---|---|---|---|
${packages.join('\n')}

Both bundles contain further packages; the licences of all are in the \`LICENSES.txt\` beside them.

Changes made: the \`@font-face\` rules are removed from GraphiQL's style sheet (the page uses the system's fonts), and all
\`sourceMappingURL\` lines, because the maps are not stored. Nothing else.

| file | which | bytes | sha256 |
|---|---|---:|---|
${files.join('\n')}

To renew: change a version at the top of \`e2e/vendor.mjs\`, run \`npm ci && npm run vendor\` in \`e2e/\`, then the
browser tests (\`node --test graphiql.test.mjs docs.test.mjs\`), and commit what changed. GraphiQL 4.1.2 is the last release that runs
from published files under a Content-Security-Policy without \`unsafe-inline\`; version 5 needs a bundler.
`
}
