// Gives variables values that their types do not take, or only just take.

const ODD = [null, true, false, 0, 1, -1, 1.5, 1.0, 2147483647, 2147483648, -2147483649, 1e20, 9007199254740993, '', '1', '1.5', 'true', 'text', 'NOVEL', 'novel', 'NOWHERE', [], [null], [1], ['x'], [[1]], [[[1]]], [['x', null]], {}, { unknown: 1 }, { y: 1 }, { y: null }, { y: '1' }, { name: 'x', unknown: 2 }, { name: null }, { street: 'x', city: null }]

/** Changes the request's variables in place; `false` when it has none to change. */
export function breakVariables(request, random) {
  const defined = request.document.definitions.flatMap(({ variableDefinitions = [] }) => variableDefinitions.map(({ variable }) => variable.name.value))
  if (!defined.length) return false
  const name = random.pick(defined)
  const roll = random.next()
  if (roll < 0.15) delete request.variables[name]
  else if (roll < 0.2) request.variables.notDefined = random.pick(ODD)
  else if (roll < 0.55) request.variables[name] = spoilWithin(request.variables[name], random)
  else request.variables[name] = random.pick(ODD)
  return 'variables'
}

/** Spoils something inside a value, however deep. */
function spoilWithin(value, random) {
  if (value === null || typeof value !== 'object' || random.chance(0.2)) return random.pick(ODD)
  if (Array.isArray(value)) return value.length ? value.with(random.below(value.length), spoilWithin(random.pick(value), random)) : [random.pick(ODD)]
  const keys = Object.keys(value)
  if (!keys.length || random.chance(0.15)) return { ...value, notThere: 1 }
  const key = random.pick(keys)
  if (random.chance(0.2)) return Object.fromEntries(Object.entries(value).filter(([other]) => other !== key))
  return { ...value, [key]: spoilWithin(value[key], random) }
}
