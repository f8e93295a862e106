-- Runs outside of a transaction: it commits after each batch. A pet is locked before its entry, as by whoever changes it.
DO E'
DECLARE
    batch CONSTANT bigint := 5000\073
    low bigint := 0\073
    high bigint\073
BEGIN
    LOOP
        SELECT max("petId") INTO high FROM (
            SELECT "petId" FROM "InventoryItem" WHERE "petId" > low ORDER BY "petId" LIMIT batch
        ) next\073
        EXIT WHEN high IS NULL\073
        UPDATE "InventoryItem" SET "status" = pet."status"
            FROM (SELECT "id", "status" FROM "Pet" WHERE "id" > low AND "id" <= high ORDER BY "id" FOR SHARE) pet
            WHERE "petId" = pet."id" AND "InventoryItem"."status" IS DISTINCT FROM pet."status"\073
        COMMIT\073
        low := high\073
    END LOOP\073
END
';
