/* Says which signals arrive, one word each, with the value of queued ones; ends at SIGTERM. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

int main(void)
{
	static const int wanted[] = { SIGHUP,  SIGINT,	 SIGQUIT, SIGUSR1, SIGUSR2,
				      SIGALRM, SIGWINCH, SIGCONT, SIGTERM, SIGURG };
	siginfo_t info;
	sigset_t set;

	KYMO_SCOPE("signals");
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		sigaddset(&set, wanted[i]);
	sigaddset(&set, SIGRTMIN + 3);
	sigprocmask(SIG_BLOCK, &set, NULL);
	puts("ready");
	fflush(stdout);
	do {
		if (sigwaitinfo(&set, &info) < 0) {
			puts("interrupted");
			continue;
		}
		printf("%s", info.si_signo >= SIGRTMIN ? "RT" : sigabbrev_np(info.si_signo));
		if (info.si_code == SI_QUEUE)
			printf("=%d", info.si_value.sival_int);
		puts("");
		fflush(stdout);
	} while (info.si_signo != SIGTERM);
	return 0;
}
