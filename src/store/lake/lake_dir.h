/*
 * A lake: a directory of Parquet files of many jobs, on storage that all hosts share.
 *
 *	LAKE/JOB                                    a small file: the job's name and its epoch
 *	LAKE/SCHEMA.TABLE/run=JOB/WRITER-ROW.parquet  rows of one flush; ROW counts those before it
 *	LAKE/SCHEMA.TABLE/run=JOB/WRITER.parquet      a table that each flush replaces
 *	LAKE/SCHEMA.TABLE/run=JOB/compact-HEX.parquet what `kymo lake compact` made of many files
 *	LAKE/SCHEMA.TABLE/run=JOB/_replaced-HEX       the names of these files, one in each line
 *
 * A writer is HOST-ID: the host and 12 hex digits of its recording. Names that begin with a dot or
 * an underscore are not data, for kymo and for Spark. libc alone; every file is hostile.
 */
#ifndef KYMO_STORE_LAKE_DIR_H
#define KYMO_STORE_LAKE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/format.h"

#define LAKE_MAGIC "KYMOLAKE 1\n" /* the first line of a job's file */
#define LAKE_MAGIC_ANY "KYMOLAKE " /* of any version */
/* In the footer of each data file, followed by the hash of its columns: lake_columns_hash(). */
#define LAKE_FOOTER "kymo lake 1 columns "
#define LAKE_FOOTER_ANY "kymo lake "
#define LAKE_RUN_BYTES 128
#define LAKE_NAME_BYTES 200

/* A job's file. */
struct lake_job {
	char lake[KYMO_PATH_BYTES]; /* absolute, without links */
	char run[LAKE_RUN_BYTES]; /* the name of the file, and of run= */
	char program[256];
	uint64_t epoch_unix_ns; /* 0 of all *_ns of the job */
};

/* A data file that can be read: a footer of this version. */
struct lake_file {
	char name[LAKE_NAME_BYTES];
	uint64_t bytes;
	uint64_t columns; /* hash, as its footer states it */
	uint64_t first_row; /* of a flush; UINT64_MAX: it has none */
};

struct lake_table {
	char schema[64], name[64];
	struct lake_file *files; /* by name */
	size_t count;
	size_t replaced; /* files after these: a merged one stands for them */
	bool left_out; /* the directory has files that are not data of this job */
};

struct lake_listing {
	struct lake_job job;
	struct lake_table *tables; /* by schema and name; those without files are left out */
	size_t count;
	struct buf problems; /* sentences, each with a newline: files that are left out */
};

/* Whether the bytes at the beginning of a file are those of a job's file. */
bool lake_is_job(const char *begin, size_t bytes);
/* Whether the directory has at least one file of a job; *out_only: its name if it is the only one,
   else "". */
bool lake_is_lake(const char *path, char *out_only, size_t out_bytes, size_t *out_jobs);

/* path: LAKE/JOB. A negative errno and *err: not a job of a lake, or of another version; or its
   path is one that DuckDB and Spark would take for a pattern. */
int lake_job_read(const char *path, struct lake_job *out, struct kymo_error *err);
/* Makes the file of a job, and the lake's directory, or reads the one that is there: of several
   writers at once one makes it. */
int lake_job_make(const char *lake, const char *run, const char *program, uint64_t epoch_unix_ns,
		  struct lake_job *out, struct kymo_error *err);
/* The names of all jobs of a lake, sorted; the caller frees *out. */
int lake_jobs(const char *lake, char (**out)[LAKE_RUN_BYTES], size_t *out_count,
	      struct kymo_error *err);

/* All data files of a job. What cannot be read is a sentence of out->problems. The caller calls
   lake_listing_fini(), also after an error. */
int lake_list(const char *path, struct lake_listing *out, struct kymo_error *err);
void lake_listing_fini(struct lake_listing *listing);
const struct lake_table *lake_find(const struct lake_listing *listing, const char *schema,
				   const char *name);

/* A word of others as a part of a file name: letters, digits, dot, underscore and hyphen stay, all
   else becomes an underscore; it begins with a letter or digit. */
void lake_word(const char *text, char *out, size_t out_bytes);
/* Whether lake_word() leaves a name as it is. Names of files that others have made pass into SQL of
   DuckDB and of Spark, where * and its kin would match more than the file. */
bool lake_is_plain(const char *name);
/* Opens a directory in another one, never through a link; it is made if that is wanted, with the
   mode that the umask gives. A descriptor, or a negative errno: -ELOOP for a link. */
int lake_enter(int directory, const char *name, bool make);
/* LAKE/TABLE/run=RUN by two such steps. */
int lake_enter_table(int lake, const char *table, const char *run, bool make);
/* FNV-1a of "NAME TYPE\n" for each column; begin with LAKE_HASH_BEGIN. */
#define LAKE_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t lake_hash_column(uint64_t hash, const char *name, const char *type);
/* The first row in a name WRITER-ROW.parquet; false: it has none. */
bool lake_name_row(const char *name, uint64_t *out_row);

#endif
