-- Additive: a gateway of the version before ignores all of this. (It lets keys that may only read change data.)
CREATE TYPE "Access" AS ENUM ('write', 'read');

ALTER TABLE "ApiKey" ADD COLUMN "access" "Access" NOT NULL DEFAULT 'write',
ADD COLUMN "replacedById" INTEGER;

CREATE TABLE "ApiKeyEvent" (
    "id" BIGSERIAL NOT NULL,
    "keyId" INTEGER,
    "prefix" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "event" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "changes" JSONB NOT NULL,

    CONSTRAINT "ApiKeyEvent_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "ApiKeyUsage" (
    "keyId" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "day" DATE NOT NULL,
    "requests" BIGINT NOT NULL DEFAULT 0,
    "refusals" BIGINT NOT NULL DEFAULT 0,
    "cost" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "ApiKeyUsage_pkey" PRIMARY KEY ("keyId","day")
);

CREATE INDEX "ApiKeyEvent_keyId_id_idx" ON "ApiKeyEvent"("keyId", "id");
CREATE INDEX "ApiKeyUsage_day_idx" ON "ApiKeyUsage"("day");

ALTER TABLE "ApiKey" ADD CONSTRAINT "ApiKey_replacedById_fkey" FOREIGN KEY ("replacedById") REFERENCES "ApiKey"("id") ON DELETE SET NULL ON UPDATE CASCADE;
ALTER TABLE "ApiKeyEvent" ADD CONSTRAINT "ApiKeyEvent_keyId_fkey" FOREIGN KEY ("keyId") REFERENCES "ApiKey"("id") ON DELETE SET NULL ON UPDATE CASCADE;
ALTER TABLE "ApiKeyUsage" ADD CONSTRAINT "ApiKeyUsage_keyId_fkey" FOREIGN KEY ("keyId") REFERENCES "ApiKey"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- The history of keys. A transaction may say who it is with set_config('petstore.source', …, true). All others come from
-- Prisma Studio or SQL. Written with the rights of the owner, so that a role needs none on the history to edit keys, and
-- cannot edit the history. Of a hash, it keeps the beginning.
-- (In quotes, \073 is a semicolon: engines that split a script at semicolons do not look inside quotes.)
CREATE FUNCTION "ApiKey_history"() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path FROM CURRENT SET "TimeZone" = 'UTC' AS E'
DECLARE
    before jsonb := coalesce(jsonb_strip_nulls(to_jsonb(OLD) || jsonb_build_object(''hash'', left(OLD."hash", 8))), ''{}'')\073
    after jsonb := coalesce(jsonb_strip_nulls(to_jsonb(NEW) || jsonb_build_object(''hash'', left(NEW."hash", 8))), ''{}'')\073
    changed jsonb\073
BEGIN
    SELECT jsonb_object_agg("column", jsonb_build_array(before -> "column", after -> "column")) INTO changed
        FROM jsonb_object_keys(before || after) AS "column"
        WHERE "column" <> ''lastUsedAt'' AND before -> "column" IS DISTINCT FROM after -> "column"\073
    IF changed IS NOT NULL THEN
        INSERT INTO "ApiKeyEvent" ("keyId", "prefix", "name", "event", "source", "changes") VALUES (
            NEW."id", coalesce(NEW."prefix", OLD."prefix"), coalesce(NEW."name", OLD."name"),
            CASE
                WHEN TG_OP = ''INSERT'' THEN ''created''
                WHEN TG_OP = ''DELETE'' THEN ''deleted''
                WHEN changed ? ''replacedById'' AND NEW."replacedById" IS NOT NULL THEN ''rotated''
                WHEN changed ? ''revokedAt'' THEN CASE WHEN NEW."revokedAt" IS NULL THEN ''restored'' ELSE ''revoked'' END
                WHEN changed ? ''bannedUntil'' THEN CASE WHEN NEW."bannedUntil" > now() THEN ''banned'' ELSE ''unbanned'' END
                ELSE ''changed''
            END,
            coalesce(nullif(current_setting(''petstore.source'', true), ''''), ''database''),
            changed
        )\073
    END IF\073
    RETURN NULL\073
END
';

-- The regular updates of lastUsedAt do not name any of these columns, so they do not even call the trigger.
CREATE TRIGGER "ApiKey_history" AFTER INSERT OR DELETE OR UPDATE OF
    "id", "name", "plan", "prefix", "hash", "minuteLimit", "dayLimit", "createdAt", "expiresAt", "revokedAt", "bannedUntil",
    "originId", "access", "replacedById"
    ON "ApiKey" FOR EACH ROW EXECUTE FUNCTION "ApiKey_history"();
