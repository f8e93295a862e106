CREATE INDEX CONCURRENTLY "Pet_status_inStock_id_idx" ON "Pet"("status", "inStock", "id");
