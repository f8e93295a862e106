-- The database itself keeps both equal: whoever changes the status of a pet changes it beside the stock, too.
ALTER TABLE "InventoryItem" ADD CONSTRAINT "status is that of the pet: change it there"
    FOREIGN KEY ("status", "petId") REFERENCES "Pet"("status", "id") ON DELETE CASCADE ON UPDATE CASCADE NOT VALID;
