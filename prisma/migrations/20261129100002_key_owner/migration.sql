-- Whose key it is, for people. A gateway of the version before ignores all of this.
ALTER TABLE "ApiKey" ADD COLUMN "owner" TEXT,
ADD COLUMN "email" TEXT,
ADD COLUMN "note" TEXT;

COMMENT ON COLUMN "ApiKey"."name" IS 'What the key is called: the program or the shop that uses it. Several keys can have the same name.';
COMMENT ON COLUMN "ApiKey"."owner" IS 'The person or company whose key it is. The key itself shows it, at GET /quota.';
COMMENT ON COLUMN "ApiKey"."email" IS 'Where to write to about the key. Only admins see it.';
COMMENT ON COLUMN "ApiKey"."note" IS 'What else there is to know about the key. Only admins see it.';

ALTER TABLE "ApiKey"
    ADD CONSTRAINT "owner must have 1 to 100 characters" CHECK (char_length("owner") BETWEEN 1 AND 100) NOT VALID,
    ADD CONSTRAINT "owner must not begin or end with white space" CHECK ("owner" = "trimmed"("owner")) NOT VALID,
    ADD CONSTRAINT "email must be an address of at most 254 characters"
        CHECK (char_length("email") <= 254 AND "email" ~ '^[^[:space:]@]+@[^[:space:]@]+$') NOT VALID,
    ADD CONSTRAINT "note must have 1 to 1000 characters" CHECK (char_length("note") BETWEEN 1 AND 1000) NOT VALID;

-- The history keeps whether there was an owner, an address or a note (true), never what it was: the history stays when the
-- key is deleted. Otherwise the function is what it was.
-- (In quotes, \073 is a semicolon: engines that split a script at semicolons do not look inside quotes.)
CREATE OR REPLACE FUNCTION "ApiKey_history"() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path FROM CURRENT SET "TimeZone" = 'UTC' AS E'
DECLARE
    before jsonb := coalesce(jsonb_strip_nulls(to_jsonb(OLD) || jsonb_build_object(''hash'', left(OLD."hash", 8))), ''{}'')\073
    after jsonb := coalesce(jsonb_strip_nulls(to_jsonb(NEW) || jsonb_build_object(''hash'', left(NEW."hash", 8))), ''{}'')\073
    private text[] := ''{owner,email,note}''\073
    changed jsonb\073
BEGIN
    SELECT jsonb_object_agg("column", CASE
            WHEN "column" = ANY (private)
                THEN jsonb_build_array(nullif(before ? "column", false), nullif(after ? "column", false))
            ELSE jsonb_build_array(before -> "column", after -> "column")
        END) INTO changed
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

COMMENT ON COLUMN "ApiKeyEvent"."changes" IS 'Each column that changed, with its values before and after. Of owner, email and note: whether there was one.';

DROP TRIGGER "ApiKey_history" ON "ApiKey";
CREATE TRIGGER "ApiKey_history" AFTER INSERT OR DELETE OR UPDATE OF
    "id", "name", "owner", "email", "note", "plan", "prefix", "hash", "minuteLimit", "dayLimit", "createdAt", "expiresAt",
    "revokedAt", "bannedUntil", "originId", "access", "replacedById"
    ON "ApiKey" FOR EACH ROW EXECUTE FUNCTION "ApiKey_history"();
