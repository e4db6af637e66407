-- The rows of a view as a table of the session, and the view over that. A transaction can write to
-- one database only.
USE rec;
CREATE TABLE memory.main.kept_{schema}_{view} AS FROM {schema}.{view};
CREATE OR REPLACE VIEW {schema}.{view} AS FROM memory.main.kept_{schema}_{view}
