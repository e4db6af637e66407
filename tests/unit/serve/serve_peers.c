/* The other ends of connections: who the kernel says they are, and what it does not say. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "serve/access/peers.h"

struct both {
	int listening, client, server;
};

static int connected(struct both *both)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);

	both->listening = socket(AF_INET, SOCK_STREAM, 0);
	both->client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(both->listening, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(both->listening, 8), 0);
	assert_int_equal(getsockname(both->listening, (struct sockaddr *)&address, &bytes), 0);
	assert_int_equal(connect(both->client, (struct sockaddr *)&address, bytes), 0);
	both->server = accept(both->listening, NULL, NULL);
	assert_true(both->server >= 0);
	return both->server;
}

static void both_close(struct both *both)
{
	close(both->listening);
	close(both->client);
	close(both->server);
}

static enum peer_kind kind_at_accept(int fd)
{
	struct peer *peer = peers_enter(fd);
	enum peer_kind kind = peer->kind;

	assert_true(kind == PEER_UNKNOWN ? peer->uid == -1 : peer->uid == (int64_t)geteuid());
	peers_leave(peer);
	return kind;
}

static void an_open_connection_of_this_user_is_the_owners(void **state)
{
	struct both both;

	(void)state;
	connected(&both);
	if (!peers_can_identify(both.listening))
		skip(); /* this kernel does not report owners */
	assert_int_equal(kind_at_accept(both.server), PEER_OWNER);
	both_close(&both);
}

/* Each leaves the server's end with bytes to read, as a request would be. */
static void a_connection_that_its_client_has_closed_is_unknown(void **state)
{
	struct linger reset = { .l_onoff = 1 };

	(void)state;
	for (int how = 0; how < 3; how++) {
		struct both both;

		connected(&both);
		assert_int_equal(send(both.client, "GET", 3, 0), 3);
		if (how == 1)
			setsockopt(both.client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		if (how == 2) { /* a socket in TIME_WAIT has uid 0 */
			shutdown(both.client, SHUT_WR);
			poll(NULL, 0, 100);
		}
		close(both.client);
		assert_int_equal(kind_at_accept(both.server), PEER_UNKNOWN);
		both_close(&both);
	}
}

static void no_descriptor_is_needed_to_identify(void **state)
{
	struct rlimit before, none;
	struct both both;
	enum peer_kind kind;

	(void)state;
	connected(&both);
	if (!peers_can_identify(both.listening))
		skip();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	kind = kind_at_accept(both.server);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(kind, PEER_OWNER);
	both_close(&both);
}

static void a_unix_socket_names_its_peer(void **state)
{
	int ends[2];
	struct peer *peer;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	peer = peers_enter(ends[0]);
	assert_true(peer->kind == PEER_OWNER && peer->by_socket);
	peers_leave(peer);
	close(ends[0]);
	close(ends[1]);
}

/* Of connections that nobody owns, the oldest without a token makes room. */
static void the_oldest_without_a_token_is_dropped(void **state)
{
	struct peer *peers[40];
	struct both both[40];

	(void)state;
	for (int i = 0; i < 40; i++) {
		connected(&both[i]);
		close(both[i].client);
		both[i].client = -1;
		peers[i] = peers_enter(both[i].server);
		assert_int_equal(peers[i]->kind, PEER_UNKNOWN);
		if (i == 0)
			peers_trust(peers[0]);
	}
	/* 32 stay: the first, which has sent the token, and the newest 31. */
	for (int i = 0; i < 40; i++)
		assert_int_equal(peers[i]->dropped, i >= 1 && i <= 8);
	for (int i = 0; i < 40; i++) {
		peers_leave(peers[i]);
		close(both[i].listening);
		close(both[i].server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_open_connection_of_this_user_is_the_owners),
		cmocka_unit_test(a_connection_that_its_client_has_closed_is_unknown),
		cmocka_unit_test(no_descriptor_is_needed_to_identify),
		cmocka_unit_test(a_unix_socket_names_its_peer),
		cmocka_unit_test(the_oldest_without_a_token_is_dropped),
	};

	peers_start(4096);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
