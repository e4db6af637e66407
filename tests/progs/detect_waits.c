/*
 * Programs in C that wait for one thing, in a function of its own: `socket`, `pipe`, `child`,
 * `sleep`; `lock` has threads that queue at a mutex; `compute` waits for nothing; `mutex` makes no
 * progress until it kills itself after SECONDS: two threads wait for each other's lock.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned sink;

static void pause_s(double seconds)
{
	struct timespec time = { (time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9) };

	nanosleep(&time, NULL);
}

__attribute__((noinline)) static void compute_sums(double seconds)
{
	clock_t until = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < until)
		for (unsigned i = 0; i < 100000; i++)
			sink += i;
}

/* Writes a byte after the time, from another process. */
static void write_later(int fd, double seconds)
{
	if (fork())
		return;
	pause_s(seconds);
	_exit(write(fd, "x", 1) != 1);
}

__attribute__((noinline)) static int read_result(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

__attribute__((noinline)) static int receive_answer(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) == 1;
}

static void wait_for_pipe(double seconds)
{
	int ends[2];

	if (pipe(ends))
		exit(1);
	write_later(ends[1], seconds);
	read_result(ends[0]);
}

static void wait_for_socket(double seconds)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int other;

	if (bind(server, (struct sockaddr *)&address, bytes) || listen(server, 1) ||
	    getsockname(server, (struct sockaddr *)&address, &bytes) ||
	    connect(client, (struct sockaddr *)&address, bytes))
		exit(1);
	printf("127.0.0.1:%d\n", ntohs(address.sin_port));
	fflush(stdout);
	other = accept(server, NULL, NULL);
	write_later(other, seconds);
	receive_answer(client);
}

__attribute__((noinline)) static void convert_file(double seconds)
{
	pid_t child = fork();

	if (!child) {
		char text[32];

		snprintf(text, sizeof(text), "%.3f", seconds);
		execlp("sleep", "sleep", text, (char *)NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	sink++;
}

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void *transfer_money(void *unused)
{
	pthread_mutex_lock(&accounts);
	pause_s(0.2);
	pthread_mutex_lock(&journal);
	return unused;
}

__attribute__((noinline)) static void *write_journal(void *unused)
{
	pthread_mutex_lock(&journal);
	pause_s(0.2);
	pthread_mutex_lock(&accounts);
	return unused;
}

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static struct timespec queue_until;

static int queue_is_over(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > queue_until.tv_sec ||
	       (now.tv_sec == queue_until.tv_sec && now.tv_nsec >= queue_until.tv_nsec);
}

__attribute__((noinline)) static void rebuild_index(void)
{
	compute_sums(0.03);
	sink++;
}

__attribute__((noinline)) static void *keep_index(void *unused)
{
	while (!queue_is_over()) {
		pthread_mutex_lock(&index_lock);
		rebuild_index();
		pthread_mutex_unlock(&index_lock);
	}
	return unused;
}

__attribute__((noinline)) static void look_up_index(void)
{
	pthread_mutex_lock(&index_lock);
	sink++;
	pthread_mutex_unlock(&index_lock);
}

static void *use_index(void *unused)
{
	while (!queue_is_over())
		look_up_index();
	return unused;
}

static void wait_for_lock(double seconds)
{
	pthread_t threads[4];

	clock_gettime(CLOCK_MONOTONIC, &queue_until);
	queue_until.tv_nsec += (long)((seconds - (time_t)seconds) * 1e9);
	queue_until.tv_sec += (time_t)seconds + queue_until.tv_nsec / 1000000000;
	queue_until.tv_nsec %= 1000000000;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i ? use_index : keep_index, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* From a process that is not part of the program: nothing in it moves. */
static void kill_later(double seconds)
{
	pid_t pid = getpid();

	if (fork())
		return;
	setsid();
	if (fork())
		_exit(0);
	pause_s(seconds);
	kill(pid, SIGKILL);
	_exit(0);
}

static void deadlock(double seconds)
{
	pthread_t one, two;

	kill_later(seconds);
	pthread_create(&one, NULL, transfer_money, NULL);
	pthread_create(&two, NULL, write_journal, NULL);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *word;
		void (*run)(double seconds);
	} kinds[] = {
		{ "socket", wait_for_socket }, { "pipe", wait_for_pipe },
		{ "child", convert_file },     { "sleep", pause_s },
		{ "compute", compute_sums },   { "mutex", deadlock },
		{ "lock", wait_for_lock },
	};
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;

	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].word, argv[1]))
			kinds[i].run(seconds);
	return 0;
}
