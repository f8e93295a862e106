-- In a migration of its own: while the rows are looked at, the table can be read and written.
ALTER TABLE "ApiKey" VALIDATE CONSTRAINT "hash must be a SHA-256 in lower case hexadecimal digits";
