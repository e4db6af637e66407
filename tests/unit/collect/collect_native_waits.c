/* Threads that wait: whether a futex is a mutex and who holds it, what functions tell, registers
   that are not known, and how often to look. */
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <kymo/atomic.h>

#include "collect/frames/frame_rules.h"
#include "collect/perf/native_places.h"
#include "collect/perf/native_waits.h"
#include "collect/wait/wait_futex.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t waiter;

static void *take_mutex(void *unused)
{
	kymo__store_release(&waiter, (pid_t)syscall(SYS_gettid));
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return unused;
}

static bool waits_in_futex(struct wait_call *call)
{
	pid_t tid = kymo__load_acquire(&waiter);

	return tid && !wait_call_read(getpid(), tid, call) && call->number == SYS_futex;
}

static void the_owner_of_a_mutex_is_found(void **state)
{
	struct timespec pause = { 0, 1000000 };
	struct wait_call call = { .number = -1 }, other;
	pthread_t thread;

	(void)state;
	pthread_mutex_lock(&mutex);
	assert_int_equal(pthread_create(&thread, NULL, take_mutex, NULL), 0);
	for (int i = 0; i < 60000 && !waits_in_futex(&call); i++)
		nanosleep(&pause, NULL);
	if (call.number != SYS_futex) { /* the kernel does not tell calls, as in some containers */
		pthread_mutex_unlock(&mutex);
		pthread_join(thread, NULL);
		skip();
	}
	assert_true(call.sp && call.pc);
	assert_true(wait_futex_may_be_mutex(&call));
	assert_int_equal(wait_futex_owner(getpid(), waiter, &call), syscall(SYS_gettid));
	assert_int_equal(wait_futex_owner(getpid(), (pid_t)syscall(SYS_gettid), &call), 0);
	other = call;
	other.argument[2] = 5; /* the value of a condition variable */
	assert_int_equal(wait_futex_owner(getpid(), waiter, &other), 0);
	other = call;
	other.argument[0] = 8; /* not mapped */
	assert_int_equal(wait_futex_owner(getpid(), waiter, &other), 0);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	assert_int_equal(wait_futex_owner(getpid(), waiter, &call), 0); /* it was released */
}

static void an_owner_that_is_no_thread_is_none(void **state)
{
	uint32_t words[4] = { 2, 0, 0x7fffffff, 1 };
	struct wait_call call = { .number = SYS_futex,
				  .argument = { (uintptr_t)words, FUTEX_WAIT_PRIVATE, 2 } };

	(void)state;
	assert_int_equal(wait_futex_owner(getpid(), 1, &call), 0);
	words[0] = FUTEX_WAITERS | (uint32_t)getpid();
	call.argument[1] = FUTEX_LOCK_PI_PRIVATE;
	assert_int_equal(wait_futex_owner(getpid(), 1, &call), getpid());
	call.number = SYS_read;
	assert_int_equal(wait_futex_owner(getpid(), 1, &call), 0);
}

