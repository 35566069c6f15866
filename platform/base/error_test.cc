#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/result.h"

namespace muster::base {
namespace {

TEST(Error, ShowsEveryFaultWithItsLineAndTheAdviceLast) {
  const Error error{.code = ErrorCode::kInvalid,
                    .what = "job.yaml has 2 faults",
                    .advice = "mend them",
                    .faults = {{.field = "name", .what = "is empty", .line = 3},
                               {.field = "workers", .what = "is negative"}}};

  EXPECT_EQ(error.to_string(),
            "job.yaml has 2 faults\n  line 3: name: is empty\n  workers: is negative\n  mend them");
}

TEST(Error, IsReadBackByItsCodesName) {
  for (const ErrorCode code : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict,
                               ErrorCode::kRefused, ErrorCode::kExhausted, ErrorCode::kUnavailable,
                               ErrorCode::kTimeout, ErrorCode::kInternal}) {
    EXPECT_EQ(error_code_of(to_string(code)), code);
  }
  EXPECT_EQ(error_code_of("a code of next year"), ErrorCode::kInternal);
}

TEST(Error, OfTheSystemContainsTheReasonAndHasACode) {
  const Error error = system_error("cannot write 'log'", ENOSPC);

  EXPECT_EQ(error.what, "cannot write 'log': No space left on device");
  EXPECT_EQ(error.code, ErrorCode::kExhausted);
}

Result<int> half(int number) {
  if (number % 2 != 0) return Error{.code = ErrorCode::kInvalid, .what = "odd"};
  return number / 2;
}

Result<int> quarter(int number) {
  MUSTER_TRY(const int first, half(number));
  return half(first);
}

TEST(Result, TryReturnsTheFirstErrorOrTheValue) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().what, "odd");
}

}  // namespace
}  // namespace muster::base
