-- What an order took from the stock, so that exactly that can be returned. The version before neither reads nor writes it, and
-- existing orders took nothing. No foreign key: an order can be changed to another pet, after which the first one may go.
ALTER TABLE "Order"
    ADD COLUMN "takenQuantity" INTEGER,
    ADD COLUMN "takenPetId" BIGINT,
    ADD CONSTRAINT "takenQuantity must be at least 1" CHECK ("takenQuantity" >= 1) NOT VALID,
    ADD CONSTRAINT "takenPetId must be set with takenQuantity, and only with it"
        CHECK (("takenQuantity" IS NULL) = ("takenPetId" IS NULL)) NOT VALID;

COMMENT ON COLUMN "Order"."takenQuantity" IS 'What the order took from the stock when it was created. Empty if it took nothing. No client sees it.';
COMMENT ON COLUMN "Order"."takenPetId" IS 'Id of the animal whose stock it was taken from, whatever animal the order is for now.';
COMMENT ON COLUMN "IdempotentAnswer"."fingerprint" IS 'SHA-256 of method, path, query string and body: a replay must be the same request.';
