// Makes a failing request smaller while it still fails, so that a person can read it.

import { parse, print, visit } from 'graphql'

const MOST_TRIES = 400

/** `fails(request)` tells whether the request still shows the difference. */
export async function shrink(request, fails) {
  let best = request
  let tries = 0
  for (let progress = true; progress && tries < MOST_TRIES; ) {
    progress = false
    for (const candidate of smaller(best)) {
      if (++tries > MOST_TRIES) break
      if (await fails(candidate)) {
        best = candidate
        progress = true
        break
      }
    }
  }
  return best
}

function* smaller(request) {
  for (const name of Object.keys(request.variables ?? {})) {
    const { [name]: _, ...variables } = request.variables
    yield { ...request, variables }
  }
  let document
  try {
    document = parse(request.query, { noLocation: true })
  } catch {
    yield* shorter(request)
    return
  }
  const total = removable(document)
  for (let at = 0; at < total; at++) {
    const query = print(without(document, at))
    if (query.length < request.query.length) yield { ...request, query }
  }
}

const DROPPED = new Set(['OperationDefinition', 'FragmentDefinition', 'Field', 'InlineFragment', 'FragmentSpread', 'Argument', 'Directive', 'VariableDefinition', 'ObjectField'])

function removable(document) {
  let count = 0
  visit(document, { enter: (node) => void (DROPPED.has(node.kind) && count++) })
  return count
}

/** The document without its `at`-th removable node; a selection set that would be empty asks for its type's name. */
function without(document, at) {
  let count = 0
  return visit(document, {
    enter: (node) => (DROPPED.has(node.kind) && count++ === at ? null : undefined),
    leave: (node) => (node.kind === 'SelectionSet' && !node.selections.length ? { ...node, selections: parse('{ __typename }').definitions[0].selectionSet.selections } : undefined),
  })
}

/** A text that is no document: cut pieces out of it, large ones first. */
function* shorter(request) {
  const { query } = request
  for (let size = query.length >> 1; size >= 1; size >>= 1)
    for (let at = 0; at + size <= query.length; at += size) yield { ...request, query: query.slice(0, at) + query.slice(at + size) }
}
