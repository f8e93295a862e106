CREATE INDEX CONCURRENTLY "Category_name_id_idx" ON "Category"("folded"("name") COLLATE "C", "name" COLLATE "C", "id");
