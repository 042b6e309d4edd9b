// The cases of the differential test: the same seed, schema and index always give the same request.

import { getOperationAST, parse } from 'graphql'
import { breakDocument, breakSyntax, breakVariables } from './break.mjs'
import { generate, write } from './generate.mjs'
import { Random } from './random.mjs'

const TRIES = 25

/** A case of `kind` (`query` or `mutation`): `{ index, way, query, variables, operationName }`. */
export function caseAt(schema, seed, index, { kind = 'query', pools } = {}) {
  const random = Random.of(seed, index)
  const roll = random.next()
  const fresh = () => generate(schema, random, { kind, pools })
  const attempt = () => {
    const request = fresh()
    if (roll < 0.45) return finish(request, 'valid')
    if (roll < 0.78) return broken(request)
    if (roll < 0.87) return { ...finish(request, 'syntax'), query: breakSyntax(write(request.document, random), random) }
    if (roll < 0.98) return breakVariables(request, random) && finish(request, 'variables')
    return finish({ ...request, operationName: random.pick(['Nowhere', '', 'opA0', null]) }, 'operation name')
  }
  const broken = (request) => {
    const ways = [breakDocument(request, schema, random), random.chance(0.1) ? breakDocument(request, schema, random) : undefined].filter(Boolean)
    return ways.length ? finish(request, ways.join(' + ')) : undefined
  }
  const finish = ({ document, variables, operationName }, way) => ({ index, way, query: write(document, random), variables, operationName })
  for (let tries = 0; tries < TRIES; tries++) {
    const made = attempt()
    if (made) return made
  }
  return finish(fresh(), 'valid')
}

/** What would run: `query`, `mutation`, `subscription`, or nothing when that cannot be told. */
export function operationOf({ query, operationName }) {
  try {
    return getOperationAST(parse(query), operationName)?.operation
  } catch {
    return undefined
  }
}
