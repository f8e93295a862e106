CREATE INDEX CONCURRENTLY "Pet_status_nameKey_name_id_idx" ON "Pet"("status", "nameKey" COLLATE "C", "name" COLLATE "C", "id");
