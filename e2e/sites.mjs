// Finds the places in a document where something can be changed, each with what the schema says about it.

import { Kind, TypeInfo, getNamedType, isCompositeType, visit, visitWithTypeInfo } from 'graphql'

/**
 * Lists of `fields`, `sets`, `values`, `variables`, `directives`, `spreads`, `inlines`, `fragments`, `operations`.
 * Nodes are the document's own, so that changing one changes the document.
 */
export function sitesOf(document, schema) {
  const info = new TypeInfo(schema)
  const found = { fields: [], sets: [], values: [], variables: [], directives: [], spreads: [], inlines: [] }
  const enter = {
    Field: (node) => found.fields.push({ node, parent: info.getParentType(), definition: info.getFieldDef() }),
    SelectionSet: (node) => found.sets.push({ node, type: info.getParentType() }),
    Argument: (node) => found.values.push({ holder: node, type: info.getInputType(), of: info.getFieldDef() ?? undefined }),
    ObjectField: (node) => found.values.push({ holder: node, type: info.getInputType() }),
    VariableDefinition: (node) => found.variables.push({ node, type: info.getInputType() }),
    Directive: (node) => found.directives.push({ node, definition: info.getDirective() }),
    FragmentSpread: (node) => found.spreads.push({ node }),
    InlineFragment: (node) => found.inlines.push({ node }),
  }
  visit(document, visitWithTypeInfo(info, { enter: (node) => void enter[node.kind]?.(node) }))
  return {
    ...found,
    composites: found.fields.filter(({ definition }) => definition && isCompositeType(getNamedType(definition.type))),
    leaves: found.fields.filter(({ definition }) => definition && !isCompositeType(getNamedType(definition.type))),
    fragments: document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION),
    operations: document.definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION),
  }
}
