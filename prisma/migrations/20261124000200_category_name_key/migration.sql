CREATE INDEX CONCURRENTLY "Category_nameKey_name_id_idx" ON "Category"("nameKey" COLLATE "C", "name" COLLATE "C", "id");
