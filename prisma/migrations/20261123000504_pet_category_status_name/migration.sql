CREATE INDEX CONCURRENTLY "Pet_categoryId_status_name_id_idx" ON "Pet"("categoryId", "status", "folded"("name") COLLATE "C", "name" COLLATE "C", "id");
