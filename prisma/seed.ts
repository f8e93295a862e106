import type { PrismaClient } from './generated/client/client.js'

const categories = [
  { name: 'Dogs', description: 'Companions of every size, from lapdogs to livestock guardians.' },
  { name: 'Cats', description: 'Indoor and outdoor cats, kittens included.' },
  { name: 'Birds', description: 'Songbirds and parrots, hand-reared.' },
  { name: 'Fish', description: 'Freshwater fish for home aquariums.' },
  { name: 'Reptiles', description: 'Geckos and tortoises, expected in spring.' },
] as const

const pets = [
  { name: 'Rex', category: 1, status: 'available', stock: 3 },
  { name: 'Bella', category: 1, status: 'pending', stock: 1 },
  { name: 'Max', category: 1, status: 'sold', stock: 0 },
  { name: 'Luna', category: 2, status: 'available', stock: 2 },
  { name: 'Oliver', category: 2, status: 'available', stock: 4 },
  { name: 'Simba', category: 2, status: 'sold', stock: 0 },
  { name: 'Kiwi', category: 3, status: 'available', stock: 6 },
  { name: 'Rio', category: 3, status: 'pending', stock: 2 },
  { name: 'Sunny', category: 3, status: 'available', stock: 12 },
  { name: 'Nemo', category: 4, status: 'available', stock: 40 },
  { name: 'Bubbles', category: 4, status: 'available', stock: 25 },
  { name: 'Finn', category: 4, status: 'pending', stock: 8 },
] as const

const orders = [
  { petId: 3, quantity: 1, shipDate: new Date('2026-10-05T09:30:00Z'), complete: true },
  { petId: 6, quantity: 1, shipDate: new Date('2026-10-19T14:00:00Z'), complete: true },
  { petId: 2, quantity: 1, shipDate: new Date('2026-12-01T10:00:00Z'), complete: false },
  { petId: 10, quantity: 5, shipDate: new Date('2026-12-03T08:15:00Z'), complete: false },
  { petId: 8, quantity: 1, complete: false },
]

/** Adds sample data to a database that never had a category, all of it or nothing. Returns whether it did. */
export const seed = (prisma: PrismaClient): Promise<boolean> =>
  prisma.$transaction(
    async (tx) => {
      const [sequence] = await tx.$queryRaw<{ last: bigint | null }[]>`
        SELECT pg_sequence_last_value('"Category_id_seq"') AS last`
      if (sequence?.last) return false
      const made = await tx.category.createManyAndReturn({ data: [...categories], select: { id: true } })
      const ids: bigint[] = []
      // One after the other, so that the ids follow the order above.
      for (const { name, category, status, stock } of pets) {
        const categoryId = made[category - 1]?.id ?? 0n
        const { id } = await tx.pet.create({ data: { name, categoryId, status }, select: { id: true } })
        // The database has created the entry with the pet.
        if (stock > 0) await tx.inventoryItem.update({ where: { petId: id }, data: { quantity: stock } })
        ids.push(id)
      }
      await tx.order.createMany({
        data: orders.map(({ petId, ...order }) => ({ ...order, petId: ids[petId - 1] ?? 0n })),
      })
      return true
    },
    // Longer than Prisma's default: a busy machine takes its time.
    { maxWait: 30_000, timeout: 60_000 },
  )
