/* Operations, from C. */
#include <string.h>

#include "c_abi_test.h"

static muster_operation operation_of(int kind, const char* name, muster_tensor* tensor) {
  muster_operation operation = MUSTER_OPERATION_INIT;
  operation.kind = kind;
  operation.name = name;
  operation.tensors = tensor;
  operation.tensor_count = tensor == NULL ? 0 : 1;
  return operation;
}

static void check_reduction_operations(muster_session* session, int rank) {
  float in[2] = {1, 2};
  float out[2] = {0, 0};
  float part = 0;
  const uint64_t counts[2] = {1, 1};
  muster_tensor tensor;
  muster_tensor two[2];
  muster_operation sum = operation_of(MUSTER_OPERATION_ALL_REDUCE, "value.sum", &tensor);
  muster_operation scatter = operation_of(MUSTER_OPERATION_REDUCE_SCATTER, "value.part", &tensor);
  muster_ticket ticket = 7;
  int step = 0;
  tensor.in = in;
  tensor.out = out;
  tensor.count = 2;
  sum.type = MUSTER_FLOAT32;
  sum.op = MUSTER_SUM;
  sum.shape = "float32[2]";
  /* The struct is filled once and used many times. */
  for (step = 0; step < 3; ++step) {
    in[0] = (float)(rank + step);
    CHECK_OK(muster_session_run(session, &sum, -1, &ticket, NULL));
    CHECK(ticket == 0 && out[0] == 1 + 2 * step && out[1] == 4);
  }
  two[0] = tensor;
  two[1].in = two[1].out = &part;
  two[1].count = 1;
  sum.tensors = two;
  sum.tensor_count = 2;
  part = 3;
  CHECK_OK(muster_session_run(session, &sum, -1, NULL, NULL));
  CHECK(out[1] == 4 && part == 6);
  sum.tensors = &tensor;
  sum.tensor_count = 1;
  sum.op = MUSTER_AVERAGE;
  sum.prescale = 2;
  sum.postscale = 10;
  CHECK_OK(muster_session_run(session, &sum, -1, NULL, NULL));
  CHECK(out[1] == 40);

  in[0] = 1;
  tensor.out = &part;
  scatter.type = MUSTER_FLOAT32;
  scatter.op = MUSTER_MAX;
  scatter.counts = counts;
  CHECK_OK(muster_session_begin(session, &scatter, &ticket));
  CHECK_OK(muster_session_wait_for(session, ticket, -1, NULL));
  CHECK(part == (rank == 0 ? 1 : 2));
}

static int mentions(const char* words) {
  return strstr(muster_last_error(), words) != NULL;
}

/* Memory of one tensor that two operations, or two tensors of a group, would use. */
static void check_overlaps(muster_session* session, int rank) {
  float values[4] = {1, 1, 1, 1};
  float gathered[2] = {0, 0};
  const uint64_t counts[2] = {4, 4};
  muster_tensor whole;
  muster_tensor group[2];
  muster_operation sum = operation_of(MUSTER_OPERATION_ALL_REDUCE, "overlap", &whole);
  muster_operation again = operation_of(MUSTER_OPERATION_ALL_REDUCE, "overlap.again", &whole);
  muster_operation gather = operation_of(MUSTER_OPERATION_ALL_GATHER, "overlap.gather", NULL);
  muster_operation ready = operation_of(MUSTER_OPERATION_BARRIER, "overlap.ready", NULL);
  muster_tensor part;
  muster_ticket first = 0;
  muster_ticket ticket = 7;
  whole.in = whole.out = values;
  whole.count = 4;
  sum.type = again.type = MUSTER_FLOAT32;
  sum.op = again.op = MUSTER_SUM;
  group[0].in = group[0].out = values;
  group[0].count = 3;
  group[1].in = group[1].out = values + 2;
  group[1].count = 2;
  again.tensors = group;
  again.tensor_count = 2;
  CHECK(muster_session_begin(session, &again, &ticket) == MUSTER_BAD_ARGUMENT && ticket == 7);
  CHECK(mentions("tensors 0 and 1 of the list overlap"));
  again.tensors = &whole;
  again.tensor_count = 1;
  part.in = values + 3;
  part.out = gathered;
  part.count = 4;
  gather.tensors = &part;
  gather.tensor_count = 1;
  gather.counts = counts;
  if (rank == 0) {
    CHECK_OK(muster_session_begin(session, &sum, &first));
    CHECK(muster_session_begin(session, &again, &ticket) == MUSTER_BAD_ARGUMENT && ticket == 7);
    CHECK(mentions("'overlap.again': its memory is in use by 'overlap', which is in flight"));
    CHECK(muster_session_begin(session, &gather, &ticket) == MUSTER_BAD_ARGUMENT);
    CHECK(mentions("in use by 'overlap'"));
    part.in = gathered;
    part.out = values + 1;
    CHECK(muster_session_run(session, &gather, -1, NULL, NULL) == MUSTER_BAD_ARGUMENT);
    CHECK(mentions("in use by 'overlap'"));
  }
  CHECK_OK(muster_session_run(session, &ready, -1, NULL, NULL));
  if (rank == 1) CHECK_OK(muster_session_begin(session, &sum, &first));
  CHECK_OK(muster_session_wait_for(session, first, -1, NULL));
  CHECK_OK(muster_session_run(session, &again, -1, NULL, NULL));
  CHECK(values[3] == 4);
}

