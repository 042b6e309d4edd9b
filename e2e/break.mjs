// Breaks valid requests: at least one way for each validation rule of graphql-js, for syntax and for variables.
// Some ways are near misses that stay valid; graphql-js says which.

import { getNamedType, getNullableType, isEnumType, isInputObjectType, isListType, isRequiredArgument, isRequiredInputField, parse, print } from 'graphql'
import * as ast from './ast.mjs'
import { sitesOf } from './sites.mjs'
import { breakSyntax } from './break-syntax.mjs'
import { breakVariables } from './break-variables.mjs'

const WRONG = [ast.int(5), ast.float('1.5'), ast.string('text'), ast.boolean(true), ast.member('SOMETHING'), ast.nothing(), ast.int('2147483648'), ast.int('-2147483649'), ast.float('1e400'), ast.list([ast.int(1)]), ast.list([ast.nothing()]), ast.list([ast.list([ast.string('x')])]), ast.object({}), ast.object({ unknown: ast.int(1) }), ast.variable('undefinedOne')]

const copy = (node) => structuredClone(node)

/** Each takes what `sitesOf` found, the document, the schema and choices; `false` means that there was no place for it. */
const BREAKERS = {
  // ExecutableDefinitions
  typeDefinition: ({ document, random }) =>
    document.definitions.push(...parse(random.pick(['type Extra { a: Int }', 'extend type Query { extra: Int }', 'schema { query: Query }', 'directive @extra on FIELD', 'scalar Extra'])).definitions),

  // UniqueOperationNames, LoneAnonymousOperation
  repeatedOperation: ({ document, operations, random }) => {
    const again = copy(random.pick(operations))
    const name = again.name ?? ast.name('Same')
    again.name = name
    operations[0].name = name
    document.definitions.push(again)
  },
  anonymousBeside: ({ document }) => document.definitions.push(ast.operation('query', undefined, [], [ast.field('__typename')])),
  secondOperationUnnamed: ({ request, document }) => {
    document.definitions.push(ast.operation('query', 'Other', [], [ast.field('__typename')]))
    request.operationName = undefined
  },
  secondOperation: ({ request, document, operations }) => {
    operations[0].name ??= ast.name('First')
    document.definitions.push(ast.operation('query', 'Other', [], [ast.field('__typename')]))
    request.operationName = 'Other'
  },

  // SingleFieldSubscriptions
  subscriptionOfTwo: ({ schema, request, random }) => {
    const root = schema.getSubscriptionType()
    const [first] = Object.values(root.getFields())
    const one = ast.field(first.name, { set: [ast.field('id')] })
    const set = random.pick([
      [one, ast.field(first.name, { alias: 'second', set: [ast.field('id')] })],
      [one, ast.field('__typename')],
      [ast.field('__typename')],
      [ast.inline(root.name, [one, ast.field(first.name, { alias: 'other', set: [ast.field('id')] })])],
      [ast.field('__schema', { set: [ast.field('__typename')] })],
      [ast.inline(undefined, [one]), ast.inline(root.name, [ast.field(first.name, { alias: 'x', set: [ast.field('id')] })])],
    ])
    // The subscription stands beside the query that would run, so that the rule alone decides.
    nameAll(request)
    request.document.definitions.push(ast.operation('subscription', 'Watch', [], set))
  },

  // KnownTypeNames, FragmentsOnCompositeTypes, VariablesAreInputTypes
  fragmentOnUnknown: ({ sets, random }) => add(sets, random, () => ast.inline('Nowhere', [ast.field('__typename')])),
  fragmentOnLeaf: ({ sets, random, schema }) =>
    add(sets, random, () => ast.inline(random.pick(Object.values(schema.getTypeMap()).filter((type) => !type.getFields || isInputObjectType(type)).map(({ name }) => name)), [ast.field('__typename')])),
  namedFragmentOnLeaf: ({ document, sets, random }) => {
    document.definitions.push(ast.fragment('OnLeaf', random.pick(['String', 'Int', 'ID', 'Nowhere']), [ast.field('__typename')]))
    return add(sets, random, () => ast.spread('OnLeaf'))
  },
  variableOfUnknown: ({ variables, random }) => some(variables, random, ({ node }) => (node.type = ast.type(random.pick(['Nowhere', '[Nowhere!]'])))),
  variableOfOutputBeside: ({ request, schema, random }) => {
    // Inside a scalar that takes anything no other rule looks at a variable, and what does not run is not coerced.
    const fields = Object.values(schema.getQueryType().getFields()).filter(({ args }) => !args.some(isRequiredArgument) && args.some(({ type }) => isFree(type)))
    const field = random.pick(fields)
    if (!field) return false
    const given = ast.argument(field.args.find(({ type }) => isFree(type)).name, ast.object({ a: ast.variable('w') }))
    nameAll(request)
    request.document.definitions.push(ast.operation('query', 'Beside', [ast.variableDefinition('w', schema.getQueryType().name)], [ast.field(field.name, { args: [given], set: [ast.field('__typename')] })]))
  },
  variableOfOutput: ({ operations, random, schema }) => {
    const outputs = Object.values(schema.getTypeMap()).filter((type) => type.getFields && !isInputObjectType(type))
    random.pick(operations).variableDefinitions.push(ast.variableDefinition('wrong', random.pick(outputs).name))
  },

  // ScalarLeafs
  leafWithSelection: ({ leaves, random }) => some(leaves, random, ({ node }) => (node.selectionSet = ast.selections([ast.field(random.pick(['id', '__typename', 'length']))]))),
  compositeWithout: ({ composites, random }) => some(composites, random, ({ node }) => (node.selectionSet = undefined)),

  // FieldsOnCorrectType
  unknownField: ({ sets, random }) => add(sets, random, () => ast.field(random.pick(['unknown', 'nam', 'ID', '__schema', '__type', '__unknown', '_']))),
  fieldOfAnother: ({ sets, random, schema }) =>
    add(sets, random, () => ast.field(random.pick(random.pick(Object.values(schema.getTypeMap()).filter((type) => type.getFields && !isInputObjectType(type))).astNode?.fields ?? [{ name: { value: 'name' } }]).name.value)),
  fieldOnUnion: ({ sets, random }) => add(sets.filter(({ type }) => type?.getTypes), random, () => ast.field(random.pick(['name', 'id']))),
  fieldOfImplementation: ({ sets, random, schema }) =>
    add(sets.filter(({ type }) => type && schema.getPossibleTypes && type.astNode?.kind === 'InterfaceTypeDefinition'), random, () => ast.field(random.pick(['id', 'pages', 'population']))),

  // UniqueFragmentNames, KnownFragmentNames, NoUnusedFragments, NoFragmentCycles
  repeatedFragment: ({ document, fragments, random }) => some(fragments, random, (fragment) => document.definitions.push(copy(fragment))),
  unknownSpread: ({ sets, random }) => add(sets, random, () => ast.spread('Nowhere')),
  unusedFragment: ({ document, schema }) => document.definitions.push(ast.fragment('Unused', schema.getQueryType().name, [ast.field('__typename')])),
  unusedCycle: ({ document, schema }) => {
    const on = schema.getQueryType().name
    document.definitions.push(ast.fragment('One', on, [ast.spread('Two')]), ast.fragment('Two', on, [ast.spread('One')]))
  },
  ownCycle: ({ fragments, random }) => some(fragments, random, (fragment) => fragment.selectionSet.selections.push(ast.spread(fragment.name.value))),
  longCycle: ({ document, operations, schema }) => {
    const on = schema.getQueryType().name
    document.definitions.push(ast.fragment('Ca', on, [ast.inline(undefined, [ast.spread('Cb')])]), ast.fragment('Cb', on, [ast.spread('Cc'), ast.field('__typename')]), ast.fragment('Cc', on, [ast.spread('Ca')]))
    operations.find(({ operation }) => operation === 'query')?.selectionSet.selections.push(ast.spread('Ca'))
  },

  // PossibleFragmentSpreads
  impossibleInline: ({ sets, random, schema }) =>
    add(sets, random, () => ast.inline(random.pick(Object.values(schema.getTypeMap()).filter((type) => type.getFields && !isInputObjectType(type))).name, [ast.field('__typename')])),
  impossibleSpread: ({ document, sets, random, schema }) => {
    const on = random.pick(Object.values(schema.getTypeMap()).filter((type) => type.getFields && !isInputObjectType(type) && !type.name.startsWith('__')))
    document.definitions.push(ast.fragment('Elsewhere', on.name, [ast.field('__typename')]))
    return add(sets, random, () => ast.spread('Elsewhere'))
  },

  // UniqueVariableNames, NoUndefinedVariables, NoUnusedVariables
  repeatedVariable: ({ operations, random }) => some(operations.filter(({ variableDefinitions }) => variableDefinitions.length), random, ({ variableDefinitions }) => variableDefinitions.push(copy(random.pick(variableDefinitions)))),
  undefinedVariable: ({ operations, random }) => some(operations.filter(({ variableDefinitions }) => variableDefinitions.length), random, ({ variableDefinitions }) => variableDefinitions.splice(random.below(variableDefinitions.length), 1)),
  undefinedInDirective: ({ fields, random }) => some(fields, random, ({ node }) => node.directives.push(ast.directive('include', [ast.argument('if', ast.variable('nowhere'))]))),
  unusedVariable: ({ operations, random }) => random.pick(operations).variableDefinitions.push(ast.variableDefinition('unused', random.pick(['Int', '[ID!]']))),

  // KnownDirectives, UniqueDirectivesPerLocation
  unknownDirective: ({ fields, random }) => some(fields, random, ({ node }) => node.directives.push(ast.directive('nowhere'))),
  misplacedDirective: ({ operations, random }) => random.pick(operations).directives.push(ast.directive(random.pick(['skip', 'include']), [ast.argument('if', ast.boolean(false))])),
  schemaDirective: ({ fields, random }) => some(fields, random, ({ node }) => node.directives.push(ast.directive(random.pick(['deprecated', 'notBlank', 'unique'])))),
  directiveOnVariable: ({ variables, random }) => some(variables, random, ({ node }) => node.directives.push(ast.directive('skip', [ast.argument('if', ast.boolean(true))]))),
  repeatedDirective: ({ fields, random }) =>
    some(fields, random, ({ node }) => node.directives.push(...Array.from({ length: 2 }, () => ast.directive(random.pick(['skip', 'include']), [ast.argument('if', ast.boolean(true))])))),

  // KnownArgumentNames, UniqueArgumentNames, ProvidedRequiredArguments
  unknownArgument: ({ fields, random }) => some(fields, random, ({ node }) => node.arguments.push(ast.argument('nowhere', ast.int(1)))),
  unknownDirectiveArgument: ({ fields, random }) =>
    some(fields, random, ({ node }) => node.directives.push(ast.directive('skip', [ast.argument('if', ast.boolean(false)), ast.argument('unless', ast.boolean(true))]))),
  repeatedArgument: ({ fields, random }) => some(fields.filter(({ node }) => node.arguments.length), random, ({ node }) => node.arguments.push(copy(random.pick(node.arguments)))),
  repeatedDirectiveArgument: ({ fields, random }) =>
    some(fields, random, ({ node }) => node.directives.push(ast.directive('skip', [ast.argument('if', ast.boolean(false)), ast.argument('if', ast.boolean(false))]))),
  missingArgument: ({ fields, random }) =>
    some(fields.filter(({ definition }) => definition?.args.some(isRequiredArgument)), random, ({ node, definition }) => {
      const gone = definition.args.find(isRequiredArgument).name
      node.arguments = node.arguments.filter(({ name }) => name.value !== gone)
    }),
  missingDirectiveArgument: ({ fields, random }) => some(fields, random, ({ node }) => node.directives.push(ast.directive(random.pick(['skip', 'include'])))),

  // ValuesOfCorrectType
  wrongLiteral: ({ values, random }) => some(values, random, ({ holder }) => (holder.value = random.pick(WRONG.slice(0, -1)))),
  wrongInList: ({ values, random }) => some(values.filter(({ type }) => type && isListType(getNullableType(type))), random, ({ holder }) => (holder.value = ast.list([holder.value, random.pick(WRONG.slice(0, -1))]))),
  wrongEnum: ({ values, random }) => some(values.filter(({ type }) => type && isEnumType(getNamedType(type))), random, ({ holder }) => (holder.value = random.pick([ast.string('NOVEL'), ast.member('novel'), ast.member('NOWHERE'), ast.int(0), ast.boolean(true)]))),
  missingInputField: ({ values, random }) =>
    some(inputObjects(values), random, ({ holder, type }) => {
      const required = Object.values(getNamedType(type).getFields()).find(isRequiredInputField)
      holder.value.fields = holder.value.fields.filter(({ name }) => name.value !== required?.name)
    }),
  unknownInputField: ({ values, random }) => some(inputObjects(values), random, ({ holder }) => holder.value.fields.push(ast.object({ nowhere: ast.int(1) }).fields[0])),
  nullInputField: ({ values, random }) =>
    some(inputObjects(values), random, ({ holder, type }) => {
      const field = random.pick(Object.values(getNamedType(type).getFields()))
      holder.value.fields = [...holder.value.fields.filter(({ name }) => name.value !== field.name), ast.object({ [field.name]: ast.nothing() }).fields[0]]
    }),
  wrongDefault: ({ variables, random }) => some(variables, random, ({ node }) => (node.defaultValue = random.pick(WRONG.slice(0, -1)))),
  variableInDefault: ({ variables, random }) => some(variables, random, ({ node }) => (node.defaultValue = ast.variable('other'))),

  // UniqueInputFieldNames
  repeatedInputField: ({ values, random }) => some(inputObjects(values).filter(({ holder }) => holder.value.fields.length), random, ({ holder }) => holder.value.fields.push(copy(random.pick(holder.value.fields)))),

  // VariablesInAllowedPosition
  looserVariable: ({ variables, random }) => some(variables.filter(({ node }) => node.type.kind === 'NonNullType'), random, ({ node }) => (node.type = node.type.type)),
  otherVariable: ({ variables, random }) => some(variables, random, ({ node }) => (node.type = ast.type(random.pick(['Int', 'Float', 'String', 'ID!', 'Boolean', '[Int!]', '[String]!', `[${print(node.type)}]`])))),
  nullDefault: ({ variables, random }) => some(variables, random, ({ node }) => Object.assign(node, { type: node.type.type ?? node.type, defaultValue: ast.nothing() })),

  // OverlappingFieldsCanBeMerged
  sameNameOtherField: ({ sets, random }) => some(sets.filter(({ type }) => type?.getFields), random, ({ node, type }) => {
    const [one, two] = random.some(Object.values(type.getFields()), 2, 2)
    if (!two) return false
    node.selections.push(plainField(one, 'same'), plainField(two, 'same'))
  }),
  sameNameOtherArguments: ({ fields, sets, random }) => some(fields.filter(({ definition }) => definition?.args.length), random, ({ node, definition }) => {
    const again = copy(node)
    again.arguments = random.chance(0.5) ? [] : [...again.arguments].reverse()
    if (random.chance(0.3)) again.arguments = definition.args.map((arg) => ast.argument(arg.name, ast.int(1)))
    sets.find(({ node: set }) => set.selections.includes(node))?.node.selections.push(again)
  }),
  sameNameDeep: ({ composites, sets, random }) => some(composites.filter(hasSelections), random, ({ node }) => {
    const again = copy(node)
    const inner = again.selectionSet.selections.filter(({ kind }) => kind === 'Field')
    if (!inner.length) return false
    again.selectionSet.selections = [ast.field('__typename', { alias: (inner[0].alias ?? inner[0].name).value })]
    sets.find(({ node: set }) => set.selections.includes(node))?.node.selections.push(again)
  }),
  sameNameOtherType: ({ sets, random, schema }) => some(sets.filter(({ type }) => type && (type.getTypes || type.astNode?.kind === 'InterfaceTypeDefinition')), random, ({ node, type }) => {
    const [one, two] = random.some(schema.getPossibleTypes(type), 2, 2)
    if (!two) return false
    const any = (of) => plainField(random.pick(Object.values(of.getFields())), 'same')
    node.selections.push(ast.inline(one.name, [any(one)]), ast.inline(two.name, [any(two)]))
  }),
  mergedTwice: ({ composites, sets, random }) => some(composites.filter(hasSelections), random, ({ node }) => {
    const again = copy(node)
    again.selectionSet.selections = [...random.shuffle(again.selectionSet.selections), ast.field('__typename')]
    const set = sets.find(({ node: candidate }) => candidate.selections.includes(node))
    set?.node.selections.splice(random.below(set.node.selections.length + 1), 0, again)
  }),

  // MaxIntrospectionDepth
  deepIntrospection: ({ operations, random }) => {
    const step = random.pick(['fields', 'interfaces', 'possibleTypes', 'inputFields'])
    const inside = (depth) => ast.field(step, { set: depth ? [step === 'fields' || step === 'inputFields' ? ast.field('type', { set: [inside(depth - 1)] }) : inside(depth - 1)] : [ast.field('name')] })
    operations.find(({ operation }) => operation === 'query')?.selectionSet.selections.push(ast.field('__type', { alias: 'deep', args: [ast.argument('name', ast.string('Query'))], set: [inside(random.below(4))] }))
  },

  // Values that a literal may not have, or only just may
  intForFloat: ({ values, random }) => some(values.filter(({ type }) => type && ['Float', 'ID'].includes(String(getNullableType(type)))), random, ({ holder }) => (holder.value = ast.int(random.pick([0, 7, '12345678901234567890'])))),
}

