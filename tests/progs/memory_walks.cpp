/*
 * Allocates below stacks of every kind, at random: frames of changing size and with aligned stacks,
 * jumps in place of calls, functions left by longjmp and by exceptions, handlers on this stack and
 * on their own, contexts that are switched, threads. The library makes each walk that it could do
 * without, and compares.
 *
 *	memory_walks LIBRARY STACKS    LIBRARY: libkymo_memory.so
 *
 * Says how many came to the same callers, and how many did not.
 */
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <ucontext.h>

extern "C" {
#include "record/memory/memory.h"
}

#define NOINLINE __attribute__((noinline, noclone))
#define CONTEXTS 4
#define STACK_BYTES (256 << 10)

namespace
{

struct walker {
	unsigned seed;
	jmp_buf back;
	int jumps; /* there is somewhere to jump to */
};

unsigned draw(walker &w)
{
	w.seed = w.seed * 1103515245u + 12345u;
	return w.seed >> 12;
}

NOINLINE void touch(size_t bytes)
{
	void *volatile ptr = malloc(bytes);

	free(ptr);
}

NOINLINE void go(walker &w, int depth);

NOINLINE void plain(walker &w, int depth)
{
	go(w, depth - 1);
	touch(24);
}

NOINLINE void grows(walker &w, int depth)
{
	size_t bytes = 16 + draw(w) % 16 * 16;
	char *volatile room = static_cast<char *>(alloca(bytes));

	room[bytes - 1] = 1;
	go(w, depth - 1);
	touch(40);
}

NOINLINE void aligned(walker &w, int depth)
{
	alignas(64) volatile char room[64] = { 1 };

	go(w, depth - 1);
	room[63] = room[0];
	touch(56);
}

NOINLINE void aligned_grows(walker &w, int depth)
{
	alignas(64) volatile char room[64] = { 1 };
	char *volatile more = static_cast<char *>(alloca(16 + draw(w) % 8 * 16));

	more[0] = room[0];
	go(w, depth - 1);
	room[1] = more[0];
	touch(72);
}

NOINLINE void jumps(walker &w, int depth)
{
	return go(w, depth - 1); /* the caller stays, this one is gone */
}

NOINLINE void throws(walker &w, int depth)
{
	try {
		go(w, depth - 1);
		if (draw(w) % 3 == 0)
			throw std::runtime_error("on purpose");
	} catch (const std::runtime_error &) {
		touch(88);
	}
}

NOINLINE void passes(walker &w, int depth)
{
	struct guard { /* runs while an exception goes by */
		~guard()
		{
			touch(104);
		}
	} here;

	go(w, depth - 1);
	if (draw(w) % 5 == 0)
		throw std::runtime_error("on purpose");
}

NOINLINE void lands(walker &w, int depth)
{
	jmp_buf outer;
	int had = w.jumps;

	memcpy(&outer, &w.back, sizeof(outer));
	if (!setjmp(w.back)) {
		w.jumps = 1;
		go(w, depth - 1);
	}
	memcpy(&w.back, &outer, sizeof(outer));
	w.jumps = had;
	touch(120);
}

NOINLINE void signals(walker &w, int depth)
{
	raise(draw(w) % 2 ? SIGUSR1 : SIGUSR2);
	go(w, depth - 1);
}

void (*volatile const kinds[])(walker &, int) = { plain,  grows,  aligned, aligned_grows, jumps,
						  throws, passes, lands,   signals };

void go(walker &w, int depth)
{
	unsigned which = draw(w);

	touch(which % 200 + 1);
	if (depth > 0)
		kinds[which % (sizeof(kinds) / sizeof(kinds[0]))](w, depth);
	else if (w.jumps && which % 7 == 0)
		longjmp(w.back, 1);
	touch(which % 100 + 1);
}

/* The same one again and again, so that there is something to know, and then others that are like
   it. */
NOINLINE void one_stack(walker &w)
{
	unsigned seed = draw(w), often = 4;

	for (unsigned i = 0; i < often; i++) {
		w.seed = i < often - 1 ? seed : seed ^ 1u << draw(w) % 32;
		w.jumps = 0;
		try {
			go(w, (int)(seed % 60));
		} catch (const std::runtime_error &) {
			touch(8);
		}
	}
}

void on_signal(int)
{
	touch(136);
}

/* ---- contexts -------------------------------------------------------------------------------- */

ucontext_t contexts[CONTEXTS], home;
int stacks;

/* Each does one stack at a time, and then the next is at it. */
void in_context(int number)
{
	walker w = { (unsigned)number * 7919u + 1, {}, 0 };

	for (int i = 0; i < stacks; i++) {
		one_stack(w);
		swapcontext(&contexts[number],
			    number + 1 < CONTEXTS ? &contexts[number + 1] : &home);
	}
}

void switch_contexts()
{
	for (int i = 0; i < CONTEXTS; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = malloc(STACK_BYTES);
		contexts[i].uc_stack.ss_size = STACK_BYTES;
		contexts[i].uc_link = &home;
		makecontext(&contexts[i], (void (*)())in_context, 1, i);
	}
	for (int i = 0; i < stacks; i++)
		swapcontext(&home, &contexts[0]);
}

void *in_thread(void *number)
{
	walker w = { (unsigned)(uintptr_t)number + 100, {}, 0 };

	for (int i = 0; i < stacks; i++)
		one_stack(w);
	return nullptr;
}

void take_signals()
{
	static char own[64 << 10];
	stack_t stack = {};
	struct sigaction action = {};

	stack.ss_sp = own;
	stack.ss_size = sizeof(own);
	sigaltstack(&stack, nullptr);
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, nullptr);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, nullptr);
}

} // namespace

int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
	struct kymo_memory_watch watch;
	uint64_t same, different;
	pthread_t threads[2];

	if (!library) {
		fprintf(stderr, "%s\n", argc > 2 ? dlerror() : "memory_walks LIBRARY STACKS");
		return 2;
	}
	auto start = (decltype(&kymo_memory_start))dlsym(library, "kymo_memory_start");
	auto stop = (decltype(&kymo_memory_stop))dlsym(library, "kymo_memory_stop");
	auto check = (decltype(&kymo_memory_check_walks))dlsym(library, "kymo_memory_check_walks");

	stacks = atoi(argv[2]);
	take_signals();
	if (start(&watch, KYMO_MEMORY_EXACT))
		return 3;
	check(true, &same, &different);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], nullptr, in_thread, (void *)i);
	switch_contexts();
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
	check(false, &same, &different);
	stop(&watch);
	printf("%llu %llu\n", (unsigned long long)same, (unsigned long long)different);
	return 0;
}
