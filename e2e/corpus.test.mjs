// The schemas of tests/corpus as graphql-js reads them: what `trefoil schema` prints is what introspection tells, and
// that is the file, with nothing but `@atomic` and the connection types and scalars that it uses without declaring them.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  buildClientSchema, buildSchema, getIntrospectionQuery, isIntrospectionType, isSpecifiedDirective, isSpecifiedScalarType,
  lexicographicSortSchema, parse, printSchema, printType,
} from 'graphql'
import { binary, start } from './server.mjs'

const read = (name) => readFileSync(new URL(`../tests/corpus/${name}`, import.meta.url), 'utf8')
const facts = read('operations.txt') + read('drawn.txt')

/** The facts of one schema as SDL, as tests/corpus/mod.rs has it. */
function schemaText(block) {
  const roots = { Query: '', Mutation: '', Subscription: '' }
  let text = ''
  for (const line of block.trimEnd().split('\n').slice(1)) {
    const [kind, rest] = splitOnce(line, ' ')
    if (kind in roots) {
      const [, name, values, type] = /^(\w+)\((.*)\) (\S+) = /.exec(rest)
      roots[kind] += `  ${name}${values && `(${values})`}: ${type}\n`
    } else {
      text += typeText(kind, ...splitOnce(rest, ' '))
    }
  }
  const named = Object.entries(roots).filter(([, fields]) => fields)
  return text + named.map(([name, fields]) => `type ${name} {\n${fields}}\n`).join('')
}

function typeText(kind, name, members) {
  switch (kind) {
    case 'scalar': return `scalar ${name}\n`
    case 'union': return `union ${name} = ${members.replaceAll(' ', ' | ')}\n`
    case 'object': return `type ${name} { ${members.replaceAll('()', '(argument: String)')} }\n`
    default: return `${kind} ${name} { ${members.replaceAll('()', '(argument: String)')} }\n`
  }
}

function splitOnce(text, mark) {
  const at = text.indexOf(mark)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + mark.length)]
}

/** The types by name, each as SDL. */
function typeTexts(schema) {
  const types = Object.values(schema.getTypeMap())
  const own = types.filter((type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type))
  return new Map(own.map((type) => [type.name, printType(type)]))
}

let folder
before(() => { folder = mkdtempSync(join(tmpdir(), 'trefoil-e2e-corpus-')) })
after(() => rmSync(folder, { recursive: true, force: true }))

async function introspected(path) {
  const server = await start(binary(), [path])
  try {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ query: getIntrospectionQuery() })
    const response = await fetch(`${server.url}/graphql`, { method: 'POST', headers, body })
    return buildClientSchema((await response.json()).data)
  } finally {
    await server.stop()
  }
}

const IMPLIED = /(Connection|Edge)$|^PageInfo$/

test('every schema of the corpus is served as it is printed, and printed as it was written', async () => {
  const blocks = facts.split('# ').slice(1)
  assert.ok(blocks.length > 150, `only ${blocks.length} schemas`)
  for (const block of blocks) {
    const number = block.split('\n', 1)[0]
    const path = join(folder, number)
    const text = schemaText(block)
    mkdirSync(join(path, 'graphql'), { recursive: true })
    writeFileSync(join(path, 'graphql/schema.graphqls'), text)
    const printed = buildSchema(execFileSync(binary(), ['schema', path], { encoding: 'utf8' }))
    const sorted = (schema) => printSchema(lexicographicSortSchema(schema))
    assert.equal(sorted(await introspected(path)), sorted(printed), `schema ${number}`)
    const declared = new Set(parse(text).definitions.map((definition) => definition.name.value))
    const added = [...typeTexts(printed)].filter(([name]) => !declared.has(name))
    for (const [name, own] of added) {
      assert.ok(IMPLIED.test(name) || own.startsWith('scalar '), `schema ${number} has got ${name}`)
    }
    const directives = printed.getDirectives().filter((directive) => !isSpecifiedDirective(directive))
    for (const { name } of directives) assert.equal(name, 'atomic', `schema ${number}`)
    // graphql-js reads no schema that lacks a type.
    const written = buildSchema([text, ...added.map(([, own]) => own)].join('\n'))
    const types = (schema) => [...typeTexts(lexicographicSortSchema(schema)).values()].join('\n')
    assert.equal(types(written), types(printed), `schema ${number}`)
  }
})
