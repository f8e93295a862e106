import { type ArgBuilder, flagArg } from './kit/builder.js'
import type { Context, Counter, Taking } from './kit/context.js'
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

/** An order keeps what it took, and from which stock: it can be changed later to another pet or quantity. */
const taking = {
  counter: stockOfPets,
  from: 'petId',
  amount: 'quantity',
  kept: { from: 'takenPetId', amount: 'takenQuantity' },
} as const

type Sale = Taking<'Order', 'InventoryItem'>

export const sale: Sale = {
  ...taking,
  refuse: ({ petId, quantity }, by) =>
    conflict(`Pet ${petId} has a stock of ${quantity}, but the order asks for ${-by}.`),
}

export const saleOfMany: Sale = {
  ...taking,
  refuse: ({ petId, quantity }, by, place) =>
    conflict(
      `[${place}] cannot be sold: pet ${petId} has a stock of ${quantity}, but the orders up to here ask for ${-by}.`,
    ),
}

/**
 * Gives back what an order took, as a part of a transaction that has locked the order.
 *
 * @throws ApiError conflict (the stock would leave its bounds, or its pet was deleted)
 */
export async function returnStock(id: bigint, { reads, writes }: Pick<Context, 'reads' | 'writes'>) {
  const taken = await writes.giveBack('Order', id, sale)
  if (!taken || taken.isReturned) return
  const { from, amount } = taken
  const stock = await reads.row('InventoryItem', 'petId', from)
  throw conflict(
    stock
      ? `Order ${id} took ${amount} from the stock of pet ${from}, which is ${stock.quantity} now: it cannot be above ${MAX_INT}. Lower the stock first, or delete the order without returnStock.`
      : `Order ${id} took from the stock of pet ${from}, which is deleted. Delete the order without returnStock.`,
  )
}
