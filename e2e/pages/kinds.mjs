// Fills the application with every kind of field: three owners, two thousand places, and plants between them.

import assert from 'node:assert/strict'

export const FULL = {
  title: 'Fern',
  code: 'FRN-1',
  description: 'Green.\nGrows in the shade.',
  rating: 4,
  amount: 3,
  weight: 0.125,
  count: '9007199254740993',
  price: '12.50',
  isRare: true,
  isSold: false,
  externalId: 'ext/1',
  size: 'LARGE',
  colour: 'GREEN',
  seenOn: '2026-02-28',
  seenAt: '2026-03-01T09:30:15.250Z',
  trace: '6f9619ff-8b86-4011-b42d-00c04fc964ff',
  website: 'https://example.com/fern?a=1&b=2',
  contact: 'fern@example.com',
  extra: { deep: [1, 'two', null, { three: true }] },
  words: ['shade', 'moss & stone', 'שלום'],
  marks: [1, -2, 3],
  sizes: ['SMALL', 'LARGE'],
  address: { street: '1 Long Lane', city: null, isPrivate: true, geo: { latitude: 51.5, longitude: -0.125 } },
  parts: [
    { name: 'Leaf', price: '0.10', size: 'SMALL' },
    { name: 'Root', price: null, size: null },
  ],
  whatHasAnUnusuallyLongNameThatNobodyWouldWantToReadInATableButThatSchemasFromElsewhereHave: 'all the same',
}

export async function fillKinds(site) {
  await many(site, '/owners', ['Ada', 'Grace', 'Zoë'].map((name) => ({ name })))
  for (let from = 0; from < 2000; from += 500) await many(site, '/places', Array.from({ length: 500 }, (_, i) => ({ name: `Place ${from + i + 1}` })))
  await many(site, '/tags', ['rare', 'heavy', 'אדום'].map((label) => ({ label })))
  const full = await site.create('/plants', { ...FULL, ownerId: '1', placeId: '1', tagIds: ['1', '3'] })
  await many(site, '/plants', [
    { title: 'Bare', isRare: false, ownerId: '2' },
    { title: 'Child', isRare: false, ownerId: '2', parentId: full.id },
  ])
  await many(site, '/notes', [{ body: 'First', plantId: full.id }, { body: 'Second', plantId: full.id }])
}

async function many(site, path, records) {
  const reply = await site.send('POST', path, records)
  assert.equal(reply.status, 201, await reply.text())
}
