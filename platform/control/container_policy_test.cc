#include "control/container_policy.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

job::JobSpec spec_mounting(const std::string& path, std::vector<std::string> capabilities = {}) {
  job::JobSpec spec;
  spec.volumes = {{.kind = job::Volume::Kind::kStorage, .source = "data", .target = "/storage"},
                  {.kind = job::Volume::Kind::kHostPath, .source = path, .target = "/data"}};
  spec.container.capabilities = std::move(capabilities);
  return spec;
}

TEST(ContainerPolicy, TheOneUserOfAServerMayHaveAll) {
  EXPECT_TRUE(check_container_policy(spec_mounting("/etc", {"SYS_ADMIN"}), {}));
}

TEST(ContainerPolicy, OfASharedServerOnlyWhatIsAllowed) {
  const ContainerPolicy policy{
      .is_shared = true, .host_paths = {"/data/"}, .capabilities = {"SYS_PTRACE"}};

  for (const char* path : {"/data", "/data/", "/etc/../data"}) {
    EXPECT_TRUE(check_container_policy(spec_mounting(path, {"SYS_PTRACE"}), policy)) << path;
  }
  // A job that may write to /data may leave a link there that leads anywhere.
  for (const char* path : {"/", "/etc", "/data/link", "/database", "/data/../etc"}) {
    EXPECT_FALSE(check_container_policy(spec_mounting(path), policy)) << path;
  }
}

TEST(ContainerPolicy, SaysAllThatIsRefusedAtOnce) {
  const auto refused = check_container_policy(spec_mounting("/etc", {"SYS_ADMIN", "NET_RAW"}),
                                              ContainerPolicy{.is_shared = true});

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kRefused);
  ASSERT_EQ(refused.error().faults.size(), 3U);
  EXPECT_EQ(refused.error().faults[0].field, "volumes[1].source");
  EXPECT_EQ(refused.error().faults[2].what, "'NET_RAW' may not be had");
}

}  // namespace
}  // namespace muster::control