/** What is left when a document has been broken in one way, sometimes two. Gives the way's name, or undefined. */
export function breakDocument(request, schema, random) {
  const [name, way] = random.pick(Object.entries(BREAKERS))
  const sites = sitesOf(request.document, schema)
  return way({ request, document: request.document, schema, random, ...sites }) === false ? undefined : name
}

export { breakSyntax, breakVariables }

const inputObjects = (values) => values.filter(({ holder, type }) => holder.value.kind === 'ObjectValue' && type && isInputObjectType(getNamedType(type)))

const hasSelections = ({ node }) => node.selectionSet !== undefined
const isFree = (type) => ['Long', 'Decimal', 'Date', 'DateTime', 'JSON'].includes(getNullableType(type).name)

/** Gives every operation a name and the request the name of its own, so that another can stand beside it. */
function nameAll(request) {
  request.document.definitions.forEach((definition, at) => (definition.name ??= ast.name(`Op${at}`)))
  request.operationName ??= request.document.definitions.find(({ kind }) => kind === 'OperationDefinition').name.value
}

function some(places, random, change) {
  return places.length ? change(random.pick(places)) !== false : false
}

function add(sets, random, make) {
  return some(sets, random, ({ node }) => node.selections.splice(random.below(node.selections.length + 1), 0, make()))
}

function plainField(definition, alias) {
  const leaf = !getNamedType(definition.type).getFields && !getNamedType(definition.type).getTypes
  return ast.field(definition.name, { alias, set: leaf ? undefined : [ast.field('__typename')] })
}
