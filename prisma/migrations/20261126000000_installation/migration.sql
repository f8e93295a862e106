-- Additive: a gateway of the version before ignores it. The first gateway or command that needs it writes its one row, not the
-- migration: a database that is copied before that is an installation of its own.
CREATE TABLE "Installation" (
    "only" BOOLEAN NOT NULL DEFAULT true,
    "id" TEXT NOT NULL,

    CONSTRAINT "Installation_pkey" PRIMARY KEY ("only"),
    CONSTRAINT "only must be true" CHECK ("only"),
    CONSTRAINT "id must have 1 to 64 letters, digits, _ or -" CHECK ("id" ~ '^[A-Za-z0-9_-]{1,64}$')
);

COMMENT ON TABLE "Installation" IS 'Names this installation in Redis, which others may use, too. One row.';
COMMENT ON COLUMN "Installation"."only" IS 'Always true.';
COMMENT ON COLUMN "Installation"."id" IS 'Part of all names in Redis. A change starts all quotas from zero.';
