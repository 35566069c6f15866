#include "engine/kubernetes/api_error.h"

#include <gtest/gtest.h>

#include <array>

namespace muster::engine::kubernetes {
namespace {

using base::ErrorCode;

base::Error error_for(int status, const std::string& body, const http::Headers& headers = {}) {
  return error_of(read_refusal(http::Response{.status = status, .body = body, .headers = headers}),
                  "cannot create pods 'x'", "the API server at https://a:6443");
}

TEST(ApiError, HasTheServersWordsAndFacts) {
  const base::Error error = error_for(403, R"({"kind":"Status","apiVersion":"v1","metadata":{},
    "status":"Failure","message":"pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\" in the namespace \"lab\"",
    "reason":"Forbidden","details":{"kind":"pods"},"code":403})");

  EXPECT_EQ(error.code, ErrorCode::kRefused);
  EXPECT_EQ(
      error.what,
      "cannot create pods 'x': the API server at https://a:6443 answered: pods is forbidden: "
      "User \"u\" cannot create resource \"pods\" in API group \"\" in the namespace \"lab\"");
  ASSERT_NE(refusal_of(error), nullptr);
  EXPECT_EQ(refusal_of(error)->kind, "pods");
  EXPECT_TRUE(has_reason(error, "Forbidden"));
  EXPECT_FALSE(has_reason(error, "NotFound"));
  EXPECT_EQ(refusal_of(base::Error{}), nullptr);
}

TEST(ApiError, CausesAreFaults) {
  const base::Error error = error_for(422, R"({"kind":"Status","message":"Pod \"x\" is invalid",
    "reason":"Invalid","details":{"name":"x","kind":"Pod","causes":[
      {"reason":"FieldValueRequired","message":"Required value","field":"spec.containers[0].image"},
      {"reason":"FieldValueInvalid","field":"spec.priority"}, 5]},"code":422})");

  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  ASSERT_EQ(error.faults.size(), 2U);
  EXPECT_EQ(error.faults[0].field, "spec.containers[0].image");
  EXPECT_EQ(error.faults[0].what, "Required value");
  EXPECT_EQ(error.faults[1].what, "FieldValueInvalid");
}

TEST(ApiError, EachStatusHasACode) {
  struct Case {
    int status;
    ErrorCode code;
  };
  const std::array<Case, 10> cases{{{400, ErrorCode::kInvalid},
                                    {401, ErrorCode::kRefused},
                                    {403, ErrorCode::kRefused},
                                    {404, ErrorCode::kNotFound},
                                    {409, ErrorCode::kConflict},
                                    {410, ErrorCode::kNotFound},
                                    {429, ErrorCode::kUnavailable},
                                    {500, ErrorCode::kInternal},
                                    {503, ErrorCode::kUnavailable},
                                    {504, ErrorCode::kUnavailable}}};
  for (const Case& one : cases) EXPECT_EQ(error_for(one.status, "").code, one.code) << one.status;
}

TEST(ApiError, ABudgetForbidsAnEvictionForLonger) {
  const base::Error error = error_for(429, R"({"kind":"Status","reason":"TooManyRequests",
    "message":"Cannot evict pod as it would violate the pod's disruption budget.",
    "details":{"causes":[{"reason":"DisruptionBudget","message":"needs 1"}]},"code":429})");
  EXPECT_EQ(error.code, ErrorCode::kExhausted);
}

TEST(ApiError, ReadsWhenToComeBack) {
  EXPECT_EQ(refusal_of(error_for(429, "", {{"retry-after", "7"}}))->retry_after,
            std::chrono::seconds(7));
  EXPECT_EQ(refusal_of(error_for(504, R"({"kind":"Status","details":{"retryAfterSeconds":3}})"))
                ->retry_after,
            std::chrono::seconds(3));
  EXPECT_FALSE(refusal_of(error_for(429, "", {{"retry-after", "Fri, 31 Dec"}}))->retry_after);
}

TEST(ApiError, AProxysPageIsCutToALine) {
  const base::Error error = error_for(502, "<html>\n" + std::string(5000, 'x'));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_LT(error.what.size(), 500U);
  EXPECT_EQ(error.what.find('\n'), std::string::npos);
  EXPECT_EQ(error_for(404, "\xFF").what.find('\xFF'), std::string::npos);
}

}  // namespace
}  // namespace muster::engine::kubernetes
