CREATE UNIQUE INDEX CONCURRENTLY "InventoryItem_status_petId_key" ON "InventoryItem"("status", "petId");
