/* libmuster_collective for C and for languages that call C: the sessions of
 * muster/collective/session.h with pointers, counts and numbers. That header documents what each
 * operation does; this header documents how to call it.
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
 * Errors: a function that can fail returns MUSTER_OK or one of the codes below;
 * muster_last_error() returns the message to the calling thread. A failed function leaves its
 * output arguments unchanged. No function throws a C++ exception, and callbacks must not throw.
 *
 * Ownership: a string or array argument is read during the call only. The buffers of an
 * asynchronous operation belong to the caller, who must not use them until the operation is done.
 * An operation that writes memory of an operation in flight, or reads memory that such an operation
 * writes, is refused with MUSTER_BAD_ARGUMENT.
 * Thread-safety: as in the C++ headers. One call at a time on one muster_comm; a muster_session may
 * be used from any thread, and may be ended while other threads are in a call. These calls return,
 * and later calls return MUSTER_BAD_ARGUMENT.
 *
 * Stability: within one soname functions and numbers are only added. Structs begin with their size,
 * so that they can grow: initialise them with their _INIT macro.
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

/* An operation of a session; 0: no operation. */
typedef uint64_t muster_ticket;

enum {
  MUSTER_OK = 0,
  MUSTER_BAD_ARGUMENT = 1,   /* an argument is invalid */
  MUSTER_CONFIGURATION = 2,  /* options or environment are missing or contradict each other */
  MUSTER_AUTHENTICATION = 3, /* the two sides of a connection hold different keys */
  MUSTER_MISMATCH = 4,       /* two ranks disagree on which collective is being called */
  MUSTER_PEER_LOST = 5,      /* a rank ended: see muster_last_error_rank() */
  MUSTER_TIMEOUT = 6,        /* a rank did not answer in time */
  MUSTER_SYSTEM = 7          /* an error of the operating system */
};

/* Types of elements. A bool is a byte. */
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
  MUSTER_ADASUM = 6,
  MUSTER_BIT_AND = 7, /* integers and bools */
  MUSTER_BIT_OR = 8,
  MUSTER_BIT_XOR = 9
};

/* --- The library and its errors --- */

/* "0.2.0" */
const char* muster_version(void);

/* The message of the last failure on the calling thread, with advice; empty before the first
 * failure. Valid until this thread's next failure. Successful calls do not change it. */
const char* muster_last_error(void);
int muster_last_error_code(void);

/* The rank at fault, equal on every rank, or -1; and its host, or "". */
int muster_last_error_rank(void);
const char* muster_last_error_host(void);

/* Bytes of one element; 0 for an unknown type. */
size_t muster_size_of(int type);

/* --- The world --- */

/* See muster::collective::Options. Fields that are NULL or -1 come from the environment. */
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
  int cancel; /* a descriptor; readable: muster_connect() stops waiting */
} muster_options;

#define MUSTER_OPTIONS_INIT \
  {sizeof(muster_options), -1, -1, NULL, NULL, NULL, -1, NULL, NULL, -1, NULL, NULL, -1, -1, -1, -1}

/* Waits for all ranks and joins them. `options` may be NULL: everything from the environment. */
int muster_connect(const muster_options* options, muster_comm** comm);

/* Leaves the world. Ignores NULL. */
void muster_disconnect(muster_comm* comm);

int muster_rank(const muster_comm* comm);
int muster_size(const muster_comm* comm);
int muster_local_rank(const muster_comm* comm);
int muster_local_size(const muster_comm* comm);
int muster_cross_rank(const muster_comm* comm);
int muster_cross_size(const muster_comm* comm);

/* The host name of this rank on the other ranks; valid as long as the communicator. */
const char* muster_host(const muster_comm* comm);

/* Makes a communicator for the `count` listed ranks, which alone call it. It is independent of
 * `comm` and needs its own muster_disconnect(). */
int muster_group(muster_comm* comm, const int* ranks, int count, muster_comm** group);

