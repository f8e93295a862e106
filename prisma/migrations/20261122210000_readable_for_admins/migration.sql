-- For people who edit the tables with Prisma Studio or SQL. Nothing depends on these names or comments.

-- A refused edit shows the name of the constraint that it violates, so the name is the reason.
ALTER TABLE "Category" RENAME CONSTRAINT "Category_id_check" TO "id must be from 1 to 9007199254740991";
ALTER TABLE "Category" RENAME CONSTRAINT "Category_name_check" TO "name must have 1 to 100 characters";
ALTER TABLE "Category" RENAME CONSTRAINT "Category_name_trimmed_check" TO "name must not begin or end with white space";
ALTER TABLE "Category" RENAME CONSTRAINT "Category_description_check" TO "description must have at most 1000 characters";

ALTER TABLE "Pet" RENAME CONSTRAINT "Pet_id_check" TO "id must be from 1 to 9007199254740991";
ALTER TABLE "Pet" RENAME CONSTRAINT "Pet_name_check" TO "name must have 1 to 100 characters";
ALTER TABLE "Pet" RENAME CONSTRAINT "Pet_name_trimmed_check" TO "name must not begin or end with white space";

ALTER TABLE "InventoryItem" RENAME CONSTRAINT "InventoryItem_quantity_check" TO "quantity must be at least 0";

ALTER TABLE "Order" RENAME CONSTRAINT "Order_id_check" TO "id must be from 1 to 9007199254740991";
ALTER TABLE "Order" RENAME CONSTRAINT "Order_quantity_check" TO "quantity must be at least 1";
ALTER TABLE "Order" RENAME CONSTRAINT "Order_shipDate_check" TO "shipDate must be in the years 1970 to 9999";

ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_id_check" TO "id must be at least 1";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_name_check" TO "name must have 1 to 100 characters";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_name_trimmed_check" TO "name must not begin or end with white space";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_prefix_check" TO "prefix must be petstore_ and 8 hexadecimal digits";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_hash_check" TO "hash must be a SHA-256 in lower case hexadecimal digits";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_minuteLimit_check" TO "minuteLimit: at least 1 for Enterprise, empty for other plans";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_dayLimit_check" TO "dayLimit: at least 1 for Enterprise, empty for other plans";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_createdAt_check" TO "createdAt must be in the years 1970 to 9999";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_expiresAt_check" TO "expiresAt must be in the years 1970 to 9999";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_revokedAt_check" TO "revokedAt must be in the years 1970 to 9999";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_bannedUntil_check" TO "bannedUntil must be in the years 1970 to 9999";
ALTER TABLE "ApiKey" RENAME CONSTRAINT "ApiKey_lastUsedAt_check" TO "lastUsedAt must be in the years 1970 to 9999";

-- The /// comments of schema.prisma. (In quotes, \073 is a semicolon: engines that split a script at semicolons do not look
-- inside quotes.)
COMMENT ON TABLE "Category" IS 'A group of pets, for example a kind of animal.';
COMMENT ON COLUMN "Category"."id" IS 'Unique identifier assigned by the service on creation.';
COMMENT ON COLUMN "Category"."name" IS 'Category name (a kind of animal).';
COMMENT ON COLUMN "Category"."description" IS 'Short description of the category.';

COMMENT ON TABLE "Pet" IS 'An animal.';
COMMENT ON COLUMN "Pet"."id" IS 'Unique identifier assigned by the service on creation.';
COMMENT ON COLUMN "Pet"."name" IS 'The animal''s name.';
COMMENT ON COLUMN "Pet"."categoryId" IS 'Id of the category the animal belongs to.';
COMMENT ON COLUMN "Pet"."status" IS 'Sales status of the animal.';

COMMENT ON TABLE "InventoryItem" IS 'The stock of one animal.';
COMMENT ON COLUMN "InventoryItem"."petId" IS 'Id of the animal the entry tracks.';
COMMENT ON COLUMN "InventoryItem"."quantity" IS 'Current stock count.';

COMMENT ON TABLE "Order" IS 'An order for an animal.';
COMMENT ON COLUMN "Order"."id" IS 'Unique order identifier.';
COMMENT ON COLUMN "Order"."petId" IS 'Id of the animal in the order.';
COMMENT ON COLUMN "Order"."quantity" IS 'Number of units ordered.';
COMMENT ON COLUMN "Order"."shipDate" IS 'Expected or actual ship date.';
COMMENT ON COLUMN "Order"."complete" IS 'Whether the order has been fulfilled.';

