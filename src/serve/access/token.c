#include "serve/access/token.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define SESSIONS_MOST 64

struct session {
	int64_t uid;
	char secret[TOKEN_BYTES];
};

static pthread_mutex_t sessions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct session sessions[SESSIONS_MOST];
static size_t session_count;

int token_make(char out[TOKEN_BYTES])
{
	unsigned char bytes[24];

	memset(out, 0, TOKEN_BYTES);
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* Always compares TOKEN_BYTES bytes, without a branch on any of them. */
bool token_equals(const char secret[TOKEN_BYTES], const char *given, size_t given_bytes)
{
	volatile unsigned char wrong = 0;
	char padded[TOKEN_BYTES] = { 0 };
	size_t kept = given_bytes < TOKEN_BYTES ? given_bytes : TOKEN_BYTES;

	memcpy(padded, given, kept);
	for (size_t i = 0; i < TOKEN_BYTES; i++)
		wrong = (unsigned char)(wrong | (unsigned char)(secret[i] ^ padded[i]));
	return !wrong & (given_bytes > 0) & (given_bytes == strnlen(secret, TOKEN_BYTES));
}

static struct session *find_session(int64_t uid)
{
	struct session *session = NULL;

	for (size_t i = 0; i < session_count && !session; i++)
		if (sessions[i].uid == uid)
			session = &sessions[i];
	if (session || session_count == SESSIONS_MOST)
		return session;
	session = &sessions[session_count];
	session->uid = uid;
	if (token_make(session->secret))
		return NULL;
	session_count++;
	return session;
}

const char *token_session(int64_t uid)
{
	struct session *session;

	pthread_mutex_lock(&sessions_lock);
	session = find_session(uid);
	pthread_mutex_unlock(&sessions_lock);
	return session ? session->secret : NULL;
}
