#include "serve/access/peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define OTHERS_EACH 32 /* connections of one other user; a browser opens about seven */
#define OTHERS_PART 8 /* all other users may have this part of all connections, */
#define REMOTE_PART 2 /* and other machines this one */
#define ANSWERS_MOST 16 /* read for one question before it counts as not answered */
#define OVERFLOW_UID 65534 /* what the kernel reports for users of other namespaces, too */

/* ---- what the kernel knows of a connection -------------------------------------------------- */

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 ask;
};

union answer {
	struct nlmsghdr head;
	char bytes[4096];
};

union address {
	struct sockaddr_storage all;
	struct sockaddr some;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

/* The two ends of a connection, as seen from here. */
struct ends {
	union address peer, here;
};

static pthread_mutex_t diag_lock = PTHREAD_MUTEX_INITIALIZER; /* of the two below */
static int diag_fd = -1;
static uint32_t diag_number;

static void open_diag(void)
{
	struct timeval soon = { .tv_usec = 200000 };

	diag_fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (diag_fd >= 0)
		setsockopt(diag_fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
}

static void fill_address(const union address *address, __be32 out[4], __be16 *port)
{
	if (address->some.sa_family == AF_INET) {
		out[0] = address->four.sin_addr.s_addr;
		*port = address->four.sin_port;
	} else {
		memcpy(out, &address->six.sin6_addr, 16);
		*port = address->six.sin6_port;
	}
}

static void write_question(const struct ends *ends, struct question *out)
{
	*out = (struct question){
		.head = { .nlmsg_len = sizeof(*out),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST,
			  .nlmsg_seq = ++diag_number },
		.ask = { .sdiag_family = (__u8)ends->peer.some.sa_family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = 1u << TCP_ESTABLISHED,
			 .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	fill_address(&ends->peer, out->ask.id.idiag_src, &out->ask.id.idiag_sport);
	fill_address(&ends->here, out->ask.id.idiag_dst, &out->ask.id.idiag_dport);
}

/* The answer to this question, from the kernel; answers to earlier ones are skipped. */
static bool read_answer(const struct question *question, union answer *out)
{
	for (int i = 0; i < ANSWERS_MOST; i++) {
		struct sockaddr_nl from = { 0 };
		socklen_t from_bytes = sizeof(from);
		ssize_t got = recvfrom(diag_fd, out, sizeof(*out), 0, (struct sockaddr *)&from,
				       &from_bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return false;
		if (from.nl_pid || got < (ssize_t)NLMSG_LENGTH(0) ||
		    out->head.nlmsg_seq != question->head.nlmsg_seq)
			continue;
		return NLMSG_OK(&out->head, (size_t)got) &&
		       out->head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
		       got >= (ssize_t)NLMSG_LENGTH(sizeof(struct inet_diag_msg));
	}
	return false;
}

/*
 * A socket in TIME_WAIT, or one that its process has closed, has uid 0 and inode 0; and where no
 * connection matches, the kernel returns a listening socket. Only an established connection with an
 * inode has an owner.
 */
static int64_t owner_in(const struct question *question, const struct inet_diag_msg *message)
{
	const struct inet_diag_sockid *asked = &question->ask.id, *got = &message->id;

	if (message->idiag_state != TCP_ESTABLISHED || !message->idiag_inode ||
	    got->idiag_sport != asked->idiag_sport || got->idiag_dport != asked->idiag_dport)
		return -1;
	if (message->idiag_family == question->ask.sdiag_family &&
	    (memcmp(got->idiag_src, asked->idiag_src, sizeof(got->idiag_src)) ||
	     memcmp(got->idiag_dst, asked->idiag_dst, sizeof(got->idiag_dst))))
		return -1;
	return (int64_t)message->idiag_uid;
}

static int64_t ask_kernel(const struct ends *ends)
{
	struct question question;
	union answer answer;
	int64_t uid = -1;

	pthread_mutex_lock(&diag_lock);
	write_question(ends, &question);
	if (diag_fd >= 0 &&
	    send(diag_fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question) &&
	    read_answer(&question, &answer))
		uid = owner_in(&question, NLMSG_DATA(&answer.head));
	pthread_mutex_unlock(&diag_lock);
	return uid;
}

/* While our end is established, no other connection can have the same two addresses. */
static bool is_established(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t bytes = sizeof(info);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) &&
	       info.tcpi_state == TCP_ESTABLISHED;
}

/* ---- who it is ------------------------------------------------------------------------------ */

static bool is_loopback(const union address *address)
{
	const struct in6_addr *six = &address->six.sin6_addr;

	if (address->some.sa_family == AF_INET)
		return ntohl(address->four.sin_addr.s_addr) >> 24 == 127;
	return address->some.sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(six) ||
		(IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127));
}

static void identify_by_socket(struct peer *peer)
{
	struct ucred user = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(user);

	peer->by_socket = true;
	if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &user, &bytes) || user.uid == (uid_t)-1)
		return;
	peer->uid = (int64_t)user.uid;
	peer->kind = !user.uid || user.uid == geteuid() ? PEER_OWNER : PEER_OTHER;
}

/* Root is another user here: services of root connect on behalf of others. */
static enum peer_kind peers_kind_of(int64_t uid)
{
	if (uid < 0)
		return PEER_UNKNOWN;
	if (uid != (int64_t)geteuid())
		return PEER_OTHER;
	return uid == OVERFLOW_UID ? PEER_UNKNOWN : PEER_OWNER;
}

static void identify_by_address(struct peer *peer, const struct ends *ends)
{
	int64_t uid = ask_kernel(ends);

	if (uid < 0 || !is_established(peer->fd))
		return;
	peer->uid = uid;
	peer->kind = peers_kind_of(uid);
}

static void identify(struct peer *peer)
{
	struct ends ends = { .peer = { .all = { 0 } }, .here = { .all = { 0 } } };
	socklen_t here_bytes = sizeof(ends.here), peer_bytes = sizeof(ends.peer);

	if (getsockname(peer->fd, &ends.here.some, &here_bytes))
		return;
	if (ends.here.some.sa_family == AF_UNIX)
		identify_by_socket(peer);
	else if (getpeername(peer->fd, &ends.peer.some, &peer_bytes))
		return;
	else if (!is_loopback(&ends.peer))
		peer->kind = PEER_REMOTE;
	else
		identify_by_address(peer, &ends);
}

bool peers_can_identify(int listening)
{
	struct ends ends = { .peer = { .all = { 0 } }, .here = { .all = { 0 } } };
	socklen_t bytes = sizeof(ends.here), mine = sizeof(ends.peer);
	int fd = -1;
	bool can = false;

	if (!getsockname(listening, &ends.here.some, &bytes))
		fd = socket(ends.here.some.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		can = !connect(fd, &ends.here.some, bytes) &&
		      !getsockname(fd, &ends.peer.some, &mine) &&
		      peers_kind_of(ask_kernel(&ends)) == PEER_OWNER;
		close(fd);
	}
	return can;
}

/* ---- how many ------------------------------------------------------------------------------- */

static pthread_mutex_t peers_lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and its members */
static struct peer *oldest;
static size_t peers_most;

void peers_start(size_t most)
{
	peers_most = most;
	open_diag();
}

static bool is_guest(const struct peer *peer)
{
	return peer->kind == PEER_OTHER || peer->kind == PEER_UNKNOWN;
}

/* The first one without a token of those that count with `peer`, itself last; *count: how many
   there are. */
static struct peer *oldest_like(const struct peer *peer, bool same_user, size_t *count)
{
	struct peer *first = NULL;

