#include "server/app.h"

#include <gtest/gtest.h>

#include <string>

#include "base/fake_random.h"

namespace muster::server {
namespace {

std::string id_given(const std::string& given) {
  base::FakeRandom random;
  return request_id({.headers = {{"x-request-id", given}}}, random);
}

TEST(RequestId, IsTheClientsIfItIsValid) {
  EXPECT_EQ(id_given("a"), "a");
  EXPECT_EQ(id_given("run-7.Z_9"), "run-7.Z_9");
  EXPECT_EQ(id_given(std::string(64, 'x')), std::string(64, 'x'));
}

TEST(RequestId, IsNewIfTheClientsIsInvalid) {
  for (const std::string& given :
       {std::string(), std::string(65, 'x'), std::string("a b"), std::string("a\nb"),
        std::string("\xc3\xa4"), std::string("a\0b", 3), std::string("<script>")}) {
    EXPECT_NE(id_given(given), given);
    EXPECT_EQ(id_given(given).size(), 20U) << given;
  }
}

TEST(RequestId, IsDifferentForEachRequestWithoutOne) {
  base::FakeRandom random;
  EXPECT_NE(request_id({}, random), request_id({}, random));
}

}  // namespace
}  // namespace muster::server
