CREATE INDEX CONCURRENTLY "InventoryItem_categoryId_status_quantity_petId_idx" ON "InventoryItem"("categoryId", "status", "quantity", "petId");
