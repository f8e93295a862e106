ALTER TABLE "InventoryItem" ADD COLUMN "categoryId" BIGINT NOT NULL DEFAULT 0;
COMMENT ON COLUMN "InventoryItem"."categoryId" IS 'Id of the category of the tracked animal. The database takes it from the pet.';

-- To write this column has no effect, either. A trigger of the pet inserts its entry, with its category.
CREATE FUNCTION "keep_category"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    NEW."categoryId" := coalesce((SELECT "categoryId" FROM "Pet" WHERE "id" = NEW."petId"), 0)\073
    RETURN NEW\073
END
';
CREATE TRIGGER "InventoryItem_category" BEFORE UPDATE OF "categoryId", "petId" ON "InventoryItem"
    FOR EACH ROW EXECUTE FUNCTION "keep_category"();

-- The pet changes only when its stock becomes 0, or more than 0 again. A transaction that may do so must lock the pet before the
-- stock, as sales do. Otherwise it has the stock and waits for the pet, while a sale has the pet and waits for the stock.
CREATE FUNCTION "tell_stock"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    UPDATE "Pet" SET "inStock" = NEW."quantity" > 0 WHERE "id" = NEW."petId"\073
    RETURN NULL\073
END
';
CREATE TRIGGER "InventoryItem_tell_stock" AFTER UPDATE OF "quantity" ON "InventoryItem" FOR EACH ROW
    WHEN ((OLD."quantity" > 0) <> (NEW."quantity" > 0)) EXECUTE FUNCTION "tell_stock"();
