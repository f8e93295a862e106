import { type ArgBuilder, flagArg } from './kit/builder.js'
import type { Context, Counter, Row, Taking } from './kit/context.js'
import { conflict } from './kit/errors.js'
import { MAX_INT } from './kit/input/rules.js'

// How orders take from the stock and give back. The specification ties no order to a stock, so nothing happens unless a client
// asks for it.

export const stockOfPets: Counter<'InventoryItem'> = {
  model: 'InventoryItem',
  column: 'quantity',
  min: 0,
  max: MAX_INT,
}

export const takeStockArg = (description: string) => (arg: ArgBuilder) => ({
  takeStock: flagArg(arg, description, { model: stockOfPets.model, key: 'petId' }),
})

/** An order that keeps what it takes, and from which stock: it can be changed later to another pet or quantity. */
export const taking = (order: Row<'Order'>) => ({ ...order, takenPetId: order.petId, takenQuantity: order.quantity })

/** Where orders that keep what they take, take it from. */
export const fromStock = (of?: 'batch'): Taking<'Order', 'InventoryItem'> => ({
  counter: stockOfPets,
  from: 'takenPetId',
  amount: 'takenQuantity',
  refuse: ({ petId, quantity }, by, place) =>
    conflict(
      of === 'batch'
        ? `[${place}] cannot be sold: pet ${petId} has a stock of ${quantity}, but the orders up to here ask for ${-by}.`
        : `Pet ${petId} has a stock of ${quantity}, but the order asks for ${-by}.`,
    ),
})

/**
 * Gives back what an order took, as a part of a transaction that holds the order.
 *
 * @throws ApiError conflict (the stock would leave its bounds, or its pet was deleted)
 */
export async function returnStock(order: Row<'Order'>, { reads, writes }: Pick<Context, 'reads' | 'writes'>) {
  const { id, takenPetId: petId, takenQuantity: by } = order
  if (petId === null || by === null) return
  // All that lock both lock the pet first.
  const pet = await reads.lock('Pet', 'id', petId)
  if (!pet)
    throw conflict(`Order ${id} took from the stock of pet ${petId}, which is deleted. Delete it without returnStock.`)
  await writes.addMany(stockOfPets, [{ id: petId, by }], ({ quantity }) =>
    conflict(
      `Order ${id} took ${by} from the stock of pet ${petId}, which is ${quantity} now: it would be above ${MAX_INT}.`,
    ),
  )
}
