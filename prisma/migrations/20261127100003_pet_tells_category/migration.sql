CREATE OR REPLACE FUNCTION "Pet_inventory"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    INSERT INTO "InventoryItem" ("petId", "status", "categoryId") VALUES (NEW."id", NEW."status", NEW."categoryId")\073
    RETURN NULL\073
END
';
CREATE FUNCTION "tell_category"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    UPDATE "InventoryItem" SET "categoryId" = NEW."categoryId" WHERE "petId" = NEW."id"\073
    RETURN NULL\073
END
';
CREATE TRIGGER "Pet_tell_category" AFTER UPDATE OF "categoryId" ON "Pet" FOR EACH ROW
    WHEN (OLD."categoryId" <> NEW."categoryId") EXECUTE FUNCTION "tell_category"();
