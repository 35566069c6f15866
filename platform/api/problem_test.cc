#include <gtest/gtest.h>

#include "api/wire.h"

namespace muster::api {
namespace {

using base::Error;
using base::ErrorCode;

TEST(Problem, HasTheShapeOfRfc9457) {
  const Error error{.code = ErrorCode::kInvalid,
                    .what = "the spec has 1 fault",
                    .advice = "mend it",
                    .faults = {{.field = "workers", .what = "is \"odd\"", .line = 3}}};

  EXPECT_EQ(problem_to_json(error),
            R"({"type":"about:blank","title":"Bad Request","status":400,)"
            R"("detail":"the spec has 1 fault","code":"invalid","advice":"mend it",)"
            R"("faults":[{"field":"workers","what":"is \"odd\"","line":3}]})");
}

TEST(Problem, ComesBackAsTheErrorItWas) {
  for (const auto code : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict,
                          ErrorCode::kRefused, ErrorCode::kExhausted, ErrorCode::kUnavailable,
                          ErrorCode::kTimeout, ErrorCode::kInternal}) {
    const Error error{
        .code = code,
        .what = "what",
        .advice = "advice",
        .faults = {{.field = "a", .what = "b", .line = 0}, {.field = "c", .what = "d", .line = 7}}};

    const Error back = problem_from_json(http_status_of(code), problem_to_json(error));

    EXPECT_EQ(back.code, code);
    EXPECT_EQ(back.to_string(), error.to_string());
  }
}

TEST(Problem, EachCodeHasAStatusThatMeansItAgain) {
  for (const auto code : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict,
                          ErrorCode::kRefused, ErrorCode::kExhausted, ErrorCode::kUnavailable,
                          ErrorCode::kTimeout, ErrorCode::kInternal}) {
    EXPECT_EQ(problem_from_json(http_status_of(code), "").code, code);
  }
}

TEST(Problem, AnAnswerThatIsNoneBecomesOneOfItsStatus) {
  for (const char* text : {"", "<html>", "[]", "{}", R"({"detail":5})"}) {
    const Error error = problem_from_json(503, text);

    EXPECT_EQ(error.code, ErrorCode::kUnavailable) << text;
    EXPECT_EQ(error.what, "the server answered 503 Service Unavailable") << text;
  }
}

TEST(Problem, MayHoldMembersThatWeDoNotKnow) {
  const Error error = problem_from_json(
      409,
      R"({"type":"x","title":"y","status":409,"detail":"taken","instance":"/a","code":"new"})");

  EXPECT_EQ(error.what, "taken");
  EXPECT_EQ(error.code, ErrorCode::kInternal);
}

TEST(Problem, IsJsonWhateverTheSentencesHold) {
  const Error error{.code = ErrorCode::kNotFound, .what = "no file '\xFF\n'"};

  EXPECT_EQ(problem_from_json(404, problem_to_json(error)).what, "no file '\xEF\xBF\xBD\n'");
}

}  // namespace
}  // namespace muster::api