/* --- Sessions: collectives in the background, by name --- */

/* Receives reports of stalled operations, on the session's thread. */
typedef void (*muster_on_stall)(void* user, const char* report);

/* See muster::collective::SessionOptions. Fields that are NULL, 0 or -1 come from the
 * environment. */
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

/* Takes over the communicator, even if it fails: `comm` must not be used again. `options` may be
 * NULL. Called by all ranks of the communicator. */
int muster_session_start(muster_comm* comm, const muster_session_options* options,
                         muster_session** session);

/* Fails pending operations, so that every wait returns, waits for threads that are in a call,
 * and leaves. Frees results that were not taken. A second call, and NULL, have no effect. Must
 * not be called from a callback. */
void muster_session_end(muster_session* session);

int muster_session_rank(const muster_session* session);
int muster_session_size(const muster_session* session);

/* The last rank that joined, once an operation of the kind MUSTER_OPERATION_JOIN is done. */
int muster_session_last_joined(const muster_session* session);

/* 1 if a wait would return at once, otherwise 0. */
int muster_session_done(const muster_session* session, muster_ticket ticket);

/* --- Operations, and results that the library allocates --- */

/* Kinds of operations. */
enum {
  MUSTER_OPERATION_ALL_REDUCE = 1,
  MUSTER_OPERATION_REDUCE_SCATTER = 2,
  MUSTER_OPERATION_ALL_GATHER = 3,
  MUSTER_OPERATION_BROADCAST = 4,
  MUSTER_OPERATION_ALL_TO_ALL = 5,
  MUSTER_OPERATION_BARRIER = 6,
  MUSTER_OPERATION_JOIN = 7,
  MUSTER_OPERATION_REDUCE = 8,
  MUSTER_OPERATION_GATHER = 9,
  MUSTER_OPERATION_SCATTER = 10,
  MUSTER_OPERATION_SEND = 11,   /* to rank `root`, with `tag` */
  MUSTER_OPERATION_RECEIVE = 12 /* from rank `root`, or from MUSTER_ANY_RANK */
};

enum { MUSTER_ANY_RANK = -1 };

/* Not an error: the time limit passed before the operation was done. */
enum { MUSTER_PENDING = 8 };

typedef struct muster_tensor {
  const void* in;
  void* out;
  uint64_t count;
} muster_tensor;

/* An operation. The struct is read during the call only and can be used again, so that a caller
 * fills one struct for each gradient once. */
typedef struct muster_operation {
  size_t struct_size;
  int kind;
  int type;
  int op;
  int root;
  double prescale;
  double postscale;
  const char* name;

  /* A text that must be equal on all ranks, for example "float32[?, 3]". If it differs, this
   * operation fails with MUSTER_MISMATCH on all ranks, and the message contains both texts.
   * Beyond 4,000 bytes the text is compared by its hash. NULL is "". Ignored for a join. */
  const char* shape;

  /* all_reduce: one or more, none of whose outputs overlaps another tensor. barrier and join: none.
   * Other kinds: exactly one, whose count is in elements for reduce and for reduce_scatter (of all
   * parts) and otherwise in bytes; broadcast and receive use its `out`. If `out` is NULL in
   * all_gather, all_to_all, gather on the root or scatter, the library allocates the result. The
   * count of a scatter is that of this rank's part. */
  const muster_tensor* tensors;
  uint64_t tensor_count;

  /* One for each rank. reduce_scatter: the elements of its part. all_to_all: the bytes sent to
   * it. Both add up to the tensor's count. all_gather: the bytes received from it, or NULL if
   * unknown. Ignored for other kinds.
   *
   * all_gather with an `out` requires counts; for all_to_all with an `out` they are also the
   * bytes received from each rank. If a rank sends another length, the operation fails on the
   * receiving rank with MUSTER_MISMATCH and writes nothing there.
   *
   * On the root only: gather: the bytes received from each rank, required with an `out`; scatter:
   * the bytes sent to each rank. */
  const uint64_t* counts;

  /* all_to_all: the bytes received from each rank, if they are not `counts`; NULL: `counts`. */
  const uint64_t* received;

  /* send and receive: a number on which both ranks agree. They have no name and no shape. */
  uint64_t tag;

  /* receive: where the rank of the sender is written before the operation is done, or NULL. It must
   * live until then. */
  int* sender;
} muster_operation;

