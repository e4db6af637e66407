/* What begins the message of sql/packed_objects.sql and sql/packed_columns.sql. */
#ifndef KYMO_TABLES_PACKED_PACKED_FOREIGN_H
#define KYMO_TABLES_PACKED_PACKED_FOREIGN_H

#define PACKED_FOREIGN "foreign: "

#endif
