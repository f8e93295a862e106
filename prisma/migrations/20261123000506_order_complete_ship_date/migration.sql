CREATE INDEX CONCURRENTLY "Order_complete_shipDate_id_idx" ON "Order"("complete", coalesce("shipDate", 'infinity'), "id");
