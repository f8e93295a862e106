CREATE INDEX CONCURRENTLY "Pet_status_name_id_idx" ON "Pet"("status", "folded"("name") COLLATE "C", "name" COLLATE "C", "id");
