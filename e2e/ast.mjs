// Builders for the syntax trees of graphql-js, as short as a generator needs them.

import { Kind, parseType } from 'graphql'

export const name = (value) => ({ kind: Kind.NAME, value })
export const variable = (value) => ({ kind: Kind.VARIABLE, name: name(value) })
export const argument = (key, value) => ({ kind: Kind.ARGUMENT, name: name(key), value })
export const named = (value) => ({ kind: Kind.NAMED_TYPE, name: name(value) })
export const type = (text) => parseType(String(text), { noLocation: true })
export const directive = (key, given = []) => ({ kind: Kind.DIRECTIVE, name: name(key), arguments: given })
export const selections = (items) => ({ kind: Kind.SELECTION_SET, selections: items })

export const int = (value) => ({ kind: Kind.INT, value: String(value) })
export const float = (value) => ({ kind: Kind.FLOAT, value: String(value) })
export const string = (value, block = false) => ({ kind: Kind.STRING, value, block })
export const boolean = (value) => ({ kind: Kind.BOOLEAN, value })
export const nothing = () => ({ kind: Kind.NULL })
export const member = (value) => ({ kind: Kind.ENUM, value })
export const list = (values) => ({ kind: Kind.LIST, values })
export const object = (entries) => ({
  kind: Kind.OBJECT,
  fields: Object.entries(entries).map(([key, value]) => ({ kind: Kind.OBJECT_FIELD, name: name(key), value })),
})

export function field(key, { alias, args = [], directives = [], set } = {}) {
  return {
    kind: Kind.FIELD,
    alias: alias && name(alias),
    name: name(key),
    arguments: args,
    directives,
    selectionSet: set && selections(set),
  }
}

export const spread = (key, directives = []) => ({ kind: Kind.FRAGMENT_SPREAD, name: name(key), directives })

export const inline = (on, set, directives = []) => ({
  kind: Kind.INLINE_FRAGMENT,
  typeCondition: on && named(on),
  directives,
  selectionSet: selections(set),
})

export const fragment = (key, on, set, directives = []) => ({
  kind: Kind.FRAGMENT_DEFINITION,
  name: name(key),
  typeCondition: named(on),
  directives,
  selectionSet: selections(set),
})

export const operation = (kind, key, variables, set, directives = []) => ({
  kind: Kind.OPERATION_DEFINITION,
  operation: kind,
  name: key && name(key),
  variableDefinitions: variables,
  directives,
  selectionSet: selections(set),
})

export const variableDefinition = (key, ofType, defaultValue, directives = []) => ({
  kind: Kind.VARIABLE_DEFINITION,
  variable: variable(key),
  type: type(ofType),
  defaultValue,
  directives,
})
