/* What the files of the C interface's test share. */
#ifndef MUSTER_C_ABI_TEST_H
#define MUSTER_C_ABI_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "muster/collective.h"

/* Ends the process where `condition` does not hold, with what the library said last. */
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: not so: %s\n  the last error: %s\n", __FILE__, __LINE__, #condition, \
              muster_last_error());                                                                \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

#define CHECK_OK(call) CHECK((call) == MUSTER_OK)

/* All functions of a session, on one of the two ranks of `world`, which it takes over. `folder` is
 * for its files. */
void check_session(muster_comm* world, const char* folder);

/* Operations as values, and the results that the library keeps. */
void check_operations(muster_session* session);

/* Connects with these options so many times, and looks for what is left. */
void check_again(const muster_options* options, int times);

#endif
