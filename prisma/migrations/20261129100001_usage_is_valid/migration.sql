-- In a migration of its own: while the rows are looked at, the table can be read and written.
ALTER TABLE "ApiKeyUsage" VALIDATE CONSTRAINT "outcomes must be counts by code";
