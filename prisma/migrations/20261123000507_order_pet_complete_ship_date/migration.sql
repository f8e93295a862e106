CREATE INDEX CONCURRENTLY "Order_petId_complete_shipDate_id_idx" ON "Order"("petId", "complete", coalesce("shipDate", 'infinity'), "id");
