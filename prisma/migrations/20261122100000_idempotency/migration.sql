-- Additive: a gateway of the version before ignores both.
ALTER TABLE "ApiKey" ADD COLUMN "originId" INTEGER;

CREATE TABLE "IdempotentAnswer" (
    "callerId" INTEGER NOT NULL,
    "key" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "status" INTEGER NOT NULL,
    "headers" JSONB NOT NULL,
    "body" TEXT NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "IdempotentAnswer_pkey" PRIMARY KEY ("callerId","key")
);

CREATE INDEX "IdempotentAnswer_createdAt_idx" ON "IdempotentAnswer"("createdAt");