	*count = 0;
	for (struct peer *at = oldest; at; at = at->newer) {
		bool like = is_guest(peer) ? is_guest(at) : at->kind == peer->kind;

		if (at->dropped || !like || (same_user && at->uid != peer->uid))
			continue;
		++*count;
		if (!first && !at->trusted)
			first = at;
	}
	return first;
}

static void drop_oldest(const struct peer *peer, bool same_user, size_t most)
{
	size_t count;
	struct peer *first = oldest_like(peer, same_user, &count);

	if (count <= most || !first)
		return;
	first->dropped = true;
	shutdown(first->fd, SHUT_RDWR); /* libmicrohttpd reads the end and closes it */
}

/* The owner's connections are limited by libmicrohttpd alone. */
static void make_room_for(const struct peer *peer)
{
	if (is_guest(peer)) {
		drop_oldest(peer, true, OTHERS_EACH);
		drop_oldest(peer, false, peers_most / OTHERS_PART);
	} else if (peer->kind == PEER_REMOTE) {
		drop_oldest(peer, false, peers_most / REMOTE_PART);
	}
}

struct peer *peers_enter(int fd)
{
	struct peer *peer = calloc(1, sizeof(*peer)), **at = &oldest;

	if (!peer) {
		shutdown(fd, SHUT_RDWR);
		return NULL;
	}
	*peer = (struct peer){ .kind = PEER_UNKNOWN, .uid = -1, .fd = fd };
	identify(peer);
	pthread_mutex_lock(&peers_lock);
	while (*at)
		at = &(*at)->newer;
	*at = peer;
	make_room_for(peer);
	pthread_mutex_unlock(&peers_lock);
	return peer;
}

void peers_leave(struct peer *peer)
{
	struct peer **at = &oldest;

	if (!peer)
		return;
	pthread_mutex_lock(&peers_lock);
	while (*at && *at != peer)
		at = &(*at)->newer;
	if (*at)
		*at = peer->newer;
	pthread_mutex_unlock(&peers_lock);
	free(peer);
}

void peers_trust(struct peer *peer)
{
	pthread_mutex_lock(&peers_lock);
	peer->trusted = true;
	pthread_mutex_unlock(&peers_lock);
}
