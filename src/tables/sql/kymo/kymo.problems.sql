-- Parts of the recording that could not be read, with the reason.
--
-- text  VARCHAR  one problem
SELECT
    text
FROM kymo_meta('problems')
