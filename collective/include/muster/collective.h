/* libmuster_collective for C and for everything that calls C: the sessions of
 * muster/collective/session.h on pointers, counts and numbers. The header there says what each
 * operation does; here stands how it is called.
 *
 *   muster_comm* world = NULL;
 *   muster_session* session = NULL;
 *   muster_tensor gradient = {g, g, n};
 *   muster_operation sum = MUSTER_OPERATION_INIT;
 *   sum.kind = MUSTER_OPERATION_ALL_REDUCE;
 *   sum.type = MUSTER_FLOAT32;
 *   sum.op = MUSTER_AVERAGE;
 *   sum.name = "gradient";
 *   sum.tensors = &gradient;
 *   sum.tensor_count = 1;
 *   if (muster_connect(NULL, &world) != MUSTER_OK ||
 *       muster_session_start(world, NULL, &session) != MUSTER_OK ||
 *       muster_session_run(session, &sum, -1, NULL, NULL) != MUSTER_OK) {
 *     fprintf(stderr, "%s\n", muster_last_error());
 *   }
 *   muster_session_end(session);
 *
 * Errors: a function that can fail returns MUSTER_OK or one of the codes below, and
 * muster_last_error() tells the calling thread the rest. What a failed function would have put out
 * is left as it was. No C++ exception comes out of here, and none may come out of a callback.
 *
 * Ownership: a string or array that is passed in is read during the call only; a buffer of an
 * asynchronous operation stays the caller's, who leaves it alone until the operation is done.
 * Thread-safety: as in the C++ headers. One call at a time on one muster_comm; a muster_session
 * from any thread, and one may be ended while others are in a call: those return, and so does
 * every call that comes later, with MUSTER_BAD_ARGUMENT.
 *
 * Stability: within one soname functions and numbers are only added. Structs begin with their size,
 * so that they can grow: begin with their _INIT.
 */
#ifndef MUSTER_COLLECTIVE_H
#define MUSTER_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The names and the typedefs of C. */
/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using) */

typedef struct muster_comm muster_comm;
typedef struct muster_session muster_session;

/* An operation that was handed to a session; 0 is none. */
typedef uint64_t muster_ticket;

enum {
  MUSTER_OK = 0,
  MUSTER_BAD_ARGUMENT = 1,   /* the call itself cannot be right */
  MUSTER_CONFIGURATION = 2,  /* options or environment are missing or contradict each other */
  MUSTER_AUTHENTICATION = 3, /* the two sides of a connection hold different keys */
  MUSTER_MISMATCH = 4,       /* two ranks disagree on which collective is being called */
  MUSTER_PEER_LOST = 5,      /* a rank ended: muster_last_error_rank() says which */
  MUSTER_TIMEOUT = 6,        /* a rank did not answer in time */
  MUSTER_SYSTEM = 7          /* the operating system refused */
};

/* Types of elements. 16-bit floats lie in memory as their 16 bits; a bool is a byte. */
enum {
  MUSTER_FLOAT32 = 1,
  MUSTER_FLOAT64 = 2,
  MUSTER_INT32 = 3,
  MUSTER_INT64 = 4,
  MUSTER_FLOAT16 = 5,
  MUSTER_BFLOAT16 = 6,
  MUSTER_INT8 = 7,
  MUSTER_UINT8 = 8,
  MUSTER_INT16 = 9,
  MUSTER_UINT16 = 10,
  MUSTER_UINT32 = 11,
  MUSTER_UINT64 = 12,
  MUSTER_BOOL = 13
};

/* Operations of a reduction. */
enum {
  MUSTER_SUM = 1,
  MUSTER_AVERAGE = 2,
  MUSTER_MIN = 3,
  MUSTER_MAX = 4,
  MUSTER_PRODUCT = 5,
  MUSTER_ADASUM = 6
};

/* --- The library and its errors --- */

/* "0.2.0" */
const char* muster_version(void);

/* The last failure on the calling thread: one sentence, and what to do about it. Empty before the
 * first. Valid until this thread's next failure. A success leaves it as it is. */
const char* muster_last_error(void);
int muster_last_error_code(void);

