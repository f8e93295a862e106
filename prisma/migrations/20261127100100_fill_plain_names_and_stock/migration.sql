-- Runs outside of a transaction: it commits after each batch, whose rows it locks in the order of their ids. The triggers compute
-- the values. All rows are filled: a pet that was renamed since the columns were added has a plain name, but inStock may be wrong.
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
        UPDATE "Category" SET "plainName" = '''' FROM (
            SELECT "id" FROM "Category" WHERE "id" > low AND "id" <= high ORDER BY "id" FOR NO KEY UPDATE
        ) locked WHERE "Category"."id" = locked."id"\073
        COMMIT\073
        low := high\073
    END LOOP\073
    low := 0\073
    LOOP
        SELECT max("id") INTO high FROM (
            SELECT "id" FROM "Pet" WHERE "id" > low ORDER BY "id" LIMIT batch
        ) next\073
        EXIT WHEN high IS NULL\073
        UPDATE "Pet" SET "plainName" = '''', "inStock" = false FROM (
            SELECT "id" FROM "Pet" WHERE "id" > low AND "id" <= high ORDER BY "id" FOR NO KEY UPDATE
        ) locked WHERE "Pet"."id" = locked."id"\073
        COMMIT\073
        low := high\073
    END LOOP\073
    low := 0\073
    LOOP
        SELECT max("petId") INTO high FROM (
            SELECT "petId" FROM "InventoryItem" WHERE "petId" > low ORDER BY "petId" LIMIT batch
        ) next\073
        EXIT WHEN high IS NULL\073
        UPDATE "InventoryItem" SET "categoryId" = 0 FROM (
            SELECT "petId" FROM "InventoryItem" WHERE "petId" > low AND "petId" <= high ORDER BY "petId" FOR NO KEY UPDATE
        ) locked WHERE "InventoryItem"."petId" = locked."petId"\073
        COMMIT\073
        low := high\073
    END LOOP\073
END
';
