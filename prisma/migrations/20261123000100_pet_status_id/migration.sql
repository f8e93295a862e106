CREATE UNIQUE INDEX CONCURRENTLY "Pet_status_id_key" ON "Pet"("status", "id");
