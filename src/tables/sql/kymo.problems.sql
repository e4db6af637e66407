-- What of this recording could not be read, and why.
--
-- text  VARCHAR  what could not be read, and why
SELECT
    text
FROM kymo_meta('problems')
