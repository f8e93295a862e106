-- In a migration of its own: while the rows are looked at, the table can be read and written.
ALTER TABLE "ApiKey" VALIDATE CONSTRAINT "owner must have 1 to 100 characters";
ALTER TABLE "ApiKey" VALIDATE CONSTRAINT "owner must not begin or end with white space";
ALTER TABLE "ApiKey" VALIDATE CONSTRAINT "email must be an address of at most 254 characters";
ALTER TABLE "ApiKey" VALIDATE CONSTRAINT "note must have 1 to 1000 characters";
