ALTER TABLE "Pet" ADD COLUMN "plainName" TEXT NOT NULL DEFAULT '', ADD COLUMN "inStock" BOOLEAN NOT NULL DEFAULT false;
COMMENT ON COLUMN "Pet"."plainName" IS 'The name in lower case and without accents, by which lists are sorted and searched. The database sets it.';
COMMENT ON COLUMN "Pet"."nameKey" IS 'The name in lower case. Only the version before reads it.';
COMMENT ON COLUMN "Pet"."inStock" IS 'Whether the stock of the animal is above 0. The database sets it.';
CREATE TRIGGER "Pet_plain_name" BEFORE INSERT OR UPDATE OF "name", "plainName" ON "Pet"
    FOR EACH ROW EXECUTE FUNCTION "keep_plain_name"();

-- To write this column has no effect: the trigger sets what is true. A new pet has no stock yet.
CREATE FUNCTION "keep_in_stock"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    NEW."inStock" := coalesce((SELECT "quantity" > 0 FROM "InventoryItem" WHERE "petId" = NEW."id"), false)\073
    RETURN NEW\073
END
';
CREATE TRIGGER "Pet_in_stock" BEFORE UPDATE OF "inStock" ON "Pet" FOR EACH ROW EXECUTE FUNCTION "keep_in_stock"();
CREATE TRIGGER "Pet_new_in_stock" BEFORE INSERT ON "Pet" FOR EACH ROW
    WHEN (NEW."inStock") EXECUTE FUNCTION "keep_in_stock"();
