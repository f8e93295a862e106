-- What Prisma Studio and SQL could write and the service cannot bear is refused from now on. Rows that break a new rule
-- are repaired first, because a constraint that is NOT VALID would fail later, when a client updates such a row.
-- (In quotes, \073 is a semicolon: engines that split a script at semicolons do not look inside quotes.)

-- What JavaScript's trim() removes, so that the database and the API agree on every character.
CREATE FUNCTION "trimmed"(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS '
    SELECT btrim($1, E''\u0009\u000A\u000B\u000C\u000D\u0020\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF'')
';

-- Names are trimmed and not blank. A blank one is replaced by the id.
UPDATE "Category" SET "name" = coalesce(nullif("trimmed"("name"), ''), 'Category ' || "id") WHERE "name" <> "trimmed"("name");
UPDATE "Pet" SET "name" = coalesce(nullif("trimmed"("name"), ''), 'Pet ' || "id") WHERE "name" <> "trimmed"("name");
UPDATE "ApiKey" SET "name" = coalesce(nullif("trimmed"("name"), ''), 'Key ' || "id") WHERE "name" <> "trimmed"("name");

ALTER TABLE "Category" ADD CONSTRAINT "Category_name_trimmed_check" CHECK ("name" = "trimmed"("name"));
ALTER TABLE "Pet" ADD CONSTRAINT "Pet_name_trimmed_check" CHECK ("name" = "trimmed"("name"));

-- Dates of keys are in the years 1970 to 9999: JavaScript has no infinity. Others move to the nearer end, which keeps
-- their meaning: a ban until infinity still lasts.
CREATE FUNCTION "in_range"(timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT AS '
    SELECT least(greatest($1, ''1970-01-01T00:00:00Z''), ''9999-12-31T23:59:59.999Z'')
';
UPDATE "ApiKey" SET
    "createdAt" = "in_range"("createdAt"),
    "expiresAt" = "in_range"("expiresAt"),
    "revokedAt" = "in_range"("revokedAt"),
    "bannedUntil" = "in_range"("bannedUntil"),
    "lastUsedAt" = "in_range"("lastUsedAt")
WHERE ("createdAt", "expiresAt", "revokedAt", "bannedUntil", "lastUsedAt") IS DISTINCT FROM
    ("in_range"("createdAt"), "in_range"("expiresAt"), "in_range"("revokedAt"), "in_range"("bannedUntil"), "in_range"("lastUsedAt"));
DROP FUNCTION "in_range"(timestamptz);

-- Sequences go on after the highest id, unless no room is left there.
SELECT setval('"Category_id_seq"', max("id")) FROM "Category" WHERE "id" <= 9000000000000000
    HAVING max("id") > coalesce(pg_sequence_last_value('"Category_id_seq"'), 0);
SELECT setval('"Pet_id_seq"', max("id")) FROM "Pet" WHERE "id" <= 9000000000000000
    HAVING max("id") > coalesce(pg_sequence_last_value('"Pet_id_seq"'), 0);
SELECT setval('"Order_id_seq"', max("id")) FROM "Order" WHERE "id" <= 9000000000000000
    HAVING max("id") > coalesce(pg_sequence_last_value('"Order_id_seq"'), 0);
SELECT setval('"ApiKey_id_seq"', max("id")) FROM "ApiKey" WHERE "id" BETWEEN 1 AND 2000000000
    HAVING max("id") > coalesce(pg_sequence_last_value('"ApiKey_id_seq"'), 0);

-- Ids and prefixes name keys on the command line. Both are only labels: the hash is what a secret is found by.
UPDATE "ApiKey" SET "id" = nextval('"ApiKey_id_seq"') WHERE "id" < 1;
UPDATE "ApiKey" SET "prefix" = 'petstore_' || lpad(to_hex("id"), 8, '0') WHERE "prefix" !~ '^petstore_[0-9a-f]{8}$';

ALTER TABLE "ApiKey"
    ADD CONSTRAINT "ApiKey_id_check" CHECK ("id" >= 1),
    ADD CONSTRAINT "ApiKey_name_trimmed_check" CHECK ("name" = "trimmed"("name")),
    ADD CONSTRAINT "ApiKey_prefix_check" CHECK ("prefix" ~ '^petstore_[0-9a-f]{8}$'),
    ADD CONSTRAINT "ApiKey_createdAt_check" CHECK ("createdAt" >= '1970-01-01T00:00:00Z' AND "createdAt" < '10000-01-01T00:00:00Z'),
    ADD CONSTRAINT "ApiKey_expiresAt_check" CHECK ("expiresAt" >= '1970-01-01T00:00:00Z' AND "expiresAt" < '10000-01-01T00:00:00Z'),
    ADD CONSTRAINT "ApiKey_revokedAt_check" CHECK ("revokedAt" >= '1970-01-01T00:00:00Z' AND "revokedAt" < '10000-01-01T00:00:00Z'),
    ADD CONSTRAINT "ApiKey_bannedUntil_check" CHECK ("bannedUntil" >= '1970-01-01T00:00:00Z' AND "bannedUntil" < '10000-01-01T00:00:00Z'),
    ADD CONSTRAINT "ApiKey_lastUsedAt_check" CHECK ("lastUsedAt" >= '1970-01-01T00:00:00Z' AND "lastUsedAt" < '10000-01-01T00:00:00Z');

-- A row with an id of its own choice takes its sequence along, or a later create would fail. Not so an id close to the
-- end, after which there would be no more ids. The condition costs an ordinary insert little: its id is the sequence's.
CREATE FUNCTION "advance_sequence"() RETURNS trigger LANGUAGE plpgsql AS E'
DECLARE
    sequence regclass := pg_get_serial_sequence(format(''%I.%I'', TG_TABLE_SCHEMA, TG_TABLE_NAME), ''id'')\073
BEGIN
    PERFORM setval(sequence, greatest(NEW."id", pg_sequence_last_value(sequence)))\073
    RETURN NULL\073
END
';

CREATE TRIGGER "Category_id_sequence" AFTER INSERT OR UPDATE OF "id" ON "Category" FOR EACH ROW
    WHEN (NEW."id" <= 9000000000000000 AND NEW."id" > coalesce(pg_sequence_last_value('"Category_id_seq"'), 0))
    EXECUTE FUNCTION "advance_sequence"();
CREATE TRIGGER "Pet_id_sequence" AFTER INSERT OR UPDATE OF "id" ON "Pet" FOR EACH ROW
    WHEN (NEW."id" <= 9000000000000000 AND NEW."id" > coalesce(pg_sequence_last_value('"Pet_id_seq"'), 0))
    EXECUTE FUNCTION "advance_sequence"();
CREATE TRIGGER "Order_id_sequence" AFTER INSERT OR UPDATE OF "id" ON "Order" FOR EACH ROW
    WHEN (NEW."id" <= 9000000000000000 AND NEW."id" > coalesce(pg_sequence_last_value('"Order_id_seq"'), 0))
    EXECUTE FUNCTION "advance_sequence"();
CREATE TRIGGER "ApiKey_id_sequence" AFTER INSERT OR UPDATE OF "id" ON "ApiKey" FOR EACH ROW
    WHEN (NEW."id" <= 2000000000 AND NEW."id" > coalesce(pg_sequence_last_value('"ApiKey_id_seq"'), 0))
    EXECUTE FUNCTION "advance_sequence"();

-- Every pet keeps its inventory entry for as long as it exists.
INSERT INTO "InventoryItem" ("petId")
    SELECT "id" FROM "Pet" WHERE NOT EXISTS (SELECT FROM "InventoryItem" WHERE "petId" = "Pet"."id");

CREATE FUNCTION "InventoryItem_stays"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    IF TG_LEVEL = ''STATEMENT'' THEN
        IF EXISTS (SELECT FROM "Pet") THEN
            RAISE EXCEPTION ''Every pet has an inventory entry\073 set quantities to 0, or delete the pets''
                USING ERRCODE = ''restrict_violation''\073
        END IF\073
    ELSIF EXISTS (SELECT FROM "Pet" WHERE "id" = OLD."petId") THEN
        RAISE EXCEPTION ''Pet % needs its inventory entry\073 set the quantity to 0, or delete the pet'', OLD."petId"
            USING ERRCODE = ''restrict_violation''\073
    END IF\073
    RETURN NULL\073
END
';

CREATE TRIGGER "InventoryItem_deleted" AFTER DELETE ON "InventoryItem"
    FOR EACH ROW EXECUTE FUNCTION "InventoryItem_stays"();
CREATE TRIGGER "InventoryItem_moved" AFTER UPDATE OF "petId" ON "InventoryItem" FOR EACH ROW
    WHEN (OLD."petId" <> NEW."petId") EXECUTE FUNCTION "InventoryItem_stays"();
CREATE TRIGGER "InventoryItem_truncated" AFTER TRUNCATE ON "InventoryItem"
    FOR EACH STATEMENT EXECUTE FUNCTION "InventoryItem_stays"();
