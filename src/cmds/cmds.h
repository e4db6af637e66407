/* The commands of `kymo`: one row each in the table of main.c, one file each. */
#ifndef KYMO_CMDS_CMDS_H
#define KYMO_CMDS_CMDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { CMDS_OK = 0, CMDS_FAILED = 1, CMDS_WRONG_USE = 2, CMDS_INTERRUPTED = 130 };

struct cmds_option {
	char letter; /* 0: none */
	const char *name; /* without --; NULL ends the list */
	/* the placeholder in the help; NULL: no value; "[=WORD]": optional, and only with = */
	const char *value;
	const char *help; /* one line */
};

struct cmds_command {
	const char *name;
	/* argv[0] is the command's name. Returns the exit status. */
	int (*run)(int argc, char **argv);
	const char *summary; /* one line, for `kymo help` */
	const char *usage; /* the text after "kymo NAME"; alternatives are separated by \n */
	const struct cmds_option *options; /* for parsing, --help and completion */
	const char *examples; /* lines "command\tcomment" */
};

/* Ends with a row whose name is NULL. */
extern const struct cmds_command cmds_table[];
const struct cmds_command *cmds_find(const char *name);
/* The options of `kymo run` (run.c), which has an enum of them. */
extern const struct cmds_option cmds_run_options[];

int cmd_run(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_query(int argc, char **argv);
int cmd_backtrace(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_flame(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_trigger(int argc, char **argv);
int cmd_pack(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_lake(int argc, char **argv);
int cmd_mcp(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* `kymo` without words: what runs now, the newest recording, and what to type; at most 20 lines. */
int help_now(void);

/* A parser for the options and words of a command line. */
struct cmds_args {
	const struct cmds_command *command;
	int argc, at;
	char **argv;
	bool only_words; /* after -- */
	/* set by the command: a word that begins with an SQL comment is not an option */
	bool takes_sql;
	/* set by the command: options end at the first word, and may be abbreviated */
	bool takes_program;
	const char *rest; /* unread letters of a bundle such as -abc */
	const char *value; /* of the option that cmds_next() returned */
	char **words;
	size_t word_count;
	bool help; /* --help was given and the help was printed */
};

void cmds_args_init(struct cmds_args *args, const char *command, int argc, char **argv);
/* The row of the next option. NULL: all options are read and .words holds the rest (*status is -1),
   or the command has to return *status. */
const struct cmds_option *cmds_next(struct cmds_args *args, int *status);
/* Passes each option to take(), which returns -1 to continue or an exit status. Returns -1 when all
   options are read, else the exit status. */
int cmds_take_all(struct cmds_args *args,
		  int (*take)(void *request, struct cmds_args *args,
			      const struct cmds_option *option),
		  void *request);
/* For commands whose only options are --output FILE and --force. -1, or the exit status. */
int cmds_take_file(struct cmds_args *args, const char **out_file, bool *out_force);
/* Parses the seconds after which a zone or step is slow, from the option or variable `name`. An
   unset (NULL) or empty variable leaves *out_ns unchanged. -1, or the exit status if the text is
   invalid. */
int cmds_slow(const char *command, const char *name, const char *text, uint64_t *out_ns);
/* Checks the settings in the environment before the program starts. -1, or the exit status. */
int cmds_check_settings(const char *command);
/* Parses a number from 0 to most. On failure it prints an error and sets *status to 2. */
bool cmds_number(struct cmds_args *args, const struct cmds_option *option, double most, double *out,
		 int *status);

/* Is a recording in order to be named that a person has not chosen? Not with KYMO_QUIET. */
bool cmds_names_latest(const char *target);
/* Names a recording that a person has not chosen (no TARGET) on stderr, in one line; nothing with
   KYMO_QUIET. */
void cmds_say_latest(const char *target, const char *path);

/* Print "kymo NAME: sentence" as one line on stderr. cmds_wrong() returns 2, cmds_fail() returns
   1. */
int cmds_wrong(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cmds_fail(const char *command, const struct kymo_error *err);

/* For --force: removes the directory that --output names. Only a recording or an empty directory is
   ever removed. 0, or the exit status. */
int cmds_remove_old(const char *command, const char *directory);

/* The text of `kymo NAME --help`. */
void cmds_print_help(const struct cmds_command *command);

struct tables;
/* From here on Ctrl-C cancels the query on these tables, and a second Ctrl-C ends the command.
   NULL: the first one ends it. */
void cmds_interruptible(struct tables *tables);
bool cmds_interrupted(void);
/* Opens the recording of TARGET (NULL: latest, which is named on stderr), interruptible. 0, or a
   negative errno and *err. */
int cmds_open(const char *target, struct tables **out, struct kymo_error *err);
void cmds_close(struct tables *tables); /* NULL: does nothing */
/* Runs the part of a command that uses DuckDB in a child (guard/guard.h). Returns what work
   returned, an exit status; if the child died, prints the reason and returns CMDS_FAILED or
   CMDS_INTERRUPTED. */
int cmds_guarded(const char *command, int (*work)(void *context), void *context);
/* Prints the summary of a new recording on stderr, by a child; a failure is one line. */
void cmds_print_summary(char *path);
/* The same in this process, below lines that are printed already; stack_said: the last stack is
   among them. CMDS_OK. */
int cmds_print_summary_below(const char *path, int lines_above, bool stack_said);

/* Flushes stdout. Returns 1 and prints an error if that fails; a closed pipe is not reported. */
int cmds_finish(const char *command);
/* Prints the name and size of a written file on stderr; nothing for "-". */
void cmds_say_file(const char *file);

/* Whether KYMO_SAMPLE_RATE=0 turns samples of stacks off. */
bool cmds_samples_are_off(void);

#endif
