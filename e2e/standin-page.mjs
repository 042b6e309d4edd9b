// The stand-in's GraphiQL page: serves the files of crates/graphql/src/describe/assets as the binary does, compressed as stored.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ASSETS = new URL('../crates/graphql/src/describe/assets', import.meta.url).pathname

export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const FILES = {
  react: ['react.js.br', 'text/javascript'],
  'react-dom': ['react-dom.js.br', 'text/javascript'],
  'graphiql-js': ['graphiql.js.br', 'text/javascript'],
  'graphiql-css': ['graphiql.css.br', 'text/css'],
  'init-js': ['graphiql-init.js', 'text/javascript'],
  'page-css': ['graphiql-page.css', 'text/css'],
}

const TABS = [
  { query: '# What is here?\n{\n  __schema {\n    queryType {\n      name\n    }\n  }\n}\n' },
  { query: 'query Kind($name: String!) {\n  __type(name: $name) {\n    kind\n  }\n}\n', variables: '{ "name": "Query" }' },
]

/** Answers what belongs to the page; tells whether it did. */
export function page(request, response) {
  const { pathname } = new URL(request.url, 'http://localhost')
  response.setHeader('content-security-policy', CSP)
  response.setHeader('x-content-type-options', 'nosniff')
  const name = pathname.startsWith('/_/assets/') && pathname.slice('/_/assets/'.length)
  if (name && FILES[name]) return asset(response, ...FILES[name])
  if (pathname === '/_/graphiql/tabs.json') return answer(response, 'application/json', JSON.stringify(TABS))
  if (pathname === '/graphql' && request.method === 'GET' && request.headers.accept?.startsWith('text/html'))
    return answer(response, 'text/html', html())
  return false
}

function asset(response, file, type) {
  if (file.endsWith('.br')) response.setHeader('content-encoding', 'br')
  return answer(response, type, readFileSync(join(ASSETS, file)))
}

function answer(response, type, body) {
  response.setHeader('content-type', `${type}; charset=utf-8`).end(body)
  return true
}

function html() {
  const template = readFileSync(join(ASSETS, 'graphiql.html'), 'utf8')
  return template.replace(/\{\{([\w-]+)\}\}/g, (_, name) => `/_/assets/${name}`)
}
