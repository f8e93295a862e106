CREATE INDEX CONCURRENTLY "Category_plainName_name_id_idx" ON "Category"("plainName" COLLATE "C", "name" COLLATE "C", "id");
