CREATE INDEX CONCURRENTLY "InventoryItem_status_quantity_petId_idx" ON "InventoryItem"("status", "quantity", "petId");
