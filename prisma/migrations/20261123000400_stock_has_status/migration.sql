-- Writes go on while the rows are validated; the rest takes a moment.
ALTER TABLE "InventoryItem" VALIDATE CONSTRAINT "status is that of the pet: change it there";
ALTER TABLE "InventoryItem" ALTER COLUMN "status" SET NOT NULL;
ALTER TABLE "InventoryItem" DROP CONSTRAINT "InventoryItem_petId_fkey";
DROP INDEX "Pet_status_id_idx";
