/*
 * Source lines and inlined functions of addresses, from debug information. libdw reads files that
 * the program chose, so it runs in a child process with a low priority; when that dies or is late,
 * functions keep the names of the symbol table.
 */
#ifndef KYMO_COLLECT_SYMBOLS_SOURCE_LINES_H
#define KYMO_COLLECT_SYMBOLS_SOURCE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SOURCE_LINES_DEEPEST 64 /* functions inlined into each other */
#define SOURCE_LINES_AT_ONCE 256

struct source_frame {
	const char *func; /* as its symbol; "": not known */
	size_t func_bytes;
	const char *file;
	size_t file_bytes;
	uint32_t line; /* 0: not known */
};

struct source_lines {
	pid_t child; /* 0: not started */
	int fd;
	uint32_t sequence;
	uint32_t asked; /* addresses of the last question */
	uint32_t owed; /* answers to it that have not come yet */
	bool failed; /* it died, or libdw is not installed */
	uint32_t *sent; /* numbers of the files that the child has */
	size_t sent_count, sent_room;
};

/*
 * Asks for `count` addresses of a file, at most SOURCE_LINES_AT_ONCE. For each that is answered
 * until the deadline (CLOCK_MONOTONIC), `each` gets its functions, innermost first: those that are
 * inlined, then the one that contains them. fd: of the file with the debug information; number:
 * identifies it. False: the child has not answered an earlier question yet, and was not asked.
 */
bool source_lines_ask(struct source_lines *lines, uint32_t number, int fd,
		      const uint64_t *addresses, size_t count, uint64_t deadline_ns,
		      void (*each)(void *context, size_t index, const struct source_frame *frames,
				   size_t frame_count),
		      void *context);
/* Answers to the last question that come after its deadline: `each` gets those that come until this
   one. The child yields to everything else, so that on a busy machine it may take seconds. */
void source_lines_late(struct source_lines *lines, uint64_t deadline_ns,
		       void (*each)(void *context, size_t index, const struct source_frame *frames,
				    size_t frame_count),
		       void *context);
/* Ends the child. */
void source_lines_stop(struct source_lines *lines);

/* source_lines_child.c: answers questions until the socket closes. */
void source_lines_run(int fd) __attribute__((noreturn));

/* A question; the descriptor comes with the first one about a file. */
struct source_question {
	uint32_t sequence, number, count, reserved;
	uint64_t addresses[SOURCE_LINES_AT_ONCE];
};
/* An answer to one address: the head, then heads of frames, then their texts. */
struct source_answer {
	uint32_t sequence, index, frame_count, reserved;
};
struct source_answer_frame {
	uint32_t func_bytes, file_bytes, line;
};
#define SOURCE_ANSWER_MOST 65536

#endif
