-- Runs outside of a transaction: it commits after each batch. The trigger computes the key.
DO E'
DECLARE
    batch CONSTANT bigint := 5000\073
    low bigint\073
    high bigint\073
BEGIN
    low := 0\073
    LOOP
        SELECT max("id") INTO high FROM (
            SELECT "id" FROM "Category" WHERE "id" > low ORDER BY "id" LIMIT batch
        ) next\073
        EXIT WHEN high IS NULL\073
        UPDATE "Category" SET "nameKey" = '''' WHERE "id" > low AND "id" <= high AND "nameKey" = ''''\073
        COMMIT\073
        low := high\073
    END LOOP\073
    low := 0\073
    LOOP
        SELECT max("id") INTO high FROM (
            SELECT "id" FROM "Pet" WHERE "id" > low ORDER BY "id" LIMIT batch
        ) next\073
        EXIT WHEN high IS NULL\073
        UPDATE "Pet" SET "nameKey" = '''' WHERE "id" > low AND "id" <= high AND "nameKey" = ''''\073
        COMMIT\073
        low := high\073
    END LOOP\073
END
';
