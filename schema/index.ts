import { builder } from './builder.js'
import { addEtags } from './conditions.js'
import './scalars.js'
import './category.js'
import './pet.js'
import './order.js'
import './inventory.js'
import './quota.js'

addEtags(builder)

/** What GraphQL serves. */
export const schema = builder.toSchema({ sortSchema: false, subGraph: 'graphql' })

/** The same resolvers without the fields that lead from one resource to another: what REST is generated from. */
export const restSchema = builder.toSchema({ sortSchema: false, subGraph: 'rest' })
