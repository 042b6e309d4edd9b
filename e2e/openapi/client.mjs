// A client whose types come from /openapi.json alone: it makes, pages, changes and deletes, checked by tsc and then run.

import createClient from 'openapi-fetch'

/** @import { paths, components } from '../.cache/openapi/schema.d.ts' */
/** @typedef {components['schemas']['Product']} Product */

/** What the client saw, for the test to judge. @typedef {{ made: Product, seen: string[], changed: Product, found: string[], stale: string, gone: number }} Seen */

/**
 * @param {string} url
 * @returns {Promise<Seen>}
 */
export async function visit(url) {
  /** @type {ReturnType<typeof createClient<paths, `application/${'json' | 'problem+json' | 'merge-patch+json'}`>>} */
  const client = createClient({
    baseUrl: url,
    headers: { accept: 'application/json' },
    querySerializer: { array: { style: 'form', explode: false }, object: { style: 'form', explode: true } },
  })

  // Make.
  const created = await client.POST('/products', {
    body: { name: 'Samovar', price: '120.00', category: 'Kitchen' },
    headers: { 'content-type': 'application/json' },
  })
  const made = whole(created.data)
  const tag = created.response.headers.get('etag') ?? fail('a record without a tag')

  // Page.
  const seen = /** @type {string[]} */ ([])
  for (let page = 1; ; page++) {
    const query = { page, size: 5, sort: /** @type {['-price']} */ (['-price']), 'price.gte': '5', count: true }
    const { data, response } = await client.GET('/products', { params: { query } })
    for (const product of data ?? fail('no list')) seen.push(whole(product).name)
    if (!response.headers.get('link')?.includes('rel="next"')) break
  }

  // Find by related records, by one condition or another, and by what only `where` has.
  const related = { 'user.name': 'Ada Lovelace', or: '(status=NEW,quantity.gte=1)', where: { 'user.email.endsWith': 'example.com' } }
  const include = /** @type {['user.orders.user']} */ (['user.orders.user'])
  const { data: orders } = await client.GET('/orders', { params: { query: { ...related, include } } })
  const found = (orders ?? fail('no list')).map((order) => JSON.stringify(order))

  // Change what was seen, and fail to change what is no longer so.
  const one = { path: { id: made.id }, header: { 'If-Match': tag } }
  const patched = await client.PATCH('/products/{id}', { params: one, body: { description: null, price: 110.5 } })
  const again = await client.PATCH('/products/{id}', { params: one, body: { price: '1' } })
  const { error } = again
  if (error === undefined || typeof error === 'string') fail('a stale change was made')

  // Delete.
  const deleted = await client.DELETE('/products/{id}', { params: { path: { id: made.id } } })
  if (deleted.response.status !== 204) fail(`deleting gave ${deleted.response.status}`)
  const after = await client.GET('/products/{id}', { params: { path: { id: made.id } } })
  return { made, seen, changed: whole(patched.data), found, stale: error.code, gone: after.response.status }
}

/**
 * The whole record: what came without `fields`.
 *
 * @param {Product | components['schemas']['Product.Part'] | components['schemas']['Aggregate.Group'] | unknown[] | undefined} answer
 * @returns {Product}
 */
function whole(answer) {
  if (answer && !Array.isArray(answer) && 'id' in answer && 'name' in answer) return /** @type {Product} */ (answer)
  return fail(`no record: ${JSON.stringify(answer)}`)
}

/**
 * @param {string} why
 * @returns {never}
 */
function fail(why) {
  throw new Error(why)
}

/** What the types must refuse; never run. @param {ReturnType<typeof createClient<paths>>} client */
export async function mistakes(client) {
  // @ts-expect-error: no such field
  await client.POST('/products', { body: { prise: '1' } })
  // @ts-expect-error: a name is needed
  await client.POST('/users', { body: { email: 'ada@example.com' } })
  // @ts-expect-error: no such parameter
  await client.GET('/products', { params: { query: { 'prise.gte': '5' } } })
  // @ts-expect-error: no such status
  await client.GET('/orders', { params: { query: { status: 'LOST' } } })
  // @ts-expect-error: a user has no such field
  await client.GET('/orders', { params: { query: { 'user.nam': 'Ada' } } })
  // @ts-expect-error: no such related records
  await client.GET('/orders', { params: { query: { include: ['user.orders.product'] } } })
  // @ts-expect-error: the id is missing
  await client.DELETE('/products/{id}', {})
}
