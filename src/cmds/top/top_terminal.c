#include "cmds/top/top_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/buf.h"

#define ENTER "\033[?1049h\033[?25l" /* the other screen, no cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define LINES_DEFAULT 24
#define LINES_LEAST 4
#define COLUMNS_DEFAULT 80
#define COLUMNS_LEAST 40

/* Of both processes: the child enters, the parent restores, whatever ends the child. */
struct shared {
	uint32_t entered;
};

static struct shared *shared;
static struct termios before;
static int keyboard = -1;
static volatile sig_atomic_t interrupted;

static void top_write(const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t wrote = write(STDOUT_FILENO, text, bytes);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return;
		text += wrote;
		bytes -= (size_t)wrote;
	}
}

bool top_terminal_prepare(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		shared = NULL;
	if (!shared || !isatty(STDOUT_FILENO))
		return false;
	keyboard = isatty(STDIN_FILENO) ? STDIN_FILENO : open("/dev/tty", O_RDONLY | O_CLOEXEC);
	return keyboard >= 0 && !tcgetattr(keyboard, &before);
}

static void top_on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static void on_resize(int number)
{
	(void)number; /* it interrupts poll() */
}

void top_terminal_enter(void)
{
	struct sigaction interrupt = { .sa_handler = top_on_interrupt },
			 resize = { .sa_handler = on_resize };
	struct termios raw = before;

	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGWINCH, &resize, NULL);
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* the shell would get this screen */
	kymo__store_release(&shared->entered, 1);
	tcsetattr(keyboard, TCSAFLUSH, &raw);
	top_write(ENTER, strlen(ENTER));
}

void top_terminal_restore(void)
{
	if (!shared || !kymo__load_acquire(&shared->entered))
		return;
	kymo__store_release(&shared->entered, 0);
	tcsetattr(keyboard, TCSAFLUSH, &before);
	top_write(LEAVE, strlen(LEAVE));
}

int top_terminal_lines(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row)
		return LINES_DEFAULT;
	return size.ws_row < LINES_LEAST ? LINES_LEAST : size.ws_row;
}

int top_terminal_columns(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return COLUMNS_DEFAULT;
	return size.ws_col < COLUMNS_LEAST ? COLUMNS_LEAST : size.ws_col;
}

/* A line is erased before it is written: after a full one the cursor stands on its last column. */
void top_terminal_show(const char *text, size_t bytes)
{
	struct buf screen = { 0 };
	const char *end = text + bytes;

	buf_text(&screen, "\033[H");
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		stop = stop ? stop : end;
		buf_text(&screen, "\033[2K");
		buf_add(&screen, text, (size_t)(stop - text));
		text = stop + 1;
		buf_text(&screen, text < end ? "\r\n" : "");
	}
	buf_text(&screen, "\033[0m");
	/* What is below the last line, if it is not the last of the screen. */
	buf_text(&screen, "\0337\033[1E\033[0J\0338");
	top_write(buf_get(&screen), screen.used);
	buf_fini(&screen);
}

static enum top_key escape_key(const char *bytes, size_t count)
{
	static const struct {
		const char *bytes;
		enum top_key key;
	} keys[] = { { "[A", TOP_KEY_UP },	 { "OA", TOP_KEY_UP },
		     { "[B", TOP_KEY_DOWN },	 { "OB", TOP_KEY_DOWN },
		     { "[5~", TOP_KEY_PAGE_UP }, { "[6~", TOP_KEY_PAGE_DOWN },
		     { "[H", TOP_KEY_HOME },	 { "OH", TOP_KEY_HOME } };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (count == strlen(keys[i].bytes) && !memcmp(bytes, keys[i].bytes, count))
			return keys[i].key;
	return TOP_KEY_NONE;
}

static enum top_key plain_key(char byte)
{
	switch (byte) {
	case 'q':
	case 'Q':
	case 3: return TOP_KEY_QUIT;
	case 'p':
	case ' ': return TOP_KEY_PAUSE;
	case 's': return TOP_KEY_SORT;
	case 't': return TOP_KEY_THREADS;
	case 'h':
	case '?': return TOP_KEY_HELP;
	case 'k': return TOP_KEY_UP;
	case 'j': return TOP_KEY_DOWN;
	case 'g': return TOP_KEY_HOME;
	default: return TOP_KEY_NONE;
	}
}

enum top_key top_terminal_key(int wait_ms)
{
	struct pollfd ready = { .fd = keyboard, .events = POLLIN };
	char bytes[8];
	ssize_t count;

	if (!interrupted && poll(&ready, 1, wait_ms) <= 0)
		return interrupted ? TOP_KEY_QUIT : TOP_KEY_NONE;
	if (interrupted)
		return TOP_KEY_QUIT;
	count = read(keyboard, bytes, 1);
	if (count < 0 && errno == EINTR)
		return TOP_KEY_NONE;
	if (count <= 0)
		return TOP_KEY_QUIT;
	if (bytes[0] != '\033' || poll(&ready, 1, 20) <= 0)
		return plain_key(bytes[0]);
	count = read(keyboard, bytes, sizeof(bytes));
	return count > 0 ? escape_key(bytes, (size_t)count) : TOP_KEY_NONE;
}
