/* A process that connects again and again leaves nothing behind: no descriptor, no thread, no
 * mapping of shared memory. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <string.h>

#include "c_abi_test.h"

static int entries_in(const char* folder) {
  DIR* const entries = opendir(folder);
  int count = 0;
  CHECK(entries != NULL);
  while (readdir(entries) != NULL) ++count;
  closedir(entries);
  return count;
}

static int shared_mappings(void) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  int count = 0;
  CHECK(maps != NULL);
  while (fgets(line, sizeof(line), maps) != NULL) {
    if (strstr(line, "memfd:muster") != NULL) ++count;
  }
  fclose(maps);
  return count;
}

/* Makes a world, a session on a group of it and a session on the world, each with one operation and
 * with an all_gather whose result is not taken. */
static void come_and_go(const muster_options* options) {
  const int ranks[2] = {0, 1};
  muster_tensor nothing = {NULL, NULL, 0};
  muster_operation gather = MUSTER_OPERATION_INIT;
  muster_operation barrier = MUSTER_OPERATION_INIT;
  muster_comm* comm = NULL;
  muster_comm* group = NULL;
  muster_session* sessions[2] = {NULL, NULL};
  muster_ticket ticket = 0;
  int i = 0;
  gather.kind = MUSTER_OPERATION_ALL_GATHER;
  gather.name = "gather";
  gather.tensors = &nothing;
  gather.tensor_count = 1;
  barrier.kind = MUSTER_OPERATION_BARRIER;
  barrier.name = "barrier";
  CHECK_OK(muster_connect(options, &comm));
  CHECK_OK(muster_group(comm, ranks, 2, &group));
  CHECK_OK(muster_session_start(group, NULL, &sessions[0]));
  CHECK_OK(muster_session_start(comm, NULL, &sessions[1]));
  for (i = 0; i < 2; ++i) {
    CHECK_OK(muster_session_begin(sessions[i], &gather, &ticket));
    CHECK_OK(muster_session_run(sessions[i], &barrier, -1, NULL, NULL));
  }
  for (i = 0; i < 2; ++i) {
    muster_session_end(sessions[i]);
    /* Calls after the end fail. */
    CHECK(muster_session_wait_for(sessions[i], ticket, 0, NULL) == MUSTER_BAD_ARGUMENT);
    CHECK(strcmp(muster_last_error(), "the session has ended") == 0);
    CHECK(muster_session_begin(sessions[i], &barrier, &ticket) == MUSTER_BAD_ARGUMENT);
    CHECK(muster_session_rank(sessions[i]) == -1);
    muster_session_end(sessions[i]);
  }
}

void check_again(const muster_options* options, int times) {
  int descriptors = 0;
  int threads = 0;
  int i = 0;
  /* The first time may load modules that stay: random numbers, the name service. */
  come_and_go(options);
  descriptors = entries_in("/proc/self/fd");
  threads = entries_in("/proc/self/task");
  for (i = 0; i < times; ++i) come_and_go(options);
  CHECK(entries_in("/proc/self/fd") == descriptors);
  /* A thread that was joined may be listed for a moment longer. */
  CHECK(entries_in("/proc/self/task") <= threads + 1);
  CHECK(shared_mappings() == 0);
}
