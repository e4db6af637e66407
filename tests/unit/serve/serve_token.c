/* Comparing secrets: right, and the same work whatever is given. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "serve/access/token.h"

static char secret[TOKEN_BYTES];

static void only_the_token_equals_the_token(void **state)
{
	char given[TOKEN_BYTES + 8] = "";

	(void)state;
	assert_int_equal(token_make(secret), 0);
	assert_int_equal(strlen(secret), 48);
	assert_true(token_equals(secret, secret, 48));
	memcpy(given, secret, 48);
	for (size_t i = 0; i < 48; i++) {
		given[i] ^= 1;
		assert_false(token_equals(secret, given, 48));
		given[i] ^= 1;
		assert_false(token_equals(secret, given, i));
	}
	/* Longer ones, with zeros too: the secret is padded with them. */
	for (size_t bytes = 49; bytes < sizeof(given); bytes++)
		assert_false(token_equals(secret, given, bytes));
	given[48] = 'x';
	assert_false(token_equals(secret, given, 49));
	assert_false(token_equals((const char[TOKEN_BYTES]){ 0 }, "", 0));
}

static void each_user_has_cookies_of_its_own(void **state)
{
	char first[TOKEN_BYTES];

	(void)state;
	memcpy(first, token_session(1000), TOKEN_BYTES);
	assert_memory_equal(token_session(1000), first, TOKEN_BYTES);
	assert_memory_not_equal(token_session(1001), first, TOKEN_BYTES);
	assert_memory_not_equal(token_session(-1), first, TOKEN_BYTES);
	for (int64_t uid = 2000; uid < 2100; uid++)
		token_session(uid);
	assert_null(token_session(3000));
	assert_memory_equal(token_session(1000), first, TOKEN_BYTES);
}

/* The instructions that a child executes for one comparison, stepped one by one; 0: ptrace is not
   allowed here. */
static unsigned long instructions_for(const char *given)
{
	unsigned long count = 0;
	int status, stops = 0;
	pid_t child = fork();

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		kill(getpid(), SIGSTOP);
		token_equals(secret, given, 48);
		kill(getpid(), SIGSTOP);
		_exit(0);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		stops += WSTOPSIG(status) == SIGSTOP;
		count += stops == 1;
		if (ptrace(stops == 1 ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, NULL))
			kill(child, SIGKILL);
	}
	return stops == 2 ? count : 0;
}

static void a_wrong_token_takes_as_many_instructions_wherever_it_is_wrong(void **state)
{
	char given[TOKEN_BYTES];
	unsigned long right;

	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("ThreadSanitizer adds instructions of its own\n");
	skip();
#endif
	assert_int_equal(token_make(secret), 0);
	memcpy(given, secret, sizeof(given));
	token_equals(secret, given, 48); /* resolves memcpy(), once */
	right = instructions_for(given);
	if (!right)
		skip(); /* ptrace is not allowed */
	assert_true(right > TOKEN_BYTES);
	for (size_t i = 0; i < 48; i += 5) {
		given[i] ^= 1;
		assert_int_equal(instructions_for(given), right);
		given[i] ^= 1;
	}
	memset(given, 'z', 48);
	assert_int_equal(instructions_for(given), right);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_token_equals_the_token),
		cmocka_unit_test(each_user_has_cookies_of_its_own),
		cmocka_unit_test(a_wrong_token_takes_as_many_instructions_wherever_it_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
