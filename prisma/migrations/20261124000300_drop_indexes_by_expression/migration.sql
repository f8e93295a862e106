-- Only versions that were never released read by them.
DROP INDEX IF EXISTS "Category_name_id_idx", "Pet_status_name_id_idx", "Pet_categoryId_status_name_id_idx";
