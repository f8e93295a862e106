CREATE INDEX CONCURRENTLY "Pet_status_inStock_plainName_name_id_idx" ON "Pet"("status", "inStock", "plainName" COLLATE "C", "name" COLLATE "C", "id");