#define MUSTER_OPERATION_INIT \
  {sizeof(muster_operation), 0, 0, 0, 0, 1, 1, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL}

/* The result of an all_gather or all_to_all, packed by rank. It belongs to the caller and may
 * outlive its session. */
typedef struct muster_result muster_result;

/* Aligned to 64 bytes. NULL if the result is empty. */
const void* muster_result_data(const muster_result* result);
/* The bytes received from `rank`; 0 for an invalid rank. */
uint64_t muster_result_bytes(const muster_result* result, int rank);
/* Ignores NULL. */
void muster_result_free(muster_result* result);

/* Starts an operation and sets `ticket`. */
int muster_session_begin(muster_session* session, const muster_operation* operation,
                         muster_ticket* ticket);

/* Waits for the end of the operation, at most `milliseconds` (negative: without limit). Returns
 * the code of the operation, after which the ticket is invalid, or MUSTER_PENDING. If `result`
 * is NULL, an allocated result is freed. Otherwise *result is set to the result, or to NULL if
 * there is none or the operation failed.
 *
 * The thread may execute operations before it sleeps, and returns only when such an operation is
 * done. A caller that has other work now and then waits for 100 ms, does that work, and waits
 * again. */
int muster_session_wait_for(muster_session* session, muster_ticket ticket, int64_t milliseconds,
                            muster_result** result);

/* muster_session_begin(), followed by muster_session_wait_for() if it succeeds. `ticket` is set
 * with MUSTER_PENDING, otherwise 0. It may be NULL if `milliseconds` is negative. */
int muster_session_run(muster_session* session, const muster_operation* operation,
                       int64_t milliseconds, muster_ticket* ticket, muster_result** result);

/* --- Operations that end without a waiting thread --- */

/* The ends of operations of any number of sessions, in the order in which they ended. One thread
 * that reads them can serve a program with many operations in flight. */
typedef struct muster_queue muster_queue;

/* NULL if memory is short. A queue is never freed. */
muster_queue* muster_queue_new(void);

/* Instead of a wait: the end of the operation is added to `queue`, with `user`. Its result, if the
 * library has allocated one, is freed. The ticket is invalid after this call. */
int muster_session_watch(muster_session* session, muster_ticket ticket, muster_queue* queue,
                         uint64_t user);

/* Waits for the next end, at most `milliseconds` (negative: without limit), sets `user` and returns
 * the code of that operation; MUSTER_PENDING if none has come. After muster_queue_end() and the
 * last end, `user` is set to 0 and MUSTER_OK is returned at once. */
int muster_queue_next(muster_queue* queue, int64_t milliseconds, uint64_t* user);

/* Ends the waits of muster_queue_next(). */
void muster_queue_end(muster_queue* queue);

/* Writes a timeline in Chrome's trace format to `path`, in which %r is replaced by the rank,
 * until it is stopped, another timeline is started, or the session ends. Errors: MUSTER_SYSTEM. */
int muster_session_start_timeline(muster_session* session, const char* path);
int muster_session_stop_timeline(muster_session* session);

/* Whether timelines get a mark CYCLE_START when operations begin together. */
int muster_session_mark_cycles(muster_session* session, int marks);

/* Allocates memory that the ranks of this host share; NULL if there is none left. */
void* muster_session_allocate_shared(muster_session* session, uint64_t bytes);
void muster_session_free_shared(muster_session* session, void* memory);

/* NOLINTEND(readability-identifier-naming,modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif
