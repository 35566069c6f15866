/* Every function of muster/collective.h, called from C on two ranks that are two processes. */
#define _POSIX_C_SOURCE 200809L
#include "c_abi_test.h"

#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_place(muster_comm* world, int rank) {
  CHECK(muster_rank(world) == rank);
  CHECK(muster_size(world) == 2);
  CHECK(muster_local_rank(world) == rank && muster_local_size(world) == 2);
  CHECK(muster_cross_rank(world) == 0 && muster_cross_size(world) == 1);
  CHECK(strcmp(muster_host(world), "here") == 0);
}

static void check_group(muster_comm* world, int rank) {
  const int reversed[2] = {1, 0};
  muster_comm* group = NULL;
  muster_session* session = NULL;
  int who = rank;
  muster_tensor tensor;
  muster_operation broadcast = MUSTER_OPERATION_INIT;
  tensor.in = NULL;
  tensor.out = &who;
  tensor.count = sizeof(who);
  broadcast.kind = MUSTER_OPERATION_BROADCAST;
  broadcast.name = "who";
  broadcast.tensors = &tensor;
  broadcast.tensor_count = 1;
  CHECK_OK(muster_group(world, reversed, 2, &group));
  CHECK(muster_rank(group) == 1 - rank && muster_size(group) == 2);
  CHECK_OK(muster_session_start(group, NULL, &session));
  CHECK_OK(muster_session_run(session, &broadcast, -1, NULL, NULL));
  CHECK(who == 1);
  muster_session_end(session);
  CHECK_OK(muster_group(world, reversed, 2, &group));
  muster_disconnect(group);
}

static void run_rank(int rank, const char* folder, int again) {
  muster_options options = MUSTER_OPTIONS_INIT;
  muster_comm* world = NULL;
  char file[200];
  snprintf(file, sizeof(file), "%s/meet", folder);
  options.rank = rank;
  options.size = 2;
  options.rendezvous_file = file;
  options.host = "here";
  options.timeout_ms = 60000;
  CHECK_OK(muster_connect(&options, &world));
  check_place(world, rank);
  check_group(world, rank);
  /* Each rank waits in the session until the other rank has finished, so both end in order. */
  check_session(world, folder);
  check_again(&options, again);
}

/* The optional argument is the number of further connections. */
int main(int argc, char** argv) {
  const int again = argc > 1 ? atoi(argv[1]) : 50;
  char folder[] = "/tmp/muster-c-abi-XXXXXX";
  pid_t other = 0;
  int status = 1;
  CHECK(strlen(muster_version()) >= 5);
  CHECK(muster_size_of(MUSTER_BFLOAT16) == 2 && muster_size_of(0) == 0);
  if (mkdtemp(folder) == NULL) return 1;
  other = fork();
  if (other < 0) return 1;
  if (other == 0) {
    run_rank(1, folder, again);
    exit(0);
  }
  run_rank(0, folder, again);
  if (waitpid(other, &status, 0) != other || status != 0) return 1;
  return rmdir(folder);
}
