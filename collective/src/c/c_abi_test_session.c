/* Sessions, from C. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <unistd.h>

#include "c_abi_test.h"

static muster_operation barrier_of(const char* name) {
  muster_operation barrier = MUSTER_OPERATION_INIT;
  barrier.kind = MUSTER_OPERATION_BARRIER;
  barrier.name = name;
  return barrier;
}

static void check_timeline(muster_session* session, const char* folder, int rank) {
  char path[200];
  const muster_operation barrier = barrier_of("on the timeline");
  snprintf(path, sizeof(path), "%s/timeline-%d.json", folder, rank);
  CHECK_OK(muster_session_start_timeline(session, path));
  CHECK(muster_session_start_timeline(session, "/nonexistent/timeline.json") == MUSTER_SYSTEM);
  CHECK_OK(muster_session_start_timeline(session, path));
  CHECK_OK(muster_session_mark_cycles(session, 1));
  CHECK_OK(muster_session_run(session, &barrier, -1, NULL, NULL));
  CHECK_OK(muster_session_stop_timeline(session));
  CHECK(unlink(path) == 0);
}

static void check_shared(muster_session* session) {
  float* const shared = muster_session_allocate_shared(session, 100 * sizeof(float));
  muster_tensor tensor;
  muster_operation sum = MUSTER_OPERATION_INIT;
  int i = 0;
  /* There is no shared memory if the system forbids it. */
  if (shared == NULL) return;
  for (i = 0; i < 100; ++i) shared[i] = 1;
  tensor.in = tensor.out = shared;
  tensor.count = 100;
  sum.kind = MUSTER_OPERATION_ALL_REDUCE;
  sum.type = MUSTER_FLOAT32;
  sum.op = MUSTER_SUM;
  sum.name = "shared";
  sum.tensors = &tensor;
  sum.tensor_count = 1;
  CHECK_OK(muster_session_run(session, &sum, -1, NULL, NULL));
  CHECK(shared[0] == 2 && shared[99] == 2);
  muster_session_free_shared(session, shared);
}

void check_session(muster_comm* world, const char* folder) {
  muster_session_options options = MUSTER_SESSION_OPTIONS_INIT;
  muster_session* session = NULL;
  muster_operation join = MUSTER_OPERATION_INIT;
  const muster_operation last = barrier_of("the last");
  muster_ticket ticket = 0;
  const int rank = muster_rank(world);
  options.stall_warning_ms = 0;
  CHECK_OK(muster_session_start(world, &options, &session));
  CHECK(muster_session_rank(session) == rank && muster_session_size(session) == 2);
  check_timeline(session, folder, rank);
  check_operations(session);
  check_shared(session);
  join.kind = MUSTER_OPERATION_JOIN;
  CHECK_OK(muster_session_run(session, &join, -1, NULL, NULL));
  CHECK(muster_session_last_joined(session) >= 0);
  CHECK_OK(muster_session_begin(session, &last, &ticket));
  while (!muster_session_done(session, ticket)) {
  }
  CHECK_OK(muster_session_wait_for(session, ticket, -1, NULL));
  muster_session_end(session);
}
