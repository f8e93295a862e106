CREATE INDEX CONCURRENTLY "Pet_categoryId_status_inStock_id_idx" ON "Pet"("categoryId", "status", "inStock", "id");
