/*
 * A program that looks like CPython 3.13 from outside, with damaged lists in its memory.
 *
 *	hostile_python WORD	cyclic-threads, cyclic-interpreters, cyclic-frames, cyclic-chunks,
 *				long-frames, wide-frames
 *
 * Prints "ready" and ends with its standard input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where CPython keeps what, without linking what is hidden in kymo. */
#include "collect/python/pylayout.c" // NOLINT(bugprone-suspicious-include)

#define BLOCK (1u << 20)
#define FRAMES 131072u

/* Found by their names. */
unsigned char _PyRuntime[BLOCK] __attribute__((aligned(16)));
uint64_t Py_Version;

static struct pylayout layout;

static void put(void *block, int32_t offset, uint64_t value)
{
	memcpy((char *)block + offset, &value, 8);
}

static void put_pointer(void *block, int32_t offset, const void *value)
{
	put(block, offset, (uint64_t)(uintptr_t)value);
}

static void *block(void)
{
	void *made = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		exit(1);
	return made;
}

static void describe(void)
{
	const struct pylayout *places = layout_of(pylayout_words, ROWS(pylayout_words), 13);
	uint64_t *words = (uint64_t *)(void *)_PyRuntime;

	memcpy(words, "xdebugpy", 8);
	words[1] = Py_Version;
#define X(name) \
	if (places->name) \
		words[places->name] = (uint64_t)layout.name;
	PYLAYOUT_FIELDS(X)
#undef X
}

/* A frame of a generator, outside of the data stack. */
static void frame(char *at, const void *previous, const void *code)
{
	put_pointer(at, layout.frame_previous, previous);
	put_pointer(at, layout.frame_code, code);
	put_pointer(at, layout.frame_instr, code);
	at[layout.frame_owner] = 1;
}

static void make_frames(char *thread, const char *word)
{
	char *frames = mmap(NULL, FRAMES * 128ul, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *code = block();
	size_t count = !strcmp(word, "long-frames") ? FRAMES : 2;

	for (size_t i = 0; i < count; i++)
		frame(frames + 128 * i, i + 1 < count ? frames + 128 * (i + 1) : NULL, code);
	if (!strcmp(word, "cyclic-frames"))
		frame(frames + 128, frames, code);
	put_pointer(thread, layout.thread_current_frame, frames);
}

static void make_chunks(char *thread)
{
	char *chunk = block();

	put_pointer(chunk, layout.chunk_previous, chunk);
	put(chunk, layout.chunk_size, BLOCK);
	put(chunk, layout.chunk_top, BLOCK / 8 - 8);
	put_pointer(thread, layout.thread_datastack_chunk, chunk);
	put_pointer(thread, layout.thread_datastack_top, chunk + BLOCK - 64);
}

static void pretend(const char *word)
{
	char *interpreter = block(), *thread = block();

	layout = *pylayout_find(13);
	Py_Version = 0x030d00f0;
	describe();
	put_pointer(_PyRuntime, layout.runtime_interpreters_head, interpreter);
	put_pointer(interpreter, layout.interp_threads_head, thread);
	put(thread, layout.thread_native_id, (uint64_t)syscall(SYS_gettid));
	make_frames(thread, word);
	if (!strcmp(word, "cyclic-threads"))
		put_pointer(thread, layout.thread_next, thread);
	if (!strcmp(word, "cyclic-interpreters"))
		put_pointer(interpreter, layout.interp_next, interpreter);
	if (!strcmp(word, "cyclic-chunks"))
		make_chunks(thread);
	if (!strcmp(word, "wide-frames")) {
		layout.frame_localsplus = BLOCK;
		describe();
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	pretend(argv[1]);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