static void check_waiting(muster_session* session, int rank) {
  muster_operation late = operation_of(MUSTER_OPERATION_BARRIER, "late", NULL);
  muster_operation now = operation_of(MUSTER_OPERATION_BARRIER, "now", NULL);
  muster_ticket ticket = 0;
  if (rank == 0) {
    CHECK(muster_session_run(session, &late, 1, &ticket, NULL) == MUSTER_PENDING);
    CHECK(ticket != 0);
    CHECK(muster_session_wait_for(session, ticket, 0, NULL) == MUSTER_PENDING);
    CHECK(muster_session_done(session, ticket) == 0);
  }
  CHECK_OK(muster_session_run(session, &now, -1, NULL, NULL));
  if (rank == 1) CHECK_OK(muster_session_begin(session, &late, &ticket));
  CHECK_OK(muster_session_wait_for(session, ticket, 60000, NULL));
  CHECK(muster_session_wait_for(session, ticket, 0, NULL) == MUSTER_BAD_ARGUMENT);
}

static void check_broadcast(muster_session* session, int rank) {
  char data[2] = {'x', 'x'};
  muster_tensor tensor;
  muster_operation cast = operation_of(MUSTER_OPERATION_BROADCAST, "value.cast", &tensor);
  if (rank == 1) memcpy(data, "hi", 2);
  tensor.in = NULL;
  tensor.out = data;
  tensor.count = sizeof(data);
  cast.root = 1;
  CHECK_OK(muster_session_run(session, &cast, -1, NULL, NULL));
  CHECK(memcmp(data, "hi", 2) == 0);
  cast.root = 7;
  CHECK(muster_session_run(session, &cast, -1, NULL, NULL) == MUSTER_BAD_ARGUMENT);
  CHECK(muster_last_error_code() == MUSTER_BAD_ARGUMENT);
  CHECK(strlen(muster_last_error()) > 0);
  CHECK(muster_last_error_rank() == -1 && strcmp(muster_last_error_host(), "") == 0);
}

static void check_kept_results(muster_session* session, int rank) {
  muster_tensor tensor;
  muster_operation gather = operation_of(MUSTER_OPERATION_ALL_GATHER, "value.gather", &tensor);
  muster_operation swap = operation_of(MUSTER_OPERATION_ALL_TO_ALL, "value.swap", &tensor);
  const uint64_t sent[2] = {1, 2};
  muster_result* result = NULL;
  muster_ticket ticket = 0;
  tensor.in = rank == 0 ? "a" : "bb";
  tensor.out = NULL;
  tensor.count = rank == 0 ? 1 : 2;
  CHECK_OK(muster_session_run(session, &gather, -1, NULL, &result));
  CHECK(muster_result_bytes(result, 0) == 1 && muster_result_bytes(result, 1) == 2);
  CHECK(muster_result_bytes(result, 2) == 0 && muster_result_bytes(result, -1) == 0);
  CHECK(memcmp(muster_result_data(result), "abb", 3) == 0);
  CHECK((uintptr_t)muster_result_data(result) % 64 == 0);
  muster_result_free(result);
  tensor.in = rank == 0 ? "012" : "345";
  tensor.count = 3;
  swap.counts = sent;
  CHECK_OK(muster_session_run(session, &swap, -1, NULL, &result));
  CHECK(muster_result_bytes(result, 0) == (rank == 0 ? 1 : 2));
  CHECK(memcmp(muster_result_data(result), rank == 0 ? "03" : "1245", rank == 0 ? 2 : 4) == 0);
  muster_result_free(result);
  /* An empty result is a result, too. */
  tensor.in = NULL;
  tensor.count = 0;
  CHECK_OK(muster_session_run(session, &gather, -1, NULL, &result));
  CHECK(result != NULL && muster_result_bytes(result, 0) == 0);
  muster_result_free(result);
  muster_result_free(NULL);
  /* Results that are not requested, or not taken. */
  CHECK_OK(muster_session_run(session, &gather, -1, NULL, NULL));
  CHECK_OK(muster_session_begin(session, &gather, &ticket));
}

