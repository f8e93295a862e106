CREATE INDEX CONCURRENTLY "Pet_categoryId_status_inStock_plainName_name_id_idx" ON "Pet"("categoryId", "status", "inStock", "plainName" COLLATE "C", "name" COLLATE "C", "id");