COMMENT ON TABLE "ApiKey" IS E'A client''s key. The secret is shown once, when the key is made\073 only its SHA-256 is stored.';
COMMENT ON COLUMN "ApiKey"."id" IS E'Names the key on the command line\073 so does its prefix.';
COMMENT ON COLUMN "ApiKey"."name" IS 'Whose key it is.';
COMMENT ON COLUMN "ApiKey"."plan" IS 'Free: 60 requests a minute and 1,000 a day. Pro: 300 and 10,000. Business: 1,000 and 100,000. Enterprise: its own limits.';
COMMENT ON COLUMN "ApiKey"."prefix" IS 'The first characters of the secret, to tell keys apart.';
COMMENT ON COLUMN "ApiKey"."hash" IS 'SHA-256 of the secret, in hexadecimal.';
COMMENT ON COLUMN "ApiKey"."minuteLimit" IS 'Requests per minute. Enterprise only, which needs it.';
COMMENT ON COLUMN "ApiKey"."dayLimit" IS 'Requests per day. Enterprise only, which needs it.';
COMMENT ON COLUMN "ApiKey"."createdAt" IS 'The key was created at this moment.';
COMMENT ON COLUMN "ApiKey"."expiresAt" IS 'The key cannot be used from this moment on.';
COMMENT ON COLUMN "ApiKey"."revokedAt" IS 'The key was revoked at this moment.';
COMMENT ON COLUMN "ApiKey"."bannedUntil" IS 'The key is banned until this moment. Clear it to lift the ban.';
COMMENT ON COLUMN "ApiKey"."lastUsedAt" IS 'The key was last used about this moment.';
COMMENT ON COLUMN "ApiKey"."originId" IS E'The id of the first key in a chain of rotations\073 empty for that first key.';
COMMENT ON COLUMN "ApiKey"."access" IS 'read: the key may only read. write: it may also change data.';
COMMENT ON COLUMN "ApiKey"."replacedById" IS 'The id of the key that a rotation has replaced this one with.';

COMMENT ON TABLE "ApiKeyEvent" IS 'What happened to a key. A trigger on ApiKey writes these rows, also for edits in Studio and SQL.';
COMMENT ON COLUMN "ApiKeyEvent"."id" IS 'Later events have higher ids.';
COMMENT ON COLUMN "ApiKeyEvent"."keyId" IS E'The id of the key\073 empty once the key is deleted.';
COMMENT ON COLUMN "ApiKeyEvent"."prefix" IS 'The prefix of the key at that time.';
COMMENT ON COLUMN "ApiKeyEvent"."name" IS 'The name of the key at that time.';
COMMENT ON COLUMN "ApiKeyEvent"."at" IS 'When it happened.';
COMMENT ON COLUMN "ApiKeyEvent"."event" IS 'created, changed, rotated, banned, unbanned, revoked, restored or deleted.';
COMMENT ON COLUMN "ApiKeyEvent"."source" IS 'Who made the change: "command line" (npm run keys), "gateway", or "database" (Prisma Studio or SQL).';
COMMENT ON COLUMN "ApiKeyEvent"."changes" IS 'Each column that changed, with its values before and after.';

COMMENT ON TABLE "ApiKeyUsage" IS 'What a key has used on one day. Gateways add to these rows every five seconds.';
COMMENT ON COLUMN "ApiKeyUsage"."keyId" IS 'The id of the key.';
COMMENT ON COLUMN "ApiKeyUsage"."name" IS 'The name of the key when it was last used on that day.';
COMMENT ON COLUMN "ApiKeyUsage"."day" IS 'The day in UTC.';
COMMENT ON COLUMN "ApiKeyUsage"."requests" IS 'Answered requests.';
COMMENT ON COLUMN "ApiKeyUsage"."refusals" IS 'Those of them that were refused, for whatever reason.';
COMMENT ON COLUMN "ApiKeyUsage"."cost" IS 'What they took out of the quota.';

COMMENT ON TABLE "IdempotentAnswer" IS 'The answer to a request with an Idempotency-Key, kept for 24 hours to be replayed.';
COMMENT ON COLUMN "IdempotentAnswer"."callerId" IS 'The id of the calling API key, or of the key that it was first rotated from.';
COMMENT ON COLUMN "IdempotentAnswer"."key" IS 'The Idempotency-Key.';
COMMENT ON COLUMN "IdempotentAnswer"."fingerprint" IS 'SHA-256 of method, path and body: a replay must be the same request.';
COMMENT ON COLUMN "IdempotentAnswer"."status" IS 'The HTTP status.';
COMMENT ON COLUMN "IdempotentAnswer"."headers" IS 'The representation headers.';
COMMENT ON COLUMN "IdempotentAnswer"."body" IS 'The body of the response.';
COMMENT ON COLUMN "IdempotentAnswer"."createdAt" IS 'When the request was answered.';
