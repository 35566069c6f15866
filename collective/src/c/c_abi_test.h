/* The parts of the test of the C interface that its files share. */
#ifndef MUSTER_C_ABI_TEST_H
#define MUSTER_C_ABI_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "muster/collective.h"

/* If `condition` does not hold, prints the last error of the library and ends the process. */
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: failed: %s\n  the last error: %s\n", __FILE__, __LINE__, #condition, \
              muster_last_error());                                                                \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

#define CHECK_OK(call) CHECK((call) == MUSTER_OK)

/* Calls all functions of a session, on one of the two ranks of `world`, which it takes over. Its
 * files are in `folder`. */
void check_session(muster_comm* world, const char* folder);

/* Checks operations, and results that the library allocates. */
void check_operations(muster_session* session);

/* Connects with these options `times` times, and checks that nothing is left behind. */
void check_again(const muster_options* options, int times);

#endif