static void functions_tell_what_a_futex_is(void **state)
{
	static const struct {
		const char *symbol;
		enum native_wait_kind kind;
	} rows[] = {
		{ "__lll_lock_wait", NATIVE_WAIT_MUTEX },
		{ "___pthread_mutex_lock", NATIVE_WAIT_MUTEX },
		{ "pthread_mutex_timedlock", NATIVE_WAIT_MUTEX },
		{ "__pthread_rwlock_wrlock_full64", NATIVE_WAIT_RWLOCK },
		{ "___pthread_cond_wait", NATIVE_WAIT_CONDITION },
		{ "__pthread_clockjoin_ex", NATIVE_WAIT_THREAD },
		{ "pthread_join", NATIVE_WAIT_THREAD },
		{ "__new_sem_wait_slow64", NATIVE_WAIT_SEMAPHORE },
		{ "sem_wait", NATIVE_WAIT_SEMAPHORE },
		{ "pthread_barrier_wait", NATIVE_WAIT_BARRIER },
		{ "_ZN3std3sys4sync5mutex5futex5Mutex14lock_contended17h0123456789abcdefE",
		  NATIVE_WAIT_MUTEX },
		{ "main", NATIVE_WAIT_UNKNOWN },
		{ "", NATIVE_WAIT_UNKNOWN },
		{ "my_pthread_mutex_lock", NATIVE_WAIT_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(native_wait_of(rows[i].symbol), rows[i].kind);
		assert_true(native_wait_word(rows[i].kind)[0]);
	}
}

/* CFA = a register + 16, with the return address and that register saved below. */
static struct frame_rules rules_by(uint8_t reg)
{
	const int sp = FRAME_SP, fp = FRAME_FP;
	struct frame_rules rules = { .found = true, .return_register = 16 };

	rules.cfa = (struct frame_rule){ FRAME_IS_OFFSET, reg, 16 };
	rules.registers[16] = (struct frame_rule){ FRAME_AT_OFFSET, 0, -8 };
	rules.registers[fp] = (struct frame_rule){ FRAME_AT_OFFSET, 0, -16 };
	rules.registers[sp] = (struct frame_rule){ FRAME_SAME, 0, 0 };
	return rules;
}

static void a_register_is_known_once_it_was_saved(void **state)
{
	const int sp = FRAME_SP, fp = FRAME_FP;
	uint64_t stack[] = { 0x7010, 0x401000, 0, 0x402000 };
	struct frame_memory memory = { 0x7000, (const unsigned char *)stack, sizeof(stack) };
	struct frame_rules by_sp = rules_by((uint8_t)sp), by_fp = rules_by((uint8_t)fp);
	struct frame_state at = { .pc = 0x400000, .unknown = ~(1ull << sp) }, before;
	struct frame_table table = { 0 };

	(void)state;
	at.registers[sp] = 0x7000;
	before = at;
	assert_int_equal(frame_rules_step(&table, &by_fp, &memory, &at), FRAME_UNKNOWN);
	assert_memory_equal(&at, &before, sizeof(at));
	assert_int_equal(frame_rules_step(&table, &by_sp, &memory, &at), FRAME_STEPPED);
	assert_int_equal(at.pc, 0x401000);
	assert_int_equal(at.registers[fp], 0x7010);
	assert_int_equal(at.unknown & 1ull << fp, 0);
	assert_int_equal(at.unknown & 1ull << 3, 1 << 3); /* nobody has saved it */
	assert_int_equal(frame_rules_step(&table, &by_fp, &memory, &at), FRAME_STEPPED);
	assert_int_equal(at.pc, 0x402000);
	/* The next frame is above the copy. */
	before = at;
	assert_int_equal(frame_rules_step(&table, &by_sp, &memory, &at), FRAME_UNREADABLE);
	assert_memory_equal(&at, &before, sizeof(at));
}

static void looks_are_fewer_while_nothing_changes_and_where_they_cost_more(void **state)
{
	const uint64_t ms = 1000000, young = 10 * ms, old = 5000 * ms;

	(void)state;
	assert_int_equal(native_waits_period(0, 1000, young), 5 * ms);
	assert_int_equal(native_waits_period(1000, 1000, young), 20 * ms);
	assert_int_equal(native_waits_period(0, 1000, old), 20 * ms);
	assert_int_equal(native_waits_period(3, 1000, old), 40 * ms);
	assert_int_equal(native_waits_period(1000, 1000, old), 100 * ms);
	assert_int_equal(native_waits_period(0, 200000, old), 100 * ms); /* 0.2 % of a core */
	assert_int_equal(native_waits_period(0, UINT64_MAX, old), 2000 * ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_of_a_mutex_is_found),
		cmocka_unit_test(an_owner_that_is_no_thread_is_none),
		cmocka_unit_test(functions_tell_what_a_futex_is),
#if defined(__x86_64__)
		cmocka_unit_test(a_register_is_known_once_it_was_saved),
#endif
		cmocka_unit_test(looks_are_fewer_while_nothing_changes_and_where_they_cost_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
