-- Gateways write lastUsedAt of each key in use. With room on its page, PostgreSQL updates a row without its three indexes
-- (HOT). The hash was checked by a counting regular expression, for each update: 6 of its 12 µs. This one says the same.
-- A gateway of the version before runs on the result.
ALTER TABLE "ApiKey" SET (fillfactor = 50);
ALTER TABLE "ApiKey" DROP CONSTRAINT "hash must be a SHA-256 in lower case hexadecimal digits",
    ADD CONSTRAINT "hash must be a SHA-256 in lower case hexadecimal digits"
        CHECK (char_length("hash") = 64 AND "hash" !~ '[^0-9a-f]') NOT VALID;

COMMENT ON TABLE "ApiKeyUsage" IS 'What a key has used on one day. Gateways add to these rows: they are at most a minute old.';
COMMENT ON COLUMN "ApiKey"."lastUsedAt" IS 'The key was last used at this moment, or up to a minute later.';
