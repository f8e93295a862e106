-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "public";

-- CreateEnum
CREATE TYPE "PetStatus" AS ENUM ('available', 'pending', 'sold');

-- CreateEnum
CREATE TYPE "Plan" AS ENUM ('Free', 'Pro', 'Business', 'Enterprise');

-- CreateTable
CREATE TABLE "Category" (
    "id" BIGSERIAL NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,

    CONSTRAINT "Category_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "Pet" (
    "id" BIGSERIAL NOT NULL,
    "name" TEXT NOT NULL,
    "categoryId" BIGINT NOT NULL,
    "status" "PetStatus" NOT NULL DEFAULT 'available',

    CONSTRAINT "Pet_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "InventoryItem" (
    "petId" BIGINT NOT NULL,
    "quantity" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "InventoryItem_pkey" PRIMARY KEY ("petId")
);

-- CreateTable
CREATE TABLE "Order" (
    "id" BIGSERIAL NOT NULL,
    "petId" BIGINT NOT NULL,
    "quantity" INTEGER NOT NULL DEFAULT 1,
    "shipDate" TIMESTAMPTZ(3),
    "complete" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "Order_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "ApiKey" (
    "id" SERIAL NOT NULL,
    "name" TEXT NOT NULL,
    "plan" "Plan" NOT NULL DEFAULT 'Free',
    "prefix" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "minuteLimit" INTEGER,
    "dayLimit" INTEGER,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expiresAt" TIMESTAMPTZ(3),
    "revokedAt" TIMESTAMPTZ(3),
    "bannedUntil" TIMESTAMPTZ(3),
    "lastUsedAt" TIMESTAMPTZ(3),

    CONSTRAINT "ApiKey_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "Pet_categoryId_id_idx" ON "Pet"("categoryId", "id");

-- CreateIndex
CREATE INDEX "Pet_status_id_idx" ON "Pet"("status", "id");

-- CreateIndex
CREATE INDEX "Pet_status_categoryId_id_idx" ON "Pet"("status", "categoryId", "id");

-- CreateIndex
CREATE INDEX "Order_petId_id_idx" ON "Order"("petId", "id");

-- CreateIndex
CREATE INDEX "Order_complete_id_idx" ON "Order"("complete", "id");

-- CreateIndex
CREATE UNIQUE INDEX "ApiKey_prefix_key" ON "ApiKey"("prefix");

-- CreateIndex
CREATE UNIQUE INDEX "ApiKey_hash_key" ON "ApiKey"("hash");

-- AddForeignKey
ALTER TABLE "Pet" ADD CONSTRAINT "Pet_categoryId_fkey" FOREIGN KEY ("categoryId") REFERENCES "Category"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "InventoryItem" ADD CONSTRAINT "InventoryItem_petId_fkey" FOREIGN KEY ("petId") REFERENCES "Pet"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "Order" ADD CONSTRAINT "Order_petId_fkey" FOREIGN KEY ("petId") REFERENCES "Pet"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- What follows Prisma cannot express. Bounds stand here again so that no way in, Prisma Studio
-- included, can store what the API could not have accepted.

-- Ids are exact JSON integers: none is ever above 2^53 - 1.
ALTER SEQUENCE "Category_id_seq" MAXVALUE 9007199254740991;
ALTER SEQUENCE "Pet_id_seq" MAXVALUE 9007199254740991;
ALTER SEQUENCE "Order_id_seq" MAXVALUE 9007199254740991;

ALTER TABLE "Category"
    ADD CONSTRAINT "Category_id_check" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    ADD CONSTRAINT "Category_name_check" CHECK (char_length("name") BETWEEN 1 AND 100),
    ADD CONSTRAINT "Category_description_check" CHECK (char_length("description") <= 1000);

ALTER TABLE "Pet"
    ADD CONSTRAINT "Pet_id_check" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    ADD CONSTRAINT "Pet_name_check" CHECK (char_length("name") BETWEEN 1 AND 100);

ALTER TABLE "InventoryItem"
    ADD CONSTRAINT "InventoryItem_quantity_check" CHECK ("quantity" >= 0);

ALTER TABLE "Order"
    ADD CONSTRAINT "Order_id_check" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    ADD CONSTRAINT "Order_quantity_check" CHECK ("quantity" >= 1),
    ADD CONSTRAINT "Order_shipDate_check" CHECK (
        "shipDate" >= '1970-01-01T00:00:00Z' AND "shipDate" < '10000-01-01T00:00:00Z'
    );

-- Limits of its own belong to Enterprise, which needs both.
ALTER TABLE "ApiKey"
    ADD CONSTRAINT "ApiKey_name_check" CHECK (char_length("name") BETWEEN 1 AND 100),
    ADD CONSTRAINT "ApiKey_hash_check" CHECK ("hash" ~ '^[0-9a-f]{64}$'),
    ADD CONSTRAINT "ApiKey_minuteLimit_check" CHECK (
        CASE WHEN "plan" = 'Enterprise' THEN "minuteLimit" IS NOT NULL AND "minuteLimit" >= 1 ELSE "minuteLimit" IS NULL END
    ),
    ADD CONSTRAINT "ApiKey_dayLimit_check" CHECK (
        CASE WHEN "plan" = 'Enterprise' THEN "dayLimit" IS NOT NULL AND "dayLimit" >= 1 ELSE "dayLimit" IS NULL END
    );

-- Every pet has an inventory entry, made with it, whoever makes the pet. (In the body, \073 is the
-- semicolon: engines that split a script at semicolons do not look inside quotes.)
CREATE FUNCTION "Pet_inventory"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    INSERT INTO "InventoryItem" ("petId") VALUES (NEW."id")\073
    RETURN NULL\073
END
';

CREATE TRIGGER "Pet_inventory" AFTER INSERT ON "Pet"
    FOR EACH ROW EXECUTE FUNCTION "Pet_inventory"();
