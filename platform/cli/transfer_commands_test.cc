#include <gtest/gtest.h>

#include <optional>

#include "cli/files/files.h"
#include "cli/sessions/sessions.h"

namespace muster::cli {

namespace {

TEST(CopyPlace, IsInATaskIfAJobNamePrecedesTheColon) {
  const std::vector<std::pair<std::string, files::CopyPlace>> words{
      {"dist:/data/x", {.job = "dist", .path = "/data/x"}},
      {"dist:x:y", {.job = "dist", .path = "x:y"}},
      {"dist:", {.job = "dist", .path = "."}},
      {"dist/worker-1:/data", {.job = "dist", .task = "worker-1", .path = "/data"}},
      {"x", {.path = "x"}},
      {"./dist:x", {.path = "./dist:x"}},
      {"/tmp/dist:x", {.path = "/tmp/dist:x"}},
      {"a/b/c:d", {.path = "a/b/c:d"}},
      {"-:x", {.path = "-:x"}},
      {":x", {.path = ":x"}},
      {"A b:x", {.path = "A b:x"}},
  };
  for (const auto& [word, place] : words) {
    EXPECT_EQ(files::copy_place_of(word), place) << word;
    const std::string text = files::to_text(place);
    EXPECT_EQ(text, word.ends_with(':') ? word + "." : word);
  }
}

TEST(ForwardedPort, HasTheSameLocalPortUnlessAnotherIsGiven) {
  const std::vector<std::pair<std::string, sessions::ForwardedPort>> words{
      {"8888", {8888, 8888}},
      {"8080:8888", {8080, 8888}},
      {":8888", {0, 8888}},
      {"0:8888", {0, 8888}},
      {"65535:1", {65535, 1}}};
  for (const auto& [word, ports] : words) {
    const auto read = sessions::forwarded_port_of(word);
    EXPECT_EQ(read ? std::optional(*read) : std::nullopt, ports) << word;
  }
}

TEST(ForwardedPort, InvalidWordsAreRefusedAndNamed) {
  for (const char* word : {"", ":", "x", "0", "65536", "80:", "80:0", "1:2:3", "-1", "80:65536"}) {
    const auto read = sessions::forwarded_port_of(word);
    ASSERT_FALSE(read) << word;
    EXPECT_EQ(read.error().what, "'" + std::string(word) +
                                     "' is neither PORT nor LOCAL:REMOTE, of numbers up to 65535");
  }
}

}  // namespace

}  // namespace muster::cli
