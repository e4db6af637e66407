#include "collect/move/guard.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <kymo/atomic.h>

#define PAGE_BYTES 4096u

static sigjmp_buf fault_exit;
static volatile sig_atomic_t armed;

static void on_bus_error(int signal_number)
{
	if (armed)
		siglongjmp(fault_exit, 1);
	/* Not from guarded code: returning repeats the fault, with the default action. */
	signal(signal_number, SIG_DFL);
}

void guard_install(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_bus_error;
	action.sa_flags = SA_NODEFER; /* siglongjmp() does not restore the mask */
	sigaction(SIGBUS, &action, NULL);
}

/* Maps the page of the word; NULL and *rc if the file is too short. */
static char *map_page(int fd, uint64_t offset, int *rc)
{
	uint64_t page = offset & ~(uint64_t)(PAGE_BYTES - 1);
	struct stat st;
	void *base;

	*rc = -EINVAL;
	if (offset % 8)
		return NULL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < 0)
		return NULL;
	if ((uint64_t)st.st_size < 8 || offset > (uint64_t)st.st_size - 8)
		return NULL;
	base = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)page);
	*rc = base == MAP_FAILED ? -errno : 0;
	return base == MAP_FAILED ? NULL : base;
}

/* The guarded instruction: an add if expected is NULL, else a compare-and-swap. */
static int guard_change(uint64_t *word, const uint64_t *expected, uint64_t value)
{
	uint64_t old = expected ? *expected : 0;

	if (!expected) {
		kymo__fetch_add_relaxed(word, value);
		return 0;
	}
	/* Release: our copy is complete before the claim; pairs with the acquire of readers of
	   segment_first. */
	return kymo__cas_acq_rel(word, &old, value);
}

static int guarded(int fd, uint64_t offset, const uint64_t *expected, uint64_t value)
{
	int rc;
	char *page = map_page(fd, offset, &rc);

	if (!page)
		return rc;
	if (sigsetjmp(fault_exit, 0)) {
		armed = 0;
		munmap(page, PAGE_BYTES);
		return -EFAULT;
	}
	armed = 1;
	rc = guard_change((uint64_t *)(void *)(page + offset % PAGE_BYTES), expected, value);
	armed = 0;
	munmap(page, PAGE_BYTES);
	return rc;
}

int guard_swap(int fd, uint64_t offset, uint64_t expected, uint64_t wanted)
{
	return guarded(fd, offset, &expected, wanted);
}

int guard_add(int fd, uint64_t offset, uint64_t value)
{
	return guarded(fd, offset, NULL, value);
}