static void check_given_places(muster_session* session, int rank) {
  muster_tensor tensor;
  muster_operation gather = operation_of(MUSTER_OPERATION_ALL_GATHER, "value.placed", &tensor);
  muster_operation swap = operation_of(MUSTER_OPERATION_ALL_TO_ALL, "value.placed swap", &tensor);
  char all[4] = "...";
  uint64_t counts[2] = {1, 2};
  muster_result* result = NULL;
  tensor.in = rank == 0 ? "a" : "bb";
  tensor.out = all;
  tensor.count = rank == 0 ? 1 : 2;
  CHECK(muster_session_run(session, &gather, -1, NULL, NULL) == MUSTER_BAD_ARGUMENT);
  gather.counts = counts;
  CHECK_OK(muster_session_run(session, &gather, -1, NULL, &result));
  CHECK(result == NULL && memcmp(all, "abb", 3) == 0);
  /* The input is this rank's own part of the output. */
  tensor.in = all + (rank == 0 ? 0 : 1);
  CHECK_OK(muster_session_run(session, &gather, -1, NULL, NULL));
  CHECK(memcmp(all, "abb", 3) == 0);
  /* Rank 1 sends less than rank 0 expects. */
  tensor.in = rank == 0 ? "x" : "y";
  tensor.count = 1;
  memset(all, '.', 3);
  if (rank == 1) counts[1] = 1;
  CHECK(muster_session_run(session, &gather, -1, NULL, NULL) ==
        (rank == 0 ? MUSTER_MISMATCH : MUSTER_OK));
  CHECK(memcmp(all, rank == 0 ? "..." : "xy.", 3) == 0);
  CHECK(rank == 1 || strstr(muster_last_error(), "expects 1 2") != NULL);

  counts[0] = counts[1] = 1;
  tensor.in = rank == 0 ? "01" : "23";
  tensor.count = 2;
  swap.counts = counts;
  CHECK_OK(muster_session_run(session, &swap, -1, NULL, NULL));
  CHECK(memcmp(all, rank == 0 ? "02" : "13", 2) == 0);
}

static void check_mistakes(muster_session* session) {
  float value = 1;
  muster_tensor tensor;
  const uint64_t wrong[2] = {1, 1};
  muster_operation operation = operation_of(42, "value.wrong", &tensor);
  muster_ticket ticket = 0;
  int kind = 0;
  tensor.in = tensor.out = &value;
  tensor.count = 1;
  CHECK(muster_session_begin(session, NULL, &ticket) == MUSTER_BAD_ARGUMENT);
  CHECK(muster_session_begin(session, &operation, NULL) == MUSTER_BAD_ARGUMENT);
  CHECK(muster_session_begin(session, &operation, &ticket) == MUSTER_BAD_ARGUMENT);
  CHECK(strcmp(muster_last_error(), "'value.wrong': unknown kind of operation 42") == 0);
  operation.kind = MUSTER_OPERATION_REDUCE_SCATTER;
  operation.type = MUSTER_FLOAT32;
  operation.op = MUSTER_SUM;
  CHECK(muster_session_begin(session, &operation, &ticket) == MUSTER_BAD_ARGUMENT);
  CHECK(strcmp(muster_last_error(), "'value.wrong': the list of counts is null") == 0);
  operation.counts = wrong;
  CHECK(muster_session_begin(session, &operation, &ticket) == MUSTER_BAD_ARGUMENT);
  CHECK(strstr(muster_last_error(), "the counts add up to 2, but the tensor has 1") != NULL);
  operation.kind = MUSTER_OPERATION_ALL_REDUCE;
  for (kind = 99; kind <= 257; kind += 158) {
    operation.type = kind;
    CHECK(muster_session_begin(session, &operation, &ticket) == MUSTER_BAD_ARGUMENT);
    CHECK(strstr(muster_last_error(), "unknown data type") != NULL);
  }
  operation.name = NULL;
  CHECK(muster_session_begin(session, &operation, &ticket) == MUSTER_BAD_ARGUMENT);
  operation.name = "value.wrong";
  operation.tensor_count = 0;
  for (kind = MUSTER_OPERATION_REDUCE_SCATTER; kind <= MUSTER_OPERATION_ALL_TO_ALL; ++kind) {
    operation.kind = kind;
    CHECK(muster_session_begin(session, &operation, &ticket) == MUSTER_BAD_ARGUMENT);
    CHECK(strstr(muster_last_error(), "takes 1 tensor, not 0") != NULL);
  }
  operation.tensor_count = 1;
  operation.tensors = NULL;
  CHECK(muster_session_begin(session, &operation, &ticket) == MUSTER_BAD_ARGUMENT);
  operation.struct_size = 0;
  CHECK(muster_session_begin(session, &operation, &ticket) == MUSTER_BAD_ARGUMENT);
  CHECK(strstr(muster_last_error(), "MUSTER_OPERATION_INIT") != NULL);
  CHECK(ticket == 0);
}

void check_operations(muster_session* session) {
  const int rank = muster_session_rank(session);
  muster_operation join = operation_of(MUSTER_OPERATION_JOIN, NULL, NULL);
  muster_operation same = operation_of(MUSTER_OPERATION_BARRIER, "value.same", NULL);
  check_reduction_operations(session, rank);
  check_broadcast(session, rank);
  check_overlaps(session, rank);
  check_waiting(session, rank);
  check_given_places(session, rank);
  check_mistakes(session);
  same.shape = rank == 0 ? "float32[?, 3]" : "float32[?, 4]";
  CHECK(muster_session_run(session, &same, -1, NULL, NULL) == MUSTER_MISMATCH);
  CHECK(strstr(muster_last_error(), "hands over float32[?, 3]; rank 1") != NULL);
  CHECK_OK(muster_session_run(session, &join, -1, NULL, NULL));
  check_kept_results(session, rank);
}
