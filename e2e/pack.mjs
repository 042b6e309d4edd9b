// Stores the project's own styles, scripts and icon compressed beside their sources, as the binary serves them.
// Run it with `npm run pack` after changing one; it needs no packages, and `cargo build` never needs it.

import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const ROOT = new URL('..', import.meta.url).pathname

export const FOLDERS = ['crates/graphql/src/describe/assets', 'crates/pages/src/assets', 'crates/rest/src/assets']

/** Writes `name.br` and `name.gz`, and returns both. */
export function writePacked(folder, name, bytes) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  const packed = { br: brotliCompressSync(bytes, { params }), gz: gzipSync(bytes, { level: 9 }) }
  for (const [suffix, kept] of Object.entries(packed)) writeFileSync(join(ROOT, folder, `${name}.${suffix}`), kept)
  return packed
}

if (import.meta.filename === process.argv[1]) {
  for (const folder of FOLDERS) {
    for (const name of readdirSync(join(ROOT, folder)).filter((name) => /\.(css|js|svg)$/.test(name))) {
      writePacked(folder, name, readFileSync(join(ROOT, folder, name)))
    }
  }
}
