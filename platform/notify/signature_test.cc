#include "notify/signature.h"

#include <gtest/gtest.h>

#include "notify/test_values.h"

namespace muster::notify {
namespace {

// The codes are those of another program:
//   python3 -c 'import hmac; print(hmac.new(KEY, b"TIME.BODY", "sha256").hexdigest())'
TEST(Signature, IsTheHmacOfTimeAndBody) {
  EXPECT_EQ(signature_of("key", at_second(0), ""),
            "t=0,v1=85841b4efc3cd7776c3c8f9b7cca9e281c550e5d19889d78e9e669c6337f000d");
  EXPECT_EQ(signature_of("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                         at_second(1'700'000'000), R"({"id":"d1"})"),
            "t=1700000000,v1=d07a8f10bcbfecdd2b324b31fa03b1c3c2802941c5e5149e0ba8ac3b0b9fb2b5");
  EXPECT_EQ(signature_of("k\xff", at_second(1'700'000'000), "line\nline \xc3\xa9"),
            "t=1700000000,v1=70aae11e6c190062d61ab87f0732b3e70094cdd5dd49446a7c12c7a74eff7cb9");
}

TEST(Signature, HasWholeSeconds) {
  EXPECT_EQ(signature_of("key", at_second(7) + std::chrono::milliseconds(999), "b"),
            signature_of("key", at_second(7), "b"));
}

}  // namespace
}  // namespace muster::notify
