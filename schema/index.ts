import { DirectiveLocation, GraphQLDirective, specifiedDirectives } from 'graphql'
import { builder } from './kit/builder.js'
import { addEtags } from './kit/conditions.js'
import { lists as fields } from './kit/lists/define.js'
import { operationsOf } from './kit/operations.js'
import { addQuota } from './kit/quota.js'
import { addUsage } from './kit/usage.js'
import './kit/input/scalars.js'
import './category.js'
import './pet.js'
import { storeTag } from './order.js'
import './inventory.js'

addQuota(storeTag)
addUsage(storeTag)
addEtags(builder)

export const atomic = new GraphQLDirective({
  name: 'atomic',
  description:
    'All fields of the mutation take effect, or none: the first error undoes what the others have changed, and `data` is null. An `Idempotency-Key` is taken with any number of fields.',
  locations: [DirectiveLocation.MUTATION],
})

/** What GraphQL serves. */
export const schema = builder.toSchema({
  sortSchema: false,
  subGraph: 'graphql',
  directives: [...specifiedDirectives, atomic],
})

/** The same resolvers without the fields that lead from one resource to another: what REST is generated from. */
export const restSchema = builder.toSchema({ sortSchema: false, subGraph: 'rest' })

/** The same with the fields that `expand` adds. */
export const expandedSchema = builder.toSchema({ sortSchema: false, subGraph: 'expanded' })

/** Every list of the service. */
export const lists = [...new Set(fields.map(({ list }) => list))]

/** Every operation of the service. REST derives from this list alone. */
export const operations = operationsOf(restSchema, expandedSchema)
