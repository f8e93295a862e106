-- Gateways count each hour, and which errors. What is older than three days becomes days. A gateway of the version before goes
-- on to count days, to which hours are added when they are read: during a rolling upgrade nothing counts twice.
ALTER TABLE "ApiKeyUsage" ADD COLUMN     "outcomes" JSONB NOT NULL DEFAULT '{}';

CREATE TABLE "ApiKeyUsageHour" (
    "keyId" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "hour" TIMESTAMPTZ(0) NOT NULL,
    "requests" BIGINT NOT NULL DEFAULT 0,
    "refusals" BIGINT NOT NULL DEFAULT 0,
    "cost" BIGINT NOT NULL DEFAULT 0,
    "outcomes" JSONB NOT NULL DEFAULT '{}',

    CONSTRAINT "ApiKeyUsageHour_pkey" PRIMARY KEY ("keyId","hour")
) WITH (fillfactor = 50);

CREATE INDEX "ApiKeyUsageHour_hour_idx" ON "ApiKeyUsageHour"("hour");

ALTER TABLE "ApiKeyUsageHour" ADD CONSTRAINT "ApiKeyUsageHour_keyId_fkey" FOREIGN KEY ("keyId") REFERENCES "ApiKey"("id") ON DELETE CASCADE ON UPDATE CASCADE;

COMMENT ON TABLE "ApiKeyUsageHour" IS 'What a key has used in one hour, for three days. Gateways add to these rows: they are at most a minute old.';
COMMENT ON COLUMN "ApiKeyUsageHour"."keyId" IS 'The id of the key.';
COMMENT ON COLUMN "ApiKeyUsageHour"."name" IS 'The name of the key when it was last used in that hour.';
COMMENT ON COLUMN "ApiKeyUsageHour"."hour" IS 'The moment at which the hour begins.';
COMMENT ON COLUMN "ApiKeyUsageHour"."requests" IS 'Answered requests.';
COMMENT ON COLUMN "ApiKeyUsageHour"."refusals" IS 'Those of them that ended with an error.';
COMMENT ON COLUMN "ApiKeyUsageHour"."cost" IS 'What they took out of the quota.';
COMMENT ON COLUMN "ApiKeyUsageHour"."outcomes" IS 'How many ended with which error code: {"rate_limited": 12}.';

ALTER TABLE "ApiKeyUsageHour" ADD CONSTRAINT "hour must be in the years 1970 to 9999" CHECK ("hour" >= '1970-01-01T00:00:00Z' AND "hour" < '10000-01-01T00:00:00Z');

COMMENT ON COLUMN "ApiKeyUsage"."outcomes" IS 'How many ended with which error code: {"rate_limited": 12}. Those that an older version counted are in no code.';

-- Gateways could not add to what is not a number, nor show what is no count.
ALTER TABLE "ApiKeyUsageHour" ADD CONSTRAINT "outcomes must be counts by code"
    CHECK ("outcomes"::text ~ '^\{("[a-z_]+": [0-9]+(, )?)*\}$');
ALTER TABLE "ApiKeyUsage" ADD CONSTRAINT "outcomes must be counts by code"
    CHECK ("outcomes"::text ~ '^\{("[a-z_]+": [0-9]+(, )?)*\}$') NOT VALID;

-- (In quotes, \073 is a semicolon: engines that split a script at semicolons do not look inside quotes.)
CREATE FUNCTION "add_outcomes"(a jsonb, b jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS E'
BEGIN
    IF a = ''{}'' THEN RETURN b\073 END IF\073
    IF b = ''{}'' THEN RETURN a\073 END IF\073
    RETURN a || (
        SELECT jsonb_object_agg(key, value::numeric + coalesce((a ->> key)::numeric, 0)) FROM jsonb_each_text(b)
    )\073
END
';
CREATE AGGREGATE "sum_outcomes"(jsonb) (SFUNC = "add_outcomes", STYPE = jsonb, INITCOND = '{}', COMBINEFUNC = "add_outcomes", PARALLEL = SAFE);

COMMENT ON FUNCTION "add_outcomes"(jsonb, jsonb) IS 'The sum of two outcomes of ApiKeyUsageHour, code by code.';
COMMENT ON AGGREGATE "sum_outcomes"(jsonb) IS 'The sum of outcomes of ApiKeyUsageHour, code by code.';
COMMENT ON TABLE "ApiKeyUsage" IS 'What a key has used on one day, without the hours that ApiKeyUsageHour still has: those move here when they are older than three days.';
COMMENT ON COLUMN "ApiKeyUsage"."refusals" IS 'Those of them that ended with an error.';
