CREATE INDEX CONCURRENTLY "Order_petId_complete_id_idx" ON "Order"("petId", "complete", "id");
