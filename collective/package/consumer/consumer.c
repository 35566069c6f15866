/* consumer RANK FILE: one of two ranks that meet by FILE and add up their ranks. */
#include <muster/collective.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** words) {
  muster_options options = MUSTER_OPTIONS_INIT;
  muster_comm* world = NULL;
  float value = 0;
  if (count != 3) return 2;
  options.rank = atoi(words[1]);
  options.size = 2;
  options.rendezvous_file = words[2];
  options.timeout_ms = 30000;
  value = (float)options.rank + 1;
  if (muster_connect(&options, &world) != MUSTER_OK ||
      muster_all_reduce(world, &value, &value, 1, MUSTER_FLOAT32, MUSTER_SUM, 1, 1) != MUSTER_OK) {
    fprintf(stderr, "consumer: %s\n", muster_last_error());
    return 1;
  }
  muster_disconnect(world);
  return value == 3 ? 0 : 1;
}
