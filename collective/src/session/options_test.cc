#include <gtest/gtest.h>

#include <cstdlib>

#include "muster/collective/session.h"

namespace muster::collective {
namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(SessionOptions, AreCompletedFromTheEnvironment) {
  const Variable timeline("MUSTER_COLLECTIVE_TIMELINE", "/tmp/t%r.json");
  const Variable stall("MUSTER_COLLECTIVE_STALL_SECONDS", "1.5");
  const Variable limit("MUSTER_COLLECTIVE_STALL_LIMIT_SECONDS", "9");
  const Variable fusion("MUSTER_COLLECTIVE_FUSION_BYTES", "1000");
  const Variable autotune("MUSTER_COLLECTIVE_AUTOTUNE", "1");
  const Variable log("MUSTER_COLLECTIVE_AUTOTUNE_LOG", "/tmp/log");
  const auto options = session_options_from_environment({.fusion_bytes = 7});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->timeline, "/tmp/t%r.json");
  EXPECT_EQ(options->stall_warning.count(), 1500);
  EXPECT_EQ(options->stall_limit.count(), 9000);
  EXPECT_EQ(options->fusion_bytes, 7u) << "what is given stands";
  EXPECT_TRUE(options->autotune);
  EXPECT_EQ(options->autotune_log, "/tmp/log");
}

TEST(SessionOptions, NameTheVariableThatIsNoNumber) {
  for (const char* value : {"soon", "-1", "1s", "nan"}) {
    const Variable stall("MUSTER_COLLECTIVE_STALL_SECONDS", value);
    const auto options = session_options_from_environment();
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().code, ErrorCode::kConfiguration);
    EXPECT_EQ(options.error().message, "MUSTER_COLLECTIVE_STALL_SECONDS is '" + std::string(value) +
                                           "', which is no number of 0 or more");
  }
}

}  // namespace
}  // namespace muster::collective
