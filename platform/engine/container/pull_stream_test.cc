#include "engine/container/pull_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine {
namespace {

struct Told {
  std::vector<PullProgress> progress;
  PullStream stream{[this](const PullProgress& one) { progress.push_back(one); }};
};

TEST(ParseImageName, TellsTheTagFromThePortOfARegistry) {
  const std::vector<std::pair<std::string, ImageName>> cases{
      {"debian", {"debian", "latest"}},
      {"debian:12", {"debian", "12"}},
      {"horovod/horovod:0.28", {"horovod/horovod", "0.28"}},
      {"host:5000/team/image", {"host:5000/team/image", "latest"}},
      {"host:5000/team/image:2", {"host:5000/team/image", "2"}},
      {"debian@sha256:00ff", {"debian", "sha256:00ff"}},
      {"host:5000/a:1@sha256:00ff", {"host:5000/a", "sha256:00ff"}},
      {"", {"", "latest"}}};
  for (const auto& [text, name] : cases) EXPECT_EQ(parse_image_name(text), name) << text;
}

TEST(PullStream, AddsUpWhatItsLayersTell) {
  Told told;
  ASSERT_TRUE(told.stream.put(
      "{\"status\":\"Pulling from team/image\",\"id\":\"latest\"}\r\n"
      "{\"status\":\"Pulling fs layer\",\"progressDetail\":{},\"id\":\"aa\"}\r\n"
      "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":10,\"total\":100},\"id\":\"aa\"}"
      "\n"
      "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":5,\"total\":50},\"id\":\"bb\"}\n"
      "{\"status\":\"Download complete\",\"progressDetail\":{},\"id\":\"aa\"}\n"
      "{\"status\":\"Extracting\",\"progressDetail\":{\"current\":1,\"total\":9},\"id\":\"aa\"}\n"
      "{\"status\":\"Digest: sha256:0\"}\n"));
  ASSERT_TRUE(told.stream.put_end());

  ASSERT_EQ(told.progress.size(), 7U);
  EXPECT_EQ(told.progress[1].all_bytes, 0);
  EXPECT_EQ(told.progress[2].status, "Downloading");
  EXPECT_EQ(told.progress[2].done_bytes, 10);
  EXPECT_EQ(told.progress[3].done_bytes, 15);
  EXPECT_EQ(told.progress[3].all_bytes, 150);
  EXPECT_EQ(told.progress.back().done_bytes, 105);
  EXPECT_EQ(told.progress.back().all_bytes, 150);
  EXPECT_EQ(told.stream.failure(), "");
}

TEST(PullStream, AFailureIsInTheMidstOfAnAnswerThatBeganWell) {
  Told docker;
  ASSERT_TRUE(
      docker.stream.put("{\"status\":\"Pulling\"}\n{\"errorDetail\":{\"message\":\"no "
                        "space left on device\"},\"error\":\"short\"}\n"));
  EXPECT_EQ(docker.stream.failure(), "no space left on device");

  Told old;
  ASSERT_TRUE(old.stream.put("{\"error\":\"only this\"}"));
  ASSERT_TRUE(old.stream.put_end());
  EXPECT_EQ(old.stream.failure(), "only this");
}

TEST(PullStream, WhatIsNoJsonIsNotUnderstood) {
  for (const char* text : {"<html>\n", "{\"status\":[1]}\n", "{\"status\":\"half\n",
                           "{\"progressDetail\":{\"current\":\"ten\"},\"status\":\"Downloading\","
                           "\"id\":\"a\"}\n"}) {
    Told told;
    EXPECT_FALSE(told.stream.put(text)) << text;
  }
  Told half;
  ASSERT_TRUE(half.stream.put("{\"status\":"));
  EXPECT_FALSE(half.stream.put_end());
}

}  // namespace
}  // namespace muster::engine
