// Says in which way a server's answer differs from graphql-js's; messages and locations are each server's own.

/** Null when they agree, else `{ kind, expected, actual }` with the parts that differ. */
export function difference(expected, { status, body }) {
  const verdict = (answer) => ('data' in answer ? 'executed' : 'request error')
  if (!isResponse(body)) return { kind: 'response', expected: 'a GraphQL response', actual: body }
  if (verdict(expected) !== verdict(body)) return { kind: 'verdict', expected: verdict(expected), actual: verdict(body) }
  const wanted = verdict(expected) === 'executed' ? 200 : 400
  if (status !== wanted) return { kind: 'status', expected: wanted, actual: status }
  if (verdict(expected) === 'request error') return null
  const [data, actualData] = [JSON.stringify(expected.data), JSON.stringify(body.data)]
  if (data !== actualData) return { kind: 'data', expected: data, actual: actualData }
  const [paths, actualPaths] = [pathsOf(expected), pathsOf(body)]
  if (paths !== actualPaths) return { kind: 'error paths', expected: paths, actual: actualPaths }
  return null
}

function isResponse(body) {
  if (body === null || typeof body !== 'object' || Array.isArray(body)) return false
  const withErrors = 'errors' in body
  const messages = !withErrors || (Array.isArray(body.errors) && body.errors.length > 0 && body.errors.every(({ message }) => typeof message === 'string'))
  return messages && (withErrors || 'data' in body)
}

/** As one text, each path once for each error that has it. */
function pathsOf({ errors = [] }) {
  return errors.map(({ path }) => JSON.stringify(path ?? null)).sort().join('\n')
}
