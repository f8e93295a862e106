-- What shoppers ask for: names without their accents, pets in stock, the stock of a category. Four migrations add columns and the
-- triggers that keep them, also when a gateway of the version before writes. Each locks one table, for a moment. A fifth one fills the
-- columns.

-- A name in lower case and without accents, by which names are sorted and searched: decomposed (NFD), then without U+0300 to
-- U+036F. So composed and decomposed letters are the same. Marks of other scripts stay.
CREATE FUNCTION "plain"("text" text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path FROM CURRENT AS E'
BEGIN
    IF octet_length($1) = char_length($1) THEN
        RETURN lower($1 COLLATE "C")\073
    END IF\073
    RETURN "folded"(regexp_replace(normalize($1, NFD), \'[\\u0300-\\u036F]+\', \'\', \'g\'))\073
END
';

CREATE FUNCTION "keep_plain_name"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    NEW."plainName" := "plain"(NEW."name")\073
    RETURN NEW\073
END
';

ALTER TABLE "Category" ADD COLUMN "plainName" TEXT NOT NULL DEFAULT '';
COMMENT ON COLUMN "Category"."plainName" IS 'The name in lower case and without accents, by which lists are sorted and searched. The database sets it.';
COMMENT ON COLUMN "Category"."nameKey" IS 'The name in lower case. Only the version before reads it.';
CREATE TRIGGER "Category_plain_name" BEFORE INSERT OR UPDATE OF "name", "plainName" ON "Category"
    FOR EACH ROW EXECUTE FUNCTION "keep_plain_name"();
