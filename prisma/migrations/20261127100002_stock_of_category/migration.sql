ALTER TABLE "InventoryItem" ADD COLUMN "categoryId" BIGINT NOT NULL DEFAULT 0;
COMMENT ON COLUMN "InventoryItem"."categoryId" IS 'Id of the category of the tracked animal. The database takes it from the pet.';

-- Whoever writes this column has no effect, either. Entries are inserted and deleted with their pets alone.
CREATE FUNCTION "keep_category"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    NEW."categoryId" := coalesce((SELECT "categoryId" FROM "Pet" WHERE "id" = NEW."petId"), 0)\073
    RETURN NEW\073
END
';
CREATE TRIGGER "InventoryItem_category" BEFORE UPDATE OF "categoryId", "petId" ON "InventoryItem"
    FOR EACH ROW EXECUTE FUNCTION "keep_category"();

-- A pet changes only when its stock becomes 0, or more than 0 again. Whoever may change a stock so locks the pet first: those who
-- sell do, and would wait for the stock while its pet is waited for.
CREATE FUNCTION "tell_stock"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    UPDATE "Pet" SET "inStock" = NEW."quantity" > 0 WHERE "id" = NEW."petId"\073
    RETURN NULL\073
END
';
CREATE TRIGGER "InventoryItem_tell_stock" AFTER UPDATE OF "quantity" ON "InventoryItem" FOR EACH ROW
    WHEN ((OLD."quantity" > 0) <> (NEW."quantity" > 0)) EXECUTE FUNCTION "tell_stock"();