/* The rank that is to blame, the same on every rank, or -1; and its host, or "". */
int muster_last_error_rank(void);
const char* muster_last_error_host(void);

/* Bytes of one element; 0 for a number that is no type. */
size_t muster_size_of(int type);

/* --- The world --- */

/* As muster::collective::Options. What is NULL or -1 comes from the environment. */
typedef struct muster_options {
  size_t struct_size;
  int rank;
  int size;
  const char* rendezvous;
  const char* key;
  const char* rendezvous_file;
  int listener;
  const char* host;
  const char* host_id;
  int64_t timeout_ms;
  const char* transport;
  const char* algorithm;
  int streams;
  int64_t arena_bytes;
  int64_t silence_ms;
  int cancel; /* a descriptor; readable: muster_connect() waits no longer for the others */
} muster_options;

#define MUSTER_OPTIONS_INIT \
  {sizeof(muster_options), -1, -1, NULL, NULL, NULL, -1, NULL, NULL, -1, NULL, NULL, -1, -1, -1, -1}

/* Waits for all ranks and joins them. `options` may be NULL: everything from the environment. */
int muster_connect(const muster_options* options, muster_comm** comm);

/* Leaves in order. NULL is nothing. */
void muster_disconnect(muster_comm* comm);

int muster_rank(const muster_comm* comm);
int muster_size(const muster_comm* comm);
int muster_local_rank(const muster_comm* comm);
int muster_local_size(const muster_comm* comm);
int muster_cross_rank(const muster_comm* comm);
int muster_cross_size(const muster_comm* comm);

/* The host name by which the others know this rank; lives as long as the communicator. */
const char* muster_host(const muster_comm* comm);

/* A communicator for the `count` ranks of the list, called by those alone. It is independent of
 * `comm` afterwards and needs a muster_disconnect() of its own. */
int muster_group(muster_comm* comm, const int* ranks, int count, muster_comm** group);

/* --- Sessions: collectives in the background, by name --- */

/* What a session reports about itself, on a thread of its own. */
typedef void (*muster_on_stall)(void* user, const char* report);

/* As muster::collective::SessionOptions. What is NULL, 0 or -1 comes from the environment. */
typedef struct muster_session_options {
  size_t struct_size;
  const char* timeline;
  int64_t stall_warning_ms;
  muster_on_stall on_stall;
  void* on_stall_user;
  uint64_t fusion_bytes;
  int autotune;
  const char* autotune_log;
  int64_t stall_limit_ms;
} muster_session_options;

#define MUSTER_SESSION_OPTIONS_INIT \
  {sizeof(muster_session_options), NULL, -1, NULL, NULL, 0, 0, NULL, -1}

/* Takes the communicator over, whatever comes of it: `comm` must not be used again. `options` may
 * be NULL. Called by all of its ranks. */
int muster_session_start(muster_comm* comm, const muster_session_options* options,
                         muster_session** session);

/* Fails what is pending, so that every wait returns, waits for those who are in a call, and leaves.
 * Results that nobody took are freed. A second time it does nothing, as with NULL. Not from a
 * callback. */
void muster_session_end(muster_session* session);

int muster_session_rank(const muster_session* session);
int muster_session_size(const muster_session* session);

/* The last rank that joined, once an operation of the kind MUSTER_OPERATION_JOIN is done. */
int muster_session_last_joined(const muster_session* session);

/* 1 where a wait would return at once, else 0. */
int muster_session_done(const muster_session* session, muster_ticket ticket);

/* --- Operations: values that are handed over, and results that the library keeps --- */

/* Kinds of operations. */
enum {
  MUSTER_OPERATION_ALL_REDUCE = 1,
  MUSTER_OPERATION_REDUCE_SCATTER = 2,
  MUSTER_OPERATION_ALL_GATHER = 3,
  MUSTER_OPERATION_BROADCAST = 4,
  MUSTER_OPERATION_ALL_TO_ALL = 5,
  MUSTER_OPERATION_BARRIER = 6,
  MUSTER_OPERATION_JOIN = 7
};

