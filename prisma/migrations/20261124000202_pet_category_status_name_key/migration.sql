CREATE INDEX CONCURRENTLY "Pet_categoryId_status_nameKey_name_id_idx" ON "Pet"("categoryId", "status", "nameKey" COLLATE "C", "name" COLLATE "C", "id");
