// The registered resolvers of the harder schema for graphql-js, as README.md says.

import { readFileSync } from 'node:fs'

const PLACES = JSON.parse(readFileSync(new URL('places.json', import.meta.url), 'utf8'))

const fail = () => {
  throw new Error('failed on purpose')
}
const always = (value) => () => value
const fragile = () => ({ __typename: 'Fragile' })
const place = (found) => found && { __typename: 'Place', ...found }
const placeNamed = (name) => place(PLACES.find((candidate) => candidate.name === name))

/** `records.get(type, id)` gives a record or undefined, `records.all(type)` all of them in id order. */
export function resolvers(records) {
  const node = (id) => {
    const [, kind, number] = /^(person|book|place)-(\d+)$/.exec(id) ?? []
    if (kind === 'person') return records.get('Person', number)
    if (kind === 'book') return records.get('Book', number)
    if (kind === 'place') return place(PLACES[number - 1])
  }
  const search = (text) =>
    [...records.all('Person'), ...records.all('Book'), ...PLACES.map(place)].filter(({ name }) => name.includes(text))
  return {
    Query: {
      node: (_, { id }) => node(id),
      nodes: (_, { ids }) => ids.map(node),
      rated: () => [1, 2, 3].map((id) => records.get('Book', id)),
      search: (_, { text }) => search(text),
      firstResult: (_, { text }) => search(text)[0],
      places: () => PLACES.map(place),
      echo: (_, given) => sorted(given),
      echoProbe: (_, given) => sorted(given),
      fragile,
      fragileHard: fragile,
      fails: fail,
      failsHard: fail,
    },
    Person: {
      greeting: ({ id }, { salutation, times }) =>
        Array(Math.min(Math.max(times, 0), 3)).fill(`${salutation ?? 'Hey'}, person ${id}!`).join(' '),
      favourite: ({ id }) => [undefined, records.get('Book', 1), place(PLACES[0]), records.get('Person', 1)][id % 4],
      idol: always(null),
      broken: always(null),
      brokenList: always(['a', null, 'c']),
      fails: fail,
      failsHard: fail,
    },
    Book: { sequel: always(null), fails: fail },
    Place: {
      twin: ({ twin }) => twin && placeNamed(twin),
      visitors: ({ visitors }) => visitors.map((id) => records.get('Person', id)),
    },
    Fragile: {
      ok: always('ok'),
      number: always(42),
      broken: always(null),
      brokenObject: always(null),
      brokenList: always(['a', null, 'c']),
      nullableList: always(['a', null, 'c']),
      looseList: always(['a', null, 'c']),
      nested: always([[1, 2], [3, null], null, []]),
      fails: fail,
      failsHard: fail,
      failsList: fail,
      badInt: always('abc'),
      badFloat: always('abc'),
      badEnum: always('NOPE'),
      badBoolean: always('yes'),
      badList: always('abc'),
      deep: fragile,
      deepHard: fragile,
      many: () => [fragile(), fragile()],
      some: () => [fragile(), fragile()],
      holes: () => [fragile(), null, fragile()],
    },
  }
}

/** Input objects have no order of their own. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
}
