-- PostgreSQL inlines this function unless it is strict. It was, so each write of a name parsed its whole body once for each
-- index, which took longer than the rest of the write. The result for null is null either way.
ALTER FUNCTION "folded"("text" text) CALLED ON NULL INPUT;

-- Open connections have cached the expressions of the indexes with the call, which new plans do not match. To alter an
-- index, even without a change, makes them read it again.
ALTER INDEX IF EXISTS "Category_name_id_idx" RESET ("fillfactor");
ALTER INDEX IF EXISTS "Pet_status_name_id_idx" RESET ("fillfactor");
ALTER INDEX IF EXISTS "Pet_categoryId_status_name_id_idx" RESET ("fillfactor");
