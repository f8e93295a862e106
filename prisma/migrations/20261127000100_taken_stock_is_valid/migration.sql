-- Writes go on meanwhile.
ALTER TABLE "Order" VALIDATE CONSTRAINT "takenQuantity must be at least 1";
ALTER TABLE "Order" VALIDATE CONSTRAINT "takenPetId must be set with takenQuantity, and only with it";
