-- PostgreSQL puts the body of this function in place of each call, unless the function is strict: then each write of a name
-- parsed all of it once for each index, which took longer than the rest of the write. Null stays null either way.
ALTER FUNCTION "folded"("text" text) CALLED ON NULL INPUT;

-- Connections that are open remember the indexes with the call, which fits no new plan. A change of an index, even one that
-- changes nothing, makes them forget it.
ALTER INDEX IF EXISTS "Category_name_id_idx" RESET ("fillfactor");
ALTER INDEX IF EXISTS "Pet_status_name_id_idx" RESET ("fillfactor");
ALTER INDEX IF EXISTS "Pet_categoryId_status_name_id_idx" RESET ("fillfactor");