/* Not an error: the time is over, the operation is not. */
enum { MUSTER_PENDING = 8 };

typedef struct muster_tensor {
  const void* in;
  void* out;
  uint64_t count;
} muster_tensor;

/* What is handed over. It is read during the call only and can be handed over again, so that a
 * caller fills one for each gradient once. */
typedef struct muster_operation {
  size_t struct_size;
  int kind;
  int type;
  int op;
  int root;
  double prescale;
  double postscale;
  const char* name;

  /* What the ranks have to agree on besides, for a reader of the message where they do not: say,
   * "float32[?, 3]". Where it differs the operation fails with MUSTER_MISMATCH on all of them, and
   * nothing else does. Of a text beyond 4,000 bytes the rest is compared by its hash. NULL is "".
   * Not of a join. */
  const char* shape;

  /* all_reduce: one or more. The others but barrier and join: exactly one, whose count is elements
   * for reduce_scatter (of all parts) and bytes else; broadcast takes its `out`. Where all_gather
   * and all_to_all have an `out` of NULL the library keeps the result. */
  const muster_tensor* tensors;
  uint64_t tensor_count;

  /* One for every rank. reduce_scatter: the elements of its part. all_to_all: the bytes to it. Both
   * add up to the tensor's count. all_gather: the bytes that it brings, or NULL where they are not
   * known. Otherwise not read.
   *
   * With an `out`, all_gather needs them, and of all_to_all they are the bytes from each rank as
   * well. Where a rank brings something else, the operation fails on this one with MUSTER_MISMATCH
   * and writes nothing there. */
  const uint64_t* counts;
} muster_operation;

#define MUSTER_OPERATION_INIT \
  {sizeof(muster_operation), 0, 0, 0, 0, 1, 1, NULL, NULL, NULL, 0, NULL}

/* The result of an all_gather or all_to_all, packed by rank. It is the caller's, and outlives its
 * session. */
typedef struct muster_result muster_result;

/* Begins at a multiple of 64. NULL where there are no bytes. */
const void* muster_result_data(const muster_result* result);
/* The bytes that came from `rank`; 0 where there is no such rank. */
uint64_t muster_result_bytes(const muster_result* result, int rank);
/* NULL is nothing. */
void muster_result_free(muster_result* result);

/* Hands an operation over and sets `ticket`. */
int muster_session_begin(muster_session* session, const muster_operation* operation,
                         muster_ticket* ticket);

/* Waits for the end of the operation, `milliseconds` at the most (negative: for ever), and returns
 * its code, after which the ticket is spent, or MUSTER_PENDING. `result` may be NULL: what the
 * library kept is dropped. Otherwise it becomes the caller's, or NULL where there is none or the
 * operation failed.
 *
 * The thread sleeps, after it has helped for a moment; one that helps to carry an operation out
 * comes back when that is done. So a caller that has to look at something else now and then waits
 * for 100 ms, looks, and waits again. */
int muster_session_wait_for(muster_session* session, muster_ticket ticket, int64_t milliseconds,
                            muster_result** result);

/* Both in one: muster_session_begin(), and muster_session_wait_for() where that succeeds. With
 * MUSTER_PENDING `ticket` is set, otherwise 0. `ticket` may be NULL where `milliseconds` is
 * negative. */
int muster_session_run(muster_session* session, const muster_operation* operation,
                       int64_t milliseconds, muster_ticket* ticket, muster_result** result);

/* Writes a timeline in Chrome's trace format to `path`, where %r stands for the rank, until it is
 * stopped or another one is started, or the session ends. Errors: MUSTER_SYSTEM. */
int muster_session_start_timeline(muster_session* session, const char* path);
int muster_session_stop_timeline(muster_session* session);

/* Whether timelines get a mark CYCLE_START where operations begin together, from now on. */
int muster_session_mark_cycles(muster_session* session, int marks);

/* Memory that the ranks of this host share; NULL where there is no more. */
void* muster_session_allocate_shared(muster_session* session, uint64_t bytes);
void muster_session_free_shared(muster_session* session, void* memory);

/* NOLINTEND(readability-identifier-naming,modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif
