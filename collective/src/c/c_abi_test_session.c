/* The asynchronous half of the C interface, from C. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "c_abi_test.h"

/* Room that a session asks for. */
struct room {
  char bytes[16];
  uint64_t total;
};

static void* give_room(void* user, const uint64_t* bytes_of_rank, int ranks) {
  struct room* const room = user;
  int rank = 0;
  room->total = 0;
  for (rank = 0; rank < ranks; ++rank) room->total += bytes_of_rank[rank];
  return room->total <= sizeof(room->bytes) ? room->bytes : NULL;
}

/* A callback that another thread waits for. */
struct call {
  pthread_mutex_t mutex;
  pthread_cond_t done;
  int code;
};

static void tell(void* user, int code) {
  struct call* const call = user;
  pthread_mutex_lock(&call->mutex);
  call->code = code;
  pthread_cond_signal(&call->done);
  pthread_mutex_unlock(&call->mutex);
}

static void check_when_done(muster_session* session) {
  struct call call = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, -1};
  muster_ticket ticket = 0;
  CHECK_OK(muster_session_barrier(session, "called back", &ticket));
  CHECK_OK(muster_session_when_done(session, ticket, tell, &call));
  pthread_mutex_lock(&call.mutex);
  while (call.code == -1) pthread_cond_wait(&call.done, &call.mutex);
  pthread_mutex_unlock(&call.mutex);
  CHECK(call.code == MUSTER_OK);
}

static void check_session_reductions(muster_session* session, int rank) {
  float first[2] = {1, 2};
  float second[1] = {5};
  float part[1] = {0};
  const uint64_t counts[2] = {1, 1};
  muster_tensor tensors[2];
  muster_ticket tickets[3] = {0, 0, 0};
  tensors[0].in = tensors[0].out = first;
  tensors[0].count = 2;
  tensors[1].in = tensors[1].out = second;
  tensors[1].count = 1;
  CHECK_OK(muster_session_all_reduce_list(session, "list", tensors, 2, MUSTER_FLOAT32, MUSTER_SUM,
                                          1, 1, &tickets[0]));
  CHECK_OK(muster_session_wait(session, tickets[0]));
  CHECK(first[1] == 4 && second[0] == 10);
  CHECK_OK(muster_session_all_reduce(session, "one", first, first, 2, MUSTER_FLOAT32,
                                     MUSTER_AVERAGE, 1, 2, &tickets[1]));
  CHECK_OK(muster_session_wait(session, tickets[1]));
  CHECK(first[0] == 4 && first[1] == 8);
  CHECK_OK(muster_session_reduce_scatter(session, "scatter", first, part, counts, MUSTER_FLOAT32,
                                         MUSTER_SUM, 1, 1, &tickets[2]));
  CHECK_OK(muster_session_wait(session, tickets[2]));
  CHECK(part[0] == (rank == 0 ? 8 : 16));
}

static void check_session_moves(muster_session* session, int rank) {
  struct room room;
  char data[2] = {'x', 'x'};
  uint64_t sent[2] = {1, 1};
  muster_ticket ticket = 0;
  CHECK_OK(muster_session_all_gather(session, "gather", rank == 0 ? "a" : "bb", rank == 0 ? 1 : 2,
                                     give_room, &room, &ticket));
  CHECK_OK(muster_session_wait(session, ticket));
  CHECK(room.total == 3 && memcmp(room.bytes, "abb", 3) == 0);
  if (rank == 0) memcpy(data, "hi", 2);
  CHECK_OK(muster_session_broadcast(session, "cast", data, 2, 0, &ticket));
  CHECK_OK(muster_session_wait(session, ticket));
  CHECK(memcmp(data, "hi", 2) == 0);
  CHECK_OK(muster_session_all_to_all(session, "swap", rank == 0 ? "01" : "23", sent, give_room,
                                     &room, &ticket));
  CHECK_OK(muster_session_wait(session, ticket));
  CHECK(memcmp(room.bytes, rank == 0 ? "02" : "13", 2) == 0);
}

static void check_timeline(muster_session* session, const char* folder, int rank) {
  char path[200];
  muster_ticket ticket = 0;
  snprintf(path, sizeof(path), "%s/timeline-%d.json", folder, rank);
  CHECK_OK(muster_session_start_timeline(session, path));
  CHECK(muster_session_start_timeline(session, "/nonexistent/timeline.json") == MUSTER_SYSTEM);
  CHECK_OK(muster_session_start_timeline(session, path));
  CHECK_OK(muster_session_mark_cycles(session, 1));
  CHECK_OK(muster_session_barrier(session, "on the timeline", &ticket));
  CHECK_OK(muster_session_wait(session, ticket));
  CHECK_OK(muster_session_stop_timeline(session));
  CHECK(unlink(path) == 0);
}

static void check_session_errors(muster_session* session) {
  muster_ticket ticket = 0;
  float value = 1;
  CHECK(muster_session_all_reduce(session, NULL, &value, &value, 1, MUSTER_FLOAT32, MUSTER_SUM, 1,
                                  1, &ticket) == MUSTER_BAD_ARGUMENT);
  CHECK(muster_session_all_reduce(session, "x", &value, &value, 1, 99, MUSTER_SUM, 1, 1, &ticket) ==
        MUSTER_BAD_ARGUMENT);
  CHECK(ticket == 0);
  CHECK(muster_session_all_gather(session, "x", NULL, 0, NULL, NULL, &ticket) ==
        MUSTER_BAD_ARGUMENT);
}

void check_session(muster_comm* world, const char* folder) {
  muster_session_options options = MUSTER_SESSION_OPTIONS_INIT;
  muster_session* session = NULL;
  muster_ticket ticket = 0;
  void* shared = NULL;
  const int rank = muster_rank(world);
  options.stall_warning_ms = 0;
  CHECK_OK(muster_session_start(world, &options, &session));
  CHECK(muster_session_rank(session) == rank && muster_session_size(session) == 2);
  check_session_reductions(session, rank);
  check_session_moves(session, rank);
  check_when_done(session);
  check_timeline(session, folder, rank);
  check_session_errors(session);
  check_operations(session);
  shared = muster_session_allocate_shared(session, 64);
  if (shared != NULL) muster_session_free_shared(session, shared);
  CHECK_OK(muster_session_join(session, &ticket));
  CHECK_OK(muster_session_wait(session, ticket));
  CHECK(muster_session_last_joined(session) >= 0);
  CHECK_OK(muster_session_barrier(session, "the last", &ticket));
  while (!muster_session_done(session, ticket)) {
  }
  CHECK_OK(muster_session_wait(session, ticket));
  muster_session_end(session);
}
