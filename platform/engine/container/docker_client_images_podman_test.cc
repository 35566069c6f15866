// Inspecting and pulling images of a real engine: see test_real_engine.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "engine/container/test_real_engine.h"

namespace muster::engine {
namespace {

using base::ErrorCode;

TEST_F(DockerClientPodman, AnImageIsInspected) {
  const auto image =
      loop_.answer<DockerImage>([&](auto then) { client_.inspect_image(kImage, std::move(then)); });

  ASSERT_TRUE(image) << image.error().to_string();
  EXPECT_FALSE(image->id.empty());
  EXPECT_EQ(image->architecture, info().architecture);
  EXPECT_EQ(image->folder, "/home");
  EXPECT_EQ(image->command, std::vector<std::string>{"/program"});
  EXPECT_TRUE(image->entrypoint.empty());
  EXPECT_NE(std::find(image->environment.begin(), image->environment.end(), "GREETING=hello"),
            image->environment.end());
}

TEST_F(DockerClientPodman, AMissingImageIsNotFound) {
  const auto image = loop_.answer<DockerImage>(
      [&](auto then) { client_.inspect_image("nowhere/team/nothing:1", std::move(then)); });

  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::kNotFound);
  EXPECT_NE(image.error().what.find("nowhere/team/nothing:1"), std::string::npos);
  EXPECT_NE(image.error().what.find("(the engine at " + to_string(client_.endpoint()) + ")"),
            std::string::npos);
}

TEST_F(DockerClientPodman, APullFromAMissingRegistryFails) {
  std::shared_ptr<void> pull;
  const auto pulled = done([&](auto then) {
    pull = client_.pull("127.0.0.1:1/nothing:1", {}, [](const PullProgress&) {}, then);
  });

  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::kUnavailable) << pulled.error().to_string();
  EXPECT_NE(pulled.error().what.find("connection refused"), std::string::npos)
      << pulled.error().what;
}

TEST_F(DockerClientPodman, AnImageIsPulledWithCredentialsAndNotWithout) {
  const char* const image = std::getenv("MUSTER_TEST_REGISTRY_IMAGE");
  const char* const user = std::getenv("MUSTER_TEST_REGISTRY_USER");
  const char* const password = std::getenv("MUSTER_TEST_REGISTRY_PASSWORD");
  ASSERT_TRUE(image != nullptr && user != nullptr && password != nullptr);
  const std::string server = std::string(image).substr(0, std::string(image).find('/'));
  std::shared_ptr<void> pull;

  const auto refused =
      done([&](auto then) { pull = client_.pull(image, {}, [](const PullProgress&) {}, then); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused) << refused.error().to_string();

  const auto missing = done([&](auto then) {
    pull = client_.pull(
        server + "/no/such:9", {.server = server, .username = user, .password = password},
        [](const PullProgress&) {}, then);
  });
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound) << missing.error().to_string();

  std::vector<PullProgress> reported;
  const auto pulled = done([&](auto then) {
    pull = client_.pull(
        image, {.server = server, .username = user, .password = password},
        [&](const PullProgress& progress) { reported.push_back(progress); }, then);
  });
  ASSERT_TRUE(pulled) << pulled.error().to_string();
  EXPECT_FALSE(reported.empty());
  EXPECT_TRUE(
      loop_.answer<DockerImage>([&](auto then) { client_.inspect_image(image, std::move(then)); }));
}

}  // namespace
}  // namespace muster::engine
