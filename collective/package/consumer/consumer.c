/* consumer RANK FILE: one of two ranks that meet by FILE and add up their ranks. */
#include <muster/collective.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** words) {
  muster_options options = MUSTER_OPTIONS_INIT;
  muster_comm* world = NULL;
  muster_session* session = NULL;
  float value = 0;
  muster_tensor tensor;
  muster_operation sum = MUSTER_OPERATION_INIT;
  if (count != 3) return 2;
  options.rank = atoi(words[1]);
  options.size = 2;
  options.rendezvous_file = words[2];
  options.timeout_ms = 30000;
  value = (float)options.rank + 1;
  tensor.in = tensor.out = &value;
  tensor.count = 1;
  sum.kind = MUSTER_OPERATION_ALL_REDUCE;
  sum.type = MUSTER_FLOAT32;
  sum.op = MUSTER_SUM;
  sum.name = "value";
  sum.tensors = &tensor;
  sum.tensor_count = 1;
  if (muster_connect(&options, &world) != MUSTER_OK ||
      muster_session_start(world, NULL, &session) != MUSTER_OK ||
      muster_session_run(session, &sum, -1, NULL, NULL) != MUSTER_OK) {
    fprintf(stderr, "consumer: %s\n", muster_last_error());
    return 1;
  }
  muster_session_end(session);
  return value == 3 ? 0 : 1;
}
