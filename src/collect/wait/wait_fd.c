#include "collect/wait/wait_fd.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_MOST 4096
#define TCP_LISTENING 10

/* An address as written by the kernel: "0100007F:1F90", with words in host byte order. */
static void add_address(struct buf *out, const char *text)
{
	const char *colon = strchr(text, ':');
	unsigned char bytes[16];
	char readable[INET6_ADDRSTRLEN];
	size_t words = colon ? (size_t)(colon - text) / 8 : 0;

	if (words != 1 && words != 4)
		return;
	for (size_t i = 0; i < words; i++) {
		char hex[9] = { 0 };
		uint32_t word;

		memcpy(hex, text + 8 * i, 8);
		word = (uint32_t)strtoul(hex, NULL, 16);
		memcpy(bytes + 4 * i, &word, 4);
	}
	if (inet_ntop(words == 1 ? AF_INET : AF_INET6, bytes, readable, sizeof(readable)))
		buf_print(out, words == 1 ? "%s:%lu" : "[%s]:%lu", readable,
			  strtoul(colon + 1, NULL, 16));
}

static const char *tcp_state(unsigned state)
{
	static const char *const words[] = {
		"?",	      "established", "connecting",
		"connecting", "closing",     "closing",
		"closing",    "closed",	     "closed by the other side",
		"closing",    "listening",   "closing"
	};

	return state < sizeof(words) / sizeof(words[0]) ? words[state] : "?";
}

/* A row of /proc/net/tcp: "sl: local remote state … uid timeout inode". */
static bool is_socket(const char *line, uint64_t inode, char *local, char *remote, unsigned *state)
{
	uint64_t found;

	return sscanf(line, " %*d: %63s %63s %x %*s %*s %*s %*d %*d %" SCNu64, local, remote, state,
		      &found) == 4 &&
	       found == inode;
}

struct inet {
	char local[64], remote[64];
	unsigned state;
};

/* The list has a line for each socket of the machine, so a part of it must do. */
static bool find_inet(pid_t pid, const char *table, uint64_t inode, struct inet *out)
{
	char path[64], line[512];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table);
	file = fopen(path, "re");
	for (int i = 0; file && !found && i < LINES_MOST && fgets(line, sizeof(line), file); i++)
		found = is_socket(line, inode, out->local, out->remote, &out->state);
	if (file)
		fclose(file);
	return found;
}

static bool add_inet(struct buf *out, pid_t pid, const char *table, uint64_t inode)
{
	struct inet inet;

	if (!find_inet(pid, table, inode, &inet))
		return false;
	buf_print(out, "a %.3s socket, ", table);
	add_address(out, inet.local);
	if (inet.state == TCP_LISTENING) {
		buf_text(out, ", listening");
		return true;
	}
	buf_text(out, " to ");
	add_address(out, inet.remote);
	buf_print(out, ", %s", tcp_state(inet.state));
	return true;
}

bool wait_fd_add_peer(struct buf *out, pid_t pid, uint64_t inode)
{
	static const char *const tables[] = { "tcp", "tcp6", "udp", "udp6" };
	struct inet inet;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (!find_inet(pid, tables[i], inode, &inet))
			continue;
		if (i < 2 && inet.state == TCP_LISTENING)
			buf_text(out, "listening on ");
		add_address(out, i < 2 && inet.state == TCP_LISTENING ? inet.local : inet.remote);
		return true;
	}
	return false;
}

void wait_fd_describe(struct buf *out, pid_t pid, long fd)
{
	char path[64], target[1024];
	ssize_t length;
	uint64_t inode;

	snprintf(path, sizeof(path), "/proc/%d/fd/%ld", (int)pid, fd);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0) {
		buf_print(out, "descriptor %ld", fd);
		return;
	}
	target[length] = '\0';
	if (sscanf(target, "socket:[%" SCNu64 "]", &inode) == 1) {
		if (!add_inet(out, pid, "tcp", inode) && !add_inet(out, pid, "tcp6", inode) &&
		    !add_inet(out, pid, "udp", inode))
			buf_text(out, "a socket");
	} else if (!strncmp(target, "pipe:", 5)) {
		buf_text(out, "a pipe");
	} else if (!strncmp(target, "anon_inode:", 11)) {
		buf_text(out, target + 11);
	} else {
		buf_text(out, target);
	}
	buf_print(out, " (descriptor %ld)", fd);
}
