/* Every function of muster/collective.h, called from C on two ranks that are two processes. */
#define _POSIX_C_SOURCE 200809L
#include "c_abi_test.h"

#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_place(muster_comm* world, int rank) {
  char text[200];
  char little[5];
  CHECK(muster_rank(world) == rank);
  CHECK(muster_size(world) == 2);
  CHECK(muster_local_rank(world) == rank && muster_local_size(world) == 2);
  CHECK(muster_cross_rank(world) == 0 && muster_cross_size(world) == 1);
  CHECK(strcmp(muster_host(world), "here") == 0);
  CHECK_OK(muster_explain(world, MUSTER_FLOAT32, 1 << 20, text, sizeof(text)));
  CHECK(strlen(text) > 0);
  CHECK_OK(muster_explain(world, MUSTER_FLOAT32, 1 << 20, little, sizeof(little)));
  CHECK(strncmp(little, text, 4) == 0 && little[4] == '\0');
}

static void check_blocking_reductions(muster_comm* world, int rank) {
  float in[4] = {1, 2, 3, 4};
  float out[4] = {0, 0, 0, 0};
  double one = rank + 1;
  double doubled = 0;
  muster_tensor tensors[2];
  const uint64_t counts[2] = {3, 1};
  CHECK_OK(muster_all_reduce(world, in, out, 4, MUSTER_FLOAT32, MUSTER_AVERAGE, 1, 1));
  CHECK(memcmp(in, out, sizeof(in)) == 0);
  CHECK_OK(muster_all_reduce(world, &one, &doubled, 1, MUSTER_FLOAT64, MUSTER_SUM, 2, 10));
  CHECK(doubled == 60);

  tensors[0].in = in;
  tensors[0].out = out;
  tensors[0].count = 4;
  tensors[1].in = in + 1;
  tensors[1].out = in + 1;
  tensors[1].count = 0;
  CHECK_OK(muster_all_reduce_list(world, tensors, 2, MUSTER_FLOAT32, MUSTER_SUM, 1, 1));
  CHECK(out[3] == 8);

  CHECK_OK(muster_reduce_scatter(world, in, out, 2, MUSTER_FLOAT32, MUSTER_SUM, 1, 1));
  CHECK(out[0] == (rank == 0 ? 2 : 6) && out[1] == (rank == 0 ? 4 : 8));
  CHECK_OK(muster_reduce_scatter_unequal(world, in, out, counts, MUSTER_FLOAT32, MUSTER_MAX, 1, 1));
  CHECK(out[0] == (rank == 0 ? 1 : 4));
  CHECK_OK(
      muster_reduce(world, in, rank == 1 ? out : NULL, 4, MUSTER_FLOAT32, MUSTER_PRODUCT, 1, 1, 1));
  CHECK(rank == 0 || out[3] == 16);
}

static void check_blocking_moves(muster_comm* world, int rank) {
  char part[3];
  char all[4];
  char swapped[2];
  uint64_t lengths[2] = {1, 3};
  uint64_t sent[2] = {0, 0};
  uint64_t received[2] = {0, 0};
  memset(part, 'a' + rank, sizeof(part));
  CHECK_OK(muster_all_gather(world, part, 2, all));
  CHECK(memcmp(all, "aabb", 4) == 0);
  CHECK_OK(muster_all_gather_unequal(world, part, all, lengths));
  CHECK(memcmp(all, "abbb", 4) == 0);
  CHECK_OK(muster_broadcast(world, part, 3, 1));
  CHECK(memcmp(part, "bbb", 3) == 0);

  memcpy(part, rank == 0 ? "01" : "23", 2);
  CHECK_OK(muster_all_to_all(world, part, swapped, 1));
  CHECK(memcmp(swapped, rank == 0 ? "02" : "13", 2) == 0);
  /* Rank 0 sends two bytes to rank 1, and gets nothing. */
  sent[1] = rank == 0 ? 2 : 0;
  received[0] = rank == 0 ? 0 : 2;
  CHECK_OK(muster_all_to_all_unequal(world, part, sent, swapped, received));
  CHECK(memcmp(swapped, rank == 0 ? "02" : "01", 2) == 0);

  CHECK_OK(muster_barrier(world));
  if (rank == 0) {
    CHECK_OK(muster_send(world, "hey", 3, 1));
  } else {
    CHECK_OK(muster_receive(world, part, 3, 0));
    CHECK(memcmp(part, "hey", 3) == 0);
  }
}

static void check_shared(muster_comm* world) {
  float* const shared = muster_allocate_shared(world, 100 * sizeof(float));
  int i = 0;
  /* There may be none, where the system forbids it. */
  if (shared == NULL) return;
  for (i = 0; i < 100; ++i) shared[i] = 1;
  CHECK_OK(muster_all_reduce(world, shared, shared, 100, MUSTER_FLOAT32, MUSTER_SUM, 1, 1));
  CHECK(shared[0] == 2 && shared[99] == 2);
  muster_free_shared(world, shared);
}

static void check_group(muster_comm* world, int rank) {
  const int reversed[2] = {1, 0};
  muster_comm* group = NULL;
  int who = rank;
  CHECK_OK(muster_group(world, reversed, 2, &group));
  CHECK(muster_rank(group) == 1 - rank && muster_size(group) == 2);
  CHECK_OK(muster_broadcast(group, &who, sizeof(who), 0));
  CHECK(who == 1);
  muster_disconnect(group);
}

static void check_blocking_errors(muster_comm* world) {
  float value = 1;
  CHECK(muster_broadcast(world, &value, sizeof(value), 7) == MUSTER_BAD_ARGUMENT);
  CHECK(muster_last_error_code() == MUSTER_BAD_ARGUMENT);
  CHECK(strlen(muster_last_error()) > 0);
  CHECK(muster_last_error_rank() == -1 && strcmp(muster_last_error_host(), "") == 0);
  CHECK(muster_all_reduce(world, &value, &value, 1, 99, MUSTER_SUM, 1, 1) == MUSTER_BAD_ARGUMENT);
  CHECK(muster_all_reduce(world, &value, &value, 1, 257, MUSTER_SUM, 1, 1) == MUSTER_BAD_ARGUMENT);
  CHECK(muster_all_reduce(NULL, &value, &value, 1, 1, 1, 1, 1) == MUSTER_BAD_ARGUMENT);
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
  check_blocking_reductions(world, rank);
  check_blocking_moves(world, rank);
  check_shared(world);
  check_group(world, rank);
  check_blocking_errors(world);
  /* Rank 1 leaves the session's world open for rank 0's last words: both end in order. */
  check_session(world, folder);
  check_again(&options, again);
}

/* An argument: how many times it connects again. */
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
